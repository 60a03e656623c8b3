// The library, compiled to WebAssembly: what the page asks of it, and what it answers.
import type { ConflictRow, Maybe } from "../data";

/** An array of a file: its sizes, and its numbers in rows. */
export interface Numbers {
  shape: number[];
  data: ArrayLike<number>;
}

export type TaskArrays = Record<string, Numbers>;

export interface Row {
  query: number;
  keep: number;
  drop: number;
  slack: Maybe;
  dual: Maybe;
}

export interface Answer {
  status: "optimal" | "infeasible" | "limit" | "stalled";
  verdict: "global" | "local" | "neither" | "infeasible" | "open" | null;
  scores: number[] | null; // of all tokens, without labels
  norm: string;
  kept: number[][];
  method: string;
  objective: Maybe;
  dual_objective: Maybe;
  gap: Maybe;
  support: Maybe;
  rank: Maybe;
  residual: Maybe;
  W: number[][];
  rows: Row[];
  conflict: { total: number; share: number; rows: ConflictRow[]; words: string[] } | null;
}

export interface Point {
  step: number;
  loss: Maybe;
  norm: number;
  W: number[][];
  selected: number[];
  attention: number[][];
  correlation: Maybe;
  rho: Maybe;
  stop?: string | null;
}

export interface Implied {
  norm: string;
  proven: boolean;
}

export interface Training {
  task: TaskArrays;
  param: string;
  optimizer: string;
  step: number;
  loss: string;
  joint: boolean;
  seed: number;
  W: Numbers | null;
  v: Numbers | null;
}

interface Verbs {
  draw: [{ kind: string; n?: number; T?: number; d?: number; C?: number; seed?: number }, TaskArrays];
  solve: [{ task: TaskArrays; norm: string; select: number[] | "opt" | null }, Answer];
  local: [{ task: TaskArrays }, { selections: number; complete: boolean; locally_optimal: number[][] }];
  start: [Training, Point & { implied: Implied | null }];
  advance: [{ until: number }, Point];
  compare: [{ W: Numbers[] }, { correlation: Maybe[]; rho: Maybe[] }];
}

/** The same as words, with all arrays' numbers in one row, and where in it each begins. */
export function packed(value: unknown): { words: string; numbers: Float64Array<ArrayBuffer> } {
  const parts: ArrayLike<number>[] = [];
  let count = 0;
  const words = JSON.stringify(value, (_key, one: unknown) => {
    if (one === null || typeof one !== "object" || !("shape" in one) || !("data" in one)) return one;
    const { shape, data } = one as Numbers;
    if (data.length !== shape.reduce((all, size) => all * size, 1)) throw new Error("an array does not fit its shape");
    const from = count;
    parts.push(data);
    count += data.length;
    return { shape, from };
  });
  const numbers = new Float64Array(count);
  let at = 0;
  for (const part of parts) {
    numbers.set(part, at);
    at += part.length;
  }
  return { words, numbers };
}

/** What to say of an error: our own words where there are any, because a browser's help nobody. */
export const wordsOf = (error: unknown, otherwise: string): string =>
  error instanceof Error && error.constructor === Error ? error.message : otherwise;

const isCount = (size: unknown): boolean => Number.isSafeInteger(size) && Number(size) >= 0;

/** What `packed` made the words and numbers of. */
export function unpacked(words: string, numbers: Float64Array): unknown {
  return JSON.parse(words, (_key, one: unknown) => {
    if (one === null || typeof one !== "object" || !("shape" in one) || !("from" in one)) return one;
    const { shape, from } = one as { shape: number[]; from: number };
    if (!Array.isArray(shape) || ![...shape, from].every(isCount)) throw new Error("an array has no size");
    const count = shape.reduce((all, size) => all * size, 1);
    const data = numbers.slice(from, from + count);
    if (data.length !== count) throw new Error("an array does not fit its shape");
    return { shape, data };
  });
}

/** Error where it would have more than `most` bytes: a small file can hold gigabytes of zeros. */
export async function inflated(bytes: Uint8Array<ArrayBuffer>, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    size += part.value.length;
    if (size > most) {
      void reader.cancel();
      throw new Error("it is too large");
    }
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export class Engine {
  private constructor(
    private readonly module: WebAssembly.Module,
    private readonly memory: WebAssembly.Memory,
    private readonly functions: {
      malloc: (bytes: number) => number;
      free: (at: number) => void;
      attsvm_call: (verb: number, words: number, numbers: number) => number;
    },
  ) {}

  /** `source`: the module, deflated, in base 64. */
  static async load(source: string): Promise<Engine> {
    return Engine.of(await WebAssembly.compile(await inflated(fromBase64(source), 2 ** 26)));
  }

  /** Another one, with a memory and a run of its own. */
  again(): Promise<Engine> {
    return Engine.of(this.module);
  }

  private static async of(module: WebAssembly.Module): Promise<Engine> {
    const held: { memory: WebAssembly.Memory | null } = { memory: null };
    const known: Record<string, (...args: never[]) => unknown> = {
      clock_time_get: (_clock: number, _precision: bigint, at: number) => {
        const now = BigInt(Math.round(performance.now() * 1e6));
        if (held.memory) new DataView(held.memory.buffer).setBigUint64(at, now, true);
        return 0;
      },
      proc_exit: (code: number) => {
        throw new Error(`the solver stopped with code ${code}`);
      },
    };
    const imports: Record<string, Record<string, WebAssembly.ImportValue>> = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module))
      (imports[from] ??= {})[name] = (known[name] ?? (() => 0)) as () => unknown;
    const { exports } = await WebAssembly.instantiate(module, imports);
    held.memory = exports["memory"] as WebAssembly.Memory;
    (exports["_initialize"] as () => void)();
    return new Engine(module, held.memory, exports as never);
  }

  call<Verb extends keyof Verbs>(verb: Verb, request: Verbs[Verb][0]): Verbs[Verb][1] {
    const { words, numbers } = packed(request);
    const places = [this.text(verb), this.text(words), this.room(8 * numbers.length + 8)] as const;
    new Float64Array(this.memory.buffer, places[2], numbers.length).set(numbers);
    const at = this.functions.attsvm_call(...places);
    places.forEach((place) => this.functions.free(place));
    const bytes = new Uint8Array(this.memory.buffer);
    const answer = JSON.parse(new TextDecoder().decode(bytes.subarray(at, bytes.indexOf(0, at)))) as unknown;
    if (answer !== null && typeof answer === "object" && "error" in answer) throw new Error(String(answer.error));
    return answer as Verbs[Verb][1];
  }

  private room(bytes: number): number {
    const at = this.functions.malloc(bytes);
    if (at === 0) throw new Error("there is not enough memory");
    return at;
  }

  private text(words: string): number {
    const bytes = new TextEncoder().encode(`${words}\0`);
    const at = this.room(bytes.length);
    new Uint8Array(this.memory.buffer).set(bytes, at);
    return at;
  }
}
