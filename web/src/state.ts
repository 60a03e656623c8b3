// What the reader chose, and its address: every view follows the state, and the state follows the address, so that
// pages can be linked to and Back works.

/** A view, and numbers that choose within it. */
export interface Choices {
  view: string;
}

/** What can be chosen in a report. */
export interface State extends Choices {
  query: number;
  step: number; // place of the slider
  run: number;
  across: number; // axes of the plane
  up: number;
  head: number; // of those in full
}

type Listener<S> = (changed: ReadonlySet<keyof S>) => void;
type Numbers<S> = Exclude<keyof S, "view"> & string;
const pause = 300; // milliseconds between two writings of the address: browsers allow no more while a slider moves

export class Store<S extends Choices = State> {
  private readonly listeners: Listener<S>[] = [];
  private readonly numbers: Numbers<S>[];
  private value: S;
  private timer = 0;

  /** `first` is shown where the address says nothing else; `limits` are the largest numbers that there are. */
  constructor(
    private readonly first: S,
    private readonly limits: Record<Numbers<S>, number>,
    private readonly views: string[],
  ) {
    this.numbers = Object.keys(limits) as Numbers<S>[];
    this.value = this.read();
    addEventListener("hashchange", () => {
      clearTimeout(this.timer);
      this.change(this.read());
    });
  }

  get(): Readonly<S> {
    return this.value;
  }

  /** A choice that Back takes back, but for steps: there are too many of them. */
  set(changed: Partial<S>): void {
    const before = this.address();
    this.change({ ...this.value, ...changed });
    const after = this.address();
    if (after === before) return;
    clearTimeout(this.timer);
    if (Object.keys(changed).some((key) => key !== "step")) history.pushState(null, "", after);
    else this.timer = window.setTimeout(() => history.replaceState(null, "", this.address()), pause);
  }

  on(listener: Listener<S>): void {
    this.listeners.push(listener);
  }

  /** Where a choice leads. */
  address(changed: Partial<S> = {}): string {
    const state = { ...this.value, ...changed };
    const parts = this.numbers.filter((key) => state[key] !== this.first[key]).map((key) => `${key}=${state[key]}`);
    return `#${state.view}${parts.length > 0 ? `?${parts.join("&")}` : ""}`;
  }

  private read(): S {
    const [view = "", choices = ""] = location.hash.slice(1).split("?");
    const state = { ...this.first };
    if (this.views.includes(view)) state.view = view;
    const given = new URLSearchParams(choices);
    for (const key of this.numbers) {
      const value = Number(given.get(key) ?? NaN);
      if (Number.isInteger(value) && value >= 0 && value <= this.limits[key]) Object.assign(state, { [key]: value });
    }
    return state;
  }

  private change(to: S): void {
    const before = this.value;
    this.value = to;
    const changed = new Set((Object.keys(to) as (keyof S)[]).filter((key) => to[key] !== before[key]));
    if (changed.size > 0) for (const listener of this.listeners) listener(changed);
  }
}
