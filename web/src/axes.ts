// Axes as uPlot draws them.
import type uPlot from "uplot";

import type { ChartAxis } from "./chart_spec";
import { formatted, power } from "./format";
import { labelText } from "./label";
import { logSplits, type Range } from "./ranges";
import { colour } from "./theme";

/** `size` is the room for its numbers, in pixels; `range` what is shown now. */
export function axisOf(axis: ChartAxis, log: boolean, size: number, range: () => Range): uPlot.Axis {
  const words = (value: number): string => {
    if (value === null || (axis.whole && !Number.isInteger(value))) return "";
    if (!log) return formatted(Number(value.toPrecision(12)));
    const [low, high] = range();
    return power(value, high / low < 300); // few powers of ten: 2 and 5 are named too
  };
  const lines: uPlot.Axis = {
    splits: (_u, _axis, low, high) => logSplits([low, high]),
    filter: (_u, splits) => splits,
  };
  return {
    label: labelText(axis.label),
    labelSize: 22,
    labelFont: "13px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    gap: 4,
    size,
    stroke: () => colour("text"),
    grid: { stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("grid"), width: 1, size: 5 },
    values: (_u, splits) => splits.map(words),
    ...(log ? lines : {}),
  };
}

export function scaleOf(log: boolean, [min, max]: Range): uPlot.Scale {
  return { time: false, auto: false, distr: log ? 3 : 1, min, max, range: (_u, low, high) => [low, high] };
}
