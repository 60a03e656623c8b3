// The query and the recorded step that the reader chose. Views follow it.

export interface State {
  query: number;
  step: number;
}

export class Store {
  private readonly listeners: ((changed: Partial<State>) => void)[] = [];
  constructor(private value: State) {}

  get(): Readonly<State> {
    return this.value;
  }
  set(changed: Partial<State>): void {
    const before = this.value;
    this.value = { ...before, ...changed };
    if (before.query === this.value.query && before.step === this.value.step) return;
    for (const listener of this.listeners) listener(changed);
  }
  on(listener: (changed: Partial<State>) => void): void {
    this.listeners.push(listener);
  }
}
