// The runs of a report: their names, colours and steps, and what theory predicts for each.
import type { Maybe, Report, Run } from "./data";

/** Parameters and optimizer where these tell the runs apart, else their files. */
export function runNames(data: Report): string[] {
  const short = data.runs.map((run) =>
    /^(\([^)]*\)|[^,]*), ([^,]*)/
      .exec(run.settings ?? "")
      ?.slice(1, 3)
      .join(" by "),
  );
  const names = short.every((name) => name) && new Set(short).size === short.length;
  return data.runs.map((run, r) => (names ? (short[r] ?? run.file) : run.file));
}

/** A label with marks that have a meaning there, as they stand. */
export const literal = (name: string): string => name.replace(/[\\^_{}]/g, (mark) => `\\${mark}`);

const colours = [2, 1, 3, 4, 5, 0];

/** Runs differ in colour; the curves of one differ in dashes and markers (see look). */
export const runStyle = (run: number, curve = 0): number =>
  (colours[run % colours.length] ?? 2) + 8 * (curve + Math.floor(run / colours.length));

/** The point of a run at the moment of a point of the first: the last one that it had reached by then. */
export function pointAt(data: Report, r: number, step: number): number {
  const run = data.runs[r],
    first = data.runs[0];
  if (!run || !first || r === 0) return step;
  const last = run.norm.length - 1;
  const moment = first.step?.[step];
  if (moment === undefined || !run.step) return Math.min(step, last);
  return Math.max(
    0,
    run.step.findLastIndex((one) => one <= moment),
  );
}

/** Steps on an axis: numbers of steps, or of points where the file has none. */
export function stepAxis(data: Report, r = 0): { label: string; values: number[]; path: string; log: boolean } {
  const run = data.runs[r];
  const steps = run?.step;
  if (!steps) return { label: "recorded point", values: (run?.norm ?? []).map((_, k) => k), path: "", log: false };
  const last = steps.at(-1) ?? 0,
    middle = steps[Math.floor(steps.length / 2)] ?? 0;
  return { label: "step", values: steps, path: `runs.${r}.step`, log: middle * 10 < last };
}

export interface Prediction {
  norm: string;
  label: string; // of the solution
  measure: "1 \u2212 correlation" | "1 \u2212 \u03c1";
  distances: Maybe[];
  path: string;
}

/**
 * How far a run is from where theory says that it goes: from the direction of the solution in the norm that theory
 * names, or from the largest margin in that norm, which many directions may have.
 */
export function predicted(run: Run, r: number): Prediction | null {
  const norm = run.implied?.norm;
  if (norm === undefined) return null;
  const c = run.correlations.findIndex((one) => one.norm === norm),
    curve = run.correlations[c];
  if (curve)
    return {
      norm,
      label: curve.label,
      measure: "1 \u2212 correlation",
      distances: curve.distances,
      path: `runs.${r}.correlations.${c}.distances`,
    };
  const s = run.shares.findIndex((one) => one.norm === norm && one.status === "optimal"),
    shares = run.shares[s];
  if (!shares) return null;
  return {
    norm,
    label: `W^{mm}_{${norm.replace(/^.*:/, "")}}`,
    measure: "1 \u2212 \u03c1",
    distances: shares.distances,
    path: `runs.${r}.shares.${s}.distances`,
  };
}

/** A norm in words. */
export function normWords(norm: string): string {
  const [kind, power] = norm.split(":");
  const words: Record<string, string> = {
    fro: "Frobenius norm",
    nuc: "nuclear norm",
    spec: "spectral norm",
    max: "maximum norm",
    l1: "l1 norm",
    lp: `entrywise norm of power ${power}`,
    schatten: `Schatten norm of power ${power}`,
  };
  return words[kind ?? ""] ?? `norm ${norm}`;
}
