// What is proven, to what gap; for tasks without a solution, which rows contradict each other.
import { Chart } from "./chart";
import type { Series } from "./chart_spec";
import type { Report, Solution } from "./data";
import { h } from "./dom";
import { num, text } from "./format";
import { labelNodes } from "./label";
import { axisName, tokenAt, tokenName } from "./names";
import { conflictArrows, firstAxes } from "./plane";
import { facts, pagedTable } from "./table";

function status(solution: Solution): [string, string] {
  if (!solution.valid) return ["bad", "not verified"];
  if (solution.status === "infeasible") return ["warn", "no solution exists, proven"];
  if (solution.status === "optimal") return ["good", "optimal, proven"];
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

/** The tokens of the rows that contradict each other, with arrows from the dropped to the kept. */
function conflictPicture(host: HTMLElement, data: Report, solution: Solution): void {
  const rows = solution.conflict?.rows.filter((row) => row.drop >= 0) ?? [];
  if (rows.length === 0 || data.plane.axes.length < 2) return;
  const axes = firstAxes(data);
  const list = (kept: boolean): { sequence: number; token: number }[] =>
    rows.map((row) => ({ sequence: data.queries.sequence[row.query] ?? 0, token: kept ? row.keep : row.drop }));
  const place = (axis: number, { sequence, token }: { sequence: number; token: number }): number | null =>
    data.plane.coordinates[axis]?.[(data.plane.offsets[sequence] ?? NaN) + token] ?? null;
  const series = (label: string, kept: boolean): Series => ({
    label,
    style: kept ? 0 : 6,
    shape: kept ? "diamond" : "circle",
    size: kept ? 7 : 4,
    mark: "points",
    x: list(kept).map((one) => place(axes.x, one)),
    y: list(kept).map((one) => place(axes.y, one)),
    name: (k) =>
      `query ${rows[k]?.query ?? ""}, token ${tokenAt(data, list(kept)[k]?.sequence ?? 0, list(kept)[k]?.token ?? 0)}`,
  });
  new Chart(host, {
    title: "The conflict in the plane",
    name: "conflict",
    square: true,
    height: innerWidth < 600 ? 360 : 460,
    summary:
      "Every arrow is a row of the contradiction: from the token to be left to the token to be kept. Its width is the row\u2019s weight in the proof. No W can make all of them point upward at once, each seen from its own query.",
    x: { label: axisName(data.plane.axes[axes.x]) },
    y: { label: axisName(data.plane.axes[axes.y]) },
    series: [series("to be left", false), series("to be kept", true)],
    overlays: [conflictArrows(data, rows, axes)],
  });
}

function conflictTable(data: Report, solution: Solution, s: number): HTMLElement | null {
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
            num(path(k, "query"), row.query),
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

export function proofView(panel: HTMLElement, data: Report): void {
  data.solutions.forEach((solution, s) => {
    const card = h(
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
    panel.append(card);
    if (solution.conflict) {
      card.append(
        h("h4", {}, "In words"),
        h(
          "ul",
          {},
          ...solution.conflict.words.map((words, k) => h("li", {}, text(`solutions.${s}.conflict.words.${k}`, words))),
        ),
      );
      conflictPicture(card, data, solution);
      const table = conflictTable(data, solution, s);
      if (table) card.append(table);
    }
  });
}
