// The report on a next-token task: what can be learnt, the graph of every last token, and how close runs come.
import { Chart } from "./chart";
import { stepControl } from "./controls";
import type { NextToken } from "./data";
import { type Child, choice, h } from "./dom";
import { counted, num, text } from "./format";
import { pageTop } from "./index_page";
import { labelNodes } from "./label";
import { GraphView, quoted } from "./priority_graph";
import { madeCard } from "./overview";
import { badge, proofCard } from "./proof";
import { literal, normWords, predicted, runNames, runStyle, timeline } from "./runs";
import { Store } from "./state";
import { facts } from "./table";
import { type Tab, tabs } from "./tabs";
import { curve, predictionChart, trainingView } from "./training";

function headline(data: NextToken): string {
  if (data.separable === null) return "It is not decided whether a W keeps these orders";
  if (!data.separable) return "No W keeps these orders";
  return data.counts.components > 0
    ? "A W keeps every strict order, and some tokens stay level"
    : "A W keeps every order";
}

/** What was learnt from the sequences, and what became of it in training. */
function sentences(data: NextToken): HTMLElement[] {
  const { counts, finite, runs } = data;
  const names = runNames(data);
  const list: HTMLElement[] = [
    h(
      "p",
      { class: "lead" },
      num("counts.graphs", counts.graphs),
      counts.graphs === 1 ? " last token has a graph with " : " last tokens have a graph each, with ",
      num("counts.edges", counts.edges),
      counts.edges === 1 ? " edge in all; " : " edges in all; ",
      num("counts.orders", counts.orders),
      " of them are a strict order, which the graph SVM keeps by 1: the W of least norm that does is written ",
      ...labelNodes("W^{gsvm}"),
      ". ",
      ...(counts.components > 0
        ? [
            num("counts.tied", counts.tied),
            " tokens lie in ",
            num("counts.components", counts.components),
            counts.components === 1 ? " component" : " components",
            " that no W orders; among them the weights stay finite.",
          ]
        : ["No tokens contradict each other."]),
    ),
  ];
  runs.forEach((run, r) => {
    const aim = predicted(run, r),
      last = run.norm.length - 1;
    const parts: Child[] = [h("strong", {}, names[r]), " was trained"];
    if (run.step) parts.push(" for ", num(`runs.${r}.step.${last}`, run.step[last]), " steps");
    if (aim)
      parts.push(
        `; ${run.implied?.proven ? "theory predicts" : "expected, not proven, is"} the direction of least ` +
          `${normWords(aim.norm)}, and at the end ${aim.measure} is `,
        num(`${aim.path}.${last}`, aim.distances[last]),
      );
    if (run.finite_distance)
      parts.push(
        "; its finite part is ",
        num(`runs.${r}.finite_distance.${last}`, run.finite_distance[last]),
        " from where it should end",
      );
    list.push(h("p", { class: "lead" }, ...parts, "."));
  });
  if (runs.length === 0 && finite && finite.dimension > 0)
    list.push(
      h(
        "p",
        { class: "lead" },
        "The finite part has norm ",
        num("finite.norm", finite.norm),
        " in ",
        num("finite.dimension", finite.dimension),
        finite.dimension === 1 ? " dimension." : " dimensions.",
      ),
    );
  return list;
}

/** The list of last tokens, and the graph of the chosen one with what contradicts itself in words. */
function graphPart(host: HTMLElement, data: NextToken, store: Store): void {
  const left = data.counts.graphs - data.graphs.length;
  const label = (k: number): string => {
    const graph = data.graphs[k];
    return graph
      ? `${quoted(graph.word)}: ${counted(graph.sequences, "sequence")}${graph.components > 0 ? ", tokens tied" : ""}`
      : "";
  };
  const picker = choice(
    "Last token",
    data.graphs.map((_, k) => label(k)),
    store.get().query,
    (query) => store.set({ query }),
  );
  const words = h("ul", { class: "lead" });
  const show = (): void => {
    const { query } = store.get();
    const select = picker.querySelector("select");
    if (select) select.selectedIndex = query;
    words.replaceChildren(
      ...(data.graphs[query]?.words ?? []).map((line, k) => h("li", {}, text(`graphs.${query}.words.${k}`, line))),
    );
    words.hidden = words.childElementCount === 0;
  };
  host.append(
    h("div", { class: "controls" }, picker),
    left > 0
      ? h(
          "p",
          { class: "note" },
          `The page has ${data.graphs.length} of ${data.counts.graphs} graphs: those with tied ` +
            "tokens first, then those of most sequences.",
        )
      : "",
    words,
  );
  store.on(show);
  show();
  new GraphView(host, data, store);
}

