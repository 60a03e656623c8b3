// The tokens of one query in a plane, with the directions W z of the solutions and of training.
import { Chart } from "./chart";
import type { ChartSpec, Overlay, Series } from "./chart_spec";
import type { Axis, ConflictRow, Directions, Report } from "./data";
import type { Child } from "./dom";
import { counted, num, share } from "./format";
import { type Busy, drawArrow, drawNamedLine, type Mapper } from "./marks";
import { axisName, tokenAt, tokenName } from "./names";
import { literal, pointAt, runNames, runStyle } from "./runs";
import type { State, Store } from "./state";

type Point = [number, number];

interface Pair {
  x: number;
  y: number;
}

const kindOf = (data: Report, axis: number): Axis["kind"] | undefined => data.plane.axes[axis]?.kind;
const isOwn = (data: Report, axis: number): boolean => ["max-margin", "across"].includes(kindOf(data, axis) ?? "");

/** The tokens of a query along an axis; a task whose keys are single numbers has no second one. */
function column(data: Report, axis: number, query: number): number[] {
  const { plane, queries } = data;
  const kind = kindOf(data, axis);
  if (kind === "max-margin") return plane.along?.[query] ?? [];
  if (kind === "across") return plane.across?.[query] ?? [];
  const sequence = queries.sequence[query] ?? 0;
  const start = plane.offsets[sequence] ?? 0,
    end = plane.offsets[sequence + 1] ?? start;
  return plane.coordinates[axis]?.slice(start, end) ?? new Array<number>(end - start).fill(0);
}

/** Axes to begin with: the plane that the max-margin direction stands upright in, or all of key space. */
export function firstAxes(data: Report): Pair {
  const first = (kind: Axis["kind"]): number => data.plane.axes.findIndex((axis) => axis.kind === kind);
  const coordinate = first("coordinate"),
    component = first("principal"),
    margin = first("max-margin");
  if (data.task.d > 2 && margin >= 0) return { x: first("across"), y: margin };
  if (data.task.d <= 2 || component < 0) return { x: coordinate, y: coordinate + 1 };
  return { x: component, y: component + 1 };
}

/**
 * The chosen axes; a query whose own ones the page does not hold is shown along shared ones, and so is a head that has
 * fewer axes than another.
 */
export function axesOf(data: Report, { query, across, up }: Readonly<State>): Pair {
  const held = (axis: number): boolean =>
    axis < data.plane.axes.length && (!isOwn(data, axis) || query < (data.plane.along?.length ?? 0));
  const shared = data.plane.axes.findIndex((_, axis) => !isOwn(data, axis));
  return { x: held(across) ? across : shared, y: held(up) ? up : shared + 1 };
}

/** The support tokens of a query: rows that the selection's own solution meets with equality. */
export function supportOf(data: Report, query: number): { token: number; row: number }[] {
  const rows = data.main === null ? null : data.solutions[data.main]?.rows;
  if (!rows) return [];
  return rows.support
    .filter((k) => rows.query[k] === query && !rows.equal[k])
    .map((k) => ({ token: rows.drop[k] ?? -1, row: k }));
}

function tip(directions: Directions | null | undefined, query: number, axes: Pair): Point | null {
  const x = directions?.coordinates[axes.x]?.[query];
  const y = directions?.coordinates[axes.y]?.[query] ?? (directions?.coordinates.length === 1 ? 0 : undefined);
  return typeof x === "number" && typeof y === "number" ? [x, y] : null;
}

const at = (map: Mapper, [x, y]: Point): Point => [map.x(x), map.y(y)];

class Plane {
  private readonly x: number[];
  private readonly y: number[];
  private readonly query: number;
  private readonly reach: number; // how long arrows are drawn: as far as the tokens reach
  private readonly paths: Point[]; // of W z in training, of all runs

