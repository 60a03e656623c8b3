// The report on a run of many heads: all of them at a glance, and each of those that the page holds in full.
import { stepControl } from "./controls";
import type { HeadRun, Heads } from "./data";
import { type Child, choice, h } from "./dom";
import { counted, num, text } from "./format";
import { pageTop } from "./index_page";
import { tokenName } from "./names";
import { madeCard, taskCard } from "./overview";
import { firstState, type View, views } from "./report";
import { normWords, predicted, timeline } from "./runs";
import { sharesMatrix } from "./shares";
import { Store } from "./state";
import { source } from "./story";
import { facts, pagedTable } from "./table";
import { type Tab, tabs } from "./tabs";
import { predictionChart, trainingView } from "./training";

const verdicts: Record<HeadRun["verdict"], string> = {
  global: "at the best tokens of its own scores",
  local: "at a local optimum",
  neither: "at neither a global nor a local optimum",
  infeasible: "at tokens that no W keeps",
};

/** "2 of 4 heads ended at …; 2 at …" */
function headline(data: Heads): string {
  const { runs } = data;
  const ends = [...new Set(runs.map((run) => run.verdict))].map((verdict) => {
    const count = runs.filter((run) => run.verdict === verdict).length;
    return `${count === runs.length ? `All ${count}` : count} ${verdicts[verdict].replace("its own", count === 1 ? "its own" : "their own")}`;
  });
  return `${counted(runs.length, "head")}: ${ends.join(", ").replace("All", "all")}`;
}

function sentences(data: Heads): HTMLElement {
  const [first] = data.runs;
  const last = (first?.norm.length ?? 1) - 1;
  const aim = first && predicted(first, 0);
  return h(
    "p",
    { class: "lead" },
    text("file", data.file),
    " has a W per head",
    ...(first?.step ? [", trained together for ", num(`runs.0.step.${last}`, first.step[last]), " steps"] : []),
    ". The outputs of the heads add up, and each has scores of its own, by its own v; so each is compared with the SVM " +
      "of the tokens that it selects itself",
    aim ? ` (${source(first)} the one of least ${normWords(aim.norm)})` : "",
    ". They have ",
    num("distinct_selections", data.distinct_selections),
    data.distinct_selections === 1 ? " selection, and select " : " different selections, and select ",
    num("tokens_per_query", data.tokens_per_query),
    " different tokens per query.",
  );
}

/** A link to a head in full; its name alone where the page does not hold it. */
function headLink(data: Heads, store: Store, head: number): Child {
  if (head >= data.reports.length) return `head ${head}`;
  const to = { view: "one", head };
  return h(
    "a",
    {
      href: store.address(to),
      onclick: (event: Event) => {
        event.preventDefault();
        store.set(to);
      },
    },
    `head ${head}`,
  );
}

function headsTable(data: Heads, store: Store): HTMLElement {
  const distances = (run: HeadRun, r: number, norm: string): Child => {
    const c = run.correlations.findIndex((one) => one.norm === norm),
      list = run.correlations[c]?.distances ?? [];
    const last = list.length - 1;
    return c < 0 ? "\u2013" : num(`runs.${r}.correlations.${c}.distances.${last}`, list[last]);
  };
  const best = (run: HeadRun): string => {
    const kept = run.optimal?.filter((token, i) => run.kept[i]?.includes(token)).length;
    return kept === undefined ? "\u2013" : `${kept} of ${run.kept.length}`;
  };
  const value = (run: HeadRun, norm: string): number | string =>
    run.correlations.find((one) => one.norm === norm)?.distances.at(-1) ?? "";
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "The heads"),
    pagedTable({
      name: "heads",
      caption: "How each ended, and 1 \u2212 correlation with the SVMs of its own selection",
      header: ["head", "verdict", "Frobenius", "nuclear", "queries at their best token"],
      rows: data.runs.length,
      cells: (r) => {
        const run = data.runs[r];
        if (!run) return [];
        return [
          headLink(data, store, r),
          text(`runs.${r}.verdict`, run.verdict),
          distances(run, r, "fro"),
          distances(run, r, "nuc"),
          best(run),
        ];
      },
      values: (r) => {
        const run = data.runs[r];
        return run ? [r, run.verdict, value(run, "fro"), value(run, "nuc"), best(run)] : [];
      },
    }),
  );
}

