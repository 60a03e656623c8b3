// The run in curves.
import { Chart } from "../chart";
import type { ChartSpec, Series } from "../chart_spec";
import { h } from "../dom";
import { isolated, shortened } from "../names";
import { literal } from "../runs";
import type { App } from "./app";
import type { Point } from "./engine";

const shown = 8; // tokens whose attention is drawn
const often = 300; // milliseconds between two drawings of a run that goes on

function curves(app: App): ChartSpec[] {
  const { state, run, answer } = app;
  // Step 0 has no place on a logarithmic axis.
  const points = run.points.filter((point) => point.step > 0);
  const x = { label: "step", log: true };
  const line = (
    label: string,
    style: number,
    value: (point: Point) => number | null,
    more: Partial<Series> = {},
  ): Series => ({
    label,
    style,
    mark: "line",
    x: points.map((point) => point.step),
    y: points.map(value),
    ...more,
  });
  const distance = (value: number | null): number | null => (value === null ? null : Math.max(1 - value, 1e-16));
  const floor = 1e-16;
  const tokens = points.at(-1)?.attention[state.query] ?? [];
  const names = state.task.sequences[state.task.queries[state.query]?.sequence ?? 0] ?? [];
  const largest = tokens
    .map((_, t) => t)
    .sort((a, b) => (tokens[b] ?? 0) - (tokens[a] ?? 0))
    .slice(0, shown)
    .sort((a, b) => a - b);
  const height = 230;
  return [
    {
      title: "Loss",
      name: "loss",
      summary: "Training lowers it. Where the tokens can be separated, it nears its least value and never reaches it.",
      x,
      y: { label: "loss", log: state.loss !== "linear" }, // that one is negative
      series: [line("loss", 0, (point) => point.loss)],
      height,
    },
    {
      title: "Size of W",
      name: "norm",
      summary: "Where the tokens can be separated, W grows without bound: attention can always become sharper.",
      x,
      y: { label: "|W|", log: true },
      series: [line("Frobenius norm of W", 2, (point) => (point.norm > 0 ? point.norm : null))],
      height,
    },
    {
      title: "How far from the SVM",
      name: "direction",
      summary:
        `Both fall where the direction of W turns to the SVM in the norm ${answer?.norm ?? state.norm}` +
        " that is drawn. \u03c1 is the share of the largest margin that W has.",
      x,
      y: { label: "distance", log: true, floor },
      series: [
        line("1 \u2212 correlation with W^{mm}", 0, (point) => distance(point.correlation)),
        line("1 \u2212 \u03c1", 1, (point) => distance(point.rho)),
      ],
      height,
    },
    {
      title: `Attention of query ${state.query}`,
      name: "attention",
      summary:
        "The softmax weights of its tokens. Where they can be separated, one of them takes it all." +
        (tokens.length > shown ? ` These are the ${shown} that end largest.` : ""),
      x,
      y: { label: "weight", range: [0, 1] as [number, number] },
      logs: [],
      series: largest.map((t) =>
        line(
          names[t]?.name ? `${t} ${literal(isolated(shortened(names[t].name)))}` : `token ${t}`,
          t,
          (point) => point.attention[state.query]?.[t] ?? null,
        ),
      ),
      height,
    },
  ];
}

export function charts(app: App): HTMLElement {
  const grid = h("div", { class: "grid" });
  const empty = h(
    "p",
    { class: "hint" },
    "Press Train: loss, size, distance from the SVM and attention are drawn here.",
  );
  const made = curves(app).map((spec) => new Chart(grid, spec));
  let last = 0,
    timer = 0;
  const draw = (): void => {
    clearTimeout(timer);
    last = performance.now();
    empty.hidden = app.run.points.some((point) => point.step > 0);
    grid.hidden = !empty.hidden;
    curves(app).forEach((spec, k) => made[k]?.update(spec));
  };
  app.on((changed) => {
    if (!changed.has("run") && !changed.has("view") && !changed.has("answer")) return;
    clearTimeout(timer);
    const wait = often - (performance.now() - last);
    if (wait <= 0 && !app.frozen) draw();
    else timer = window.setTimeout(draw, Math.max(60, wait));
  });
  draw();
  return h("div", { class: "live" }, empty, grid);
}