  constructor(
    private readonly data: Report,
    private readonly store: Store,
    private readonly axes: Pair,
  ) {
    this.query = store.get().query;
    this.x = column(data, axes.x, this.query);
    this.y = column(data, axes.y, this.query);
    this.reach = this.x.reduce((far, x, t) => Math.max(far, Math.hypot(x, this.y[t] ?? 0)), 0) || 1;
    this.paths = data.runs
      .flatMap((run) => run.directions.map((point) => tip(point, this.query, axes)))
      .filter((point) => point !== null);
  }

  spec(height: number): ChartSpec {
    const { data, axes, query, reach } = this;
    const ends = data.solutions.map((solution) => tip(solution.directions, query, axes));
    const tips = [...ends.filter((point) => point !== null), ...this.paths];
    return {
      title: `Query ${query}: tokens and directions`,
      name: `plane-${query}`,
      summary: this.words(),
      square: true,
      height,
      series: this.tokens(),
      x: { label: axisName(data.plane.axes[axes.x]) },
      y: { label: axisName(data.plane.axes[axes.y]) },
      overlays: this.overlays(),
      include: { x: [0, ...tips.map(([x]) => x * reach)], y: [0, ...tips.map(([, y]) => y * reach)] },
    };
  }

  private tokens(): Series[] {
    const { data, query } = this;
    const sequence = data.queries.sequence[query] ?? 0;
    const start = data.plane.offsets[sequence] ?? 0;
    const reach = data.queries.reach[query] ?? 0;
    const hidden = new Set(data.queries.hidden?.[query] ?? []);
    const kept = new Set(data.queries.kept[query] ?? []);
    const support = new Set(supportOf(data, query).map(({ token }) => token));
    const groups: Record<"kept" | "support" | "other" | "unseen", number[]> = {
      kept: [],
      support: [],
      other: [],
      unseen: [],
    };
    for (let t = 0; t < Math.min(this.x.length, this.y.length); t += 1)
      groups[kept.has(t) ? "kept" : support.has(t) ? "support" : t < reach && !hidden.has(t) ? "other" : "unseen"].push(
        t,
      );
    const part = (label: string, tokens: number[], style: number, shape: Series["shape"], size: number): Series => ({
      label,
      style,
      shape,
      size,
      mark: "points",
      x: tokens.map((t) => this.x[t] ?? null),
      y: tokens.map((t) => this.y[t] ?? null),
      name: (k) => `token ${tokenAt(data, sequence, tokens[k] ?? 0)}`,
      more: (k) => this.facts(tokens[k] ?? 0),
    });
    const named = (series: Series, tokens: number[]): Series => ({
      ...series,
      tag: (k) => data.plane.names?.[start + (tokens[k] ?? 0)] || String(tokens[k]),
    });
    const best = data.queries.optimal?.[query];
    const list: Series[] = [
      ...this.others(start),
      named(part("other tokens", groups.other, 6, "circle", 4), groups.other),
      named(part("not seen by this query", groups.unseen, 7, "ring", 4), groups.unseen),
      named(part("support tokens", groups.support, 1, "triangle", 6), groups.support),
      named(part("selected", groups.kept, 0, "diamond", 7), groups.kept),
      ...(best === undefined ? [] : [part("best score", [best], 4, "star", 11)]),
    ];
    return list.filter((series) => series.x.length > 0);
  }

  /** Score and attention of a token. */
  private facts(token: number): Child[] {
    const { data, query } = this;
    const { run, step } = this.store.get();
    const score = data.plane.scores?.[query]?.[token];
    const attention = data.runs[run]?.attention[query];
    const k = attention?.tokens.indexOf(token) ?? -1;
    const point = pointAt(data, run, step);
    return [
      ...(score === undefined ? [] : [": score ", num(`plane.scores.${query}.${token}`, score)]),
      ...(k < 0
        ? []
        : [
            ", attention at this step ",
            share(`runs.${run}.attention.${query}.weights.${k}.${point}`, attention?.weights[k]?.[point]),
          ]),
    ];
  }

