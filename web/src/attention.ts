// Attention weights of a query over time.
import { Chart } from "./chart";
import type { ChartSpec } from "./chart_spec";
import { queryControl } from "./controls";
import type { QueryAttention, Report } from "./data";
import { h } from "./dom";
import { num } from "./format";
import { stepAxis, tokenName } from "./names";
import type { Store } from "./state";

function words(data: Report, query: number, one: QueryAttention): string {
  const best = one.weights.map((list, k) => ({ k, end: list.at(-1) ?? 0 })).sort((a, b) => b.end - a.end)[0];
  const token = best ? tokenName(data, query, one.tokens[best.k] ?? 0) : "";
  const rest = one.rest ? " Only the tokens that ever get much weight have curves of their own." : "";
  return `The softmax weights of query ${query} at every recorded step. At the end token ${token} has the most.${rest}`;
}

const largest = (one: QueryAttention): number => Math.max(...one.weights.flat(), 0);

function weightTable(data: Report, query: number, one: QueryAttention, step: number): HTMLElement {
  const kept = new Set(data.queries.kept[query] ?? []);
  const row = (name: string, path: string, weight: number, selected: boolean): HTMLElement =>
    h(
      "tr",
      { class: selected ? "kept" : null },
      h("th", { scope: "row" }, name, selected ? " (selected)" : ""),
      h("td", {}, num(path, weight)),
      h("td", { class: "meter" }, h("progress", { max: 1, value: weight, "aria-hidden": "true" })),
    );
  const rows = one.tokens.map((token, k) =>
    row(
      `token ${tokenName(data, query, token)}`,
      `run.attention.${query}.weights.${k}.${step}`,
      one.weights[k]?.[step] ?? 0,
      kept.has(token),
    ),
  );
  if (one.rest)
    rows.push(row("all others together", `run.attention.${query}.rest.${step}`, one.rest[step] ?? 0, false));
  return h(
    "table",
    { class: "weights" },
    h("caption", {}, "By the largest weight of the run; selected first"),
    h("tbody", {}, ...rows),
  );
}

export function attentionView(panel: HTMLElement, data: Report, store: Store): void {
  const run = data.run;
  if (!run) return;
  const axis = stepAxis(data);
  const count = run.attention.length;
  const query = (): number => Math.min(count - 1, store.get().query);
  const spec = (): ChartSpec => {
    const i = query();
    const one = run.attention[i] ?? { tokens: [], weights: [], rest: null };
    const path = (y: string): { x: string; y: string } | undefined => (axis.path ? { x: axis.path, y } : undefined);
    return {
      title: `Attention of query ${i}`,
      name: `attention-${i}`,
      summary: words(data, i, one),
      x: { label: axis.label, log: axis.log },
      y: { label: "weight" },
      include: { x: [], y: [0, largest(one) > 0.5 ? 1 : 0] },
      series: [
        ...one.tokens.map((token, k) => ({
          label: `token ${plainMarks(tokenName(data, i, token))}`,
          style: k,
          mark: "line" as const,
          x: axis.values,
          y: one.weights[k] ?? [],
          path: path(`run.attention.${i}.weights.${k}`),
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
                path: path(`run.attention.${i}.rest`),
              },
            ]
          : []),
      ],
    };
  };
  const now = h("div", { class: "card" });
  const grid = h("div", { class: "grid" });
  panel.append(h("div", { class: "controls" }, queryControl(data, store, count)));
  if (count < data.task.queries)
    panel.append(
      h("p", { class: "note" }, "The page holds the weights of the first queries only; the run\u2019s file has all."),
    );
  panel.append(grid);
  const chart = new Chart(grid, spec());
  grid.append(now);
  const follow = (): void => {
    const { step } = store.get();
    const one = run.attention[query()];
    if (one) now.replaceChildren(h("h3", {}, "Weights at this step"), weightTable(data, query(), one, step));
    chart.setMarker(axis.values[step] ?? null);
  };
  store.on((changed) => {
    if (changed.query !== undefined) chart.update(spec());
    follow();
  });
  follow();
}

/** Escapes the name of a token, so that a label shows it literally. */
function plainMarks(name: string): string {
  return name.replace(/[\\^_{}]/g, (mark) => `\\${mark}`);
}
