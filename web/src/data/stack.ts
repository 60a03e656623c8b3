// The page of a stack of layers.
import type { Maybe, Solution, TaskFacts } from "./common";

export interface BesideNull {
  value: Maybe;
  mean: Maybe;
  null: Maybe[];
  mean_distance: Maybe;
}

/** A head of a stack beside the SVM of what it selects. */
export interface JudgedHead {
  layer: number;
  head: number;
  queries: number;
  selected: number[];
  attention_min: Maybe;
  status: Solution["status"];
  objective: Maybe;
  correlation: Maybe[];
  rho: Maybe[];
  last_correlation: BesideNull;
  last_rho: BesideNull;
  correlation_distances: Maybe[];
  rho_distances: Maybe[];
}

export interface Stack {
  kind: "stack";
  attsvm: string;
  title: string;
  command: string;
  task: TaskFacts;
  file: string;
  settings: string | null;
  layers: number;
  heads: number;
  causal: boolean;
  seed: number;
  records: number;
  loss: Maybe[];
  log10_gradient: Maybe[][];
  attention: { sequences: number; positions: number[][][]; live: number[][][]; weights: number[][][][][] };
  complete: boolean;
  askers: "live" | "all";
  null_draws: number;
  record_step: number[];
  judged: JudgedHead[];
}
