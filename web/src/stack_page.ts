// The report on a stack of layers: every head beside the SVM of what it selects and beside its null, over training.
import { Chart } from "./chart";
import type { Series } from "./chart_spec";
import type { JudgedHead, Stack } from "./data";
import { h } from "./dom";
import { brief, counted, num, text } from "./format";
import { pageTop, whenNear } from "./index_page";
import { madeCard, taskCard } from "./overview";
import { early } from "./runs";
import { attentionView } from "./stack_attention";
import { indexOf, nameOf, type Place } from "./stack_state";
import { Store } from "./state";
import { facts, shadedCell } from "./table";
import { type Tab, tabs } from "./tabs";

type Measure = "correlation" | "rho";

const styles = 8; // that curves can have
const rounding = 2 ** -53; // the accuracy of correlations

/** Whether the head is above every matrix of its null. */
function ahead(head: JudgedHead, measure: Measure): boolean {
  const { value, null: list } = head[`last_${measure}`];
  return value !== null && list.length > 0 && list.every((one) => one !== null && one < value);
}

function headline(data: Stack): string {
  const judged = data.judged.filter((head) => head.last_correlation.value !== null);
  const count = judged.filter((head) => ahead(head, "correlation")).length;
  const where = `${counted(judged.length, "head")} in ${counted(data.layers, "layer")}`;
  if (judged.length === 0) return "No head has an SVM to compare with";
  const alone = judged.length === 1;
  if (data.null_draws === 0) return `${where} beside ${alone ? "its SVM" : "their SVMs"}`;
  if (alone) return `${where}: ${count === 1 ? "" : "not "}nearer to its SVM than all of its null`;
  return count === judged.length
    ? `${where}: each is nearer to its SVM than all of its null`
    : `${where}: ${count} nearer to ${count === 1 ? "its" : "their"} SVM than all of the null`;
}

function sentences(data: Stack): HTMLElement[] {
  const last = data.record_step.length - 1;
  return [
    h(
      "p",
      { class: "lead" },
      text("file", data.file),
      " was trained for ",
      num(`record_step.${last}`, data.record_step[last]),
      " steps, to a loss of ",
      num(`loss.${last}`, data.loss[last]),
      ". Each head stands beside the SVM of what it selects in its own inputs at the end, at ",
      data.askers === "live"
        ? "live positions: those on which the output depends once attention has saturated"
        : "all positions",
      ". The correlation of the two is 1, and so is \u03c1, the share of the largest margin, if W has the direction of " +
        "the SVM.",
    ),
    data.null_draws > 0
      ? h(
          "p",
          { class: "lead" },
          "The null says what these numbers are without training towards an SVM: the mean of ",
          num("null_draws", data.null_draws),
          " matrices as large as W in the same directions, with random signs, each beside the SVM of its own selection.",
        )
      : h("p", { class: "lead" }, "No null was drawn, so these numbers have nothing to be compared with."),
    data.complete ? h("span") : h("p", { class: "badge warn" }, "Judging was stopped before all heads were judged."),
  ];
}

/** A head in three lines, as strongly coloured as its correlation is large. */
function cell(data: Stack, store: Store<Place>, k: number): HTMLElement {
  const head = data.judged[k];
  if (!head) return h("td");
  const line = (label: string, measure: Measure): HTMLElement =>
    h(
      "span",
      {},
      `${label} `,
      brief(`judged.${k}.last_${measure}.value`, head[`last_${measure}`].value),
      h(
        "span",
        { class: "spread" },
        " (null ",
        brief(`judged.${k}.last_${measure}.mean`, head[`last_${measure}`].mean),
        ")",
      ),
    );
  const to = { view: "attention", layer: head.layer, head: head.head };
  return shadedCell(
    head.last_correlation.value,
    false,
    h(
      "a",
      {
        href: store.address(to),
        "aria-label": `Attention of ${nameOf(data, k)}`,
        onclick: (event: Event) => {
          event.preventDefault();
          store.set(to);
        },
      },
      h("strong", {}, `layer ${head.layer}, head ${head.head}`),
    ),
    h("br"),
    line("correlation", "correlation"),
    h("br"),
    line("\u03c1", "rho"),
    h("br"),
    h("span", {}, "attention ", brief(`judged.${k}.attention_min`, head.attention_min, true)),
    head.status === "optimal" ? null : h("span", { class: "differs" }, h("br"), `SVM: ${head.status ?? "\u2013"}`),
  );
}

function grid(data: Stack, store: Store<Place>): HTMLElement {
  const columns = [...Array(data.heads).keys()];
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "The heads at the end"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "The heads at the end" },
      h(
        "table",
        { class: "shares stack" },
        h(
          "caption",
          {},
          "Correlation with the head\u2019s SVM, share \u03c1 of the largest margin, and the least attention that a " +
            "selected token has; the deeper layer is below",
        ),
        h(
          "tbody",
          {},
          ...[...Array(data.layers).keys()].map((layer) =>
            h("tr", {}, ...columns.map((head) => cell(data, store, indexOf(data, layer, head)))),
          ),
        ),
      ),
    ),
  );
}

/** The means of the nulls, which are those of the end. */
function nullMarks(data: Stack, heads: number[], measure: Measure): Series {
  const level = (k: number): number | null => data.judged[k]?.[`last_${measure}`].mean_distance ?? null;
  const last = data.record_step.at(-1) ?? 0;
  return {
    label: "mean of the null at the end",
    style: 6,
    mark: "points",
    size: 7,
    x: heads.map(() => last),
    y: heads.map(level),
    name: (point) => `of ${nameOf(data, heads[point] ?? 0)}`,
    more: (point) => [": ", num(`judged.${heads[point]}.last_${measure}.mean_distance`, level(heads[point] ?? 0))],
  };
}

