// The report: views over one task.
import { attentionView } from "./attention";
import { stepControl } from "./controls";
import type { Report } from "./data";
import { h } from "./dom";
import { hasMargins, marginsView } from "./margins";
import { overviewView } from "./overview";
import { planeView } from "./plane";
import { firstAxes } from "./plane_chart";
import { proofView } from "./proof";
import { timeline } from "./runs";
import { spectrumView } from "./spectrum";
import { Store } from "./state";
import { type Tab, tabs } from "./tabs";
import { themeButton } from "./theme";
import { trainingView } from "./training";

/**
 * The query to open on: the heaviest of a contradiction, else the first that sees several tokens; the first ones of
 * causal attention see hardly any.
 */
function firstQuery(data: Report): number {
  const heaviest = data.solutions.find((solution) => solution.conflict)?.conflict?.rows[0];
  if (heaviest) return heaviest.query;
  const several = Math.min(8, data.task.longest);
  const seen = data.queries.visible;
  return Math.max(
    0,
    seen.findIndex((count) => count >= several),
  );
}

/** Leads to a page beside this one, and nowhere else. */
function playgroundLink(data: Report): HTMLElement | null {
  const to = data.playground;
  if (!to || !/^[\w.-]+\.html#[\w=&]+$/.test(to)) return null;
  return h("a", { class: "button", href: to }, "Drag this task about");
}

export function reportPage(root: HTMLElement, data: Report): void {
  const last = Math.max(0, timeline(data).values.length - 1);
  const axes = firstAxes(data);
  const trained = data.runs.length > 0;
  const list: Tab[] = [];
  const add = (name: string, title: string, view: (panel: HTMLElement, data: Report, store: Store) => void): void => {
    list.push({ name, title, make: (panel) => view(panel, data, store) });
  };
  add("overview", "Overview", overviewView);
  add("plane", "Plane", planeView);
  if (trained) {
    add("training", "Training", trainingView);
    add("attention", "Attention", attentionView);
  }
  if (data.solutions.some(hasMargins)) add("margins", "Margins", marginsView);
  if (trained || data.solutions.some((solution) => solution.singular_values)) add("spectrum", "Spectrum", spectrumView);
  add("proof", "Proof", proofView);
  const store = new Store(
    { view: "overview", query: firstQuery(data), step: last, run: 0, across: axes.x, up: axes.y },
    {
      query: data.task.queries - 1,
      step: last,
      run: Math.max(0, data.runs.length - 1),
      across: data.plane.axes.length - 1,
      up: data.plane.axes.length - 1,
    },
    list.map((tab) => tab.name),
  );
  const slider = stepControl(data, store);
  const moving = new Set(["overview", "plane", "training", "attention", "spectrum"]); // views that follow the slider
  const sticky = h("div", { class: "sticky" }, slider);
  const views = tabs(list, store, (name) => {
    sticky.hidden = !slider || !moving.has(name);
  });
  views.firstElementChild?.after(sticky);
  root.append(
    h(
      "header",
      { class: "top" },
      h("div", {}, h("p", { class: "kind" }, "attsvm report"), h("h1", { "data-path": "title" }, data.title)),
      h("div", { class: "tools" }, playgroundLink(data), themeButton()),
    ),
    h("main", {}, views),
  );
}
