// The page in one screen: the task, the verdict, the answers, how it was made.
import type { Report } from "./data";
import { button, type Child, h } from "./dom";
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
  infeasible: "No W keeps these tokens",
};
const ends = {
  global: "Training found the best token of every query",
  local: "Training ended at a local optimum",
  neither: "Training ended at neither a global nor a local optimum",
  infeasible: "Training ended at tokens that no W keeps",
};

/** The page in a sentence or two. */
function lead(data: Report): HTMLElement {
  const { run, check, queries } = data;
  const first = data.solutions[0];
  const parts: Child[] = [];
  if (run && check && queries.optimal) {
    const best = queries.optimal.filter((token, i) => queries.kept[i]?.includes(token)).length;
    parts.push(`Of ${queries.kept.length} queries, ${best} keep the token with the best score. `);
    const last = run.norm.length - 1;
    const ways = run.correlations.map((curve, k) => ({ curve, k, end: curve.distances[last] ?? Infinity }));
    const nearest = ways.sort((a, b) => a.end - b.end)[0];
    if (nearest && nearest.end < Infinity)
      parts.push(
        "Of the max-margin directions of these tokens W is nearest to ",
        ...labelNodes(nearest.curve.label),
        ", with 1 \u2212 correlation ",
        num(`run.correlations.${nearest.k}.distances.${last}`, nearest.end),
        ". ",
      );
  } else if (first?.objective !== null && first?.objective !== undefined && first.margin !== null) {
    parts.push(
      ...labelNodes(first.label),
      " is the smallest matrix that keeps every selected token ahead by 1: norm ",
      num("solutions.0.objective", first.objective),
      ", margin ",
      num("solutions.0.margin", first.margin),
      ". ",
    );
  }
  if (first?.conflict)
    parts.push(
      `Of ${first.constraints} rows, ${first.conflict.total} contradict each other: no W keeps all of these tokens. `,
      h("a", { href: "#proof" }, "The proof"),
      " shows which, and why.",
    );
  return h("p", { class: "lead" }, ...parts);
}

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
      [
        "tokens",
        [
          count("tokens"),
          " in ",
          count("sequences"),
          task.ragged ? " sequences of up to " : " sequences of ",
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
  const { check, run } = data;
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
  if (run) {
    const last = run.norm.length - 1;
    list.push(["run", h("code", { "data-path": "run.file" }, run.file)]);
    if (run.settings) list.push(["training", text("run.settings", run.settings)]);
    if (run.step) list.push(["steps taken", num(`run.step.${last}`, run.step[last])]);
    run.correlations
      .slice(0, 2)
      .forEach((curve, k) =>
        list.push([
          ["correlation with ", ...labelNodes(curve.label)],
          num(`run.correlations.${k}.values.${last}`, curve.values[last]),
        ]),
      );
  }
  const several = run !== null && data.queries.kept.some((tokens) => tokens.length > 1);
  const title = several
    ? "Training keeps several tokens"
    : check
      ? (run ? ends : verdicts)[check.verdict]
      : data.solutions[0]?.conflict
        ? "These tokens cannot be kept together"
        : "The selected tokens and their SVMs";
  return h("section", { class: "card verdict" }, h("h2", {}, title), lead(data), facts(list));
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
        h("span", { "data-row": "" }, String(i)),
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
  const several = data.run !== null && data.task.head !== "linear"; // nonlinear heads keep all tokens above a threshold
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "How this page was made"),
    h("p", { class: "made" }, command, copy),
    facts([
      ["program", ["attsvm ", text("attsvm", data.attsvm)]],
      ...(several
        ? [["a token is kept", ["from an attention of ", num("settings.threshold", data.settings.threshold)]] as Fact]
        : []),
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
