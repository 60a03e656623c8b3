// Margins and slack of every row.
import { Chart } from "./chart";
import type { Band, ChartSpec, Series } from "./chart_spec";
import type { Report, Rows, Solution } from "./data";
import { choice, h } from "./dom";
import { num } from "./format";
import { labelText } from "./label";
import { queryLink, tokenName } from "./names";
import { rangeOf } from "./ranges";
import { literal, runNames, runStyle } from "./runs";
import type { Store } from "./state";
import { pagedTable } from "./table";

function rowName(data: Report, rows: Rows, k: number): string {
  const query = rows.query[k] ?? 0,
    keep = rows.keep[k] ?? 0,
    drop = rows.drop[k] ?? -1;
  if (drop < 0) return `query ${query}: token ${tokenName(data, query, keep)} on the side of its label`;
  const relation = rows.equal[k] ? "level with" : "over";
  return `query ${query}: token ${tokenName(data, query, keep)} ${relation} ${tokenName(data, query, drop)}`;
}

function parts(data: Report, s: number, rows: Rows, shown: "slack" | "margin"): Series[] {
  const values = shown === "slack" ? rows.slack : (rows.margin ?? []);
  const index = values.map((_, k) => k);
  const support = new Set(rows.support);
  const pick = (label: string, style: number, shape: Series["shape"], size: number, wanted: boolean): Series => ({
    label,
    style,
    shape,
    size,
    mark: "points",
    x: index,
    y: values.map((value, k) => (support.has(k) === wanted ? value : null)),
    name: (k) => rowName(data, rows, k),
  });
  const list = [pick("rows with room", 6, "circle", 3, false), pick("rows met with equality", 1, "triangle", 5, true)];
  const names = runNames(data);
  data.runs.forEach(({ margins }, r) => {
    if (shown !== "margin" || !margins || data.main !== s) return;
    list.push({
      label: data.runs.length > 1 ? `W of ${literal(names[r] ?? "")}, at the end` : "W of training, at the end",
      style: runStyle(r),
      mark: "points",
      shape: r === 0 ? "cross" : "box",
      size: 3,
      x: index,
      y: margins,
      name: (k) => rowName(data, rows, k),
    });
  });
  return list;
}

/** The rows of a query stand side by side: where each begins and ends. */
function queryBands(rows: Rows): Band[] {
  const bands: Band[] = [];
  rows.query.forEach((query, k) => {
    const last = bands.at(-1);
    if (last && rows.query[k - 1] === query) last.to = k + 0.5;
    else bands.push({ from: k - 0.5, to: k + 0.5, label: `query ${query}` });
  });
  return bands.length > 1 && bands.length <= 100 ? bands : []; // more would be lines alone
}

function words(solution: Solution, rows: Rows, shown: "slack" | "margin"): string {
  const part = rows.query.length < rows.total ? " The page holds those with the least slack." : "";
  if (shown === "slack")
    return (
      "Slack of every row: how far the selected token is ahead beyond what is asked. Rows at 0 are met with " +
      `equality, and their tokens are the support tokens.${part}`
    );
  return (
    "How far every row is ahead when W is scaled to norm one. The least of them is the margin, which " +
    `${labelText(solution.label)} makes as large as it can be in its norm.${part}`
  );
}

function rowTable(data: Report, store: Store, s: number, rows: Rows, only: boolean): HTMLElement {
  const all = rows.query.map((_, k) => k);
  const order = only ? rows.support : all;
  const path = (name: string, k: number): string => `solutions.${s}.rows.${name}.${k}`;
  const cell = (name: "query" | "slack" | "dual" | "rhs", k: number): Node => num(path(name, k), rows[name][k]);
  const token = (query: number, one: number): string => (one < 0 ? "\u2013" : tokenName(data, query, one));
  return pagedTable({
    name: only ? "support-rows" : "rows",
    caption: only ? "Support rows" : "All rows",
    rows: order.length,
    header: ["query", "selected token", "over token", "asked", "slack", "multiplier"],
    cells: (row) => {
      const k = order[row] ?? 0,
        query = rows.query[k] ?? 0;
      return [
        queryLink(store, query, cell("query", k)),
        h("span", { "data-token": "" }, token(query, rows.keep[k] ?? -1)),
        h("span", { "data-token": "" }, token(query, rows.drop[k] ?? -1)),
        h("span", {}, rows.equal[k] ? "= " : "\u2265 ", cell("rhs", k)),
        cell("slack", k),
        cell("dual", k),
      ];
    },
    values: (row) => {
      const k = order[row] ?? 0,
        query = rows.query[k] ?? 0;
      return [
        query,
        token(query, rows.keep[k] ?? -1),
        token(query, rows.drop[k] ?? -1),
        rows.rhs[k],
        rows.slack[k],
        rows.dual[k],
      ];
    },
  });
}

/** Rows that a W meets; those of a conflict stand with its proof. */
export const hasMargins = (solution: Solution): boolean => (solution.rows?.margin ?? null) !== null;

export function marginsView(panel: HTMLElement, data: Report, store: Store): void {
  const able = data.solutions.map((solution, s) => ({ solution, s })).filter(({ solution }) => hasMargins(solution));
  let at = 0,
    only = true;
  let shown: "slack" | "margin" = "slack";
  const tables = h("div", { class: "card" });
  const draw = (): void => {
    const chosen = able[at];
    const rows = chosen?.solution.rows;
    if (!chosen || !rows) return;
    const bands = queryBands(rows);
    const series = parts(data, chosen.s, rows, shown);
    const top =
      rangeOf(
        series.map((one) => one.y),
        false,
      )?.[1] ?? 0;
    const spec: ChartSpec = {
      title: `Rows of ${chosen.solution.label}`,
      name: shown,
      summary: words(chosen.solution, rows, shown),
      series,
      logs: ["y"],
      x: { label: "row", whole: true },
      bands,
      include: { x: [], y: [shown === "slack" ? 0.01 : 0, bands.length > 0 ? 1.12 * top : 0] }, // room for their names
      y: { label: shown === "slack" ? "slack" : "margin at norm one" },
      height: 360,
    };
    if (chart) chart.update(spec);
    else chart = new Chart(frame, spec);
    tables.replaceChildren(rowTable(data, store, chosen.s, rows, only));
  };
  const label = (solution: Solution): string =>
    `${labelText(solution.label)}, ${solution.norm_words}${solution.file ? ` (${solution.file})` : ""}`;
  panel.append(
    h(
      "div",
      { class: "controls" },
      choice(
        "Solution",
        able.map(({ solution }) => label(solution)),
        0,
        (value) => {
          at = value;
          draw();
        },
      ),
      choice("Show", ["slack", "margin at norm one"], 0, (value) => {
        shown = value === 0 ? "slack" : "margin";
        draw();
      }),
      choice("Table", ["support rows", "all rows"], 0, (value) => {
        only = value === 0;
        draw();
      }),
    ),
  );
  const frame = h("div");
  panel.append(frame, tables);
  let chart: Chart | null = null;
  draw();
}
