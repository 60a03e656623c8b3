// Tokens and directions in the plane.
import { Chart } from "./chart";
import type { ChartSpec, Overlay, Series } from "./chart_spec";
import { queryControl } from "./controls";
import type { Axis, Directions, Report } from "./data";
import { type Child, choice, h } from "./dom";
import { num } from "./format";
import { labelText } from "./label";
import { drawArrow, type Mapper } from "./marks";
import { axisName, tokenAt, tokenName } from "./names";
import type { Store } from "./state";
import { facts } from "./table";

interface Pair {
  x: number;
  y: number;
}

/** Coordinates of all shown tokens along an axis; a task whose keys are single numbers has no second one. */
const column = (data: Report, axis: number): number[] =>
  data.plane.coordinates[axis] ?? new Array<number>(data.plane.coordinates[0]?.length ?? 0).fill(0);

function firstAxes(data: Report): Pair {
  const first = (kind: Axis["kind"]): number => data.plane.axes.findIndex((axis) => axis.kind === kind);
  const coordinate = first("coordinate"),
    component = first("principal"),
    margin = first("max-margin");
  if (data.task.d <= 2 || component < 0) return { x: coordinate, y: coordinate + 1 };
  return margin >= 0 ? { x: component, y: margin } : { x: component, y: component + 1 };
}

/** The support tokens of a query: rows that the selection's own solution meets with equality. */
function supportOf(data: Report, query: number): { token: number; row: number }[] {
  const rows = data.main === null ? null : data.solutions[data.main]?.rows;
  if (!rows) return [];
  return rows.support
    .filter((k) => rows.query[k] === query && !rows.equal[k])
    .map((k) => ({ token: rows.drop[k] ?? -1, row: k }));
}

/** How long arrows are drawn: as far as the tokens reach. */
function reach(x: number[], y: number[], from: number, to: number): number {
  let far = 0;
  for (let k = from; k < to; k += 1) far = Math.max(far, Math.hypot(x[k] ?? 0, y[k] ?? 0));
  return far || 1;
}

function tip(directions: Directions | null | undefined, query: number, axes: Pair): [number, number] | null {
  const x = directions?.coordinates[axes.x]?.[query];
  const y = directions?.coordinates[axes.y]?.[query] ?? (directions?.coordinates.length === 1 ? 0 : undefined);
  return typeof x === "number" && typeof y === "number" ? [x, y] : null;
}

const at = (map: Mapper, [x, y]: [number, number]): [number, number] => [map.x(x), map.y(y)];

function tokenSeries(data: Report, query: number, axes: Pair): Series[] {
  const x = column(data, axes.x),
    y = column(data, axes.y);
  const sequence = data.queries.sequence[query] ?? 0;
  const start = data.plane.offsets[sequence] ?? 0,
    end = data.plane.offsets[sequence + 1] ?? start;
  const visible = data.queries.visible[query] ?? 0;
  const kept = new Set(data.queries.kept[query] ?? []);
  const support = new Set(supportOf(data, query).map(({ token }) => token));
  const groups: Record<"kept" | "support" | "other" | "unseen", number[]> = {
    kept: [],
    support: [],
    other: [],
    unseen: [],
  };
  for (let t = 0; t < end - start; t += 1)
    groups[kept.has(t) ? "kept" : support.has(t) ? "support" : t < visible ? "other" : "unseen"].push(t);
  const part = (label: string, tokens: number[], style: number, shape: Series["shape"], size: number): Series => ({
    label,
    style,
    shape,
    size,
    mark: "points",
    x: tokens.map((t) => x[start + t] ?? null),
    y: tokens.map((t) => y[start + t] ?? null),
    name: (k) => `token ${tokenAt(data, sequence, tokens[k] ?? 0)}`,
    tag: (k) => data.plane.names?.[start + (tokens[k] ?? 0)] || String(tokens[k]),
  });
  const list: Series[] = [];
  if (data.plane.offsets.length > 2) {
    // Everything but this sequence; where it stands in the list does not matter, so the list is the one of the data.
    list.push({
      label: "tokens of other sequences",
      style: 7,
      mark: "points",
      shape: "cross",
      size: 2,
      hidden: data.plane.axes[axes.y]?.kind === "max-margin",
      x: x.map((value, k) => (k >= start && k < end ? null : value)),
      y,
      name: (k) => placeName(data, k),
    });
  }
  list.push(part("other tokens", groups.other, 6, "circle", 4));
  if (groups.unseen.length > 0) list.push(part("not seen by this query", groups.unseen, 7, "ring", 4));
  list.push(part("support tokens", groups.support, 1, "triangle", 6), part("selected", groups.kept, 0, "diamond", 7));
  return list.filter((series) => series.x.length > 0);
}

function placeName(data: Report, k: number): string {
  const sequence = data.plane.offsets.findLastIndex((start) => start <= k);
  return `sequence ${sequence}, token ${tokenAt(data, sequence, k - (data.plane.offsets[sequence] ?? 0))}`;
}

