// A task that can be edited. Nothing here changes a task: every edit returns another one.
import type { Numbers, TaskArrays } from "./engine";

export type Vector = readonly number[];

export interface Token {
  key: Vector;
  value: Vector | null; // null: the key itself
  name: string;
}

export interface Query {
  sequence: number;
  z: Vector | null; // cross attention
  token: number | null; // self attention: whose key asks
  visible: number | null; // null: all tokens
  label: number;
}

export type Kind = "prompt" | "cross" | "self" | "causal";

export interface Task {
  sequences: readonly (readonly Token[])[];
  queries: readonly Query[];
  head: { v: Vector; hidden: readonly Vector[] | null; lambda: number | null } | null;
  select: readonly (readonly number[])[] | null; // tokens that each query keeps
}

export const most = { tokens: 60, queries: 64, d: 64 }; // what the page can show

export const dot = (a: Vector, b: Vector): number => a.reduce((sum, x, k) => sum + x * (b[k] ?? 0), 0);
export const size = (a: Vector): number => Math.hypot(...a);
export const plus = (a: Vector, b: Vector, by = 1): number[] => a.map((x, k) => x + by * (b[k] ?? 0));
export const times = (a: Vector, by: number): number[] => a.map((x) => x * by);
const zeros = (count: number): number[] => new Array<number>(count).fill(0);

export const keySize = (task: Task): number => task.sequences[0]?.[0]?.key.length ?? 0;

/** W z for rows of W. */
export const apply = (W: readonly Vector[], z: Vector): number[] => W.map((row) => dot(row, z));

/** The vector that asks. */
export function asked(task: Task, query: Query): Vector {
  if (query.z) return query.z;
  return query.token === null ? [1] : (task.sequences[query.sequence]?.[query.token]?.key ?? []);
}

export const seen = (task: Task, query: Query): number => query.visible ?? task.sequences[query.sequence]?.length ?? 0;

export function kindOf(task: Task): Kind {
  const [first] = task.queries;
  if (!first || (first.z === null && first.token === null)) return "prompt";
  if (first.z) return "cross";
  return isCausal(task) ? "causal" : "self";
}

/** Whether every token asks, once, and sees the tokens up to itself. Files may hide others. */
function isCausal({ sequences, queries }: Task): boolean {
  const asking = new Set(queries.map(({ sequence, token }) => `${sequence} ${token}`));
  return (
    asking.size === queries.length &&
    queries.length === sequences.flat().length &&
    queries.every((query) => (query.visible ?? sequences[query.sequence]?.length) === (query.token ?? 0) + 1)
  );
}

function rowsOf(array: Numbers): number[][] {
  const width = array.shape.at(-1) ?? 1;
  const count = width === 0 ? 0 : array.data.length / width;
  return Array.from({ length: count }, (_, k) =>
    Array.from({ length: width }, (_one, j) => array.data[k * width + j] ?? 0),
  );
}

const listOf = (array: Numbers | undefined): number[] | null => (array ? Array.from(array.data) : null);

/** A task from the arrays of its file, and the names of its tokens, of all sequences together. */
export function taskFrom(arrays: TaskArrays, names: readonly string[] = []): Task {
  const tokens = arrays["tokens"];
  if (!tokens) throw new Error("the task has no array tokens");
  const values = rowsOf(tokens);
  const keys = arrays["keys"] ? rowsOf(arrays["keys"]) : values;
  let offsets = listOf(arrays["offsets"]);
  if (!offsets) {
    const [n = 0, T = 0] = tokens.shape;
    if (tokens.shape.length !== 3) throw new Error("tokens must have three axes, or come with offsets");
    offsets = Array.from({ length: n + 1 }, (_, s) => s * T);
  }
  const sequences = offsets.slice(1).map((end, s) =>
    keys.slice(offsets[s], end).map((key, t): Token => {
      const k = (offsets[s] ?? 0) + t;
      return { key, value: arrays["keys"] ? (values[k] ?? []) : null, name: names[k] ?? "" };
    }),
  );
  const z = arrays["queries"] ? rowsOf(arrays["queries"]) : null;
  const asking = listOf(arrays["query_token"]);
  const sequence = listOf(arrays["sequence"]) ?? (z ?? asking ?? sequences).map((_, k) => k);
  if (arrays["bias"]) throw new Error("the task has a bias; this page takes tasks whose logits are W's alone");
  if (arrays["visible"] && arrays["visible"].shape.length !== 1)
    throw new Error("visible is a mask; this page takes tasks whose queries see all tokens or the leading ones");
  const visible = listOf(arrays["visible"]);
  const labels = listOf(arrays["labels"]);
  const queries = sequence.map((s, i): Query => {
    const seenHere = visible?.[i] ?? null;
    return {
      sequence: s,
      z: z?.[i] ?? null,
      token: asking?.[i] ?? null,
      visible: seenHere === sequences[s]?.length ? null : seenHere,
      label: labels?.[i] ?? 1,
    };
  });
  const select = arrays["select"];
  const mask = select && select.shape.length === 2 ? rowsOf(select) : null;
  const kept = mask
    ? mask.map((row) => row.flatMap((one, t) => (one === 0 ? [] : [t])))
    : (listOf(select)?.map((token) => [token]) ?? null);
  const v = listOf(arrays["head"]);
  return {
    sequences,
    queries,
    head: v && {
      v,
      hidden: arrays["head_hidden"] ? rowsOf(arrays["head_hidden"]) : null,
      lambda: arrays["head_quadratic"]?.data[0] ?? null,
    },
    select: kept,
  };
}

