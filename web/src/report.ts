// The report: views over one task.
import { attentionView } from "./attention";
import { stepControl } from "./controls";
import type { Report } from "./data";
import { h } from "./dom";
import { hasMargins, marginsView } from "./margins";
import { overviewView } from "./overview";
import { planeView } from "./plane";
import { proofView } from "./proof";
import { spectrumView } from "./spectrum";
import { Store } from "./state";
import { type Tab, tabs } from "./tabs";
import { themeButton } from "./theme";
import { trainingView } from "./training";

export function reportPage(root: HTMLElement, data: Report): void {
  const store = new Store({ query: 0, step: Math.max(0, (data.run?.norm.length ?? 1) - 1) });
  const slider = stepControl(data, store);
  const moving = new Set(["plane", "training", "attention", "spectrum"]); // views that follow the slider
  const list: Tab[] = [
    { name: "overview", title: "Overview", make: (panel) => overviewView(panel, data) },
    { name: "plane", title: "Plane", make: (panel) => planeView(panel, data, store) },
  ];
  if (data.run) {
    list.push({ name: "training", title: "Training", make: (panel) => trainingView(panel, data, store) });
    list.push({ name: "attention", title: "Attention", make: (panel) => attentionView(panel, data, store) });
  }
  if (data.solutions.some(hasMargins))
    list.push({ name: "margins", title: "Margins", make: (panel) => marginsView(panel, data) });
  if (data.run || data.solutions.some((solution) => solution.singular_values))
    list.push({ name: "spectrum", title: "Spectrum", make: (panel) => spectrumView(panel, data, store) });
  list.push({ name: "proof", title: "Proof", make: (panel) => proofView(panel, data) });
  const sticky = h("div", { class: "sticky" }, slider);
  const views = tabs(list, (name) => {
    sticky.hidden = !slider || !moving.has(name);
  });
  views.firstElementChild?.after(sticky);
  root.append(
    h(
      "header",
      { class: "top" },
      h("div", {}, h("p", { class: "kind" }, "attsvm report"), h("h1", { "data-path": "title" }, data.title)),
      themeButton(),
    ),
    h("main", {}, views),
  );
}