/** Arrows of the solutions, the path of training, margins where they can be drawn, and rows in conflict. */
function overlays(data: Report, store: Store, query: number, axes: Pair, length: number): Overlay[] {
  const list: Overlay[] = [];
  const scaled = ([x, y]: [number, number]): [number, number] => [x * length, y * length];
  const styleOf = (k: number): number => [0, 3, 4, 5][k % 4] ?? 0;
  data.solutions.forEach((solution, k) => {
    const end = tip(solution.directions, query, axes);
    if (!end) return;
    list.push({
      label: `${solution.label} z`,
      style: styleOf(k),
      mark: "arrow",
      dash: k === 0 ? [] : [12, 4, 3, 4],
      width: k === 0 ? 7 : 4, // training ends on one of them, and both are to be seen
      draw: (ctx, map) => {
        if (k === 0) ctx.globalAlpha = 0.45;
        drawArrow(ctx, at(map, [0, 0]), at(map, scaled(end)), map.ratio);
      },
    });
    list.push(...marginLine(data, k, query, axes, styleOf(k)));
  });
  const run = data.run;
  if (run && (run.directions[0]?.length.length ?? 0) > query) {
    list.push({
      label: "W z in training",
      style: 2,
      mark: "arrow",
      dash: [],
      draw: (ctx, map) => {
        const step = store.get().step;
        const way = run.directions.map((point) => tip(point, query, axes));
        for (const [part, alpha] of [
          [way, 0.3],
          [way.slice(0, step + 1), 1],
        ] as const) {
          ctx.globalAlpha = alpha;
          ctx.beginPath();
          for (const point of part) if (point) ctx.lineTo(...at(map, scaled(point)));
          ctx.stroke();
        }
        const now = way[step];
        if (now) drawArrow(ctx, at(map, [0, 0]), at(map, scaled(now)), map.ratio);
      },
    });
  }
  for (const solution of data.solutions) {
    const rows = solution.conflict?.rows.filter((row) => row.query === query && row.drop >= 0) ?? [];
    if (rows.length > 0) list.push(conflictArrows(data, rows, axes));
  }
  return list;
}

function conflictArrows(
  data: Report,
  rows: NonNullable<Report["solutions"][number]["conflict"]>["rows"],
  axes: Pair,
): Overlay {
  const x = column(data, axes.x),
    y = column(data, axes.y);
  const heaviest = Math.max(...rows.map((row) => Math.abs(row.weight)));
  return {
    label: "rows in conflict",
    style: 1,
    mark: "arrow",
    dash: [],
    draw: (ctx, map) => {
      for (const row of rows) {
        const start = data.plane.offsets[data.queries.sequence[row.query] ?? 0] ?? 0;
        const place = (token: number): [number, number] => at(map, [x[start + token] ?? NaN, y[start + token] ?? NaN]);
        ctx.lineWidth = (1 + (4 * Math.abs(row.weight)) / heaviest) * map.ratio;
        drawArrow(ctx, place(row.drop), place(row.keep), map.ratio);
      }
    },
  };
}

/**
 * The line that every dropped token must stay behind. It can be drawn where the plane is all of key space, and for the
 * solution that the axis upward follows.
 */
function marginLine(data: Report, k: number, query: number, axes: Pair, style: number): Overlay[] {
  const solution = data.solutions[k];
  let unit = tip(solution?.directions, query, axes);
  const length = solution?.directions?.length[query];
  const kept = data.queries.kept[query]?.[0];
  const start = data.plane.offsets[data.queries.sequence[query] ?? 0];
  if (!solution || !unit || !length || kept === undefined || start === undefined) return [];
  const followed = data.plane.axes[axes.y]?.kind === "max-margin";
  const whole =
    data.task.d === 2 &&
    axes.x !== axes.y &&
    [axes.x, axes.y].every((axis) => data.plane.axes[axis]?.kind !== "max-margin");
  if (followed ? k !== data.main : !whole) return [];
  if (followed) unit = [0, 1];
  const foot: [number, number] = [
    (column(data, axes.x)[start + kept] ?? 0) - unit[0] / length,
    (column(data, axes.y)[start + kept] ?? 0) - unit[1] / length,
  ];
  const [across, up] = unit;
  return [
    {
      label: `margin of ${solution.label}`,
      style,
      mark: "rule",
      dash: [2, 4],
      draw: (ctx, map) => {
        const far = 1e3;
        ctx.lineWidth = map.ratio;
        ctx.beginPath();
        ctx.moveTo(...at(map, [foot[0] - far * up, foot[1] + far * across]));
        ctx.lineTo(...at(map, [foot[0] + far * up, foot[1] - far * across]));
        ctx.stroke();
      },
    },
  ];
}

