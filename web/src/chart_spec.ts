// The description of a chart.
import { type Child, h } from "./dom";
import { formatted, num, share } from "./format";
import { labelNodes } from "./label";
import type { Curve, Mapper } from "./marks";
import type { Pen } from "./pen";
import type { Range } from "./ranges";

export interface Series extends Curve {
  label: string;
  style: number;
  path?: { x?: string | undefined; y: string } | undefined; // lists of the data; left out for x: it counts
  name?: ((point: number) => string) | undefined; // of a point
  more?: ((point: number) => Child[]) | undefined; // what else is known about it, in place of its coordinates
  hidden?: boolean | undefined; // until its switch is used
  tag?: ((point: number) => string) | undefined; // written beside it, where there is room
  along?: ((point: number) => [number, number]) | undefined; // a line with its middle there, which tags keep off
}

/** Something drawn over the curves that moves on its own, with a switch in the legend. */
export interface Overlay {
  label: string;
  style: number;
  mark: "arrow" | "rule";
  dash: number[];
  width?: number; // of lines, in pixels; 2 unless said
  draw: (pen: Pen, map: Mapper, box: { left: number; top: number; width: number; height: number }) => void;
}

export interface ChartAxis {
  label: string;
  log?: boolean;
  range?: Range | null;
  whole?: boolean; // counts: no ticks between them
  percent?: boolean; // shares of a whole
  floor?: number; // a logarithmic axis draws smaller values here: they are rounding, or zero
}

/** A stretch of the x axis with a name. */
export interface Band {
  from: number;
  to: number;
  label: string;
}

export interface ChartSpec {
  title: string;
  summary: string; // the text alternative
  more?: string; // of it, for those who cannot see the chart
  name: string; // of files
  x: ChartAxis;
  y: ChartAxis;
  series: Series[];
  overlays?: Overlay[];
  square?: boolean;
  height?: number;
  include?: { x: number[]; y: number[] }; // to be seen too
  bands?: Band[];
  logs?: ("x" | "y")[]; // axes that can be made logarithmic; both unless said
}

/** A value of a point, with its place in the data where it has one. */
export function valueNode(spec: ChartSpec, series: Series, key: "x" | "y", k: number): Node {
  const value = series[key][k] ?? null;
  const path = series.path?.[key];
  if (!path) return h("span", { class: "num", "data-derived": "" }, formatted(value));
  return (spec[key].percent ? share : num)(`${path}.${k}`, value);
}

/** What is said about a point. */
export function reading(spec: ChartSpec, series: Series, k: number): Child[] {
  const bound = (key: "low" | "high"): Node =>
    num(`${series.path?.y.replace(/\.y$/, `.${key}`)}.${k}`, series[key]?.[k]);
  const heading = [h("strong", {}, ...labelNodes(series.label)), series.name ? ` ${series.name(k)}` : ""];
  if (series.more) return [...heading, ...series.more(k)];
  return [
    ...heading,
    ": ",
    ...labelNodes(spec.x.label),
    " = ",
    valueNode(spec, series, "x", k),
    ", ",
    ...labelNodes(spec.y.label),
    " = ",
    valueNode(spec, series, "y", k),
    ...(series.low && series.high && series.path ? [" (", bound("low"), " to ", bound("high"), ")"] : []),
  ];
}

/** Where a series lies on the x axis: boxes reach to both sides of their places. */
export function reachAcross(series: Series): ArrayLike<number | null>[] {
  if (series.mark !== "boxes") return [series.x];
  const half = (series.width ?? 0) / 2;
  return [-half, half].map((by) => Array.from(series.x, (value) => (value === null ? null : value + by)));
}
