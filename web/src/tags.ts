// Text inside a picture: names of points and of stretches of the x axis; each only where there is room.
import type { Band, Series } from "./chart_spec";
import type { Mapper } from "./marks";
import { shortened } from "./names";
import type { Pen } from "./pen";

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

const most = 60; // points of a chart that are named: more would not be readable

const meet = (a: Box, b: Box): boolean =>
  a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
const inside = (a: Box, b: Box): boolean =>
  a.left >= b.left && a.top >= b.top && a.left + a.width <= b.left + b.width && a.top + a.height <= b.top + b.height;
const font = (ratio: number): string => `${12 * ratio}px system-ui, sans-serif`;

/** A point that has a name: its middle, its radius, and the direction of the line through it. */
export interface Named {
  x: number;
  y: number;
  r: number;
  name: string;
  along: [number, number] | null;
}

/** Where a name may stand: above, right, left or below its point or between these, or clear of the line through it. */
function placesOf({ x, y, r, along }: Named, width: number, height: number): Box[] {
  const at = (middleX: number, middleY: number): Box => ({
    left: middleX - width / 2,
    top: middleY - height / 2,
    width,
    height,
  });
  const length = along ? Math.hypot(...along) : 0;
  if (along && length > 0) {
    const normal = [-along[1] / length, along[0] / length] as const;
    const far = (Math.abs(normal[0]) * width + Math.abs(normal[1]) * height) / 2 + r;
    return [far, -far].map((by) => at(x + by * normal[0], y + by * normal[1]));
  }
  const [high, low, right, left] = [y - r - height / 2, y + r + height / 2, x + r + width / 2, x - r - width / 2];
  const beside: [number, number][] = [
    [x, high],
    [right, y],
    [left, y],
    [x, low],
    [right, high],
    [left, high],
    [right, low],
    [left, low],
  ];
  return beside.map(([middleX, middleY]) => at(middleX, middleY));
}

/** The first place of a name, of this size, that is inside the plot and where nothing is; null where there is none. */
export function freePlace(point: Named, [width, height]: [number, number], plot: Box, taken: Box[]): Box | null {
  return (
    placesOf(point, width, height).find((place) => inside(place, plot) && !taken.some((other) => meet(place, other))) ??
    null
  );
}

/** What a name must keep off so that it does not cross a line. */
export function boxesAlong(from: [number, number], to: [number, number], wide: number): Box[] {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const count = Math.min(200, Math.ceil(Math.hypot(dx, dy) / wide));
  return Array.from({ length: count + 1 }, (_, k) => ({
    left: from[0] + (k / Math.max(1, count)) * dx - wide / 2,
    top: from[1] + (k / Math.max(1, count)) * dy - wide / 2,
    width: wide,
    height: wide,
  }));
}

/** Names beside points, wherever no point and no other name is. */
export function drawTags(
  ctx: Pen,
  list: Series[],
  map: Mapper,
  plot: Box,
  colours: { text: string; around: string },
): void {
  const points: Named[] = [];
  for (const series of list) {
    if (!series.tag) continue;
    for (let k = 0; k < series.x.length; k += 1) {
      const x = series.x[k],
        y = series.y[k];
      if (typeof x !== "number" || typeof y !== "number" || !map.visible(map.x(x), map.y(y))) continue;
      const along = series.along?.(k);
      points.push({
        x: map.x(x),
        y: map.y(y),
        r: ((series.size ?? 3.5) * 1.4 + 1) * map.ratio,
        name: shortened(series.tag(k)),
        along: along ? [map.x(x + along[0]) - map.x(x), map.y(y + along[1]) - map.y(y)] : null,
      });
    }
  }
  if (points.length > most) return;
  const taken: Box[] = points.flatMap(({ x, y, r, along }) => [
    { left: x - r, top: y - r, width: 2 * r, height: 2 * r },
    ...(along
      ? boxesAlong([x - along[0] / 2, y - along[1] / 2], [x + along[0] / 2, y + along[1] / 2], 4 * map.ratio)
      : []),
  ]);
  ctx.save();
  ctx.font = font(map.ratio);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  ctx.lineWidth = 3 * map.ratio;
  ctx.strokeStyle = colours.around;
  ctx.fillStyle = colours.text;
  const height = 14 * map.ratio;
  for (const point of points.reverse()) {
    const { name } = point;
    const free = freePlace(point, [ctx.measureText(name).width, height], plot, taken);
    if (!free) continue;
    taken.push(free);
    ctx.strokeText(name, free.left, free.top + height / 2);
    ctx.fillText(name, free.left, free.top + height / 2);
  }
  ctx.restore();
}

/** Lines between stretches of the x axis, and their names at the top. */
export function drawBands(
  ctx: Pen,
  bands: Band[],
  map: Mapper,
  plot: Box,
  colours: { line: string; text: string },
): void {
  ctx.save();
  ctx.font = font(map.ratio);
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  ctx.strokeStyle = colours.line;
  ctx.fillStyle = colours.text;
  ctx.lineWidth = map.ratio;
  for (const { from, to, label } of bands) {
    const left = map.x(from),
      right = map.x(to);
    ctx.beginPath();
    ctx.moveTo(right, plot.top);
    ctx.lineTo(right, plot.top + plot.height);
    if (right < plot.left + plot.width) ctx.stroke();
    if (ctx.measureText(label).width < right - left - 4 * map.ratio)
      ctx.fillText(label, (left + right) / 2, plot.top + 2 * map.ratio);
  }
  ctx.restore();
}
