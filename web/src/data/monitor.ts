// The page of a training monitor.
import type { Maybe } from "./common";

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