  /** Tokens of other sequences, along axes that all share. */
  private others(start: number): Series[] {
    const { data, axes } = this;
    const x = data.plane.coordinates[axes.x],
      y = data.plane.coordinates[axes.y];
    if (data.plane.offsets.length <= 2 || !x || !y) return [];
    return [
      {
        label: "tokens of other sequences",
        style: 7,
        mark: "points",
        shape: "cross",
        size: 2,
        x: x.map((value, k) => (k >= start && k < start + this.x.length ? null : value)),
        y,
        name: (k) => {
          const sequence = data.plane.offsets.findLastIndex((first) => first <= k);
          return `sequence ${sequence}, token ${tokenAt(data, sequence, k - (data.plane.offsets[sequence] ?? 0))}`;
        },
      },
    ];
  }

  /** Arrows of the solutions, the path of training, margins where they can be drawn, and rows in conflict. */
  private overlays(): Overlay[] {
    const { data, query, axes, reach } = this;
    const scaled = ([x, y]: Point): Point => [x * reach, y * reach];
    const list: Overlay[] = [],
      margins: Overlay[] = [];
    data.solutions.forEach((solution, k) => {
      const end = tip(solution.directions, query, axes);
      if (!end) return;
      const style = [0, 3, 4, 5][k % 4] ?? 0;
      list.push({
        label: `${solution.label} z`,
        style,
        mark: "arrow",
        dash: k === 0 ? [] : [12, 4, 3, 4],
        width: k === 0 ? 7 : 4, // training ends on one of them, and both are to be seen
        draw: (pen, map) => {
          if (k === 0) pen.globalAlpha = 0.45;
          drawArrow(pen, at(map, [0, 0]), at(map, scaled(end)), map.ratio);
        },
      });
      margins.push(...this.marginLines(k, style));
    });
    const names = runNames(data);
    data.runs.forEach((run, r) => {
      if ((run.directions[0]?.length.length ?? 0) <= query) return;
      const way = run.directions.map((point) => tip(point, query, axes));
      list.push({
        label: data.runs.length > 1 ? `W z of ${literal(names[r] ?? "")}` : "W z in training",
        style: runStyle(r),
        mark: "arrow",
        dash: [],
        draw: (pen, map) => {
          const step = pointAt(data, r, this.store.get().step);
          for (const [part, alpha] of [
            [way, 0.3],
            [way.slice(0, step + 1), 1],
          ] as const) {
            pen.globalAlpha = alpha;
            pen.beginPath();
            part.filter((point) => point !== null).forEach((point) => pen.lineTo(...at(map, scaled(point))));
            pen.stroke();
          }
          const now = way[step];
          if (now) drawArrow(pen, at(map, [0, 0]), at(map, scaled(now)), map.ratio);
        },
      });
    });
    for (const solution of data.solutions) {
      const rows = solution.conflict?.rows.filter((row) => row.query === query && row.drop >= 0) ?? [];
      if (rows.length > 0) list.push(this.conflict(rows));
    }
    return [...list, ...margins]; // whose names are to be read over the paths
  }

  private conflict(rows: ConflictRow[]): Overlay {
    const heaviest = Math.max(...rows.map((row) => Math.abs(row.weight)));
    return {
      label: "rows in conflict",
      style: 1,
      mark: "arrow",
      dash: [],
      draw: (pen, map) => {
        const place = (token: number): Point => at(map, [this.x[token] ?? NaN, this.y[token] ?? NaN]);
        for (const row of rows) {
          pen.lineWidth = (1 + (4 * Math.abs(row.weight)) / heaviest) * map.ratio;
          drawArrow(pen, place(row.drop), place(row.keep), map.ratio);
        }
      },
    };
  }