function words(data: Report, query: number, axes: Pair): string {
  const kept = (data.queries.kept[query] ?? []).map((token) => tokenName(data, query, token));
  const support = supportOf(data, query).map(({ token }) => tokenName(data, query, token));
  const named =
    support.length === 0
      ? "It has no support tokens"
      : `Its support tokens are ${support.slice(0, 12).join(", ")}${support.length > 12 ? " and more" : ""}`;
  const upward =
    data.plane.axes[axes.y]?.kind === "max-margin"
      ? "Upwards is the direction of the max-margin solution: the selected token is on top, its support tokens are " +
        "on the line of the margin, and all others below. "
      : "";
  return (
    `Query ${query} sees ${data.queries.visible[query]} tokens and keeps ` +
    `${kept.length === 1 ? "token" : "tokens"} ${kept.join(", ")}. ${named}. ${upward}` +
    "Arrows show directions W z from the origin; their length is not to scale."
  );
}

/** What the picture shows, in numbers. */
function sideCard(data: Report, query: number): HTMLElement {
  const { queries } = data;
  const support = supportOf(data, query);
  const rows = data.main === null ? null : data.solutions[data.main]?.rows;
  const path = (name: string, k: number): string => `solutions.${data.main}.rows.${name}.${k}`;
  const names = (tokens: number[]): Node =>
    h("span", { "data-token": "" }, tokens.map((token) => tokenName(data, query, token)).join(", "));
  const best = queries.optimal?.[query];
  const shown = support.slice(0, 30);
  return h(
    "div",
    { class: "card" },
    h("h3", {}, `Query ${query}`),
    facts(
      [
        ["keeps", names(queries.kept[query] ?? [])],
        best === undefined ? null : ["best score", names([best])],
        ["sees", [num(`queries.visible.${query}`, queries.visible[query]), " tokens"]],
        ["label", num(`queries.label.${query}`, queries.label[query])],
      ].filter((one) => one !== null) as [string, Child | Child[]][],
    ),
    rows && shown.length > 0
      ? h(
          "table",
          {},
          h("caption", {}, "Support tokens: a margin behind, and no further"),
          h(
            "thead",
            {},
            h("tr", {}, ...["token", "slack", "multiplier"].map((name) => h("th", { scope: "col" }, name))),
          ),
          h(
            "tbody",
            {},
            ...shown.map(({ token, row }) =>
              h(
                "tr",
                {},
                h("td", {}, names([token])),
                h("td", {}, num(path("slack", row), rows.slack[row])),
                h("td", {}, num(path("dual", row), rows.dual[row])),
              ),
            ),
          ),
        )
      : null,
  );
}

export function planeView(panel: HTMLElement, data: Report, store: Store): void {
  let axes = firstAxes(data);
  const names = data.plane.axes.map(axisName);
  const shares = h("p", { class: "note" });
  const spec = (): ChartSpec => {
    const { query } = store.get();
    const series = tokenSeries(data, query, axes);
    const start = data.plane.offsets[data.queries.sequence[query] ?? 0] ?? 0,
      end = data.plane.offsets[(data.queries.sequence[query] ?? 0) + 1] ?? start;
    const length = reach(column(data, axes.x), column(data, axes.y), start, end);
    const tips = [
      ...data.solutions.map((solution) => tip(solution.directions, query, axes)),
      ...(data.run?.directions ?? []).map((point) => tip(point, query, axes)),
    ].filter((point) => point !== null);
    return {
      title: "Tokens and directions",
      name: "plane",
      summary: words(data, query, axes),
      square: true,
      height: innerWidth < 600 ? 380 : 560,
      series,
      x: { label: names[axes.x] ?? "" },
      y: { label: names[axes.y] ?? "" },
      overlays: overlays(data, store, query, axes, length),
      include: { x: [0, ...tips.map((point) => point[0] * length)], y: [0, ...tips.map((point) => point[1] * length)] },
    };
  };
  const describe = (): void => {
    const parts: Node[] = [];
    for (const axis of new Set([axes.x, axes.y])) {
      const share = data.plane.axes[axis]?.share;
      if (typeof share !== "number") continue;
      parts.push(
        h(
          "span",
          {},
          `${labelText(names[axis] ?? "")} holds a share of `,
          num(`plane.axes.${axis}.share`, share),
          " of the tokens\u2019 variance. ",
        ),
      );
    }
    shares.replaceChildren(...parts);
    side.replaceChildren(sideCard(data, store.get().query));
  };
  const redraw = (): void => {
    chart.update(spec());
    describe();
  };
  const pick =
    (key: keyof Pair) =>
    (value: number): void => {
      axes = { ...axes, [key]: value };
      redraw();
    };
  panel.append(
    h(
      "div",
      { class: "controls" },
      queryControl(data, store),
      choice("Across", names.map(labelText), axes.x, pick("x")),
      choice("Up", names.map(labelText), axes.y, pick("y")),
    ),
  );
  const layout = h("div", { class: "beside" });
  const side = h("div");
  panel.append(layout, shares);
  const chart = new Chart(layout, spec());
  layout.append(side);
  describe();
  store.on((changed) => {
    if (changed.query !== undefined) redraw();
    else chart.paintOver();
  });
}
