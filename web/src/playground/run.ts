// A training run that goes on while one looks.
import type { Engine, Implied, Point } from "./engine";
import type { State } from "./state";
import { startArray } from "./state";
import { arraysOf } from "./task";

const longest = 1_000_000; // steps at which a run pauses
const budget = 7; // milliseconds of a frame that training may take
const growth = 0.03; // steps to the next point, as a share of those taken: points lie evenly on a logarithmic axis

export class Run {
  points: Point[] = [];
  implied: Implied | null = null;
  playing = false;
  problem = ""; // why there is no run
  ended = ""; // why it goes no further

  constructor(private readonly engine: Engine) {}

  get last(): Point | null {
    return this.points.at(-1) ?? null;
  }

  /** Begins again with the settings of the state. */
  restart(state: State): void {
    this.points = [];
    this.problem = this.ended = "";
    this.implied = null;
    try {
      const { implied, ...point } = this.engine.call("start", {
        task: arraysOf(state.task),
        param: state.param,
        optimizer: state.optimizer,
        step: state.step,
        loss: state.loss,
        joint: state.joint,
        seed: state.seed,
        W: state.param === "KQ" ? null : startArray(state.start),
        v: state.joint && state.startHead ? { shape: [state.startHead.length, 1], data: state.startHead } : null,
      });
      this.implied = implied;
      this.points = [point];
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.playing = false;
    }
  }

  /** Trains for a part of a frame. */
  tick(): void {
    const end = performance.now() + budget;
    while (this.playing && performance.now() < end) this.advanceTo(this.nextStep());
  }

  /** Trains to a step, with points on the way. */
  advanceTo(step: number): void {
    const from = this.last?.step ?? 0;
    if (this.ended || this.problem || step <= from) {
      this.playing = false;
      return;
    }
    const point = this.engine.call("advance", { until: step });
    if (point.step > from) this.points.push(point);
    if (point.stop) this.ended = point.stop;
    else if (point.step >= longest) this.ended = "steps";
    if (this.ended) this.playing = false;
  }

  nextStep(): number {
    const from = this.last?.step ?? 0;
    return Math.min(longest, from + Math.max(1, Math.ceil(growth * from)));
  }

  /** The SVM on screen is another one. */
  compare(): void {
    if (this.points.length === 0) return;
    const W = this.points.map((point) => ({ shape: [point.W.length, point.W[0]?.length ?? 0], data: point.W.flat() }));
    const { correlation, rho } = this.engine.call("compare", { W });
    this.points = this.points.map((point, k) => ({
      ...point,
      correlation: correlation[k] ?? null,
      rho: rho[k] ?? null,
    }));
  }
}
