// What charts draw: lines, points, bands, bars, boxes and arrows, on a canvas, in pixels of the device.
import type { Mark } from "./data";
import { svg } from "./dom";
import type { Pen } from "./pen";
import { colour, type Look, type Shape } from "./theme";

export interface Mapper {
  x: (value: number) => number;
  y: (value: number) => number;
  ratio: number; // pixels of the device in a pixel of the page
  visible: (x: number, y: number) => boolean; // a pixel lies in the plot, or nearly
}

export interface Curve {
  mark: Mark;
  x: ArrayLike<number | null>;
  y: ArrayLike<number | null>;
  low?: ArrayLike<number | null> | undefined;
  high?: ArrayLike<number | null> | undefined;
  width?: number | undefined; // of boxes, in units of x
  thin?: boolean | undefined;
  ruled?: boolean | undefined; // a line through two points, and no curve of which only these are known
  bold?: boolean | undefined; // a line that matters more than the others
  wide?: boolean | undefined; // a line that another may lie on and still be seen
  size?: number | undefined; // of points
  shape?: Shape | undefined; // instead of the style's
}

const many = 4000; // points from which on each is a plain square: shapes of that number cannot be told apart

export function trace(ctx: Pen, shape: Shape, x: number, y: number, r: number): void {
  switch (shape) {
    case "circle":
    case "ring":
      ctx.moveTo(x + r, y);
      ctx.arc(x, y, r, 0, 2 * Math.PI);
      break;
    case "square":
    case "box":
      ctx.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
      break;
    case "triangle":
      ctx.moveTo(x, y - r * 1.2);
      ctx.lineTo(x + r * 1.1, y + r * 0.8);
      ctx.lineTo(x - r * 1.1, y + r * 0.8);
      ctx.closePath();
      break;
    case "down":
      ctx.moveTo(x, y + r * 1.2);
      ctx.lineTo(x + r * 1.1, y - r * 0.8);
      ctx.lineTo(x - r * 1.1, y - r * 0.8);
      ctx.closePath();
      break;
    case "diamond":
      ctx.moveTo(x, y - r * 1.35);
      ctx.lineTo(x + r * 1.35, y);
      ctx.lineTo(x, y + r * 1.35);
      ctx.lineTo(x - r * 1.35, y);
      ctx.closePath();
      break;
    case "star":
      for (let k = 0; k < 10; k += 1) {
        const reach = (k % 2 === 0 ? 1.5 : 0.62) * r,
          angle = (k * Math.PI) / 5;
        const at: [number, number] = [x + reach * Math.sin(angle), y - reach * Math.cos(angle)];
        if (k === 0) ctx.moveTo(...at);
        else ctx.lineTo(...at);
      }
      ctx.closePath();
      break;
    case "cross":
      ctx.moveTo(x - r, y - r);
      ctx.lineTo(x + r, y + r);
      ctx.moveTo(x - r, y + r);
      ctx.lineTo(x + r, y - r);
      break;
  }
}

const hollow = (shape: Shape): boolean => ["ring", "box", "cross", "star"].includes(shape);

/** The pixels of every point that can be drawn, in order; a gap ends a line. */
function* pixels(curve: Curve, map: Mapper): Generator<[number, number, number] | null> {
  for (let k = 0; k < curve.x.length; k += 1) {
    const x = curve.x[k],
      y = curve.y[k];
    const px = x === null || x === undefined ? NaN : map.x(x);
    const py = y === null || y === undefined ? NaN : map.y(y);
    yield Number.isFinite(px) && Number.isFinite(py) ? [px, py, k] : null;
  }
}