const matrix = (rows: readonly Vector[]): Numbers => ({
  shape: [rows.length, rows[0]?.length ?? 0],
  data: rows.flat(),
});
const list = (data: number[]): Numbers => ({ shape: [data.length], data });

/** The arrays that the task's file holds. */
export function arraysOf(task: Task): TaskArrays {
  const { sequences, queries, head, select } = task;
  const all = sequences.flat();
  const T = sequences[0]?.length ?? 0;
  const even = sequences.every((one) => one.length === T);
  const shaped = (rows: readonly Vector[]): Numbers => {
    const flat = matrix(rows);
    return even ? { shape: [sequences.length, T, flat.shape[1] ?? 0], data: flat.data } : flat;
  };
  const arrays: TaskArrays = { tokens: shaped(all.map((token) => token.value ?? token.key)) };
  if (!even) {
    const offsets = [0];
    for (const one of sequences) offsets.push((offsets.at(-1) ?? 0) + one.length);
    arrays["offsets"] = list(offsets);
  }
  if (all.some((token) => token.value)) arrays["keys"] = shaped(all.map((token) => token.key));
  if (queries[0]?.z) arrays["queries"] = matrix(queries.map((query) => query.z ?? []));
  if (queries.some((query) => query.token !== null))
    arrays["query_token"] = list(queries.map((query) => query.token ?? 0));
  if (queries.length !== sequences.length || queries.some((query, i) => query.sequence !== i))
    arrays["sequence"] = list(queries.map((query) => query.sequence));
  if (queries.some((query) => query.visible !== null)) arrays["visible"] = list(queries.map((one) => seen(task, one)));
  if (queries.some((query) => query.label !== 1)) arrays["labels"] = list(queries.map((query) => query.label));
  if (head) {
    arrays["head"] = list([...head.v]);
    if (head.hidden) arrays["head_hidden"] = matrix(head.hidden);
    if (head.lambda !== null) arrays["head_quadratic"] = { shape: [], data: [head.lambda] };
  }
  if (select) {
    const single = select.every((kept) => kept.length === 1);
    const longest = Math.max(...sequences.map((one) => one.length));
    arrays["select"] = single
      ? list(select.map(([token = 0]) => token))
      : matrix(select.map((kept) => Array.from({ length: longest }, (_, t) => (kept.includes(t) ? 1 : 0))));
  }
  return arrays;
}

const swapped = <One>(items: readonly One[], k: number, to: (one: One) => One): One[] =>
  items.map((one, at) => (at === k ? to(one) : one));

export const withToken = (task: Task, s: number, t: number, to: (token: Token) => Token): Task => ({
  ...task,
  sequences: swapped(task.sequences, s, (tokens) => swapped(tokens, t, to)),
});

export const withQuery = (task: Task, i: number, to: (query: Query) => Query): Task => ({
  ...task,
  queries: swapped(task.queries, i, to),
});

/** Every token asks, and sees those before it. */
const causalQueries = (sequences: Task["sequences"], labels: (s: number, t: number) => number): Query[] =>
  sequences.flatMap((tokens, s) =>
    tokens.map((_, t) => ({
      sequence: s,
      z: null,
      token: t,
      visible: t + 1 === tokens.length ? null : t + 1,
      label: labels(s, t),
    })),
  );

const labelsOf =
  (task: Task) =>
  (s: number, t: number): number =>
    task.queries.find((query) => query.sequence === s && query.token === t)?.label ?? 1;

export function withNewToken(task: Task, s: number, key: Vector): Task {
  const tokens = task.sequences[s] ?? [];
  const last = tokens.at(-1);
  const value = last?.value ? zeros(last.value.length) : null;
  const sequences = swapped(task.sequences, s, (one) => [...one, { key, value, name: "" }]);
  if (kindOf(task) !== "causal") return { ...task, sequences };
  const queries = causalQueries(sequences, labelsOf(task));
  return { ...task, sequences, queries, select: null };
}

/** Null where it cannot be left out: a sequence needs two tokens to choose from. */
export function withoutToken(task: Task, s: number, t: number): Task | null {
  if ((task.sequences[s]?.length ?? 0) <= 2) return null;
  const sequences = swapped(task.sequences, s, (tokens) => tokens.filter((_, k) => k !== t));
  if (kindOf(task) === "causal")
    return {
      ...task,
      sequences,
      queries: causalQueries(sequences, (one, k) => labelsOf(task)(one, one === s && k >= t ? k + 1 : k)),
      select: null,
    };
  const moved = (token: number): number => (token > t ? token - 1 : token);
  const queries = task.queries.map((query) =>
    query.sequence !== s
      ? query
      : {
          ...query,
          token: query.token === null ? null : query.token === t ? 0 : moved(query.token),
          visible: query.visible === null ? null : Math.max(1, query.visible > t ? query.visible - 1 : query.visible),
        },
  );
  const kept = task.select?.map((tokens, i) =>
    task.queries[i]?.sequence === s ? tokens.filter((token) => token !== t).map(moved) : tokens,
  );
  return { ...task, sequences, queries, select: kept?.every((tokens) => tokens.length > 0) ? kept : null };
}

