// The answer in numbers: the SVM with its lower bound, and the tokens of the query in focus.
import { button, type Child, h } from "../dom";
import { formatted, percent } from "../format";
import { isolated, shortened } from "../names";
import { facts } from "../table";
import type { App } from "./app";
import type { Answer, Row } from "./engine";
import { tooLarge } from "./state";
import { dot, keySize, seen, withNewQuery, withoutQuery, withQuery, withScore } from "./task";

const number = (path: string, value: number | null | undefined): HTMLElement =>
  h("span", { class: "num", "data-number": path, title: value ?? null }, formatted(value));

const often = 120; // milliseconds between two drawings of what changes with every frame

const statuses = {
  optimal: ["good", "optimal"],
  infeasible: ["bad", "no W keeps these tokens"],
  limit: ["warn", "not settled here"],
  stalled: ["warn", "not settled here"],
} as const;

const verdicts: Record<string, string> = {
  global: "Every query keeps its best token: a global optimum of training.",
  local: "Each kept token scores higher than its support tokens: a local optimum, where training can end.",
  neither: "A support token scores as high as the kept one: training does not stay here.",
};

/** Support tokens, and so the local verdicts, are those of the Frobenius SVM, which another norm's need not be. */
function verdictOf({ verdict, norm }: Answer): string {
  return verdict === "global" || norm === "fro" ? (verdicts[verdict ?? ""] ?? "") : "";
}

function answerCard(app: App): HTMLElement {
  const { answer } = app;
  if (!answer)
    return h("div", { class: "card answer" }, h("h2", {}, "The SVM"), h("p", { class: "badge bad" }, app.problem));
  const [kind, words] = statuses[answer.status];
  const open = answer.status === "limit" || answer.status === "stalled";
  const shown = !open && answer.objective !== null;
  const list: [Child, Child][] = [];
  if (shown) {
    list.push(["size of W", number("objective", answer.objective)]);
    list.push(["lower bound", number("dual_objective", answer.dual_objective)]);
    list.push(["relative gap", number("gap", answer.gap)]);
    list.push(["margin", number("margin", 1 / (answer.objective ?? NaN))]);
    list.push(["rank of W", number("rank", answer.rank)]);
  }
  if (answer.status === "infeasible") list.push(["size of the weighted sum", number("residual", answer.residual)]);
  list.push(["rows", h("span", {}, String(answer.rows.length), shown ? `, ${answer.support} met with equality` : "")]);
  list.push([
    "found by",
    `${answer.method}, ${app.milliseconds < 10 ? app.milliseconds.toFixed(1) : Math.round(app.milliseconds)} ms`,
  ]);
  return h(
    "div",
    { class: "card answer", "data-status": answer.status },
    h("h2", {}, "The SVM ", h("span", { class: `badge ${kind}`, role: "status" }, words)),
    facts(list),
    h(
      "p",
      { class: "note" },
      open
        ? "The page does not settle this one. The program goes further: copy the command."
        : answer.status === "infeasible"
          ? "Weighted and added up, the rows below ask for a margin of 1 from a matrix that is zero."
          : verdictOf(answer),
    ),
    answer.conflict
      ? h("ul", { class: "rows" }, ...answer.conflict.words.slice(0, 6).map((line) => h("li", {}, line)))
      : null,
    answer.status === "optimal" && keySize(app.state.task) <= 4 ? matrixOf("W", answer.W) : null,
  );
}

function matrixOf(path: string, W: readonly (readonly number[])[]): HTMLElement {
  return h(
    "details",
    { class: "numbers" },
    h("summary", {}, "W in numbers"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "W" },
      h(
        "table",
        {},
        h(
          "tbody",
          {},
          ...W.map((row, i) => h("tr", {}, ...row.map((x, j) => h("td", {}, number(`${path}.${i}.${j}`, x))))),
        ),
      ),
    ),
  );
}

