// The page of a task, its SVMs and runs.
import type { Check, Curves, Directions, Maybe, Solution, TaskFacts } from "./common";

export interface Axis {
  kind: "max-margin" | "across" | "principal" | "coordinate";
  index: number;
  share: Maybe;
}

export interface Plane {
  offsets: number[];
  axes: Axis[];
  coordinates: (number[] | null)[];
  along: number[][] | null;
  across: number[][] | null;
  scores: number[][] | null;
  names: string[] | null;
}

export interface Queries {
  sequence: number[];
  visible: number[]; // how many tokens
  reach: number[]; // the last of them, plus one
  hidden: number[][] | null; // those before that it does not see; null: there are none in the task
  label: number[];
  kept: number[][];
  optimal: number[] | null;
}

export interface QueryAttention {
  tokens: number[];
  weights: number[][];
  rest: number[] | null;
}

export interface AttentionMap {
  queries: number;
  points: number[];
  weights: string;
}

export interface Run extends Curves {
  verdict: Check["verdict"];
  reason: string;
  answer: string;
  kept: number[][];
  directions: Directions[];
  attention: QueryAttention[];
  map: AttentionMap;
  margins: Maybe[] | null;
}

export interface WayOut {
  relax: number[] | null;
  leave: number[] | null;
  instead: { query: number; token: number; score_gap: Maybe }[] | null;
}

export interface Report {
  kind: "report";
  attsvm: string;
  title: string;
  playground: string | null;
  command: string;
  settings: { threshold: number; coordinates: number[] };
  task: TaskFacts;
  selection: string;
  queries: Queries;
  check: Check | null;
  plane: Plane;
  solutions: Solution[];
  main: Maybe;
  way_out: WayOut | null;
  runs: Run[];
}
