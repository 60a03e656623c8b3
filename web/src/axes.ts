// Axes as uPlot draws them.
import type uPlot from "uplot";

import type { ChartAxis } from "./chart_spec";
import { formatted, power } from "./format";
import { labelText } from "./label";
import { logSplits, type Range } from "./ranges";
import { colour } from "./theme";

/** Steps between ticks of counts. */
const wholes = [1, 2, 5]
  .flatMap((lead) => Array.from({ length: 9 }, (_, power) => lead * 10 ** power))
  .sort((a, b) => a - b);

/** Room for the numbers beside an axis, and for one of them along it, in pixels. */
const room = { x: { beside: 32, along: 44 }, y: { beside: 58, along: 24 } };

/** `range` is what is shown now. */
export function axisOf(axis: ChartAxis, log: boolean, side: "x" | "y", range: () => Range): uPlot.Axis {
  const words = (value: number): string => {
    if (value === null || (axis.whole && !Number.isInteger(value))) return "";
    if (!log) return formatted(Number(value.toPrecision(12))).replace(/\.?0+e/, "e");
    const [low, high] = range();
    return power(value, high / low < 300); // few powers of ten: 2 and 5 are named too
  };
  const lines: uPlot.Axis = {
    splits: (u, _axis, low, high) => {
      const length = (side === "x" ? u.bbox.width : u.bbox.height) / devicePixelRatio;
      return logSplits([low, high], Math.max(2, Math.min(10, Math.floor(length / room[side].along))));
    },
    filter: (_u, splits) => splits,
  };
  return {
    label: labelText(axis.label),
    labelSize: 22,
    labelFont: "13px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    gap: 4,
    size: room[side].beside,
    stroke: () => colour("text"),
    grid: { stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("grid"), width: 1, size: 5 },
    values: (_u, splits) => splits.map(words),
    ...(log ? lines : axis.whole ? { incrs: wholes } : {}),
  };
}

export function scaleOf(log: boolean, [min, max]: Range): uPlot.Scale {
  return { time: false, auto: false, distr: log ? 3 : 1, min, max, range: (_u, low, high) => [low, high] };
}
