// What the stage draws that cannot be dragged: margins, arrows, paths, the contradiction.
import { conflictShape } from "../conflict_shape";
import { svg } from "../dom";
import { formatted } from "../format";
import type { App } from "./app";
import { apply, asked, dot, size, type Vector } from "./task";

export type Spot = [number, number];

/** Where the stage puts things. */
export interface Map {
  width: number;
  height: number;
  radius: number; // of the part of the plane that is seen, in units of the task
  at: (spot: Spot) => Spot; // from units to pixels
  of: (x: Vector) => Spot; // from key space to units
}

/** Weights grow without bound; they are drawn on a scale that bends, so that infinity is the rim. */
export const bent = ([x, y]: Spot, radius: number): Spot => {
  const by = radius / (radius + Math.hypot(x, y));
  return [x * by, y * by];
};

export const straight = ([x, y]: Spot, radius: number): Spot => {
  const length = Math.min(Math.hypot(x, y), 0.98 * radius);
  const by = length > 0 ? radius / (radius - length) / (Math.hypot(x, y) / length) : 1;
  return [x * by, y * by];
};

const points = (spots: readonly Spot[]): string => spots.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");

export function arrow(from: Spot, to: Spot, kind: string): SVGElement[] {
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  if (!(length > 0.5)) return [];
  const [x, y] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
  const head = Math.min(11, length);
  const foot: Spot = [to[0] - x * head, to[1] - y * head];
  return [
    svg("line", { class: kind, x1: from[0], y1: from[1], x2: foot[0], y2: foot[1] }),
    svg("polygon", {
      class: `${kind} tip`,
      points: points([to, [foot[0] - y * 5, foot[1] + x * 5], [foot[0] + y * 5, foot[1] - x * 5]]),
    }),
  ];
}

export function words(text: string, [x, y]: Spot, kind: string, anchor = "middle"): SVGElement {
  return svg("text", { class: kind, x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor }, text);
}

/** Keeps a label inside the stage. */
const inside = ([x, y]: Spot, map: Map, room = 40): Spot => [
  Math.min(map.width - room, Math.max(room, x)),
  Math.min(map.height - 10, Math.max(16, y)),
];

/** The two lines of the query in focus: through its kept token, and one margin behind it. */
function margins(app: App, map: Map): SVGElement[] {
  const { state, W, answer } = app;
  const query = state.task.queries[state.query];
  const kept = answer?.kept[state.query]?.[0];
  if (!W || !query || kept === undefined) return [];
  const direction = apply(W, asked(state.task, query));
  const flat = map.of(direction);
  const length = Math.hypot(...flat);
  if (length === 0 || length < 0.999 * size(direction)) return []; // elsewhere they are planes, not lines
  const key = state.task.sequences[query.sequence]?.[kept]?.key ?? [];
  const normal: Spot = [flat[0] / length, flat[1] / length];
  const far = 4 * map.radius;
  const line = (height: number): [Spot, Spot] => [
    map.at([normal[0] * height - normal[1] * far, normal[1] * height + normal[0] * far]),
    map.at([normal[0] * height + normal[1] * far, normal[1] * height - normal[0] * far]),
  ];
  const top = dot(key, direction) / length;
  const first = line(top),
    second = line(top - 1 / length);
  const drawn = ([a, b]: [Spot, Spot], kind: string): SVGElement =>
    svg("line", { class: kind, x1: a[0], y1: a[1], x2: b[0], y2: b[1] });
  return [
    svg("polygon", { class: "band", points: points([first[0], first[1], second[1], second[0]]) }),
    drawn(first, "margin kept"),
    drawn(second, "margin"),
  ];
}

/** Directions W z of all queries, that of the one in focus strong. */
function directions(app: App, map: Map): SVGElement[] {
  const { state, W } = app;
  if (!W) return [];
  const list: SVGElement[] = [];
  const prompt = state.task.queries.every((query) => !query.z && query.token === null);
  state.task.queries.forEach((query, i) => {
    if (i !== state.query && (prompt || state.task.queries.length > 12)) return;
    const tip = map.of(apply(W, asked(state.task, query)));
    const length = Math.hypot(...tip);
    if (length === 0) return;
    const end: Spot = [(tip[0] / length) * map.radius, (tip[1] / length) * map.radius];
    const focus = i === state.query;
    list.push(...arrow(map.at([0, 0]), map.at(end), focus ? "solution" : "solution other"));
    const name = prompt ? "p\u1d50\u1d50" : `W\u1d50\u1d50 z${state.task.queries.length > 1 ? subscript(i) : ""}`;
    const at = map.at([end[0] * 1.06, end[1] * 1.06]);
    if (focus) list.push(words(name, inside([at[0], at[1] + 5], map), "name solution"));
  });
  return list;
}

