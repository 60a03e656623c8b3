// The page of what sizes can separate.
import type { Maybe } from "./common";

export interface CountedShare {
  count: number;
  of: number;
  share: number;
  low: number;
  high: number;
}

export interface Measured {
  count: number;
  mean: number;
  deviation: Maybe;
  least: number;
  most: number;
}

/** What sizes can separate. */
export interface Capacity {
  kind: "capacity";
  attsvm: string;
  title: string;
  command: string;
  prediction: { d: number[]; chance: Maybe[] };
  n: number;
  T: number;
  d: number;
  dz: number;
  attention: "cross" | "self" | "prompt";
  width: Maybe;
  heads: number;
  draws: number;
  seed: number;
  rows: number;
  unknowns: number;
  always: boolean;
  why: string;
  cover: Maybe;
  dimension: Maybe;
  load: Maybe;
  predicted: Maybe;
  separable: CountedShare | null;
  undecided: number;
  all_heads: CountedShare | null;
  fits_width: CountedShare | null;
  width_margin: Measured | null;
  margin: Measured | null;
  rank: Measured | null;
  rank_floor: Measured | null;
  support: Measured | null;
  global: CountedShare | null;
  smallest_d: {
    wanted: number;
    low: number;
    high: number;
    predicted: Maybe;
    points: { d: number; separable: CountedShare }[];
    complete: boolean;
  } | null;
  complete: boolean;
}
