// Axes: where their lines are and what stands beside them, on the screen (uPlot draws) and in files (we do).
import type uPlot from "uplot";

import type { ChartAxis } from "./chart_spec";
import { formatted, percent, power } from "./format";
import { labelText } from "./label";
import { evenSplits, logSplits, type Range } from "./ranges";
import { colour } from "./theme";

type Side = "x" | "y";

/** Room for the numbers beside an axis, and for one of them along it, in pixels. */
export const room = { x: { beside: 32, along: 50 }, y: { beside: 58, along: 36 } };
export const labelRoom = 22;

/** A logarithmic axis over so little looks like any other, and powers of ten would give it a line or none. */
const isShort = ([low, high]: Range): boolean => high / low < 3;

/** Lines of an axis of this length, in pixels. */
export function splitsOf(axis: ChartAxis, log: boolean, side: Side, range: Range, length: number): number[] {
  const along = room[side].along * (log ? 0.7 : 1);
  const most = Math.max(2, Math.min(10, Math.floor(length / along)));
  return log && !isShort(range) ? logSplits(range, most) : evenSplits(range, most, axis.whole ?? false);
}

export function tickWords(axis: ChartAxis, log: boolean, range: Range, value: number): string {
  if (axis.whole && !Number.isInteger(value)) return "";
  if (axis.percent && !log) return percent(value);
  if (!log || isShort(range)) return formatted(Number(value.toPrecision(12))).replace(/\.?0+e/, "e");
  return power(value, range[1] / range[0] < 300); // few powers of ten: 2 and 5 are named too
}

export function axisOf(axis: ChartAxis, log: boolean, side: Side): uPlot.Axis {
  const shown = (u: uPlot): Range => [u.scales[side]?.min ?? 0, u.scales[side]?.max ?? 1];
  return {
    label: labelText(axis.label),
    labelSize: labelRoom,
    labelFont: "13px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    gap: 4,
    size: room[side].beside,
    stroke: () => colour("text"),
    grid: { stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("grid"), width: 1, size: 5 },
    splits: (u, _axis, low, high) =>
      splitsOf(axis, log, side, [low, high], (side === "x" ? u.bbox.width : u.bbox.height) / devicePixelRatio),
    filter: (_u, splits) => splits,
    values: (u, splits) => splits.map((value) => tickWords(axis, log, shown(u), value)),
  };
}

export function scaleOf(log: boolean, [min, max]: Range): uPlot.Scale {
  return { time: false, auto: false, distr: log ? 3 : 1, min, max, range: (_u, low, high) => [low, high] };
}
