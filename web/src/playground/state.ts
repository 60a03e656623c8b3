// What is on screen, and its address: the whole task is in it, so that a link shows the same, and Back takes edits back.
import { type Engine, fromBase64, packed, type TaskArrays, unpacked } from "./engine";
import { wholeNumbers } from "./npz";
import { arraysOf, most, type Task, taskFrom, type Vector } from "./task";

export type View = "plane" | "turn" | "margin";

export interface State {
  task: Task;
  query: number; // the one whose margins are drawn
  norm: string;
  select: readonly number[] | "opt" | "run" | null; // null: the task's own, else opt
  param: "W" | "KQ" | "p";
  optimizer: string;
  step: number;
  loss: string;
  joint: boolean;
  seed: number;
  start: readonly Vector[] | null; // W at step 0; null: zero, or random for K and Q
  startHead: Vector | null; // v at step 0, where the head is trained too
  preset: string; // whose caption is shown; empty: none
  view: View;
  turn: readonly [number, number]; // angles of the view, in degrees
}

const matrix = (rows: readonly Vector[]): { shape: number[]; data: number[] } => ({
  shape: [rows.length, rows[0]?.length ?? 0],
  data: rows.flat(),
});

const params = ["W", "KQ", "p"],
  views = ["plane", "turn", "margin"];

/** Error unless every setting is of the kind that the page itself writes: links come from anywhere. */
function requireSettings(given: Omit<State, "task" | "start" | "startHead">): void {
  const word = (text: unknown): boolean => typeof text === "string" && /^[\w:.-]*$/.test(text);
  const whole = (number: unknown): boolean => Number.isInteger(number) && Number(number) >= 0;
  const { select, turn } = given;
  const selects =
    select === null || select === "opt" || select === "run" || (Array.isArray(select) && select.every(whole));
  const turns = Array.isArray(turn) && turn.length === 2 && turn.every(Number.isFinite);
  const fits =
    [given.norm, given.optimizer, given.loss, given.preset].every(word) &&
    params.includes(given.param) &&
    views.includes(given.view) &&
    Number.isFinite(given.step) &&
    given.step > 0 &&
    typeof given.joint === "boolean" &&
    whole(given.seed) &&
    whole(given.query);
  if (!fits || !selects || !turns) throw new Error("its settings are not those of this page");
}

function rows(array: { shape: number[]; data: ArrayLike<number> } | null): number[][] | null {
  if (!array) return null;
  const [height = 0, width = 0] = array.shape;
  return Array.from({ length: height }, (_, k) =>
    Array.from({ length: width }, (_one, j) => array.data[k * width + j] ?? 0),
  );
}

export const startArray = (start: State["start"]): ReturnType<typeof matrix> | null => start && matrix(start);

/** For addresses: letters that need no escape. */
export function addressOf(state: State): string {
  const { task, start, startHead, ...rest } = state;
  const names = task.sequences.flat().map((token) => token.name);
  const { words, numbers } = packed({
    ...rest,
    arrays: arraysOf(task),
    names: names.some((name) => name !== "") ? names : [],
    start: startArray(start),
    startHead: startHead && matrix([startHead]),
  });
  const text = new TextEncoder().encode(words);
  const bytes = new Uint8Array(4 + text.length + 8 * numbers.length);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  bytes.set(new Uint8Array(numbers.buffer), 4 + text.length);
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return `#task=${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** The task of these arrays. Error where the library refuses them, or the page cannot show them. */
export function taskOf(engine: Engine, arrays: TaskArrays, names: readonly string[]): Task {
  for (const [name, { data }] of Object.entries(arrays))
    if (wholeNumbers.has(name) && !Array.from(data).every(Number.isSafeInteger))
      throw new Error(`${name}: must be integers`);
  const task = taskFrom(arrays, names);
  const reason = tooLarge(task);
  if (reason) throw new Error(`this task is too large to be dragged around: ${reason}`);
  // The arrays as they came: what the library refuses must not be mended on the way.
  engine.call("solve", { task: arrays, norm: "fro", select: selectable(task) });
  return task;
}

/** What is kept in a task that comes without a choice: without a head there are no best tokens. */
export const selectable = (task: Task): number[] | null =>
  task.head || task.select ? null : task.queries.map(() => 0);

/** Null where the address holds no task. Error where it holds one that cannot be shown. */
export function stateFrom(hash: string, engine: Engine): State | null {
  const found = /^#task=([\w-]+)$/.exec(hash)?.[1];
  if (!found) return null;
  const bytes = fromBase64(found.replaceAll("-", "+").replaceAll("_", "/"));
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const numbers = new Float64Array(bytes.slice(4 + length).buffer);
  const { arrays, names, start, startHead, ...rest } = unpacked(
    new TextDecoder().decode(bytes.subarray(4, 4 + length)),
    numbers,
  ) as Omit<State, "task" | "start" | "startHead"> & {
    arrays: TaskArrays;
    names: string[];
    start: ReturnType<typeof matrix> | null;
    startHead: ReturnType<typeof matrix> | null;
  };
  requireSettings(rest);
  if (!Array.isArray(names) || !names.every((name) => typeof name === "string"))
    throw new Error("its names are not text");
  if (![start, startHead].every((one) => one === null || Array.from(one.data).every(Number.isFinite)))
    throw new Error("its start is not finite");
  const task = taskOf(engine, arrays, names);
  return {
    ...rest,
    task,
    query: Math.min(rest.query, task.queries.length - 1),
    select: rest.select ?? selectable(task),
    start: rows(start),
    startHead: rows(startHead)?.[0] ?? null,
  };
}

/** A choice in the address such as #preset=single-local. */
export const presetFrom = (hash: string): string | null => /^#preset=([\w-]+)$/.exec(hash)?.[1] ?? null;

/** A draw in the address such as #draw=random&n=6&T=8&d=10&seed=1. */
export function drawFrom(hash: string): { kind: string; n?: number; T?: number; d?: number; seed?: number } | null {
  if (!hash.startsWith("#draw=")) return null;
  const given = new URLSearchParams(hash.slice(1));
  const draw: { kind: string; n?: number; T?: number; d?: number; seed?: number } = { kind: given.get("draw") ?? "" };
  for (const key of ["n", "T", "d", "seed"] as const) {
    if (!given.has(key)) continue;
    const value = Number(given.get(key));
    const largest = { n: most.queries, T: most.tokens, d: most.d, seed: Number.MAX_SAFE_INTEGER }[key];
    const least = key === "seed" ? 0 : 1;
    if (!Number.isInteger(value) || value < least || value > largest)
      throw new Error(`${key} must be an integer from ${least} to ${largest}`);
    draw[key] = value;
  }
  return draw;
}

/** Why the page cannot show the task; empty: it can. */
export function tooLarge(task: Task): string {
  const longest = Math.max(...task.sequences.map((tokens) => tokens.length));
  const d = task.sequences[0]?.[0]?.key.length ?? 0;
  if (longest > most.tokens || task.sequences.length * longest > 10 * most.tokens)
    return `it has ${task.sequences.length} sequences of up to ${longest} tokens`;
  if (task.queries.length > most.queries) return `it has ${task.queries.length} queries`;
  return d > most.d ? `its tokens have ${d} coordinates` : "";
}
