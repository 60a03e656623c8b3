// Where vectors of key space are drawn: two directions at right angles, chosen by the view.
import type { State } from "./state";
import { apply, asked, dot, keySize, plus, size, type Task, times, type Vector } from "./task";

export interface Projection {
  across: Vector;
  up: Vector;
  turns: boolean; // by dragging
  share: number; // of the tokens' squared lengths that lies in the plane
}

const unit = (d: number, k: number): number[] => Array.from({ length: d }, (_, j) => (j === k ? 1 : 0));

/** What of x is at right angles to the others, of length 1; null where nothing is left. */
function apart(x: Vector, others: readonly Vector[]): number[] | null {
  let left = [...x];
  for (const other of [...others, ...others]) left = plus(left, other, -dot(left, other));
  const length = size(left);
  return length > 1e-9 * Math.max(1, size(x)) ? times(left, 1 / length) : null;
}

/** Coordinates that some key has; those of planar tasks in space have two. */
function used(task: Task): number[] {
  const d = keySize(task);
  const all = task.sequences.flat();
  return Array.from({ length: d }, (_, k) => k).filter((k) => all.some((token) => token.key[k] !== 0));
}

export const isFlat = (task: Task): boolean => used(task).length <= 2;

/** Directions in which tokens spread most, at right angles to `others`, by repeated multiplication. */
function principal(task: Task, count: number, others: readonly Vector[] = []): number[][] {
  const d = keySize(task);
  const all = task.sequences.flat().map((token) => token.key);
  const mean = times(
    all.reduce<Vector>((sum, key) => plus(sum, key), new Array<number>(d).fill(0)),
    1 / all.length,
  );
  const centred = all.map((key) => plus(key, mean, -1));
  const found: number[][] = [];
  for (let k = 0; k < count; k += 1) {
    const fixed = [...others, ...found];
    let direction = firstApart(d, fixed);
    if (!direction) break;
    for (let round = 0; round < 60; round += 1) {
      let next: Vector = new Array<number>(d).fill(0);
      for (const key of centred) next = plus(next, key, dot(key, direction));
      const turned = apart(next, fixed);
      if (!turned) break;
      direction = turned;
    }
    const heaviest = direction.reduce((best, x) => (Math.abs(x) > Math.abs(best) ? x : best), 0);
    found.push(heaviest < 0 ? times(direction, -1) : direction);
  }
  return found;
}

/** A direction at right angles to the others that prefers no coordinate. */
function firstApart(d: number, others: readonly Vector[]): number[] | null {
  const even = apart(
    Array.from({ length: d }, (_, j) => 1 + j / (7 * d)),
    others,
  );
  if (even) return even;
  for (let k = 0; k < d; k += 1) {
    const one = apart(unit(d, k), others);
    if (one) return one;
  }
  return null;
}

function turned(axes: readonly Vector[], [around, over]: readonly [number, number]): [Vector, Vector] {
  const [x = [], y = [], z = []] = axes;
  const a = (around * Math.PI) / 180,
    b = (over * Math.PI) / 180;
  const across = plus(times(x, Math.cos(a)), z, Math.sin(a));
  const deep = plus(times(x, -Math.sin(a)), z, Math.cos(a));
  return [across, plus(times(y, Math.cos(b)), deep, -Math.sin(b))];
}

/** `W`: of the SVM on screen; null where there is none. */
export function projectionOf(state: State, W: readonly Vector[] | null): Projection {
  const { task, query, turn } = state;
  const d = keySize(task);
  const all = task.sequences.flat().map((token) => token.key);
  const made = (across: Vector, up: Vector, turns = false): Projection => {
    const whole = all.reduce((sum, key) => sum + dot(key, key), 0);
    const held = all.reduce((sum, key) => sum + dot(key, across) ** 2 + dot(key, up) ** 2, 0);
    return { across, up, turns, share: whole > 0 ? held / whole : 1 };
  };
  const coordinates = used(task);
  const one = task.queries[query];
  if (state.view === "margin" && W && one) {
    const up = apart(apply(W, asked(task, one)), []);
    const across = up && (principal(task, 1, [up])[0] ?? firstApart(d, [up]));
    if (up && across) return made(across, up);
  }
  if (coordinates.length <= 2 || state.view === "plane") {
    const [first = 0, second = first === 1 ? 0 : 1] = coordinates;
    const up = d > 1 ? unit(d, second) : new Array<number>(d).fill(0);
    return made(unit(d, first), up);
  }
  const axes = coordinates.length === 3 ? coordinates.map((k) => unit(d, k)) : principal(task, 3);
  const [across, up] = turned(axes, turn);
  return made(across, up, true);
}
