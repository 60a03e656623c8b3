// A chart as a picture of its own, for files and for paper: title, axes, marks and legend, drawn with any pen.
import { labelRoom, room, splitsOf, tickWords } from "./axes";
import type { ChartSpec } from "./chart_spec";
import { labelText } from "./label";
import { drawArrow, drawCurve, type Mapper } from "./marks";
import type { Pen } from "./pen";
import { type Range, squared } from "./ranges";
import { drawBands, drawTags } from "./tags";
import { colour, look } from "./theme";

/** What of a chart is shown. */
interface Shown {
  ranges: { x: Range; y: Range };
  log: { x: boolean; y: boolean };
  off: ReadonlySet<string>;
  marker: number | null;
}

export interface Size {
  width: number;
  height: number;
  ratio: number; // pixels of the picture in one of these
}

const font = "system-ui, sans-serif";
const top = 34; // room for the title
const row = 20; // of the legend

/** From numbers to pixels of a box. */
export function mapperOf(
  spec: ChartSpec,
  { ranges, log }: Pick<Shown, "ranges" | "log">,
  box: { left: number; top: number; width: number; height: number },
  ratio: number,
): Mapper {
  const one = (key: "x" | "y", start: number, length: number): ((value: number) => number) => {
    const [low, high] = ranges[key];
    const floor = spec[key].floor ?? 0;
    if (!log[key]) return (value) => start + (length * (value - low)) / (high - low);
    const from = Math.log(low),
      slope = length / (Math.log(high) - from);
    return (value) => (value > 0 || floor > 0 ? start + slope * (Math.log(Math.max(value, floor)) - from) : NaN);
  };
  const edge = 20 * ratio;
  return {
    x: one("x", box.left, box.width),
    y: one("y", box.top + box.height, -box.height),
    ratio,
    visible: (x, y) =>
      x > box.left - edge && x < box.left + box.width + edge && y > box.top - edge && y < box.top + box.height + edge,
  };
}

interface Entry {
  label: string;
  width: number;
  draw: (x: number, y: number) => void;
}

function entries(pen: Pen, spec: ChartSpec, off: ReadonlySet<string>, ratio: number): Entry[] {
  const found = new Map<string, Entry>();
  const place = (from: number, y: number): Mapper => ({
    x: (value) => from + 28 * ratio * value,
    y: () => y,
    ratio,
    visible: () => true,
  });
  const add = (label: string, draw: Entry["draw"]): void => {
    const words = labelText(label);
    if (words && !off.has(label) && !found.has(label))
      found.set(label, { label: words, width: pen.measureText(words).width + 48 * ratio, draw });
  };
  for (const series of spec.series) {
    const points = series.mark === "points";
    add(series.label, (x, y) =>
      drawCurve(
        pen,
        {
          ...series,
          size: Math.min(5, series.size ?? 5),
          mark: points ? "points" : "line",
          x: points ? [0.5] : [0, 0.5, 1],
          y: points ? [0] : [0, 0, 0],
        },
        place(x, y),
        look(series.style),
      ),
    );
  }
  for (const overlay of spec.overlays ?? [])
    add(overlay.label, (x, y) => {
      pen.save();
      pen.strokeStyle = pen.fillStyle = look(overlay.style).colour;
      pen.lineWidth = 2 * ratio;
      pen.setLineDash(overlay.dash.map((part) => part * ratio));
      if (overlay.mark === "arrow") drawArrow(pen, [x, y], [x + 28 * ratio, y], ratio);
      else {
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(x + 28 * ratio, y);
        pen.stroke();
      }
      pen.restore();
    });
  return [...found.values()];
}

/** The legend in rows that fit. */
function inRows(list: Entry[], width: number): Entry[][] {
  const rows: Entry[][] = [];
  let used = Infinity;
  for (const entry of list) {
    if (used + entry.width > width) {
      rows.push([]);
      used = 0;
    }
    rows.at(-1)?.push(entry);
    used += entry.width;
  }
  return rows;
}