/** Tokens of the query in focus. */
function tokenTable(app: App): HTMLElement {
  const { state, answer, run } = app;
  const { task } = state;
  const query = task.queries[state.query];
  if (!query) return h("div");
  const tokens = task.sequences[query.sequence] ?? [];
  const before = task.sequences.slice(0, query.sequence).reduce((sum, one) => sum + one.length, 0);
  const rows = new Map<number, Row>(
    (answer?.rows ?? []).filter((row) => row.query === state.query).map((row) => [row.drop, row]),
  );
  const kept = new Set(answer?.kept[state.query] ?? []);
  const attention = run.last?.attention[state.query] ?? [];
  const editable =
    task.head !== null && !task.head.hidden && task.head.lambda === null && dot(task.head.v, task.head.v) > 0;
  const infeasible = answer?.status === "infeasible";
  const score = (t: number): Child => {
    const value = answer?.scores?.[before + t];
    if (value === undefined) return "\u2013";
    if (!editable) return number(`score.${t}`, value * query.label);
    const input = h("input", {
      type: "number",
      step: 0.1,
      value: Number((value * query.label).toPrecision(4)),
      "aria-label": `score of token ${t}`,
      onchange: () => {
        const to = Number(input.value) * query.label;
        if (input.value !== "" && Number.isFinite(to)) app.set({ task: withScore(task, query.sequence, t, to) });
      },
    });
    return input;
  };
  const body = tokens.map((token, t) => {
    const row = rows.get(t);
    const unseen = t >= seen(task, query);
    return h(
      "tr",
      { class: kept.has(t) ? "kept" : (row?.slack ?? 1) <= 1e-6 && !infeasible ? "support" : null },
      h(
        "th",
        { scope: "row", title: token.name || null },
        token.name ? `${t} ${isolated(shortened(token.name))}` : String(t),
      ),
      h("td", {}, score(t)),
      h(
        "td",
        {},
        unseen ? "not seen" : kept.has(t) ? "kept" : infeasible ? "\u2013" : number(`slack.${t}`, row?.slack),
      ),
      h("td", {}, row ? number(`dual.${t}`, row.dual) : "\u2013"),
      h(
        "td",
        {},
        h(
          "span",
          { class: "num", "data-number": `attention.${t}`, title: attention[t] ?? null },
          percent(attention[t], 3),
        ),
      ),
    );
  });
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Tokens of this query" },
    h(
      "table",
      { class: "tokens" },
      h("caption", {}, "Tokens that this query sees. A score can be changed; the key stays where it is."),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...["token", "score", "slack", "multiplier", "attention"].map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h("tbody", {}, ...body),
    ),
  );
}

function queryCard(app: App, addToken: () => void): HTMLElement {
  const { state } = app;
  const { task, query: i, select } = state;
  const query = task.queries[i];
  const many = task.queries.length > 1;
  const more = withNewQuery(task, i); // with another input, which in causal attention asks as often as it has tokens
  const pick = h(
    "select",
    { onchange: () => app.set({ query: pick.selectedIndex }) },
    ...task.queries.map((_, k) => h("option", { selected: k === i }, String(k))),
  );
  const leave = (): void => {
    const without = withoutQuery(task, i);
    if (without) app.set({ task: without, query: Math.max(0, Math.min(i, without.queries.length - 1)), select: null });
  };
  const flip = (): void => app.set({ task: withQuery(task, i, (one) => ({ ...one, label: -one.label })) });
  return h(
    "div",
    { class: "card query" },
    h(
      "h2",
      {},
      many ? "Query " : "The query",
      many ? h("label", { class: "choice" }, h("span", { class: "unseen" }, "Query"), pick) : null,
    ),
    h(
      "div",
      { class: "bar" },
      button(`Label ${query?.label === -1 ? "\u22121" : "+1"}`, flip, {
        class: "quiet",
        title: "Scores are this times the head's values",
      }),
      button("Add token", addToken, { class: "quiet" }),
      button(
        query?.z ? "Add query" : "Add input",
        () =>
          app.set({
            task: more,
            query: task.queries.length,
            select: Array.isArray(select) ? more.queries.map((_, k) => (select as number[])[k] ?? 0) : select,
          }),
        { class: "quiet", disabled: tooLarge(more) !== "" },
      ),
      button(query?.z ? "Delete query" : "Delete input", leave, {
        class: "quiet",
        disabled: withoutQuery(task, i) === null,
      }),
    ),
    tokenTable(app),
  );
}

/** The two cards beside the stage; what is being typed in stays. */
export function numbers(app: App, addToken: () => void): HTMLElement {
  const root = h("div", { class: "numbers-side" });
  let last = 0,
    timer = 0;
  const draw = (): void => {
    const active = document.activeElement;
    const typing =
      active instanceof HTMLElement && root.contains(active)
        ? (active.getAttribute("aria-label") ?? active.textContent)
        : null;
    const open = root.querySelector("details")?.open ?? false;
    root.replaceChildren(answerCard(app), queryCard(app, addToken));
    const details = root.querySelector("details");
    if (details) details.open = open;
    if (typing !== null)
      [...root.querySelectorAll<HTMLElement>("input, button, select, [tabindex], summary")]
        .find((one) => (one.getAttribute("aria-label") ?? one.textContent) === typing)
        ?.focus();
    last = performance.now();
  };
  draw();
  app.on((changed) => {
    clearTimeout(timer);
    const onlyRun = [...changed].every((part) => part === "run");
    const wait = (app.frozen || (onlyRun && app.run.playing) ? often : 0) - (performance.now() - last);
    if (wait <= 0) draw();
    else timer = window.setTimeout(draw, wait);
  });
  return root;
}
