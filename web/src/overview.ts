// The page in one screen: the story, and below it in tables the task, the verdict, the answers, how it was made.
import type { Report, TaskFacts } from "./data";
import { button, h } from "./dom";
import { saveText } from "./download";
import { num, text } from "./format";
import { labelNodes } from "./label";
import { queryLink, tokenName } from "./names";
import { badge } from "./proof";
import { predicted, runNames } from "./runs";
import { sharesMatrix } from "./shares";
import type { Store } from "./state";
import { story } from "./story";
import { type Fact, facts, pagedTable } from "./table";

export function taskCard(data: { task: TaskFacts }): HTMLElement {
  const { task } = data;
  const count = (key: "sequences" | "queries" | "tokens" | "longest" | "d" | "dz" | "dv"): Node =>
    num(`task.${key}`, task[key]);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "The task"),
    facts([
      [
        "attention",
        [
          text("task.attention", task.attention),
          task.masked ? ", masked" : task.causal ? ", causal" : "",
          task.bias ? ", with a bias in the logits" : "",
        ],
      ],
      [
        "tokens",
        [
          count("tokens"),
          " in ",
          count("sequences"),
          task.sequences === 1 ? " sequence of " : task.ragged ? " sequences of up to " : " sequences of ",
          count("longest"),
        ],
      ],
      ["queries", [count("queries"), ", ", num("task.labels_positive", task.labels_positive), " with label +1"]],
      ["sizes", ["keys ", count("d"), ", queries ", count("dz"), ", values ", count("dv")]],
      ["head", text("task.head", task.head)],
      [
        "every selection separable",
        [
          task.separability.holds ? "yes, if generic: " : "not guaranteed: ",
          text("task.separability.reason", task.separability.reason),
        ],
      ],
    ]),
  );
}

function verdictCard(data: Report): HTMLElement {
  const { check } = data;
  const list: Fact[] = [["selected tokens", text("selection", data.selection)]];
  if (check) {
    list.unshift(["because", text("check.reason", check.reason)]);
    list.push([
      "separable",
      check.separable === null ? "not decided" : check.separable ? "yes" : "no W keeps them all",
    ]);
    if (check.locally_optimal !== null) list.push(["locally optimal", check.locally_optimal ? "yes" : "no"]);
    list.push(["support tokens", num("check.support.count", check.support.count)]);
    if (check.ties > 0) list.push(["queries with tied scores", num("check.ties", check.ties)]);
  }
  return h("section", { class: "card verdict" }, h("h2", {}, "The verdict"), facts(list));
}

/** One row per run: how it was trained, and how it ended. */
function runsCard(data: Report): HTMLElement | null {
  if (data.runs.length === 0) return null;
  const names = runNames(data);
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, data.runs.length > 1 ? "The runs" : "The run"),
    pagedTable({
      name: "runs",
      caption: "How each was trained, and how it ended",
      header: [
        "run",
        "training",
        "steps",
        "verdict",
        "queries that keep their best token",
        "distance predicted to vanish",
      ],
      rows: data.runs.length,
      cells: (r) => {
        const run = data.runs[r];
        if (!run) return [];
        const last = run.norm.length - 1;
        const aim = predicted(run, r);
        const best = data.queries.optimal?.filter((token, i) => run.kept[i]?.includes(token)).length;
        return [
          h("span", { class: "run" }, names[r], h("br"), h("code", { "data-path": `runs.${r}.file` }, run.file)),
          h("span", { class: "training" }, run.settings ? text(`runs.${r}.settings`, run.settings) : "\u2013"),
          run.step ? num(`runs.${r}.step.${last}`, run.step[last]) : "\u2013",
          text(`runs.${r}.verdict`, run.verdict),
          best === undefined ? "\u2013" : `${best} of ${run.kept.length}`,
          aim
            ? h("span", {}, `${aim.measure}: `, num(`${aim.path}.${last}`, aim.distances[last]), ` (${aim.norm})`)
            : "\u2013",
        ];
      },
    }),
  );
}

function answersCard(data: Report): HTMLElement {
  const rows = data.solutions.map((solution, s) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, ...labelNodes(solution.label), h("span", { class: "hint" }, ` ${solution.norm_words}`)),
      h("td", {}, badge(solution)),
      ...(["objective", "gap", "margin", "rank", "support", "constraints"] as const).map((key) =>
        h("td", {}, num(`solutions.${s}.${key}`, solution[key])),
      ),
    ),
  );
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "The max-margin solutions"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "The max-margin solutions" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...["solution", "status", "norm", "gap", "margin", "rank", "support rows", "rows"].map((name) =>
              h("th", { scope: "col" }, name),
            ),
          ),
        ),
        h("tbody", {}, ...rows),
      ),
    ),
  );
}

function selectionCard(data: Report, store: Store): HTMLElement {
  const { queries } = data;
  const kept = (i: number): string => (queries.kept[i] ?? []).map((token) => tokenName(data, i, token)).join(", ");
  const best = (i: number): string => (queries.optimal ? tokenName(data, i, queries.optimal[i] ?? 0) : "\u2013");
  const missed = (i: number): boolean =>
    queries.optimal !== null && queries.kept[i]?.includes(queries.optimal[i] ?? -1) === false;
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "What each query keeps"),
    pagedTable({
      name: "selection",
      caption: "Selected and best token of every query",
      header: ["query", "sequence", "sees", "label", "selected", "best score"],
      rows: queries.sequence.length,
      cells: (i) => [
        queryLink(store, i),
        num(`queries.sequence.${i}`, queries.sequence[i]),
        num(`queries.visible.${i}`, queries.visible[i]),
        num(`queries.label.${i}`, queries.label[i]),
        h("span", { "data-token": "" }, kept(i)),
        h("span", { "data-token": "", class: missed(i) ? "differs" : null }, best(i), missed(i) ? " (not kept)" : ""),
      ],
      values: (i) => [
        i,
        queries.sequence[i],
        queries.visible[i],
        queries.label[i],
        kept(i),
        best(i),
        missed(i) ? "not kept" : "",
      ],
    }),
  );
}

/** The command, the program, what else `more` tells, and all data of the page. */
export function madeCard(data: { command: string; attsvm: string }, more: Fact[] = []): HTMLElement {
  const command = h("code", { class: "command", "data-path": "command" }, data.command);
  const copy = button(
    "Copy",
    () =>
      void navigator.clipboard.writeText(data.command).then(
        () => {
          copy.textContent = "Copied";
        },
        () => {
          getSelection()?.selectAllChildren(command);
        },
      ),
    { class: "quiet" },
  );
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "How this page was made"),
    h("p", { class: "made" }, command, copy),
    facts([["program", ["attsvm ", text("attsvm", data.attsvm)]], ...more]),
    h(
      "p",
      {},
      button("Download the data (JSON)", () => saveText("report.json", "application/json", JSON.stringify(data)), {
        "data-download": "json",
      }),
    ),
  );
}

/** Nonlinear heads keep all tokens above a threshold. */
const thresholdFact = (data: Report): Fact[] =>
  data.runs.length > 0 && data.task.head !== "linear"
    ? [["a token is kept", ["from an attention of ", num("settings.threshold", data.settings.threshold)]]]
    : [];

export function overviewView(panel: HTMLElement, data: Report, store: Store): void {
  story(panel, data, store);
  panel.append(
    h(
      "div",
      { class: "cards" },
      runsCard(data),
      sharesMatrix(data),
      verdictCard(data),
      taskCard(data),
      answersCard(data),
      selectionCard(data, store),
      madeCard(data, thresholdFact(data)),
    ),
  );
}
