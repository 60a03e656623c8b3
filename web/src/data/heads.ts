// The page of a run of many heads.
import type { Check, Curves, TaskFacts } from "./common";
import type { Report } from "./report";

export interface HeadRun extends Curves {
  verdict: Check["verdict"];
  reason: string;
  answer: string;
  kept: number[][];
  optimal: number[] | null;
}

/** A run of many heads: all of them, and the first ones in full. */
export interface Heads {
  kind: "heads";
  attsvm: string;
  title: string;
  command: string;
  task: TaskFacts;
  file: string;
  distinct_selections: number;
  tokens_per_query: number;
  runs: HeadRun[];
  reports: Report[];
}
