// Names of tokens and steps.
import type { Axis, Report } from "./data";

/** A token of a query: its number, and its name where the task has names. */
export function tokenName(data: Report, query: number, token: number): string {
  return tokenAt(data, data.queries.sequence[query] ?? 0, token);
}

export function tokenAt(data: Report, sequence: number, token: number): string {
  const start = data.plane.offsets[sequence];
  const name = start === undefined ? undefined : data.plane.names?.[start + token];
  return name ? `${token} \u201c${isolated(name)}\u201d` : String(token);
}

/** Names written from right to left, or that hold marks of direction, must not turn the words around them. */
function isolated(name: string): string {
  return /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufefc]/.test(name) ? `\u2068${name}\u2069` : name;
}

export function axisName(axis: Axis | undefined): string {
  if (!axis) return "";
  if (axis.kind === "max-margin") return "along W^{mm} z";
  return axis.kind === "principal" ? `principal component ${axis.index + 1}` : `coordinate ${axis.index}`;
}

/** The number of the i-th recorded step; runs that recorded none have only their last point. */
export function stepOf(data: Report, record: number): number | null {
  return data.run?.step?.[record] ?? null;
}

/** Steps on an axis: numbers of steps, or of points where the file has none. */
export function stepAxis(data: Report): { label: string; values: number[]; path: string; log: boolean } {
  const steps = data.run?.step;
  if (!steps) return { label: "recorded point", values: (data.run?.norm ?? []).map((_, k) => k), path: "", log: false };
  const last = steps.at(-1) ?? 0,
    middle = steps[Math.floor(steps.length / 2)] ?? 0;
  return { label: "step", values: steps, path: "run.step", log: middle * 10 < last };
}