  /**
   * The line through the selected token, and the one a margin behind it, which every other token must stay behind. They
   * are lines where the plane is all of key space, and for the solution that the axis upward follows.
   */
  private marginLines(k: number, style: number): Overlay[] {
    const { data, query, axes } = this;
    const solution = data.solutions[k];
    let unit = tip(solution?.directions, query, axes);
    const length = solution?.directions?.length[query];
    const kept = data.queries.kept[query]?.[0];
    if (!solution || !unit || !length || kept === undefined) return [];
    const followed = kindOf(data, axes.y) === "max-margin";
    const whole = data.task.d === 2 && axes.x !== axes.y && !isOwn(data, axes.x) && !isOwn(data, axes.y);
    if (followed ? k !== data.main : !whole) return [];
    if (followed) unit = [0, 1];
    const [across, up] = unit;
    const [x, y] = [this.x[kept] ?? 0, this.y[kept] ?? 0];
    const first = k === 0 || followed; // one line of each kind is named; the others are in the legend
    return [
      {
        label: `margin of ${solution.label}`,
        style,
        mark: "rule",
        dash: [2, 4],
        draw: (pen, map, box) => {
          pen.lineWidth = map.ratio;
          const arrow = Array.from({ length: 21 }, (_, part): Point => [across * (part / 20), up * (part / 20)]);
          const busy: Busy = {
            marks: this.x.map((one, t): Point => at(map, [one, this.y[t] ?? NaN])),
            curves: [...arrow, ...this.paths].map(([right, high]) => at(map, [right * this.reach, high * this.reach])),
          };
          for (const [by, name] of [
            [0, "selected"],
            [1 / length, "one margin behind"],
          ] as const) {
            const foot: Point = [x - across * by, y - up * by];
            const other: Point = [foot[0] + up, foot[1] - across];
            drawNamedLine(pen, [at(map, foot), at(map, other)], box, first ? name : "", busy, map.ratio);
          }
        },
      },
    ];
  }

  private words(): string {
    const { data, query, axes } = this;
    const kept = (data.queries.kept[query] ?? []).map((token) => tokenName(data, query, token, true));
    const support = supportOf(data, query).map(({ token }) => tokenName(data, query, token, true));
    const named =
      support.length === 0
        ? "It has no support tokens"
        : `Its support ${support.length === 1 ? "token is" : "tokens are"} ` +
          `${support.slice(0, 12).join(", ")}${support.length > 12 ? " and more" : ""}`;
    const upward =
      kindOf(data, axes.y) === "max-margin"
        ? "Upwards is the direction that the max-margin solution gives this query: the selected token is on top, its " +
          "support tokens lie one margin behind, and all others below. "
        : "";
    const conflict = data.solutions.some((one) =>
      one.conflict?.rows.some((row) => row.query === query && row.drop >= 0),
    );
    const directed = [...data.solutions, ...data.runs].some((one) => one.directions);
    const arrows = [
      directed ? "Arrows show directions W z from the origin; their length is not to scale." : "",
      conflict
        ? "Arrows between tokens are rows in conflict: the thicker, the heavier; each ends at a kept token."
        : "",
    ];
    const seen = counted(data.queries.visible[query] ?? 0, "token");
    const keeps = `keeps ${kept.length === 1 ? "token" : "tokens"} ${kept.join(", ")}`;
    return [`Query ${query} sees ${seen} and ${keeps}. ${named}. ${upward}`, ...arrows].join(" ").trim();
  }
}

/** The chart; it follows the query, the step and the axes. */
export function planeChart(host: HTMLElement, data: Report, store: Store, height: number): void {
  const spec = (): ChartSpec => new Plane(data, store, axesOf(data, store.get())).spec(height);
  const chart = new Chart(host, spec());
  store.on((changed) => {
    if (["query", "across", "up"].some((key) => changed.has(key as keyof State))) chart.update(spec());
    else if (changed.has("step") || changed.has("run")) chart.paintOver();
  });
}
