// The page of experiments: figures and what they found.
import type { Maybe } from "./common";

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
