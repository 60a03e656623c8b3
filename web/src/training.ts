// The training runs: distance from the max-margin directions, share of the largest margin, norm, loss.
import { Chart } from "./chart";
import type { ChartSpec, Series } from "./chart_spec";
import type { Curves, Maybe, Trained } from "./data";
import { h } from "./dom";
import { formatted, num, share } from "./format";
import { labelNodes, labelText } from "./label";
import { fewRuns, literal, normWords, pointAt, predicted, runNames, runStyle, stepAxis, timeline } from "./runs";
import { sharesChart, sharesTable } from "./shares";
import type { Store } from "./state";
import { type Fact, facts } from "./table";

const rounding = 2 ** -53; // the accuracy of correlations

/** A curve over the steps of a run. */
export function curve(data: Trained, r: number, label: string, style: number, y: Maybe[], path: string): Series {
  const axis = stepAxis(data, r);
  return {
    label,
    style,
    mark: "line",
    x: axis.values,
    y,
    path: axis.path ? { x: axis.path, y: path } : undefined,
  };
}

/** One curve per run: how far it is from where theory says that it goes. */
export function predictionChart(host: HTMLElement, data: Trained, store: Store, height: number): void {
  const axis = timeline(data);
  const names = runNames(data);
  const measures = new Set<string>();
  const ends: string[] = [];
  const series = data.runs.flatMap((run, r) => {
    const aim = predicted(run, r);
    if (!aim) return [];
    measures.add(aim.measure);
    const name = data.runs.length > 1 ? `${literal(names[r] ?? "")} to ${aim.label}` : `distance to ${aim.label}`;
    ends.push(
      `${data.runs.length > 1 ? `${names[r]} ends at` : "At the end it is"} ${formatted(aim.distances.at(-1))} ` +
        `(${labelText(aim.label)}: least ${normWords(aim.norm)})`,
    );
    return [curve(data, r, name, runStyle(r), aim.distances, aim.path)];
  });
  const chart = new Chart(host, {
    title: "Distance from the predicted direction",
    name: "prediction",
    height,
    summary:
      series.length > 0
        ? "How far training is from the max-margin direction that theory predicts; 0 is that direction. " +
          (fewRuns(data) ? `${ends.join("; ")}.` : "")
        : "No direction is predicted: no norm is known for this training, or the selected tokens cannot be separated.",
    x: { label: axis.label, log: axis.log },
    y: { label: [...measures].join(" or ") || "distance", log: true, floor: rounding },
    include: { x: [], y: [1] },
    series,
  });
  const follow = (): void => chart.setMarker(axis.values[store.get().step] ?? null);
  store.on(follow);
  follow();
}

function distanceSpec(data: Trained): ChartSpec {
  const axis = timeline(data);
  const names = runNames(data);
  const several = data.runs.length > 1;
  const ends = data.runs.flatMap((run, r) =>
    run.correlations.map(
      (one) => `${several ? `${names[r]} ` : ""}${formatted(one.distances.at(-1))} from ${labelText(one.label)}`,
    ),
  );
  const others = data.runs.some((run, r) => r > 0 && run.correlations.every((one) => one.solution === null));
  return {
    title: "Distance from the max-margin directions",
    name: "correlation",
    summary:
      ends.length === 0
        ? "There is no max-margin direction to compare with: the selected tokens cannot be separated."
        : "How far the direction of W is from each max-margin direction; 0 is the same direction. " +
          (fewRuns(data) ? `At the end: ${ends.join(", ")}.` : "") +
          (others ? " A run that selects other tokens than the first is compared with the solutions of its own." : ""),
    x: { label: axis.label, log: axis.log },
    y: { label: "1 \u2212 correlation", log: true, floor: rounding },
    include: { x: [], y: [1] },
    series: data.runs.flatMap((run, r) =>
      run.correlations.map((one, k) =>
        curve(
          data,
          r,
          several ? `${literal(names[r] ?? "")}: ${one.label}` : one.label,
          several ? runStyle(r, k) : ([0, 3, 4, 5, 1][k % 5] ?? 0),
          one.distances,
          `runs.${r}.correlations.${k}.distances`,
        ),
      ),
    ),
  };
}

/** One curve per run. */
function plainSpec(
  data: Trained,
  key: "norm" | "loss" | "log10_gradient" | "entropy" | "accuracy" | "temperature",
  words: { title: string; y: string; summary: (first: string, last: string, name: string) => string; more: string },
): ChartSpec | null {
  const axis = timeline(data);
  const names = runNames(data);
  const series: Series[] = [];
  const ends: string[] = [];
  data.runs.forEach((run, r) => {
    const values = run[key];
    if (!values) return;
    const name = data.runs.length > 1 ? (names[r] ?? "") : words.y;
    series.push(curve(data, r, literal(name), runStyle(r), values, `runs.${r}.${key}`));
    ends.push(
      words.summary(formatted(values[0]), formatted(values.at(-1)), data.runs.length > 1 ? `${names[r]}: ` : ""),
    );
  });
  if (series.length === 0) return null;
  return {
    title: words.title,
    name: key,
    x: { label: axis.label, log: axis.log },
    y: { label: words.y, log: key === "norm" && axis.log, percent: key === "accuracy" },
    logs: key === "log10_gradient" || key === "accuracy" ? ["x"] : ["x", "y"],
    ...(key === "accuracy" ? { include: { x: [], y: [0, 1] } } : {}),
    series,
    summary: `${fewRuns(data) ? ends.join(" ") : "One curve per run."}${words.more}`,
  };
}

