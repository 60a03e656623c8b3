// What the program writes into the page. docs/page.schema.json is the same, for machines; tests hold the two together.

/** A number, or null where there is none: it does not exist, or it is not finite. */
export type Maybe = number | null;

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

export interface TaskFacts {
  attention: "prompt" | "cross" | "self" | "next-token";
  causal: boolean;
  masked: boolean;
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

export type Mark = "line" | "points" | "band" | "bars" | "boxes";

export interface FigureCurve {
  label: string;
  mark: Mark;
  style: number;
  thin: boolean;
  width: number;
  x: Maybe[];
  y: Maybe[];
  low?: Maybe[];
  high?: Maybe[];
}

/** Numbers from 0 to 1, in rows and columns with names. */
export interface FigureGrid {
  rows: string[];
  columns: string[];
  values: Maybe[][];
  errors: Maybe[][];
  outlined: number[];
}

export interface FigurePanel {
  title: string;
  x_label: string;
  y_label: string;
  log_x: boolean;
  log_y: boolean;
  x_range: [number, number] | null;
  y_range: [number, number] | null;
  square: boolean;
  curves: FigureCurve[];
  grid: FigureGrid | null;
}

export interface Experiment {
  experiment: string;
  title: string;
  setting: string;
  paper: string;
  published: boolean;
  seed: number;
  runs: number;
  draws: number;
  rejected: number;
  complete: boolean;
  findings: { paper: string; ours: string; why: string }[];
  cells: {
    name: string;
    settings: Record<string, unknown>;
    runs: number;
    draws: number;
    rejections: Record<string, number>;
  }[];
  figure: { title: string; caption: string; columns: number; panels: FigurePanel[] };
  files: string[];
}

export interface Index {
  kind: "index";
  attsvm: string;
  title: string;
  experiments: Experiment[];
}

/** [layer][head][point] */
export type HeadCurves = Maybe[][][];

export interface Monitor {
  kind: "monitor";
  attsvm: string;
  title: string;
  command: string;
  step: number[];
  layers: string[];
  heads: number;
  measures: Record<string, HeadCurves>;
  kinds: string[][];
  rho: { norm: string; step: number[]; rho: HeadCurves; null_mean: HeadCurves; null_deviation: HeadCurves } | null;
  warnings: string[];
}

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

export type PageData = Report | Heads | Stack | Capacity | NextToken | Index | Audit | Monitor;