/** 1 − correlation or 1 − ρ of some heads over the steps, beside their nulls. */
function distanceChart(host: HTMLElement, data: Stack, heads: number[], measure: Measure, where = ""): void {
  const words = { correlation: "1 \u2212 correlation", rho: "1 \u2212 \u03c1" }[measure];
  const titles = { correlation: "Distance from the SVM\u2019s direction", rho: "Distance from the largest margin" };
  const known = heads.filter((k) => typeof data.judged[k]?.[`last_${measure}`].value === "number");
  if (known.length === 0) return;
  const series = known.map((k): Series => ({
    label: nameOf(data, k),
    style: k % styles,
    mark: "line",
    x: data.record_step,
    y: data.judged[k]?.[`${measure}_distances`] ?? [],
    path: { x: "record_step", y: `judged.${k}.${measure}_distances` },
  }));
  if (data.null_draws > 0) series.push(nullMarks(data, known, measure));
  new Chart(host, {
    title: `${titles[measure]}${where}`,
    name: `${measure}${where.replace(", layer ", "-")}`,
    summary: `${words} of ${counted(known.length, "head")} over the steps; 0 is the SVM.`,
    x: { label: "step", log: early(data.record_step), whole: true },
    y: { label: words, log: true, floor: rounding },
    include: { x: [], y: [1] },
    height: 320,
    series,
  });
}

function overview(panel: HTMLElement, data: Stack, store: Store<Place>): void {
  const charts = h("div", { class: "grid" });
  panel.append(
    h("section", { class: "story" }, h("h2", {}, headline(data)), ...sentences(data)),
    h("div", { class: "cards" }, grid(data, store)),
    charts,
    h(
      "div",
      { class: "cards" },
      h(
        "section",
        { class: "card" },
        h("h2", {}, "The stack"),
        facts([
          ["layers", num("layers", data.layers)],
          ["heads of each", num("heads", data.heads)],
          ["a token sees", data.causal ? "itself and those before it" : "all tokens"],
          ["trained by", data.settings === null ? "\u2013" : text("settings", data.settings)],
          ["seed of the null", num("seed", data.seed)],
        ]),
      ),
      taskCard(data),
      madeCard(data),
    ),
  );
  const all = [...data.judged.keys()];
  distanceChart(charts, data, all, "correlation");
  distanceChart(charts, data, all, "rho");
}

function lossChart(host: HTMLElement, data: Stack): void {
  new Chart(host, {
    title: "Loss",
    name: "loss",
    summary: "The mean loss of the whole stack over the steps.",
    x: { label: "step", log: early(data.record_step), whole: true },
    y: { label: "mean loss" },
    height: 320,
    series: [
      {
        label: "loss",
        style: 0,
        mark: "line",
        x: data.record_step,
        y: data.loss,
        path: { x: "record_step", y: "loss" },
      },
    ],
  });
}

function gradientChart(host: HTMLElement, data: Stack, heads: number[], where: string): void {
  new Chart(host, {
    title: `Size of the gradient${where}`,
    name: `gradient${where.replace(", layer ", "-")}`,
    summary:
      "The power of ten of the norm of each head\u2019s gradient: one saturated layer above another makes it smaller still.",
    x: { label: "step", log: early(data.record_step), whole: true },
    y: { label: "power of ten of its norm" },
    logs: ["x"],
    height: 320,
    series: heads.map((k) => ({
      label: nameOf(data, k),
      style: k % styles,
      mark: "line" as const,
      x: data.record_step,
      y: data.log10_gradient[k] ?? [],
      path: { x: "record_step", y: `log10_gradient.${k}` },
    })),
  });
}

function training(panel: HTMLElement, data: Stack): void {
  const first = h("div", { class: "grid" });
  panel.append(first);
  lossChart(first, data);
  for (let layer = 0; layer < data.layers; layer += 1) {
    const charts = h("div", { class: "grid" });
    charts.style.minHeight = "900px"; // kept free, so that the page does not jump when they come
    panel.append(h("section", { class: "card experiment" }, h("h2", {}, `Layer ${layer}`), charts));
    whenNear(charts, () => {
      charts.style.minHeight = "";
      const heads = [...Array(data.heads).keys()].map((head) => indexOf(data, layer, head));
      const where = `, layer ${layer}`;
      distanceChart(charts, data, heads, "correlation", where);
      distanceChart(charts, data, heads, "rho", where);
      gradientChart(charts, data, heads, where);
    });
  }
}

export function stackPage(root: HTMLElement, data: Stack): void {
  const list: Tab[] = [
    { name: "overview", title: "Overview", make: (panel) => overview(panel, data, store) },
    { name: "training", title: "Training", make: (panel) => training(panel, data) },
    { name: "attention", title: "Attention", make: (panel) => attentionView(panel, data, store) },
  ];
  const store = new Store<Place>(
    { view: "overview", layer: 0, head: 0, sequence: 0 },
    { layer: data.layers - 1, head: data.heads - 1, sequence: data.attention.sequences - 1 },
    list.map((tab) => tab.name),
  );
  root.append(pageTop(data), h("main", {}, tabs(list, store)));
}
