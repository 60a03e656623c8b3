// The page in one screen: the task, the verdict, the answers, how it was made.
import type { Report } from "./data";
import { button, h } from "./dom";
import { saveText } from "./download";
import { num, text } from "./format";
import { labelNodes } from "./label";
import { tokenName } from "./names";
import { badge } from "./proof";
import { type Fact, facts, pagedTable } from "./table";

const verdicts = {
  global: "Every query keeps its best token",
  local: "A local optimum",
  neither: "Neither global nor local",
};

function taskCard(data: Report): HTMLElement {
  const { task } = data;
  const count = (key: "sequences" | "queries" | "tokens" | "longest" | "d" | "dz" | "dv"): Node =>
    num(`task.${key}`, task[key]);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "The task"),
    facts([
      ["attention", [text("task.attention", task.attention), task.causal ? ", causal" : ""]],
      ["tokens", [count("tokens"), " in ", count("sequences"), " sequences of up to ", count("longest")]],
      ["queries", [count("queries"), ", ", num("task.positive_labels", task.positive_labels), " with label +1"]],
      ["sizes", ["keys ", count("d"), ", queries ", count("dz"), ", values ", count("dv")]],
      ["head", text("task.head", task.head)],
      ["separable", text("task.separability", task.separability)],
    ]),
  );
}

function verdictCard(data: Report): HTMLElement {
  const { check, run } = data;
  const list: Fact[] = [["selected tokens", text("selection", data.selection)]];
  if (check) {
    list.unshift(["because", text("check.reason", check.reason)]);
    list.push(["separable", check.separable ? "yes" : "no W keeps them all"]);
    if (check.locally_optimal !== null) list.push(["locally optimal", check.locally_optimal ? "yes" : "no"]);
    list.push(["support tokens", num("check.support.count", check.support.count)]);
    if (check.ties > 0) list.push(["queries with tied scores", num("check.ties", check.ties)]);
  }
  if (run) {
    const last = run.norm.length - 1;
    list.push(["run", h("code", { "data-path": "run.file" }, run.file)]);
    if (run.step) list.push(["steps", num(`run.step.${last}`, run.step[last])]);
    run.correlations
      .slice(0, 2)
      .forEach((curve, k) =>
        list.push([
          ["correlation with ", ...labelNodes(curve.label)],
          num(`run.correlations.${k}.values.${last}`, curve.values[last]),
        ]),
      );
  }
  const title = check
    ? verdicts[check.verdict]
    : data.solutions[0]?.conflict
      ? "These tokens cannot be kept together"
      : "The selected tokens and their SVMs";
  return h("section", { class: "card verdict" }, h("h2", {}, title), facts(list));
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

function selectionCard(data: Report): HTMLElement {
  const { queries } = data;
  const kept = (i: number): string => (queries.kept[i] ?? []).map((token) => tokenName(data, i, token)).join(", ");
  const best = (i: number): string => (queries.optimal ? tokenName(data, i, queries.optimal[i] ?? 0) : "\u2013");
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
        h("span", { "data-row": "" }, String(i)),
        num(`queries.sequence.${i}`, queries.sequence[i]),
        num(`queries.visible.${i}`, queries.visible[i]),
        num(`queries.label.${i}`, queries.label[i]),
        h("span", { "data-token": "" }, kept(i)),
        h(
          "span",
          {
            "data-token": "",
            class: queries.optimal && queries.kept[i]?.includes(queries.optimal[i] ?? -1) === false ? "differs" : null,
          },
          best(i),
        ),
      ],
      values: (i) => [i, queries.sequence[i], queries.visible[i], queries.label[i], kept(i), best(i)],
    }),
  );
}

function madeCard(data: Report): HTMLElement {
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
    facts([
      ["program", ["attsvm ", text("attsvm", data.attsvm)]],
      [
        "tokens kept by nonlinear heads",
        ["attention of at least ", num("settings.threshold", data.settings.threshold)],
      ],
    ]),
    h(
      "p",
      {},
      button("Download the data (JSON)", () => saveText("report.json", "application/json", JSON.stringify(data)), {
        "data-download": "json",
      }),
    ),
  );
}

export function overviewView(panel: HTMLElement, data: Report): void {
  panel.append(
    h(
      "div",
      { class: "cards" },
      verdictCard(data),
      taskCard(data),
      answersCard(data),
      selectionCard(data),
      madeCard(data),
    ),
  );
}
