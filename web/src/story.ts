// What the page opens on: what was trained, what theory predicts, what happened; and for tokens that no W keeps, what
// contradicts what, and ways out.
import type { Curves, Report, Run } from "./data";
import { type Child, h } from "./dom";
import { counted, num, sentence } from "./format";
import { labelNodes } from "./label";
import { queryLink, tokenName } from "./names";
import { planeChart } from "./plane_chart";
import { conflictWords } from "./proof";
import { fewRuns, normWords, predicted, type Prediction, runNames } from "./runs";
import type { Store } from "./state";
import { predictionChart } from "./training";

const verdicts = {
  global: "Every query keeps its best token",
  local: "A local optimum",
  neither: "Neither global nor local",
  infeasible: "No W keeps these tokens",
};
const finds = {
  global: "found the best token of every query",
  local: "ended at a local optimum",
  neither: "ended at neither a global nor a local optimum",
  infeasible: "ended at tokens that no W keeps",
};

function headline(data: Report): string {
  const { check, runs } = data;
  const names = runNames(data);
  const [first] = runs;
  if (first && runs.length > 1 && runs.every((run) => run.verdict === first.verdict))
    return `All ${runs.length} runs ${finds[first.verdict]}`;
  if (runs.length > 1 && fewRuns(data)) return runs.map((run, r) => `${names[r]} ${finds[run.verdict]}`).join("; ");
  if (runs.length > 1)
    return [...new Set(runs.map((run) => run.verdict))]
      .map((verdict) => [verdict, runs.filter((run) => run.verdict === verdict).length] as const)
      .map(([verdict, count], k) => `${k === 0 ? counted(count, "run") : count} ${finds[verdict]}`)
      .join(", ");
  if (runs.length > 0 && check?.verdict !== "infeasible" && data.queries.kept.some((tokens) => tokens.length > 1))
    return "Training keeps several tokens";
  if (check) return runs.length > 0 ? `Training ${finds[check.verdict]}` : verdicts[check.verdict];
  return data.solutions[0]?.conflict ? verdicts.infeasible : "The selected tokens and their SVMs";
}

/** What W^mm is, in words, before its symbol stands anywhere. */
const meaning = (least: string): string =>
  `the matrix ${least} that keeps every selected token ahead of all others by 1`;

/** How far a run ended from what theory predicts for it. */
function distance(run: Run, aim: Prediction): Child[] {
  const last = run.norm.length - 1;
  const value = aim.distances[last] ?? null;
  if (value === null) return ["; there is nothing to compare: W is zero, or no query has a choice."];
  const whole = aim.measure.replaceAll(" ", "\u00a0"); // never in two lines
  const measure = aim.measure === "1 \u2212 correlation" ? `${whole} with it` : `${whole} in that norm`;
  return [`, and at the end ${measure} is `, num(`${aim.path}.${last}`, value), "."];
}

function duration(run: Run, r: number): Child[] {
  const last = run.norm.length - 1;
  if (!run.step) return [];
  return [" for ", num(`runs.${r}.step.${last}`, run.step[last]), run.step[last] === 1 ? " step" : " steps"];
}

export const source = (run: Curves): string => (run.implied?.proven ? "theory predicts" : "expected, not proven, is");

function oneRun(run: Run): HTMLElement {
  const aim = predicted(run, 0);
  const trained: Child[] = ["W was trained", ...duration(run, 0), run.implied ? ` by ${run.implied.optimizer}` : ""];
  if (run.verdict === "infeasible")
    return h("p", { class: "lead" }, ...trained, ", and no W keeps all of the tokens that it selects.");
  if (!aim)
    return h(
      "p",
      { class: "lead" },
      ...trained,
      "; no norm is known for this training, so theory predicts no direction.",
    );
  return h(
    "p",
    { class: "lead" },
    ...trained,
    `; ${source(run)} that its direction becomes that of the max-margin solution, `,
    meaning(`of least ${normWords(aim.norm)}`),
    " (written ",
    ...labelNodes(aim.label),
    " below)",
    ...distance(run, aim),
  );
}

function severalRuns(data: Report): HTMLElement[] {
  const names = runNames(data);
  const item = (run: Run, r: number): HTMLElement => {
    const aim = predicted(run, r);
    const trained: Child[] = [h("strong", {}, names[r]), " was trained", ...duration(run, r)];
    if (run.verdict === "infeasible") return h("li", {}, ...trained, "; no W keeps all of the tokens that it selects.");
    if (!aim) return h("li", {}, ...trained, "; theory names no norm for it.");
    return h(
      "li",
      {},
      ...trained,
      `; ${source(run)} the one of least ${normWords(aim.norm)} (written `,
      ...labelNodes(aim.label),
      " below)",
      ...distance(run, aim),
    );
  };
  return [
    h(
      "p",
      { class: "lead" },
      "Theory predicts that the direction of every run becomes that of a max-margin solution: ",
      meaning("of least norm"),
      ", in the norm that the training favours.",
    ),
    h("ul", { class: "lead" }, ...data.runs.map(item)),
  ];
}