function finiteChart(host: HTMLElement, data: NextToken, store: Store): void {
  const axis = timeline(data);
  const names = runNames(data);
  const series = data.runs.flatMap((run, r) =>
    run.finite_distance
      ? [curve(data, r, literal(names[r] ?? ""), runStyle(r), run.finite_distance, `runs.${r}.finite_distance`)]
      : [],
  );
  if (series.length === 0) return;
  const chart = new Chart(host, {
    title: "Distance of the finite part",
    name: "finite-part",
    summary:
      "Tied tokens share a component, where the loss has a least point; how far the part of W among them is from it.",
    x: { label: axis.label, log: axis.log },
    y: { label: "distance from W_{fin}", log: true },
    series,
  });
  const follow = (): void => chart.setMarker(axis.values[store.get().step] ?? null);
  store.on(follow);
  follow();
}

function solutionsCard(data: NextToken): HTMLElement {
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "The graph SVMs"),
    facts(
      data.solutions.map((solution, s) => [
        [...labelNodes(solution.label), h("span", { class: "hint" }, ` ${solution.norm_words}`)],
        [
          badge(solution),
          " ",
          num(`solutions.${s}.objective`, solution.objective),
          " on ",
          num(`solutions.${s}.constraints`, solution.constraints),
          " rows",
        ],
      ]),
    ),
  );
}

function overview(panel: HTMLElement, data: NextToken, store: Store): void {
  const curves = h("div", { class: "grid" });
  panel.append(h("section", { class: "story" }, h("h2", {}, headline(data)), ...sentences(data)));
  graphPart(panel, data, store);
  panel.append(curves, h("div", { class: "cards" }, solutionsCard(data), madeCard(data)));
  if (data.runs.length === 0) return;
  predictionChart(curves, data, store, 320);
  finiteChart(curves, data, store);
}

function proof(panel: HTMLElement, data: NextToken): void {
  data.solutions.forEach((solution, s) => {
    const card = proofCard(solution, s);
    const lines = solution.conflict?.words ?? [];
    if (lines.length > 0)
      card.append(
        h("h4", {}, "In words"),
        h("ul", {}, ...lines.map((line, k) => h("li", {}, text(`solutions.${s}.conflict.words.${k}`, line)))),
      );
    panel.append(card);
  });
}

export function nextTokenPage(root: HTMLElement, data: NextToken): void {
  const last = Math.max(0, timeline(data).values.length - 1);
  const list: Tab[] = [
    { name: "overview", title: "Overview", make: (panel) => overview(panel, data, store) },
    { name: "proof", title: "Proof", make: (panel) => proof(panel, data) },
  ];
  if (data.runs.length > 0)
    list.splice(1, 0, { name: "training", title: "Training", make: (panel) => trainingView(panel, data, store) });
  const store = new Store(
    { view: "overview", query: 0, step: last, run: 0, across: 0, up: 0, head: 0 },
    { query: data.graphs.length - 1, step: last, run: 0, across: 0, up: 0, head: 0 },
    list.map((tab) => tab.name),
  );
  const slider = stepControl(data, store);
  const sticky = h("div", { class: "sticky" }, slider);
  const views = tabs(list, store, (name) => {
    sticky.hidden = !slider || name === "proof";
  });
  views.firstElementChild?.after(sticky);
  root.append(pageTop(data), h("main", {}, views));
}
