// The page of an audit of a model’s heads.
import type { Maybe } from "./common";

export interface NullFacts {
  value: Maybe;
  null_mean: Maybe;
  null_deviation: Maybe;
  z: Maybe;
  draws: number;
}

export interface MarginFacts {
  status: "optimal" | "infeasible" | "limit" | "stalled" | "not run";
  objective: Maybe;
  dual_objective: Maybe;
  rho: Maybe;
  support: Maybe;
}

export interface SupportPair {
  query: number;
  sequence: number;
  position: Maybe;
  query_text: string;
  keep: number;
  keep_text: string;
  keep_kind: string;
  drop: number;
  drop_text: string;
  drop_kind: string;
  weight: Maybe;
}

export interface UncertainQuery {
  query: number;
  sequence: number;
  position: Maybe;
  query_text: string;
  first: number;
  first_text: string;
  second: number;
  second_text: string;
  gap: Maybe;
  weight: Maybe;
}

export type ChoiceKind = "offset" | "constant" | "same word" | "induction";

export interface ViewAudit {
  view: "own" | "sinks hidden";
  choosing: number;
  queries: number;
  held_out: number;
  rows: number;
  kinds: { kind: ChoiceKind; share: Maybe; words: string }[];
  gap: Maybe[];
  weight: Maybe[];
  radius: Maybe[];
  r90: number;
  r95: number;
  agreement: Maybe[];
  singular_values: Maybe[];
  frobenius: MarginFacts;
  nuclear: MarginFacts & { rank: Maybe; rank_certified: boolean; singular_values: Maybe[] };
  rank_bound: Maybe;
  gap_over_norm: NullFacts;
  rho: NullFacts;
  pairs: SupportPair[];
  kind_pairs: { keep: string; drop: string; weight: Maybe; rows: number }[];
  uncertain: UncertainQuery[];
}

export interface HeadAudit {
  layer: number;
  head: number;
  difference: Maybe;
  sink_weight: Maybe;
  complete: boolean;
  views: ViewAudit[];
}

export interface Audit {
  kind: "audit";
  attsvm: string;
  title: string;
  command: string | null;
  settings: {
    queries: number;
    drop: number;
    nulls: number;
    tolerance: number;
    null_tolerance: number;
    time_limit: number;
    seed: number;
  };
  source: { heads: number; tokens: number; sequences: number; queries: number; size: number; self: boolean };
  complete: boolean;
  text: { sequence: number; words: string[] }[];
  heads: HeadAudit[];
}