function drawPoints(ctx: Pen, curve: Curve, map: Mapper, look: Look, every = 1): void {
  const shape = curve.shape ?? look.shape;
  const r = (curve.size ?? 3.5) * map.ratio;
  if (curve.x.length > many && every === 1) {
    const side = Math.max(1.5, r * 0.7);
    for (const at of pixels(curve, map)) {
      if (at && map.visible(at[0], at[1])) ctx.fillRect(at[0] - side / 2, at[1] - side / 2, side, side);
    }
    return;
  }
  ctx.beginPath();
  let count = 0;
  for (const at of pixels(curve, map)) {
    if (at && at[2] % every === 0 && map.visible(at[0], at[1])) trace(ctx, shape, at[0], at[1], r);
    count += 1;
    if (count % 500 === 0) {
      finish(ctx, shape);
      ctx.beginPath();
    }
  }
  finish(ctx, shape);
}

function finish(ctx: Pen, shape: Shape): void {
  if (hollow(shape)) ctx.stroke();
  else ctx.fill();
}

function drawLine(ctx: Pen, curve: Curve, map: Mapper): void {
  ctx.beginPath();
  let open = false;
  for (const at of pixels(curve, map)) {
    if (!at) open = false;
    else if (open) ctx.lineTo(at[0], at[1]);
    else {
      ctx.moveTo(at[0], at[1]);
      open = true;
    }
  }
  ctx.stroke();
}

/** A bound of a band; below what a logarithmic axis can show it falls to the foot of the plot. */
function bound(values: ArrayLike<number | null> | undefined, k: number, y: number, map: Mapper): number {
  const value = values?.[k] ?? null;
  const at = value === null ? y : map.y(value);
  return Number.isFinite(at) ? at : 1e5;
}

function drawBand(ctx: Pen, curve: Curve, map: Mapper): void {
  const points = [...pixels(curve, map)].filter((at) => at !== null);
  ctx.save();
  ctx.globalAlpha = 0.16;
  ctx.beginPath();
  for (const [x, y, k] of points) ctx.lineTo(x, bound(curve.high, k, y, map));
  for (const [x, y, k] of points.reverse()) ctx.lineTo(x, bound(curve.low, k, y, map));
  ctx.closePath();
  ctx.fill();
  ctx.restore();
}

function drawBars(ctx: Pen, curve: Curve, map: Mapper): void {
  const cap = 3 * map.ratio;
  ctx.save();
  ctx.setLineDash([]);
  ctx.lineWidth = map.ratio;
  ctx.beginPath();
  for (const at of pixels(curve, map)) {
    if (!at) continue;
    const [x, y, k] = at;
    const low = bound(curve.low, k, y, map),
      high = bound(curve.high, k, y, map);
    ctx.moveTo(x, low);
    ctx.lineTo(x, high);
    for (const end of [low, high]) {
      ctx.moveTo(x - cap, end);
      ctx.lineTo(x + cap, end);
    }
  }
  ctx.stroke();
  ctx.restore();
}

/** Lines across a box, of a slope of its own, so that boxes differ without colour too. */
function hatch(ctx: Pen, [x, y, width, height]: [number, number, number, number], slope: number, ratio: number): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, width, height);
  ctx.clip();
  ctx.beginPath();
  for (let at = -height; at < width + height; at += 6 * ratio) {
    ctx.moveTo(x + at, slope > 0 ? y + height : y);
    ctx.lineTo(x + at + height, slope > 0 ? y : y + height);
  }
  ctx.stroke();
  ctx.restore();
}

function drawBoxes(ctx: Pen, curve: Curve, map: Mapper, look: Look): void {
  const slope = { circle: 0, square: 1, triangle: -1 }[look.shape as string] ?? 0;
  const half = (curve.width ?? 0.8) / 2;
  for (let k = 0; k < curve.x.length; k += 1) {
    const x = curve.x[k],
      low = curve.low?.[k],
      high = curve.high?.[k];
    if (typeof x !== "number" || typeof low !== "number" || typeof high !== "number") continue;
    const left = map.x(x - half),
      right = map.x(x + half),
      top = map.y(high),
      foot = map.y(low);
    ctx.save();
    ctx.globalAlpha = 0.35;
    ctx.fillRect(left, top, right - left, foot - top);
    ctx.restore();
    ctx.strokeRect(left, top, right - left, foot - top);
    if (slope !== 0) hatch(ctx, [left, top, right - left, foot - top], slope, map.ratio);
  }
}

