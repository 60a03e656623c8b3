// What is proven, to what gap; for tasks without a solution, which rows contradict each other.
import { Chart } from "./chart";
import { conflictShape } from "./conflict_shape";
import type { ConflictRow, Report, Solution } from "./data";
import { h } from "./dom";
import { num, percent, text } from "./format";
import { labelNodes } from "./label";
import { drawArrow } from "./marks";
import { queryLink, tokenName } from "./names";
import type { Store } from "./state";
import { facts, pagedTable } from "./table";

function status(solution: Solution): [string, string] {
  if (!solution.valid) return ["bad", "not verified"];
  if (solution.status === "infeasible") return ["warn", "no solution exists, proven"];
  if (solution.status === "optimal") return ["good", "optimal, proven"];
  if (solution.status === "stalled") return ["warn", "not solved to the tolerance"];
  return solution.status === "limit" ? ["warn", "stopped early"] : ["warn", "feasible, no bound"];
}

export function badge(solution: Solution): HTMLElement {
  const [kind, words] = status(solution);
  return h("span", { class: `badge ${kind}` }, words);
}

function numbers(solution: Solution, s: number): HTMLElement {
  const row = (
    name: string,
    key:
      | "objective"
      | "dual_objective"
      | "gap"
      | "violation"
      | "tolerance"
      | "margin"
      | "rank"
      | "support"
      | "constraints"
      | "residual"
      | "norm_bound",
  ): [string, Node] | null => (solution[key] === null ? null : [name, num(`solutions.${s}.${key}`, solution[key])]);
  return facts(
    [
      row(`${solution.norm_words} of W`, "objective"),
      row("proven at least", "dual_objective"),
      row("relative gap", "gap"),
      row("largest violation", "violation"),
      row("gap asked for", "tolerance"),
      row("margin", "margin"),
      row("rank", "rank"),
      row("rows met with equality", "support"),
      row("rows", "constraints"),
      row("size of the weighted sum", "residual"),
      row("no W below norm", "norm_bound"),
    ].filter((one) => one !== null),
  );
}

/** The rows of a contradiction laid head to tail, by angle: they add up to zero, so they form a closed polygon. */
function conflictPicture(host: HTMLElement, data: Report, solution: Solution): void {
  const conflict = solution.conflict;
  const shape = conflict && conflictShape(conflict.rows);
  if (!shape) return;
  const { rows, corners, flat } = shape;
  const words = (row: ConflictRow): string =>
    `query ${row.query}: ${tokenName(data, row.query, row.keep)}` +
    (row.drop < 0 ? "" : ` over ${tokenName(data, row.query, row.drop)}`);
  const middle = (k: number, axis: 0 | 1): number => {
    const to = corners[k + 1]?.[axis] ?? 0;
    return flat && axis === 1 ? to : ((corners[k]?.[axis] ?? 0) + to) / 2;
  };
  const all = conflict.rows.length === conflict.total;
  new Chart(host, {
    title: "The contradiction, drawn",
    name: "conflict",
    logs: [],
    height: innerWidth < 600 ? 360 : 460,
    summary:
      "Every arrow is a row: the matrix that it asks a margin of, times its weight in the proof. " +
      (all
        ? "Head to tail they lead back to where they began: they add up to zero. The inner product of their sum with " +
          "a W that met every row would be at least 1, so there is no such W."
        : `The heaviest ${conflict.rows.length} of ${conflict.total} are drawn; all of them add up to zero.`) +
      ` The plane shows ${percent(conflict.share)} of their squared lengths.`,
    x: { label: "longest direction" },
    y: { label: flat ? "there and back, drawn apart" : "second longest" },
    series: [
      {
        label: "rows in conflict",
        style: 6,
        shape: "circle",
        size: 2,
        mark: "points",
        x: rows.map((_, k) => middle(k, 0)),
        y: rows.map((_, k) => middle(k, 1)),
        name: (k) => (rows[k] ? words(rows[k]) : ""),
        tag: (k) => (rows[k] ? words(rows[k]) : ""),
        along: (k) => [rows[k]?.arrow[0] ?? 0, flat ? 0 : (rows[k]?.arrow[1] ?? 0)], // outside of the polygon
      },
    ],
    include: { x: corners.map(([x]) => x), y: corners.map(([, y]) => y) },
    overlays: [
      {
        label: "rows in conflict",
        style: 1,
        mark: "arrow",
        dash: [],
        draw: (pen, map) => {
          rows.forEach((_, k) => {
            const from = corners[k] ?? [0, 0],
              to = corners[k + 1] ?? [0, 0];
            drawArrow(pen, [map.x(from[0]), map.y(flat ? to[1] : from[1])], [map.x(to[0]), map.y(to[1])], map.ratio);
          });
        },
      },
    ],
  });
}

function conflictTable(data: Report, store: Store, solution: Solution, s: number): HTMLElement | null {
  const conflict = solution.conflict;
  if (!conflict) return null;
  const path = (k: number, name: string): string => `solutions.${s}.conflict.rows.${k}.${name}`;
  return pagedTable({
    name: "conflict",
    caption: "Rows of the contradiction, heaviest first",
    rows: conflict.rows.length,
    header: ["query", "keep token", "over token", "weight"],
    cells: (k) => {
      const row = conflict.rows[k];
      return row
        ? [
            queryLink(store, row.query, num(path(k, "query"), row.query)),
            h("span", { "data-token": "" }, tokenName(data, row.query, row.keep)),
            h("span", { "data-token": "" }, row.drop < 0 ? "\u2013" : tokenName(data, row.query, row.drop)),
            num(path(k, "weight"), row.weight),
          ]
        : [];
    },
    values: (k) => {
      const row = conflict.rows[k];
      return row ? [row.query, row.keep, row.drop, row.weight] : [];
    },
  });
}

/** The rows of a contradiction in words, each leading to its query. */
export function conflictWords(data: Report, store: Store, s: number, most = Infinity): HTMLElement[] {
  const { rows = [], words = [] } = data.solutions[s]?.conflict ?? {};
  return words.slice(0, most).map((line, k) => {
    const shown = text(`solutions.${s}.conflict.words.${k}`, line);
    const row = rows[k];
    return h("li", {}, row && line.startsWith("query ") ? queryLink(store, row.query, shown) : shown);
  });
}

/** What is proven about a solution, in words and numbers. */
export function proofCard(solution: Solution, s: number): HTMLElement {
  return h(
    "article",
    { class: "card proof" },
    h(
      "h3",
      {},
      h("span", {}, ...labelNodes(solution.label)),
      h("span", { class: "hint" }, ` ${solution.norm_words}`),
      badge(solution),
    ),
    solution.file
      ? h("p", { class: "note" }, "from ", h("code", { "data-path": `solutions.${s}.file` }, solution.file))
      : null,
    h(
      "div",
      { class: "two" },
      h("div", {}, ...solution.words.map((words, k) => h("p", {}, text(`solutions.${s}.words.${k}`, words)))),
      numbers(solution, s),
    ),
  );
}

export function proofView(panel: HTMLElement, data: Report, store: Store): void {
  data.solutions.forEach((solution, s) => {
    const card = proofCard(solution, s);
    panel.append(card);
    if (solution.conflict) {
      card.append(h("h4", {}, "In words"), h("ul", {}, ...conflictWords(data, store, s)));
      conflictPicture(card, data, solution);
      const table = conflictTable(data, store, solution, s);
      if (table) card.append(table);
    }
  });
}
