// What the stage draws that cannot be dragged: margins, arrows, paths, the contradiction.
import { conflictShape } from "../conflict_shape";
import { svg } from "../dom";
import { formatted } from "../format";
import type { App } from "./app";
import type { Name } from "./stage_names";
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

/**
 * Where W z is drawn. Weights grow without bound: the scale bends, so that infinity is the rim. A length that no double
 * holds lies there too.
 */
export function bent(W: readonly Vector[], z: Vector, map: Map): Spot {
  const largest = Math.max(0, ...W.map((row) => Math.max(...row.map(Math.abs))));
  if (largest === 0) return [0, 0];
  const [x, y] = map.of(
    apply(
      W.map((row) => row.map((one) => one / largest)),
      z,
    ),
  );
  const length = Math.hypot(x, y);
  if (length === 0) return [0, 0];
  const by = map.radius / (1 + map.radius / (length * largest)) / length;
  return [x * by, y * by];
}

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

const isPrompt = ({ task }: App["state"]): boolean => task.queries.every((query) => !query.z && query.token === null);

/** Where the arrow of a query's direction W z ends, on the rim; null where it has none. */
function tipOf(app: App, map: Map, i: number): Spot | null {
  const { state, W } = app;
  const query = state.task.queries[i];
  if (!W || !query) return null;
  const [x, y] = map.of(apply(W, asked(state.task, query)));
  const length = Math.hypot(x, y);
  return length > 0 ? map.at([(x / length) * map.radius, (y / length) * map.radius]) : null;
}

/** Directions W z of all queries, that of the one in focus strong. */
function directions(app: App, map: Map): SVGElement[] {
  const { state } = app;
  const many = isPrompt(state) || state.task.queries.length > 12;
  return state.task.queries.flatMap((_, i) => {
    const tip = many && i !== state.query ? null : tipOf(app, map, i);
    return tip ? arrow(map.at([0, 0]), tip, i === state.query ? "solution" : "solution other") : [];
  });
}

export const subscript = (k: number): string =>
  [...String(k)].map((digit) => String.fromCharCode(0x2080 + Number(digit))).join("");

/** Where training has led W z, and where it is. */
function path(app: App, map: Map): SVGElement[] {
  const { state, run } = app;
  const query = state.task.queries[state.query];
  if (!query || run.points.length === 0) return [];
  const z = asked(state.task, query);
  const way = run.points.map((point) => map.at(bent(point.W, z, map)));
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

/** The direction of the query in focus has a name. */
export function directionName(app: App, map: Map): Name[] {
  const { state } = app;
  const tip = tipOf(app, map, state.query);
  const subscripts = state.task.queries.length > 1 ? subscript(state.query) : "";
  const text = isPrompt(state) ? "p\u1d50\u1d50" : `W\u1d50\u1d50 z${subscripts}`;
  return tip ? [{ text, at: tip, r: 6, kind: "solution", needed: true }] : [];
}

/** The multipliers of the query in focus, beside its support tokens. */
export function multipliers(app: App, map: Map): Name[] {
  const { answer, state } = app;
  const query = state.task.queries[state.query];
  if (!answer || !query || answer.status === "infeasible") return [];
  const largest = Math.max(...answer.rows.map((row) => row.dual ?? 0));
  return answer.rows
    .filter((row) => row.query === state.query && row.drop >= 0 && (row.dual ?? 0) > 1e-9 * largest)
    .map((row) => ({
      text: `\u03bb ${formatted(Number((row.dual ?? 0).toPrecision(3)))}`,
      at: map.at(map.of(state.task.sequences[query.sequence]?.[row.drop]?.key ?? [])),
      r: 12,
      kind: "dual",
      needed: false,
    }));
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
  ];
}
