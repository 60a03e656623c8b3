// The training run: correlation with the max-margin directions, norm, loss.
import { Chart } from "./chart";
import type { Series } from "./chart_spec";
import type { Maybe, Report, Run } from "./data";
import { h } from "./dom";
import { formatted, num } from "./format";
import { labelNodes, labelText } from "./label";
import { stepAxis } from "./names";
import { sharesChart, sharesTable } from "./shares";
import type { Store } from "./state";
import { type Fact, facts } from "./table";

const rounding = 2 ** -53; // the accuracy of correlations

const styleOf = (k: number): number => [0, 3, 4, 5, 1][k % 5] ?? 0;

function distanceWords(run: Run): string {
  const ends = run.correlations.map((curve) => `${formatted(curve.distances.at(-1))} from ${labelText(curve.label)}`);
  if (ends.length === 0)
    return "There is no max-margin direction to compare with: the selected tokens cannot be separated.";
  return (
    "How far the direction of W is from each max-margin direction; 0 is the same direction. " +
    `At the end it is ${ends.join(", ")}.`
  );
}

function atStep(run: Run, step: number): HTMLElement {
  const rows: Fact[] = [];
  if (run.step) rows.push(["step", num(`run.step.${step}`, run.step[step])]);
  rows.push(["norm of W", num(`run.norm.${step}`, run.norm[step])]);
  if (run.loss) rows.push(["loss", num(`run.loss.${step}`, run.loss[step])]);
  if (run.log_gradient)
    rows.push(["natural log of the gradient\u2019s norm", num(`run.log_gradient.${step}`, run.log_gradient[step])]);
  run.correlations.forEach((curve, k) =>
    rows.push([
      ["1 \u2212 correlation with ", ...labelNodes(curve.label)],
      num(`run.correlations.${k}.distances.${step}`, curve.distances[step]),
    ]),
  );
  run.shares.forEach((one, k) => {
    if (one.status === "optimal")
      rows.push([`\u03c1 in ${one.norm}`, num(`run.shares.${k}.rho.${step}`, one.rho[step])]);
  });
  return facts(rows);
}

export function trainingView(panel: HTMLElement, data: Report, store: Store): void {
  const run = data.run;
  if (!run) return;
  const axis = stepAxis(data);
  const x = { label: axis.label, log: axis.log };
  const curve = (label: string, style: number, y: Maybe[], path: string): Series => ({
    label,
    style,
    mark: "line",
    x: axis.values,
    y,
    path: axis.path ? { x: axis.path, y: path } : undefined,
  });
  const now = h("div", { class: "card" });
  const grid = h("div", { class: "grid" });
  panel.append(grid);
  const charts: Chart[] = [];
  charts.push(
    new Chart(grid, {
      title: "Distance from the max-margin directions",
      name: "correlation",
      summary: distanceWords(run),
      x,
      y: { label: "1 \u2212 correlation", log: true, floor: rounding },
      include: { x: [], y: [1] },
      series: run.correlations.map((one, k) =>
        curve(one.label, styleOf(k), one.distances, `run.correlations.${k}.distances`),
      ),
    }),
  );
  charts.push(sharesChart(grid, run, axis));
  charts.push(
    new Chart(grid, {
      title: "Norm of W",
      name: "norm",
      x,
      y: { label: "\u2016W\u2016", log: axis.log },
      series: [curve("\u2016W\u2016 (Frobenius)", 2, run.norm, "run.norm")],
      summary:
        `From ${formatted(run.norm[0])} to ${formatted(run.norm.at(-1))}. ` +
        "Softmax gives one token all attention only as W grows to infinity, so the norm of a run that selects tokens has " +
        "no limit, while its direction has one.",
    }),
  );
  if (run.loss) {
    charts.push(
      new Chart(grid, {
        title: "Loss",
        name: "loss",
        x,
        y: { label: "loss" },
        series: [curve("mean loss", 1, run.loss, "run.loss")],
        summary: `The mean loss goes from ${formatted(run.loss[0])} to ${formatted(run.loss.at(-1))}.`,
      }),
    );
  }
  if (run.shares.length > 0) grid.append(sharesTable(run));
  grid.append(now);
  const follow = (): void => {
    const { step } = store.get();
    now.replaceChildren(h("h3", {}, "At this step"), atStep(run, step));
    for (const chart of charts) chart.setMarker(axis.values[step] ?? null);
  };
  store.on(follow);
  follow();
}