function sentences(data: Report): HTMLElement[] {
  const [run] = data.runs;
  if (run) return data.runs.length > 1 ? severalRuns(data) : [oneRun(run)];
  const first = data.solutions[0];
  if (!first || first.objective === null || first.margin === null) return [];
  return [
    h(
      "p",
      { class: "lead" },
      `The max-margin solution, ${meaning(`of least ${normWords(first.norm)}`)} (written `,
      ...labelNodes(first.label),
      " below), has norm ",
      num("solutions.0.objective", first.objective),
      " and margin ",
      num("solutions.0.margin", first.margin),
      "; theory predicts that training which selects these tokens takes its direction.",
    ),
  ];
}

/** The sentences in which `attsvm check` answers, one per run for which theory names a norm. */
function answers(data: Report): HTMLElement | null {
  const names = runNames(data);
  const told = data.runs.flatMap((run, r) => {
    if (run.verdict === "infeasible" || !predicted(run, r)) return [];
    const name = data.runs.length > 1 ? [h("strong", {}, names[r]), ": "] : [];
    return [h("p", {}, ...name, sentence(`runs.${r}.answer`, run.answer), ".")];
  });
  if (told.length === 0) return null;
  return h("div", { class: "answers" }, h("p", {}, "In the words of ", h("code", {}, "attsvm check"), ":"), ...told);
}

const most = 4; // rows of a contradiction that the story names

/** Which rows contradict each other, and what can be done. */
function wayOut(data: Report, store: Store): HTMLElement | null {
  const s = data.solutions.findIndex((solution) => solution.conflict),
    conflict = data.solutions[s]?.conflict;
  if (!conflict) return null;
  const rows = data.solutions[s]?.constraints ?? 0;
  const named = conflictWords(data, store, s, most);
  const { way_out: way, task } = data;
  const links = (queries: number[]): Child[] =>
    queries.flatMap((query, k) => [k > 0 ? ", " : "", queryLink(store, query)]);
  const list: HTMLElement[] = [];
  const these = (queries: number[]): Child[] => [
    queries.length === 1 ? "query " : `these ${queries.length} queries: `,
    ...links(queries),
  ];
  if (way?.relax)
    list.push(
      h(
        "li",
        {},
        "Ask for no margin of ",
        ...these(way.relax),
        ". A W then keeps the rest, and their selected tokens at least level (",
        h("code", {}, `attsvm solve --relax ${way.relax.join(",")}`),
        "). No smaller set was found.",
      ),
    );
  if (way?.leave)
    list.push(h("li", {}, "Leave out ", ...these(way.leave), ". A W keeps the rest. No smaller set was found."));
  if (way?.instead)
    list.push(
      h(
        "li",
        {},
        "Choose other tokens, and a W keeps them all:",
        h(
          "ul",
          {},
          ...way.instead.map(({ query, token, score_gap }, k) =>
            h(
              "li",
              {},
              "for query ",
              queryLink(store, query),
              " token ",
              h("span", { "data-token": "" }, tokenName(data, query, token)),
              " instead of ",
              h("span", { "data-token": "" }, tokenName(data, query, data.queries.kept[query]?.[0] ?? 0)),
              ...(score_gap === null ? [] : [", a score lower by ", num(`way_out.instead.${k}.score_gap`, score_gap)]),
            ),
          ),
        ),
      ),
    );
  if (task.separability.needed_key_size > task.d)
    list.push(
      h(
        "li",
        {},
        "Use larger keys: with ",
        num("task.separability.needed_key_size", task.separability.needed_key_size),
        ` coordinates instead of ${task.d}, a W keeps any choice of tokens in general position.`,
      ),
    );
  return h(
    "div",
    { class: "card way-out" },
    h("h3", {}, "What contradicts what"),
    h(
      "p",
      {},
      conflict.total === 1
        ? `${rows === 1 ? "The only row" : `Of ${rows} rows one`} cannot be met:`
        : `Of ${rows} rows, ${conflict.total} contradict each other, ${conflict.total > named.length ? `the ${named.length} heaviest of them:` : "the heaviest first:"}`,
    ),
    h("ul", {}, ...named),
    h("p", {}, h("a", { href: store.address({ view: "proof" }) }, "The proof"), " shows all, and as a drawing."),
    list.length > 0 ? h("h3", {}, "Ways out") : null,
    list.length > 0 ? h("ul", {}, ...list) : null,
  );
}

export function story(panel: HTMLElement, data: Report, store: Store): void {
  const height = innerWidth < 600 ? 340 : 400;
  const pair = h("div", { class: "pair" });
  panel.append(h("section", { class: "story" }, h("h2", {}, headline(data)), ...sentences(data), pair, answers(data)));
  const way = wayOut(data, store);
  if (way) pair.append(way);
  planeChart(pair, data, store, height);
  if (data.runs.length > 0) predictionChart(pair, data, store, height);
}
