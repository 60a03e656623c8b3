// The page of a next-token task.
import type { Curves, Maybe, Solution, TaskFacts } from "./common";

/** Tokens that no W orders, or a single one. */
export interface TokenGroup {
  tokens: number[];
  words: string[];
  size: number;
  level: number;
}

export interface PriorityGraph {
  last: number;
  word: string;
  sequences: number;
  tokens: number;
  edges: number;
  orders: number;
  components: number;
  drawn: number;
  groups: TokenGroup[];
  arrows: number[][];
  implied: number;
  words: string[];
}

export interface NextTokenRun extends Curves {
  finite_distance: Maybe[] | null;
}

export interface NextToken {
  kind: "next-token";
  attsvm: string;
  title: string;
  command: string;
  task: TaskFacts;
  counts: { graphs: number; components: number; tied: number; orders: number; edges: number };
  graphs: PriorityGraph[];
  separable: boolean | null;
  finite: { dimension: number; norm: number; loss: number } | null;
  solutions: Solution[];
  runs: NextTokenRun[];
}