/** By the golden angle, in the plane of the two longest coordinates: however often, none comes back to its place. */
function turned(vectors: readonly Vector[]): number[][] {
  const d = vectors[0]?.length ?? 0;
  if (d < 2) return vectors.map((x) => times(x, 0.8)); // there is no angle to turn by
  const lengths = Array.from({ length: d }, (_, k) => vectors.reduce((sum, x) => sum + (x[k] ?? 0) ** 2, 0));
  const longest = lengths.map((_, k) => k).sort((a, b) => (lengths[b] ?? 0) - (lengths[a] ?? 0));
  const [first = 0, second = 1] = longest.slice(0, 2).sort((a, b) => a - b); // or the next turn would go back
  const angle = Math.PI * (3 - Math.sqrt(5));
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return vectors.map((x) => {
    const [a, b] = [x[first] ?? 0, x[second] ?? 0];
    const to = [...x];
    to[first] = Number((cos * a - sin * b).toPrecision(6));
    to[second] = Number((sin * a + cos * b).toPrecision(6));
    return to;
  });
}

/** Another query of the same sequence (cross attention), or another input with a query of its own. */
export function withNewQuery(task: Task, like: number): Task {
  const query = task.queries[like];
  if (!query) return task;
  if (query.z) {
    const [z = null] = turned([query.z]);
    return { ...task, queries: [...task.queries, { ...query, z }], select: null };
  }
  const tokens = task.sequences[query.sequence] ?? [];
  const keys = turned(tokens.map((token) => token.key));
  const sequences = [...task.sequences, tokens.map((token, t) => ({ ...token, key: keys[t] ?? token.key }))];
  if (kindOf(task) === "causal")
    return { ...task, sequences, queries: causalQueries(sequences, labelsOf(task)), select: null };
  return { ...task, sequences, queries: [...task.queries, { ...query, sequence: sequences.length - 1 }], select: null };
}

/** Null where it cannot be left out. */
export function withoutQuery(task: Task, i: number): Task | null {
  const s = task.queries[i]?.sequence ?? 0;
  if (kindOf(task) === "causal") {
    if (task.sequences.length === 1) return null;
    const sequences = task.sequences.filter((_, k) => k !== s);
    const before = (k: number): number => (k >= s ? k + 1 : k);
    return {
      ...task,
      sequences,
      queries: causalQueries(sequences, (k, t) => labelsOf(task)(before(k), t)),
      select: null,
    };
  }
  if (task.queries.length === 1) return null;
  const queries = task.queries.filter((_, k) => k !== i);
  const select = task.select?.filter((_, k) => k !== i) ?? null;
  if (queries.some((query) => query.sequence === s)) return { ...task, queries, select };
  return {
    ...task,
    select,
    sequences: task.sequences.filter((_, k) => k !== s),
    queries: queries.map((query) => ({ ...query, sequence: query.sequence > s ? query.sequence - 1 : query.sequence })),
  };
}

/** The same tokens under another kind of attention. */
export function withKind(task: Task, kind: Kind): Task {
  if (kind === kindOf(task)) return task;
  const { sequences } = task;
  const label = (s: number): number => task.queries.find((query) => query.sequence === s)?.label ?? 1;
  const select = null;
  if (kind === "causal") return { ...task, select, queries: causalQueries(sequences, label) };
  const d = keySize(task);
  const queries = sequences.map((_, s): Query => {
    const angle = 0.6 + (2 * Math.PI * s) / (sequences.length + 0.5);
    const z = [Math.cos(angle), Math.sin(angle), ...zeros(Math.max(0, d - 2))].slice(0, d);
    return {
      sequence: s,
      z: kind === "cross" ? z : null,
      token: kind === "self" ? 0 : null,
      visible: null,
      label: label(s),
    };
  });
  return { ...task, select, queries };
}

/** A token whose score, without the label, is `score`; its key stays. Heads that are not linear have no such edit. */
export function withScore(task: Task, s: number, t: number, score: number): Task {
  const { head } = task;
  if (!head || head.hidden || head.lambda !== null) return task;
  const square = dot(head.v, head.v);
  if (square === 0) return task;
  const apart = task.sequences.map((tokens) => tokens.map((token) => ({ ...token, value: token.value ?? token.key })));
  return withToken({ ...task, sequences: apart }, s, t, (token) => {
    const value = token.value ?? token.key;
    return { ...token, value: plus(value, head.v, (score - dot(head.v, value)) / square) };
  });
}