/** A row per query, a column per head: who selects what. Shaded: tokens that several heads select. */
function selectionTable(data: Heads): HTMLElement {
  const [first] = data.reports;
  const name = (query: number, token: number): string => (first ? tokenName(first, query, token) : String(token));
  const chosen = (query: number): number[] => data.runs.map((run) => run.kept[query]?.[0] ?? 0);
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "Who selects what"),
    pagedTable({
      name: "selections",
      caption: "The token that each head selects for each query; shaded where several heads select it, * its best",
      header: ["query", ...data.runs.map((_, r) => `head ${r}`), "different"],
      rows: data.task.queries,
      cells: (i) => {
        const tokens = chosen(i);
        return [
          String(i),
          ...tokens.map((token, r) => {
            const shared = tokens.filter((one) => one === token).length > 1;
            const star = data.runs[r]?.optimal?.[i] === token ? "*" : "";
            return h("span", { "data-token": "", class: shared ? "shared" : null }, `${name(i, token)}${star}`);
          }),
          String(new Set(tokens).size),
        ];
      },
      values: (i) => [i, ...chosen(i), new Set(chosen(i)).size],
    }),
  );
}

function runCard(data: Heads): HTMLElement {
  const [run] = data.runs;
  const last = (run?.norm.length ?? 1) - 1;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "The run"),
    facts([
      ["heads", String(data.runs.length)],
      ["training", run?.settings ? text("runs.0.settings", run.settings) : "\u2013"],
      ["recorded points", num("runs.0.records", run?.records)],
      ["loss", num(`runs.0.loss.${last}`, run?.loss?.[last])],
    ]),
  );
}

function overview(panel: HTMLElement, data: Heads, store: Store): void {
  const curves = h("div", { class: "grid" });
  panel.append(
    h("section", { class: "story" }, h("h2", {}, headline(data)), sentences(data)),
    curves,
    h(
      "div",
      { class: "cards" },
      headsTable(data, store),
      selectionTable(data),
      sharesMatrix(data, "head"),
      runCard(data),
      taskCard(data),
      madeCard(data),
    ),
  );
  predictionChart(curves, data, store, 360);
}

/** A view of the chosen head. Each head has a panel of its own, made when it is first shown. */
function ofHead(view: View, data: Heads, store: Store): Tab {
  const make = (panel: HTMLElement): void => {
    const hosts = new Map<number, HTMLElement>();
    const show = (): void => {
      const { head } = store.get();
      for (const [k, host] of hosts) host.hidden = k !== head;
      const report = data.reports[head];
      if (hosts.has(head) || !report || panel.hidden) return;
      const host = h("div", { "data-within": `reports.${head}` });
      hosts.set(head, host);
      panel.append(host);
      if (view.has(report)) view.show(host, report, store);
      else
        host.append(h("p", { class: "note" }, `There is nothing to show of head ${head} here: no W keeps its tokens.`));
    };
    store.on(show);
    show();
  };
  return view.name === "overview"
    ? { name: "one", title: "One head", make }
    : { name: view.name, title: view.title, make };
}

function headControl(data: Heads, store: Store): HTMLElement {
  const made = choice(
    "Head",
    data.reports.map((_, k) => `head ${k}`),
    store.get().head,
    (head) => store.set({ head }),
  );
  store.on(() => {
    const select = made.querySelector("select");
    if (select) select.selectedIndex = store.get().head;
  });
  const left = data.runs.length - data.reports.length;
  return h(
    "div",
    { class: "controls one-head" },
    made,
    left > 0
      ? h("span", { class: "note" }, `The page holds ${data.reports.length} heads in full; --head K shows another.`)
      : null,
  );
}

export function headsPage(root: HTMLElement, data: Heads): void {
  const [report] = data.reports;
  if (!report) return;
  const several = views.filter((view) => data.reports.some((one) => view.has(one)));
  const ofOne = several.filter((view) => view.name !== "training");
  const { first, limits } = firstState(report);
  const names = ["overview", "training", "one", ...ofOne.map((view) => view.name)];
  const axes = Math.max(...data.reports.map((one) => one.plane.axes.length)) - 1;
  const step = Math.max(0, timeline(data).values.length - 1);
  const store = new Store(first, { ...limits, step, across: axes, up: axes, head: data.reports.length - 1 }, names);
  const list: Tab[] = [
    { name: "overview", title: "All heads", make: (panel) => overview(panel, data, store) },
    { name: "training", title: "Training", make: (panel) => trainingView(panel, data, store, true) },
    ...ofOne.map((view) => ofHead(view, data, store)),
  ];
  const slider = stepControl(data, store),
    picker = headControl(data, store);
  const moving = new Set(["training", "one", ...several.filter((view) => view.moving).map((view) => view.name)]);
  const sticky = h("div", { class: "sticky" }, picker, slider);
  const panels = tabs(list, store, (name) => {
    picker.hidden = name === "overview" || name === "training";
    if (slider) slider.hidden = !moving.has(name);
    sticky.hidden = picker.hidden && (!slider || slider.hidden);
  });
  panels.firstElementChild?.after(sticky);
  root.append(pageTop(data), h("main", {}, panels));
}
