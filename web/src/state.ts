// What the reader chose, and its address: every view follows the state, and the state follows the address, so that
// pages can be linked to and Back works.

export interface State {
  view: string;
  query: number;
  step: number; // number of a recorded point of the first run
  run: number;
  across: number; // axes of the plane
  up: number;
}

type Listener = (changed: ReadonlySet<keyof State>) => void;
const numbers = ["query", "step", "run", "across", "up"] as const;
const pause = 300; // milliseconds between two writings of the address: browsers allow no more while a slider moves

export class Store {
  private readonly listeners: Listener[] = [];
  private value: State;
  private timer = 0;

  /** `first` is shown where the address says nothing else; `limits` are the largest numbers that there are. */
  constructor(
    private readonly first: State,
    private readonly limits: Record<(typeof numbers)[number], number>,
    private readonly views: string[],
  ) {
    this.value = this.read();
    addEventListener("hashchange", () => {
      clearTimeout(this.timer);
      this.change(this.read());
    });
  }

  get(): Readonly<State> {
    return this.value;
  }

  /** A choice that Back takes back, but for steps: there are too many of them. */
  set(changed: Partial<State>): void {
    const before = this.address();
    this.change({ ...this.value, ...changed });
    const after = this.address();
    if (after === before) return;
    clearTimeout(this.timer);
    if (Object.keys(changed).some((key) => key !== "step")) history.pushState(null, "", after);
    else this.timer = window.setTimeout(() => history.replaceState(null, "", this.address()), pause);
  }

  on(listener: Listener): void {
    this.listeners.push(listener);
  }

  /** Where a choice leads. */
  address(changed: Partial<State> = {}): string {
    const state = { ...this.value, ...changed };
    const parts = numbers.filter((key) => state[key] !== this.first[key]).map((key) => `${key}=${state[key]}`);
    return `#${state.view}${parts.length > 0 ? `?${parts.join("&")}` : ""}`;
  }

  private read(): State {
    const [view = "", choices = ""] = location.hash.slice(1).split("?");
    const state = { ...this.first };
    if (this.views.includes(view)) state.view = view;
    const given = new URLSearchParams(choices);
    for (const key of numbers) {
      const value = Number(given.get(key) ?? NaN);
      if (Number.isInteger(value) && value >= 0 && value <= this.limits[key]) state[key] = value;
    }
    return state;
  }

  private change(to: State): void {
    const before = this.value;
    this.value = to;
    const changed = new Set((Object.keys(to) as (keyof State)[]).filter((key) => to[key] !== before[key]));
    if (changed.size > 0) for (const listener of this.listeners) listener(changed);
  }
}
