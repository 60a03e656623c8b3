// The runs of a report: their names, colours and steps, and what theory predicts for each.
import type { Curves, Maybe, Trained } from "./data";

/** Parameters and optimizer where these tell the runs apart, else their files. */
export function runNames(data: Trained): string[] {
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

const colours = [2, 1, 6, 4, 7, 5, 3, 0]; // solutions are drawn in 0 and 3
const mostCurves = 3; // of a run in a chart

/** Runs differ in colour; the curves of one, and runs beyond the eighth, differ in dashes and markers (see look). */
export const runStyle = (run: number, curve = 0): number =>
  (colours[run % colours.length] ?? 2) + 8 * (curve + mostCurves * Math.floor(run / colours.length));

/** Whether there are so few runs that a sentence can be said about each. */
export const fewRuns = (data: Trained): boolean => data.runs.length <= 2;

interface Steps {
  label: string;
  values: number[];
  path: string; // of the values in the data; empty: they are not in it
}

/** The steps of a run, or the numbers of its points where the file has none. */
export function stepAxis(data: Trained, r: number): Steps {
  const run = data.runs[r];
  if (!run?.step) return { label: "recorded point", values: (run?.norm ?? []).map((_, k) => k), path: "" };
  return { label: "step", values: run.step, path: `runs.${r}.step` };
}

/** What the slider moves over: every step at which some run has a point. */
export interface Timeline {
  label: string;
  log: boolean; // most points of some run are early
  values: number[];
  paths: string[]; // where in the data they are; empty: nowhere
}

/** Whether most of the steps are early: a logarithmic axis then shows them. */
export const early = (steps: number[]): boolean =>
  (steps[Math.floor(steps.length / 2)] ?? 0) * 10 < (steps.at(-1) ?? 0);

const timelines = new WeakMap<Trained, Timeline>();

export function timeline(data: Trained): Timeline {
  const known = timelines.get(data);
  if (known) return known;
  const all = data.runs.map((_, r) => stepAxis(data, r));
  const inSteps = all.every(({ path }) => path !== "");
  const paths = new Map<number, string>();
  for (const { values, path } of inSteps ? all : data.runs.map((run) => ({ values: [...run.norm.keys()], path: "" })))
    values.forEach((value, k) => paths.set(value, path && `${path}.${k}`));
  const values = [...paths.keys()].sort((a, b) => a - b);
  const made = {
    label: inSteps ? "step" : "recorded point",
    log: inSteps && all.some((one) => early(one.values)),
    values,
    paths: values.map((value) => paths.get(value) ?? ""),
  };
  timelines.set(data, made);
  return made;
}

/** The point of a run at a place of the slider: the last one that it had reached by then. */
export function pointAt(data: Trained, r: number, step: number): number {
  const line = timeline(data);
  const run = data.runs[r];
  const values = line.label === "step" ? run?.step : [...(run?.norm.keys() ?? [])];
  const moment = line.values[step] ?? Infinity;
  return Math.max(0, values?.findLastIndex((one) => one <= moment) ?? 0);
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
export function predicted(run: Curves, r: number): Prediction | null {
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