/** What is asked of a router: how hard its choice is, and whether the choice is right once it is made hard. */
function selectorSpecs(data: Trained, whole: Trained): (ChartSpec | null)[] {
  const ends = (first: string, last: string, name: string): string => `${name}from ${first} to ${last}.`;
  return [
    plainSpec(data, "entropy", {
      title: "Entropy of the attention",
      y: "entropy in nats",
      summary: ends,
      more: " The mean over queries; 0 where each gives all attention to one token.",
    }),
    plainSpec(data, "accuracy", {
      title: "If each query took its heaviest token alone",
      y: "share that is right",
      summary: ends,
      more:
        " The share of queries for which that token alone, scored by the v of this head, has the sign of the label, or " +
        "is the label itself.",
    }),
    plainSpec(whole, "temperature", {
      title: "Temperature of the selector",
      y: "temperature",
      summary: ends,
      more: " What training divides the logits by; all other charts have them undivided.",
    }),
  ];
}

function atPoint(run: Curves, r: number, k: number): HTMLElement {
  const rows: Fact[] = [];
  if (run.step) rows.push(["step", num(`runs.${r}.step.${k}`, run.step[k])]);
  rows.push(["norm of W", num(`runs.${r}.norm.${k}`, run.norm[k])]);
  if (run.loss) rows.push(["loss", num(`runs.${r}.loss.${k}`, run.loss[k])]);
  if (run.log10_gradient)
    rows.push([
      "size of the gradient",
      ["10", h("sup", {}, num(`runs.${r}.log10_gradient.${k}`, run.log10_gradient[k]))],
    ]);
  rows.push(["entropy of the attention", num(`runs.${r}.entropy.${k}`, run.entropy[k])]);
  run.correlations.forEach((one, c) =>
    rows.push([
      ["1 \u2212 correlation with ", ...labelNodes(one.label)],
      num(`runs.${r}.correlations.${c}.distances.${k}`, one.distances[k]),
    ]),
  );
  run.shares.forEach((one, s) => {
    if (one.status === "optimal")
      rows.push([`\u03c1 in ${one.norm}`, share(`runs.${r}.shares.${s}.rho.${k}`, one.rho[k])]);
  });
  return facts(rows);
}

/** With `together`, the runs are heads of one: what is measured of all of them together is drawn once. */
export function trainingView(panel: HTMLElement, data: Trained, store: Store, together = false): void {
  const axis = timeline(data);
  const names = runNames(data);
  const controls = h("div", { class: "controls" });
  const grid = h("div", { class: "grid" });
  panel.append(controls, grid);
  const range = (first: string, last: string, name: string): string => `${name}from ${first} to ${last}.`;
  const whole = together ? { runs: data.runs.slice(0, 1) } : data;
  const specs = [
    plainSpec(data, "norm", {
      title: "Norm of W",
      y: "\u2016W\u2016 (Frobenius)",
      summary: range,
      more:
        " Softmax gives one token all attention only as W grows to infinity, so the norm of a run that selects tokens " +
        "has no limit, while its direction has one.",
    }),
    plainSpec(whole, "loss", { title: "Loss", y: "mean loss", summary: range, more: "" }),
    plainSpec(whole, "log10_gradient", {
      title: "Size of the gradient",
      y: "power of ten of its norm",
      summary: (first, last, name) => `${name}from 10^${first} to 10^${last}.`,
      more: " It falls without end: that is why the steps of plain gradient descent become so short.",
    }),
    ...selectorSpecs(data, whole),
  ].filter((spec) => spec !== null);
  const charts = [new Chart(grid, distanceSpec(data)), sharesChart(grid, controls, data)];
  charts.push(...specs.map((spec) => new Chart(grid, spec)));
  if (data.runs.some((run) => run.shares.length > 0)) grid.append(sharesTable(data));
  const now = data.runs.map((run, r) => {
    const facts = h("div");
    grid.append(
      h(
        "div",
        { class: "card" },
        h("h3", {}, data.runs.length > 1 ? `${names[r]}, at this step` : "At this step"),
        facts,
      ),
    );
    return { run, r, facts };
  });
  const follow = (): void => {
    const { step } = store.get();
    for (const { run, r, facts } of now) facts.replaceChildren(atPoint(run, r, pointAt(data, r, step)));
    for (const chart of charts) chart.setMarker(axis.values[step] ?? null);
  };
  store.on(follow);
  follow();
}
