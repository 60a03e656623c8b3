// The report: views over one task.
import { attentionView } from "./attention";
import { stepControl } from "./controls";
import type { Report, Solution } from "./data";
import { h } from "./dom";
import { hasMargins, marginsView } from "./margins";
import { overviewView } from "./overview";
import { planeView } from "./plane";
import { firstAxes } from "./plane_chart";
import { proofView } from "./proof";
import { timeline } from "./runs";
import { spectrumView } from "./spectrum";
import { type State, Store } from "./state";
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

type Show = (panel: HTMLElement, data: Report, store: Store) => void;

/** A view of a report. */
export interface View {
  name: string;
  title: string;
  show: Show;
  moving: boolean; // it follows the slider
  has: (data: Report) => boolean;
}

const hasSpectrum = (solution: Solution): boolean => solution.singular_values !== null;
const trained = (data: Report): boolean => data.runs.length > 0;

const made = (name: string, title: string, show: Show, moving: boolean, has = (_: Report): boolean => true): View => ({
  name,
  title,
  show,
  moving,
  has,
});

export const views: View[] = [
  made("overview", "Overview", overviewView, true),
  made("plane", "Plane", planeView, true),
  made("training", "Training", trainingView, true, trained),
  made("attention", "Attention", attentionView, true, trained),
  made("margins", "Margins", marginsView, false, (data) => data.solutions.some(hasMargins)),
  made("spectrum", "Spectrum", spectrumView, true, (data) => trained(data) || data.solutions.some(hasSpectrum)),
  made("proof", "Proof", proofView, false),
];

/** Where a report opens, and how far its choices go. */
export function firstState(data: Report): { first: State; limits: Omit<State, "view"> } {
  const step = Math.max(0, timeline(data).values.length - 1);
  const axes = firstAxes(data);
  const axis = data.plane.axes.length - 1;
  return {
    first: { view: "overview", query: firstQuery(data), step, run: 0, across: axes.x, up: axes.y, head: 0 },
    limits: {
      query: data.task.queries - 1,
      step,
      run: Math.max(0, data.runs.length - 1),
      across: axis,
      up: axis,
      head: 0,
    },
  };
}

export function reportPage(root: HTMLElement, data: Report): void {
  const shown = views.filter((view) => view.has(data));
  const { first, limits } = firstState(data);
  const store = new Store(
    first,
    limits,
    shown.map((view) => view.name),
  );
  const list: Tab[] = shown.map(({ name, title, show }) => ({
    name,
    title,
    make: (panel) => show(panel, data, store),
  }));
  const slider = stepControl(data, store);
  const moving = new Set(shown.filter((view) => view.moving).map((view) => view.name));
  const sticky = h("div", { class: "sticky" }, slider);
  const panels = tabs(list, store, (name) => {
    sticky.hidden = !slider || !moving.has(name);
  });
  panels.firstElementChild?.after(sticky);
  root.append(
    h(
      "header",
      { class: "top" },
      h("div", {}, h("p", { class: "kind" }, "attsvm report"), h("h1", { "data-path": "title" }, data.title)),
      h("div", { class: "tools" }, playgroundLink(data), themeButton()),
    ),
    h("main", {}, panels),
  );
}