export const subscript = (k: number): string =>
  [...String(k)].map((digit) => String.fromCharCode(0x2080 + Number(digit))).join("");

/** Where training has led W z, and where it is. */
function path(app: App, map: Map): SVGElement[] {
  const { state, run } = app;
  const query = state.task.queries[state.query];
  if (!query || run.points.length === 0) return [];
  const z = asked(state.task, query);
  const way = run.points.map((point) => map.at(bent(map.of(apply(point.W, z)), map.radius)));
  const last = way.at(-1);
  return [
    svg("polyline", { class: "path", points: points(way) }),
    ...(last ? arrow(map.at([0, 0]), last, "trained") : []),
  ];
}

/** Tokens in conflict, and the polygon that their rows form. */
function contradiction(app: App, map: Map): SVGElement[] {
  const { answer, state } = app;
  const conflict = answer?.conflict;
  if (!conflict) return [];
  const tokens = state.task.sequences[state.task.queries[state.query]?.sequence ?? 0] ?? [];
  const place = (token: number): Spot => map.at(map.of(tokens[token]?.key ?? []));
  const heaviest = Math.max(...conflict.rows.map((row) => Math.abs(row.weight)));
  const here = conflict.rows.filter((row) => row.query === state.query && row.drop >= 0);
  const lines = here.map((row) => {
    const [a, b] = [place(row.drop), place(row.keep)];
    const width = 1 + (3 * Math.abs(row.weight)) / heaviest;
    return svg("line", { class: "clash", x1: a[0], y1: a[1], x2: b[0], y2: b[1], "stroke-width": width });
  });
  const shape = conflictShape(conflict.rows);
  if (!shape) return lines;
  const { corners, flat, rows } = shape;
  const low = [0, 1].map((axis) => Math.min(...corners.map((corner) => corner[axis] ?? 0)));
  const high = [0, 1].map((axis) => Math.max(...corners.map((corner) => corner[axis] ?? 0)));
  const box = Math.min(150, 0.34 * map.width);
  const reach = Math.max((high[0] ?? 0) - (low[0] ?? 0), (high[1] ?? 0) - (low[1] ?? 0));
  const to = ([x, y]: [number, number]): Spot => [
    map.width - box - 16 + ((x - (low[0] ?? 0)) / reach) * box,
    map.height - 20 - ((y - (low[1] ?? 0)) / reach) * box,
  ];
  return [
    ...lines,
    svg("polygon", { class: "polygon", points: points(corners.map(to)) }),
    ...rows.flatMap((_, k) => {
      const from = corners[k] ?? [0, 0],
        end = corners[k + 1] ?? [0, 0];
      return arrow(to(flat ? [from[0], end[1]] : from), to(end), "side");
    }),
  ];
}

/** The multipliers of the query in focus, beside its support tokens. */
function multipliers(app: App, map: Map): SVGElement[] {
  const { answer, state } = app;
  const query = state.task.queries[state.query];
  if (!answer || !query || answer.status === "infeasible") return [];
  return answer.rows
    .filter((row) => row.query === state.query && row.drop >= 0 && (row.dual ?? 0) > 1e-9)
    .map((row) => {
      const [x, y] = map.at(map.of(state.task.sequences[query.sequence]?.[row.drop]?.key ?? []));
      const text = `\u03bb ${formatted(Number((row.dual ?? 0).toPrecision(3)))}`;
      return words(text, inside([x + 13, y + 17], map), "name dual", "start");
    });
}

export function parts(app: App, map: Map): SVGElement[] {
  const [x, y] = map.at([0, 0]);
  const rim = Math.abs(map.at([map.radius, 0])[0] - x);
  return [
    svg("circle", { class: "rim", cx: x, cy: y, r: rim }),
    svg("line", { class: "axis", x1: x - rim, y1: y, x2: x + rim, y2: y }),
    svg("line", { class: "axis", x1: x, y1: y - rim, x2: x, y2: y + rim }),
    ...margins(app, map),
    ...directions(app, map),
    ...path(app, map),
    ...contradiction(app, map),
    ...multipliers(app, map),
  ];
}
