// What several pages show: solutions, verdicts, and runs over their steps.

/** A number, or null where there is none: it does not exist, or it is not finite. */
export type Maybe = number | null;

export interface TokenList {
  count: number;
  query: number[];
  token: number[];
  score_gap: Maybe[];
  slack: Maybe[];
}

export interface Check {
  verdict: "global" | "local" | "neither" | "infeasible";
  reason: string;
  separable: boolean | null;
  locally_optimal: boolean | null;
  ties: number;
  support: TokenList;
  ambiguous: TokenList;
}

export interface Directions {
  length: Maybe[];
  coordinates: Maybe[][];
}

export interface Spectrum {
  values: number[];
  relative: number[];
}

export interface ConflictRow {
  row: number;
  query: number;
  keep: number;
  drop: number;
  equal: boolean;
  weight: number;
  arrow: number[];
}

export interface Rows {
  total: number;
  query: number[];
  keep: number[];
  drop: number[];
  equal: boolean[];
  rhs: Maybe[];
  slack: Maybe[];
  dual: Maybe[];
  support: number[];
  margin: Maybe[] | null;
}

export interface Solution {
  label: string;
  file: string | null;
  norm: string;
  norm_words: string;
  problem: "att" | "v" | "graph";
  status: "optimal" | "infeasible" | "limit" | "stalled" | null;
  valid: boolean;
  reason: string | null;
  objective: Maybe;
  dual_objective: Maybe;
  gap: Maybe;
  violation: Maybe;
  tolerance: Maybe;
  margin: Maybe;
  rank: Maybe;
  support: Maybe;
  constraints: number;
  residual: Maybe;
  norm_bound: Maybe;
  words: string[];
  conflict: { total: number; share: number; rows: ConflictRow[]; words: string[] } | null;
  singular_values: Spectrum | null;
  directions: Directions | null;
  rows: Rows | null;
}

export interface CorrelationCurve {
  label: string;
  solution: Maybe;
  norm: string | null;
  values: Maybe[];
  distances: Maybe[];
}

export interface ImpliedNorm {
  optimizer: string;
  norm: string;
  proven: boolean;
  why: string;
}

export interface MarginShares {
  norm: string;
  status: "optimal" | "infeasible" | "limit" | "stalled";
  rho: Maybe[];
  distances: Maybe[];
  rises: boolean | null;
  exponent: Maybe;
}

/** What every page shows of a run. */
export interface Curves {
  file: string;
  settings: string | null;
  records: number;
  step: number[] | null;
  norm: number[];
  loss: Maybe[] | null;
  log10_gradient: Maybe[] | null;
  implied: ImpliedNorm | null;
  shares: MarginShares[];
  singular_values: (Spectrum | null)[];
  correlations: CorrelationCurve[];
  entropy: Maybe[];
  accuracy: Maybe[];
  temperature: number[] | null;
}

/** A page with runs. */
export interface Trained {
  runs: Curves[];
}

export interface TaskFacts {
  attention: "prompt" | "cross" | "self" | "next-token";
  causal: boolean;
  masked: boolean;
  bias: boolean;
  ragged: boolean;
  sequences: number;
  queries: number;
  tokens: number;
  longest: number;
  d: number;
  dz: number;
  dv: number;
  vocabulary: Maybe;
  keys: boolean;
  head: string;
  labels_positive: number;
  separability: { holds: boolean; needed_key_size: number; query_rank: number; reason: string };
}