export function drawCurve(ctx: Pen, curve: Curve, map: Mapper, look: Look): void {
  ctx.save();
  ctx.strokeStyle = look.colour;
  ctx.fillStyle = look.colour;
  ctx.lineWidth = (curve.thin ? 1 : curve.bold ? 4 : 2) * map.ratio;
  ctx.lineJoin = "round";
  if (curve.mark === "points") {
    ctx.lineWidth = 1.5 * map.ratio;
    drawPoints(ctx, curve, map, look);
  } else if (curve.mark === "boxes") {
    ctx.lineWidth = map.ratio;
    drawBoxes(ctx, curve, map, look);
  } else {
    if (curve.mark === "band") drawBand(ctx, curve, map);
    if (curve.mark === "bars") drawBars(ctx, curve, map);
    ctx.setLineDash(look.dash.map((part) => part * map.ratio * 0.8));
    if (curve.wide) {
      ctx.lineWidth = 6 * map.ratio;
      ctx.globalAlpha = 0.45;
    }
    const known = [...pixels(curve, map)].filter((at) => at !== null).length;
    if (curve.ruled || known > 2) drawLine(ctx, curve, map); // a line through less would tell of what nobody measured
    ctx.setLineDash([]);
    const every = curve.mark === "bars" || known <= 2 ? 1 : Math.max(1, Math.floor(curve.x.length / 8));
    if (!curve.ruled && (!curve.thin || known <= 2))
      drawPoints(ctx, { ...curve, size: curve.wide ? 6 : curve.bold || known <= 2 ? 5 : 3 }, map, look, every);
  }
  ctx.restore();
}

/** An arrow between two points of the canvas. */
export function drawArrow(ctx: Pen, from: [number, number], to: [number, number], ratio: number): void {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  if (!(length > 0)) return;
  const head = Math.min(10 * ratio + ctx.lineWidth, length);
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(to[0] - head * 0.6 * Math.cos(angle), to[1] - head * 0.6 * Math.sin(angle));
  ctx.stroke();
  ctx.save();
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.moveTo(...to);
  for (const turn of [2.65, -2.65])
    ctx.lineTo(to[0] + head * Math.cos(angle + turn), to[1] + head * Math.sin(angle + turn));
  ctx.closePath();
  ctx.fill();
  ctx.restore();
}

/** The same look beside a name in the legend. */
export function swatch(style: number, look: Look, mark: Mark | "arrow" | "rule", shape?: Shape): SVGElement {
  const drawn = shape ?? look.shape;
  const paint = `var(--style-${style % 8})`;
  const parts: SVGElement[] = [];
  if (mark === "boxes")
    parts.push(svg("rect", { x: 5, y: 2, width: 18, height: 10, fill: paint, "fill-opacity": 0.35, stroke: paint }));
  if (mark !== "points" && mark !== "boxes") {
    parts.push(
      svg("line", {
        x1: 1,
        y1: 7,
        x2: 27,
        y2: 7,
        stroke: paint,
        "stroke-width": 2,
        "stroke-dasharray": look.dash.map((part) => part * 0.7).join(" ") || null,
      }),
    );
  }
  if (mark === "arrow") parts.push(svg("path", { d: "M28 7 L19 2.5 L19 11.5 Z", fill: paint }));
  else if (mark !== "boxes" && mark !== "rule")
    parts.push(
      svg("path", {
        d: outline(drawn),
        fill: hollow(drawn) ? "none" : paint,
        stroke: hollow(drawn) ? paint : "none",
        "stroke-width": 1.5,
      }),
    );
  return svg("svg", { viewBox: "0 0 28 14", width: 28, height: 14, "aria-hidden": "true", class: "swatch" }, ...parts);
}