function drawAxes(
  pen: Pen,
  spec: ChartSpec,
  { ranges, log }: Shown,
  map: Mapper,
  box: { left: number; top: number; width: number; height: number },
): void {
  const { ratio } = map;
  const foot = box.top + box.height;
  pen.font = `${12 * ratio}px ${font}`;
  pen.lineWidth = ratio;
  pen.strokeStyle = colour("grid");
  pen.fillStyle = colour("text");
  for (const side of ["x", "y"] as const) {
    const length = (side === "x" ? box.width : box.height) / ratio;
    for (const value of splitsOf(spec[side], log[side], side, ranges[side], length)) {
      const at = map[side](value);
      pen.beginPath();
      if (side === "x") {
        pen.moveTo(at, box.top);
        pen.lineTo(at, foot + 5 * ratio);
      } else {
        pen.moveTo(box.left - 5 * ratio, at);
        pen.lineTo(box.left + box.width, at);
      }
      pen.stroke();
      pen.textAlign = side === "x" ? "center" : "right";
      pen.textBaseline = side === "x" ? "top" : "middle";
      const words = tickWords(spec[side], log[side], ranges[side], value);
      if (side === "x") pen.fillText(words, at, foot + 8 * ratio);
      else pen.fillText(words, box.left - 8 * ratio, at);
    }
  }
  pen.font = `${13 * ratio}px ${font}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(labelText(spec.x.label), box.left + box.width / 2, foot + (room.x.beside + 8) * ratio);
  pen.save();
  pen.translate(12 * ratio, box.top + box.height / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText(labelText(spec.y.label), 0, 0);
  pen.restore();
}

/** Draws it; returns how high it is. */
export function drawFigure(pen: Pen, spec: ChartSpec, shown: Shown, { width, height, ratio }: Size): number {
  pen.font = `${12 * ratio}px ${font}`;
  const rows = inRows(entries(pen, spec, shown.off, ratio), (width - 20) * ratio);
  const full = top + height + row * rows.length + 8;
  pen.fillStyle = colour("surface");
  pen.fillRect(0, 0, width * ratio, full * ratio);
  pen.fillStyle = colour("text");
  pen.font = `600 ${15 * ratio}px ${font}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillText(labelText(spec.title), 12 * ratio, 18 * ratio);
  const box = {
    left: (room.y.beside + labelRoom) * ratio,
    top: top * ratio,
    width: (width - room.y.beside - labelRoom - 16) * ratio,
    height: (height - room.x.beside - labelRoom) * ratio,
  };
  const view = spec.square
    ? { ...shown, ranges: squared(shown.ranges.x, shown.ranges.y, box.width, box.height) }
    : shown;
  const map = mapperOf(spec, view, box, ratio);
  drawAxes(pen, spec, view, map, box);
  pen.save();
  pen.beginPath();
  pen.rect(box.left, box.top, box.width, box.height);
  pen.clip();
  drawBands(pen, spec.bands ?? [], map, box, { line: colour("line"), text: colour("muted") });
  const series = spec.series.filter((one) => !shown.off.has(one.label));
  for (const one of series) drawCurve(pen, one, map, look(one.style));
  drawOver(pen, spec, shown, map, box);
  pen.restore();
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.font = `${12 * ratio}px ${font}`;
  rows.forEach((list, k) => {
    const y = (top + height + row * (k + 0.5)) * ratio;
    let x = 14 * ratio;
    for (const entry of list) {
      entry.draw(x, y);
      pen.fillStyle = colour("text");
      pen.fillText(entry.label, x + 34 * ratio, y);
      x += entry.width;
    }
  });
  return full;
}

/** What lies over the curves: arrows and lines, names, and the line at the current step. */
export function drawOver(
  pen: Pen,
  spec: ChartSpec,
  { off, marker }: Pick<Shown, "off" | "marker">,
  map: Mapper,
  box: { left: number; top: number; width: number; height: number },
): void {
  for (const overlay of spec.overlays ?? []) {
    if (off.has(overlay.label)) continue;
    pen.save();
    pen.strokeStyle = pen.fillStyle = look(overlay.style).colour;
    pen.lineWidth = (overlay.width ?? 2) * map.ratio;
    pen.setLineDash(overlay.dash.map((part) => part * map.ratio));
    overlay.draw(pen, map, box);
    pen.restore();
  }
  if (marker !== null) {
    pen.strokeStyle = colour("muted");
    pen.lineWidth = map.ratio;
    pen.beginPath();
    pen.moveTo(map.x(marker), box.top);
    pen.lineTo(map.x(marker), box.top + box.height);
    pen.stroke();
  }
  const named = spec.series.filter((one) => !off.has(one.label));
  drawTags(pen, named, map, box, { text: colour("text"), around: colour("surface") });
}
