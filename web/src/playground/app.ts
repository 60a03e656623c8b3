// What is on screen: the state, the answer to its SVM, and its run. Parts of the page read them, and are told when.
import type { Answer, Engine } from "./engine";
import { type Projection, projectionOf } from "./projection";
import { Run } from "./run";
import { addressOf, type State } from "./state";
import { arraysOf, type Query, seen, type Vector } from "./task";

export type Part = "task" | "answer" | "run" | "view" | "settings";
type Listener = (changed: ReadonlySet<Part>) => void;

const ofTraining = ["task", "param", "optimizer", "step", "loss", "joint", "seed", "start", "startHead"] as const;
const ofAnswer = ["task", "norm", "select"] as const;
const enough = 100; // steps from which on the tokens that training prefers count as selected
const pause = 500; // milliseconds after the last press of a key until the edit is in the address

/** How many edits Back can take back before it leaves the page. */
export const edits = (): number => (history.state as { edits?: number } | null)?.edits ?? 0;

export class App {
  answer: Answer | null = null;
  problem = ""; // why there is no answer
  milliseconds = 0; // that the last solve took
  projection: Projection;
  readonly run: Run;
  frozen = false; // the view stays while something is dragged
  private readonly listeners: Listener[] = [];
  private readonly changed = new Set<Part>();
  private stale = { answer: true, run: true };
  private waiting = false;
  private timer = 0;
  private followed: readonly number[] | null = null; // tokens that a run has selected, where the answer follows it

  constructor(
    readonly engine: Engine,
    public state: State,
  ) {
    this.run = new Run(engine);
    this.projection = projectionOf(state, null);
    this.refresh();
  }

  on(listener: Listener): void {
    this.listeners.push(listener);
  }

  /** W of the SVM on screen; null where there is none. */
  get W(): readonly Vector[] | null {
    return this.answer?.status === "optimal" ? this.answer.W : null;
  }

  /** `how`: an edit that is done goes into the history; one that is going on does not, and one by keys does a little later. */
  set(to: Partial<State>, how: "done" | "going on" | "keys" = "done"): void {
    const before = this.state;
    this.state = { ...before, ...to };
    const differs = (keys: readonly (keyof State)[]): boolean => keys.some((key) => this.state[key] !== before[key]);
    if (differs(ofAnswer)) this.stale.answer = true;
    if (differs(ofTraining)) this.stale.run = true;
    if (this.state.task !== before.task) this.changed.add("task");
    if (differs(["query", "view", "turn"])) this.changed.add("view");
    this.changed.add("settings");
    this.wake();
    clearTimeout(this.timer);
    if (how === "keys") this.timer = window.setTimeout(() => this.remember(), pause);
    else if (how === "done") this.remember();
  }

  /** A state from elsewhere: the history, a file, a preset. */
  show(state: State, remember: boolean): void {
    this.run.playing = false;
    this.followed = null;
    this.set(state, remember ? "done" : "going on");
    this.changed.add("view");
  }

  play(on: boolean): void {
    if (on && this.run.ended) this.stale.run = true;
    this.run.playing = on;
    this.changed.add("run");
    this.wake();
  }

  /** Back to step 0. */
  rewind(): void {
    this.run.playing = false;
    this.stale.run = true;
    this.wake();
  }

  /** Trains to a step at once. */
  trainTo(step: number): void {
    this.run.playing = false;
    if (this.stale.run) this.refresh();
    while ((this.run.last?.step ?? step) < step && !this.run.ended)
      this.run.advanceTo(Math.min(step, this.run.nextStep()));
    this.changed.add("run");
    this.wake();
  }

  wake(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.refresh();
      const told = new Set(this.changed);
      this.changed.clear();
      for (const listener of this.listeners) listener(told);
      if (this.run.playing) this.wake();
    });
  }

  private remember(): void {
    clearTimeout(this.timer);
    const address = addressOf(this.state);
    if (address !== location.hash) history.pushState({ edits: edits() + 1 }, "", address);
  }

  private refresh(): void {
    const { run, state } = this;
    if (this.stale.run && (!this.frozen || run.playing)) {
      run.restart(state);
      this.stale.run = false;
      this.changed.add("run");
    }
    if (run.playing) {
      run.tick();
      this.changed.add("run");
    }
    if (this.follow() || this.stale.answer) {
      this.solve();
      this.changed.add("answer").add("run");
    }
    if (!this.frozen && (this.changed.size > 1 || !this.changed.has("run")))
      this.projection = projectionOf(state, this.W);
  }

  /** Whether the answer is to be that of other tokens, because training has come to select them. */
  private follow(): boolean {
    const { state, run } = this;
    const { queries } = state.task;
    const before = this.followed;
    const last = run.last;
    if (last && (last.step >= enough || run.ended)) this.followed = last.selected;
    const fits =
      this.followed?.length === queries.length &&
      this.followed.every((t, i) => t < seen(state.task, queries[i] as Query));
    if (!fits) this.followed = null;
    return state.select === "run" && this.followed?.join() !== before?.join();
  }

  private solve(): void {
    const { state, run } = this;
    const select = state.select === "run" ? (this.followed ?? "opt") : state.select;
    const began = performance.now();
    try {
      this.answer = this.engine.call("solve", {
        task: arraysOf(state.task),
        norm: state.norm,
        select: Array.isArray(select) ? [...(select as number[])] : (select as "opt" | null),
      });
      this.problem = "";
      this.milliseconds = performance.now() - began;
      run.compare();
    } catch (error) {
      this.answer = null;
      this.problem = error instanceof Error ? error.message : String(error);
    }
    this.stale.answer = false;
  }
}
