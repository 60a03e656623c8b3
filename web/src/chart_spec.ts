// The description of a chart.
import { h } from "./dom";
import { formatted, num } from "./format";
import type { Curve, Mapper } from "./marks";
import type { Range } from "./ranges";

export interface Series extends Curve {
  label: string;
  style: number;
  path?: { x?: string | undefined; y: string } | undefined; // lists of the data; left out for x: it counts
  name?: ((point: number) => string) | undefined; // of a point
  hidden?: boolean | undefined; // until its switch is used
  tag?: ((point: number) => string) | undefined; // written beside it, where there is room
}

/** Something drawn over the curves that moves on its own, with a switch in the legend. */
export interface Overlay {
  label: string;
  style: number;
  mark: "arrow" | "rule";
  dash: number[];
  width?: number; // of lines, in pixels; 2 unless said
  draw: (ctx: CanvasRenderingContext2D, map: Mapper) => void;
}

export interface ChartAxis {
  label: string;
  log?: boolean;
  range?: Range | null;
  whole?: boolean; // counts: no ticks between them
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
export function valueNode(series: Series, key: "x" | "y", k: number, value: number | null): Node {
  const path = series.path?.[key];
  return path ? num(`${path}.${k}`, value) : h("span", { class: "num", "data-derived": "" }, formatted(value));
}

/** Where a series lies on the x axis: boxes reach to both sides of their places. */
export function reachAcross(series: Series): ArrayLike<number | null>[] {
  if (series.mark !== "boxes") return [series.x];
  const half = (series.width ?? 0) / 2;
  return [-half, half].map((by) => Array.from(series.x, (value) => (value === null ? null : value + by)));
}
