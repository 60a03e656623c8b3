// The report on a stack of layers: every head beside the SVM of what it selects and beside its null, over training.
import { Chart } from "./chart";
import type { Series } from "./chart_spec";
import type { JudgedHead, Stack } from "./data";
import { type Child, choice, h } from "./dom";
import { brief, counted, num, percent, share, text } from "./format";
import { pageTop, whenNear } from "./index_page";
import { madeCard, taskCard } from "./overview";
import { early } from "./runs";
import { Store } from "./state";
import { facts, shadedCell } from "./table";
import { type Tab, tabs } from "./tabs";

/** What can be chosen on this page. */
interface Place {
  view: string;
  layer: number;
  head: number;
  sequence: number;
}

type Measure = "correlation" | "rho";

const styles = 8; // that curves can have
const rounding = 2 ** -53; // the accuracy of correlations

const indexOf = (data: Stack, layer: number, head: number): number => layer * data.heads + head;

function nameOf(data: Stack, k: number): string {
  const head = data.judged[k];
  return data.heads === 1 ? `layer ${head?.layer}` : `layer ${head?.layer}, head ${head?.head}`;
}

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
  if (data.null_draws === 0) return `${where} beside their SVMs`;
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
    h("span", {}, "attention ", share(`judged.${k}.attention_min`, head.attention_min)),
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

const roomy = 12; // tokens whose weights have room for their numbers
const least = 0.0005; // weights that round to 0.1 % at least

/** The attention of a head in one sequence: a row per position, a column per token. */
function attentionTable(data: Stack, place: Readonly<Place>): HTMLElement {
  const { layer, head, sequence } = place;
  const rows = data.attention.weights[layer]?.[head]?.[sequence] ?? [];
  const asks = data.attention.positions[layer]?.[sequence] ?? [],
    live = new Set(data.attention.live[layer]?.[sequence] ?? []);
  const width = Math.max(...rows.map((row) => row.length), 1);
  const path = `attention.weights.${layer}.${head}.${sequence}`;
  const cells = (row: number[], i: number): HTMLElement[] => {
    const best = row.indexOf(Math.max(...row));
    return [...Array(width).keys()].map((t) => {
      const value = row[t];
      if (value === undefined) return h("td");
      const number = value < least ? "\u00b7" : brief(`${path}.${i}.${t}`, value, true);
      const made = shadedCell(value, t === best, width <= roomy ? number : null);
      made.title = `position ${asks[i]}, token ${t}: ${percent(value)}`;
      return made;
    });
  };
  const table = h(
    "table",
    { class: "shares attention" },
    h(
      "caption",
      {},
      "A row per position that asks, a column per token that it sees. Framed: what it selects; a dot: next to nothing",
    ),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["position", ...[...Array(width).keys()].map(String)].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      ...rows.map((row, i) =>
        h(
          "tr",
          {},
          h(
            "th",
            { scope: "row", class: "nowrap" },
            String(i),
            live.has(i) ? h("span", { class: "badge good" }, "live") : null,
          ),
          ...cells(row, i),
        ),
      ),
    ),
  );
  table.style.minWidth = `${(width + 2) * (width <= roomy ? 3.6 : 1)}rem`;
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Attention" }, table);
}

function attention(panel: HTMLElement, data: Stack, store: Store<Place>): void {
  const pick = (label: string, key: "layer" | "head" | "sequence", count: number): Child => {
    if (count < 2) return null;
    const made = choice(label, [...Array(count).keys()].map(String), store.get()[key], (to) =>
      store.set({ [key]: to }),
    );
    store.on(() => {
      const select = made.querySelector("select");
      if (select) select.selectedIndex = store.get()[key];
    });
    return made;
  };
  const host = h("section", { class: "card wide" });
  panel.append(
    h(
      "div",
      { class: "controls" },
      pick("Layer", "layer", data.layers),
      pick("Head", "head", data.heads),
      pick("Sequence", "sequence", data.attention.sequences),
    ),
    host,
    h(
      "p",
      { class: "note" },
      "At the end of training. Only what live positions select changes the output: nothing is learnt where nobody looks. " +
        (data.attention.sequences < data.task.queries
          ? `The page holds the first ${data.attention.sequences} of ${data.task.queries} sequences.`
          : ""),
    ),
  );
  const show = (): void => {
    const place = store.get();
    host.replaceChildren(
      h("h2", {}, `${nameOf(data, indexOf(data, place.layer, place.head))}, sequence ${place.sequence}`),
      attentionTable(data, place),
    );
  };
  store.on(show);
  show();
}

export function stackPage(root: HTMLElement, data: Stack): void {
  const list: Tab[] = [
    { name: "overview", title: "Overview", make: (panel) => overview(panel, data, store) },
    { name: "training", title: "Training", make: (panel) => training(panel, data) },
    { name: "attention", title: "Attention", make: (panel) => attention(panel, data, store) },
  ];
  const store = new Store<Place>(
    { view: "overview", layer: 0, head: 0, sequence: 0 },
    { layer: data.layers - 1, head: data.heads - 1, sequence: data.attention.sequences - 1 },
    list.map((tab) => tab.name),
  );
  root.append(pageTop(data), h("main", {}, tabs(list, store)));
}