function outline(shape: Shape): string {
  switch (shape) {
    case "circle":
    case "ring":
      return "M10.5 7 a3.5 3.5 0 1 0 7 0 a3.5 3.5 0 1 0 -7 0";
    case "square":
    case "box":
      return "M10.8 3.8 h6.4 v6.4 h-6.4 Z";
    case "triangle":
      return "M14 2.6 L18 10 H10 Z";
    case "down":
      return "M14 11.4 L18 4 H10 Z";
    case "diamond":
      return "M14 2.2 L18.8 7 L14 11.8 L9.2 7 Z";
    case "star":
      return "M14 1 L15.4 5.1 H19.7 L16.2 7.7 L17.5 11.8 L14 9.3 L10.5 11.8 L11.8 7.7 L8.3 5.1 H12.6 Z";
    case "cross":
      return "M10.8 3.8 L17.2 10.2 M10.8 10.2 L17.2 3.8";
  }
}

/** What is in the way of a name: marks, which have names of their own above them, and points of curves. */
export interface Busy {
  marks: [number, number][];
  curves: [number, number][];
}

/** The line through two points, from edge to edge of a box, with a name where the least is in its way. */
export function drawNamedLine(
  pen: Pen,
  [from, to]: [[number, number], [number, number]],
  box: { left: number; top: number; width: number; height: number },
  name: string,
  busy: Busy,
  ratio: number,
): void {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  let first = -Infinity,
    last = Infinity; // the part of the line that is in the box
  for (const [delta, start, low, length] of [
    [dx, from[0], box.left, box.width],
    [dy, from[1], box.top, box.height],
  ] as const) {
    if (Math.abs(delta) < 1e-12) {
      if (start < low || start > low + length) return;
      continue;
    }
    const ends = [(low - start) / delta, (low + length - start) / delta];
    first = Math.max(first, Math.min(...ends));
    last = Math.min(last, Math.max(...ends));
  }
  if (first >= last) return;
  const point = (k: number): [number, number] => [from[0] + k * dx, from[1] + k * dy];
  pen.beginPath();
  pen.moveTo(...point(first));
  pen.lineTo(...point(last));
  pen.stroke();
  pen.font = `${11.5 * ratio}px system-ui, sans-serif`;
  const width = pen.measureText(name).width;
  // A name is kept off marks (7 pixels around a point), off their own names above them, and inside the box.
  const half = 7 * ratio;
  const parts = Array.from({ length: 25 }, (_, k) => point(first + ((last - first) * k) / 24));
  const places = parts
    .sort((a, b) => b[0] - a[0])
    .flatMap(([x, y]) =>
      [-10, 10, 24, -24].map((by) => {
        const right = box.left + box.width - width - 6 * ratio;
        const left = Math.max(box.left + 6 * ratio, Math.min(x - width / 2, right));
        const middle = y + by * ratio;
        const beside = (px: number): boolean => px > left - half && px < left + width + half;
        const taken = busy.marks.filter(
          ([px, py]) => beside(px) && middle > py - 4 * half && middle < py + 2 * half,
        ).length;
        const crossed = busy.curves.some(([px, py]) => beside(px) && Math.abs(middle - py) < half) ? 0.7 : 0;
        const out = middle - half < box.top || middle + half > box.top + box.height ? busy.marks.length + 1 : 0;
        return { left, middle, cost: taken + crossed + out + (Math.abs(by) > 10 ? 0.5 : 0) };
      }),
    );
  const best = places.reduce((a, b) => (b.cost < a.cost ? b : a));
  pen.save();
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.setLineDash([]);
  pen.lineJoin = "round";
  pen.lineWidth = 3 * ratio;
  pen.strokeStyle = colour("surface"); // so that it can be read on a curve too
  pen.strokeText(name, best.left, best.middle);
  pen.fillText(name, best.left, best.middle);
  pen.restore();
}
