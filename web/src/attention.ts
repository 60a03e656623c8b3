// Attention: of all queries as a map, and the weights of one over time.
import { Chart } from "./chart";
import type { ChartSpec } from "./chart_spec";
import { queryControl, runControl } from "./controls";
import type { QueryAttention, Report } from "./data";
import { h } from "./dom";
import { share } from "./format";
import { HeatMap } from "./heat_map";
import { tokenName } from "./names";
import { literal, pointAt, stepAxis, timeline } from "./runs";
import type { Store } from "./state";

function words(data: Report, query: number, one: QueryAttention): string {
  const best = one.weights.map((list, k) => ({ k, end: list.at(-1) ?? 0 })).sort((a, b) => b.end - a.end)[0];
  const token = best ? tokenName(data, query, one.tokens[best.k] ?? 0) : "";
  const rest = one.rest ? " Only the tokens that ever get much weight have curves of their own." : "";
  return `The softmax weights of query ${query} at every recorded step. At the end token ${token} has the most.${rest}`;
}

const largest = (one: QueryAttention): number => Math.max(...one.weights.flat(), 0);

function weightTable(data: Report, r: number, query: number, one: QueryAttention, point: number): HTMLElement {
  const kept = new Set(data.runs[r]?.kept[query] ?? []);
  const row = (name: string, path: string, weight: number, selected: boolean): HTMLElement =>
    h(
      "tr",
      { class: selected ? "kept" : null },
      h("th", { scope: "row" }, name, selected ? " (selected)" : ""),
      h("td", {}, share(path, weight)),
      h("td", { class: "meter" }, h("progress", { max: 1, value: weight, "aria-hidden": "true" })),
    );
  const rows = one.tokens.map((token, k) =>
    row(
      `token ${tokenName(data, query, token)}`,
      `runs.${r}.attention.${query}.weights.${k}.${point}`,
      one.weights[k]?.[point] ?? 0,
      kept.has(token),
    ),
  );
  if (one.rest)
    rows.push(row("all others together", `runs.${r}.attention.${query}.rest.${point}`, one.rest[point] ?? 0, false));
  return h(
    "table",
    { class: "weights" },
    h("caption", {}, "By the largest weight of the run; selected first"),
    h("tbody", {}, ...rows),
  );
}

/** The weights of the chosen query of the chosen run. */
function querySpec(data: Report, r: number, i: number): ChartSpec {
  const one = data.runs[r]?.attention[i] ?? { tokens: [], weights: [], rest: null };
  const axis = stepAxis(data, r);
  const path = (y: string): { x: string; y: string } | undefined => (axis.path ? { x: axis.path, y } : undefined);
  return {
    title: `Attention of query ${i}`,
    name: `attention-${i}`,
    summary: words(data, i, one),
    x: { label: axis.label, log: timeline(data).log },
    y: { label: "weight", percent: true },
    include: { x: [], y: [0, largest(one) > 0.5 ? 1 : 0] },
    series: [
      ...one.tokens.map((token, k) => ({
        label: `token ${literal(tokenName(data, i, token))}`,
        style: k,
        mark: "line" as const,
        x: axis.values,
        y: one.weights[k] ?? [],
        path: path(`runs.${r}.attention.${i}.weights.${k}`),
      })),
      ...(one.rest
        ? [
            {
              label: "all others together",
              style: 7,
              mark: "line" as const,
              thin: true,
              hidden: largest(one) < 0.5, // it would take all the room
              x: axis.values,
              y: one.rest,
              path: path(`runs.${r}.attention.${i}.rest`),
            },
          ]
        : []),
    ],
  };
}

export function attentionView(panel: HTMLElement, data: Report, store: Store): void {
  const count = Math.min(...data.runs.map((run) => run.attention.length));
  const query = (): number => Math.min(count - 1, store.get().query);
  const spec = (): ChartSpec => querySpec(data, store.get().run, query());
  panel.append(h("div", { class: "controls" }, queryControl(data, store, count), runControl(data, store)));
  if (count < data.task.queries)
    panel.append(
      h("p", { class: "note" }, "The page holds the weights of the first queries only; the run\u2019s file has all."),
    );
  new HeatMap(panel, data, store);
  const now = h("div", { class: "card" });
  const grid = h("div", { class: "grid" });
  panel.append(grid);
  const chart = new Chart(grid, spec());
  grid.append(now);
  const follow = (): void => {
    const { run, step } = store.get();
    const point = pointAt(data, run, step);
    const one = data.runs[run]?.attention[query()];
    if (one) now.replaceChildren(h("h3", {}, "Weights at this step"), weightTable(data, run, query(), one, point));
    chart.setMarker(stepAxis(data, run).values[point] ?? null);
  };
  store.on((changed) => {
    if (changed.has("query") || changed.has("run")) chart.update(spec());
    follow();
  });
  follow();
}
