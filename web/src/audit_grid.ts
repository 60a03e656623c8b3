// All heads: a grid of layers and heads, coloured by what the reader chooses, and the numbers as a table.
import { type AuditStore, followed, headName, nameNode, viewControl, viewNames, viewOf } from "./audit_state";
import type { Audit, ChoiceKind, HeadAudit, Maybe, ViewAudit } from "./data";
import { type Child, choice, h } from "./dom";
import { brief, num, share, text } from "./format";
import { pagedTable } from "./table";

/** A number of a head that the grid can show. */
interface Measure {
  name: string;
  about: string;
  key: string; // below the view, or from / below the head
  value: (view: ViewAudit, head: HeadAudit) => Maybe | undefined;
  percent?: boolean;
}

const measures: Measure[] = [
  {
    name: "r95",
    about: "The least rank to which the head can be truncated and keep 95\u202f% of its choices on held-out text.",
    key: "r95",
    value: (view) => view.r95,
  },
  {
    name: "gap",
    about: "The median over queries of the logit of the choice above the next.",
    key: "gap.1",
    value: (view) => view.gap[1],
  },
  {
    name: "nuclear rank",
    about: "The rank of the W of least nuclear norm that makes the same choices. It grows with the number of queries.",
    key: "nuclear.rank",
    value: (view) => view.nuclear.rank,
  },
  {
    name: "attention of the choice",
    about: "The median over queries of the attention that the choice gets.",
    key: "weight.1",
    value: (view) => view.weight[1],
    percent: true,
  },
  {
    name: "attention on sinks",
    about: "The mean attention on the tokens that the second view hides.",
    key: "/sink_weight",
    value: (_, head) => head.sink_weight,
    percent: true,
  },
  {
    name: "gap/\u2016W\u2016 beside its null",
    about: "How many standard deviations the smallest gap over \u2016W\u2016 lies above that of random heads.",
    key: "gap_over_norm.z",
    value: (view) => view.gap_over_norm.z,
  },
];

export const colours = ["kind of choice", ...measures.map((one) => one.name)];

const kinds: { kind: ChoiceKind; style: number; about: string }[] = [
  { kind: "offset", style: 0, about: "a token so many places from the query" },
  { kind: "constant", style: 1, about: "one place, or one word" },
  { kind: "same word", style: 2, about: "another token of the query\u2019s word" },
  { kind: "induction", style: 3, about: "what followed the query\u2019s word elsewhere" },
];

const strongest = 40; // percent of a colour behind words, which must stay readable

const shade = (colour: string, part: number): string =>
  `color-mix(in srgb, var(--${colour}) ${Math.round(strongest * Math.max(0, Math.min(1, part)))}%, var(--surface))`;

interface Scale {
  low: number;
  high: number;
}

function scaleOf(data: Audit, measure: Measure, hidden: number): Scale | null {
  const values = data.heads
    .map((head, k) => {
      const found = viewOf(data, k, hidden);
      return found ? measure.value(found.view, head) : null;
    })
    .filter((value) => value !== null && value !== undefined);
  return values.length > 0 ? { low: Math.min(...values), high: Math.max(...values) } : null;
}

const pathOf = (measure: Measure, k: number, path: string): string =>
  measure.key.startsWith("/") ? `heads.${k}.${measure.key.slice(1)}` : `${path}.${measure.key}`;

/** What a cell says, and its colour. */
function cellOf(data: Audit, k: number, hidden: number, colour: number, scale: Scale | null): [Child[], string] {
  const found = viewOf(data, k, hidden),
    head = data.heads[k];
  if (!found || !head) return [["not run"], ""];
  const { view, path } = found;
  const measure = measures[colour - 1];
  if (!measure) {
    const first = view.kinds[0];
    if (!first) return [["no choices"], ""];
    const style = kinds.find((one) => one.kind === first.kind)?.style ?? 7;
    const words = h("bdi", { "data-path": `${path}.kinds.0.words` }, first.words);
    return [[words, brief(`${path}.kinds.0.share`, first.share, true)], shade(`style-${style}`, first.share ?? 0)];
  }
  const value = measure.value(view, head) ?? null;
  const part = value === null || !scale ? 0 : (value - scale.low) / (scale.high - scale.low || 1);
  return [[brief(pathOf(measure, k, path), value, measure.percent)], value === null ? "" : shade("accent", part)];
}

function legend(colour: number, scale: Scale | null): HTMLElement {
  const swatch = (background: string): HTMLElement => {
    const made = h("span", { class: "patch" });
    made.style.background = background;
    return made;
  };
  const measure = measures[colour - 1];
  if (!measure)
    return h(
      "ul",
      { class: "patches" },
      ...kinds.map(({ kind, style, about }) => h("li", {}, swatch(shade(`style-${style}`, 1)), `${kind}: ${about}`)),
      h("li", {}, "The larger the share of such choices, the stronger the colour."),
    );
  const end = (value: number): Node => h("span", { class: "num" }, brief("", value, measure.percent).textContent);
  const bar = h("span", { class: "ramp" });
  bar.style.background = `linear-gradient(90deg, ${shade("accent", 0)}, ${shade("accent", 1)})`;
  return h(
    "p",
    { class: "hint patches" },
    ...(scale ? [end(scale.low), bar, end(scale.high)] : []),
    h("span", {}, measure.about),
  );
}

/** Arrows, Home and End move through the grid; Enter follows the link. */
function move(table: HTMLElement, event: KeyboardEvent): void {
  const rows = [...table.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")]);
  const at = (event.target as HTMLElement).closest("td");
  const r = rows.findIndex((row) => at !== null && row.includes(at));
  const c = at ? (rows[r]?.indexOf(at) ?? -1) : -1;
  const steps: Record<string, [number, number, number, number]> = {
    ArrowRight: [r, c + 1, 0, 1], // where to, and on from there where a layer lacks that head
    ArrowLeft: [r, c - 1, 0, -1],
    ArrowDown: [r + 1, c, 1, 0],
    ArrowUp: [r - 1, c, -1, 0],
    Home: [r, 0, 0, 1],
    End: [r, (rows[r]?.length ?? 1) - 1, 0, -1],
  };
  const step = steps[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  let [row, column] = step;
  while (rows[row]?.[column] && !rows[row]?.[column]?.querySelector("a")) {
    row += step[2];
    column += step[3];
  }
  const to = rows[row]?.[column]?.querySelector("a");
  if (!to) return;
  for (const link of table.querySelectorAll("td a")) (link as HTMLElement).tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

function grid(data: Audit, store: AuditStore): HTMLElement {
  const { hidden, colour, head: chosen } = store.get();
  const measure = measures[colour - 1];
  const scale = measure ? scaleOf(data, measure, hidden) : null;
  const sorted = (list: number[]): number[] => [...new Set(list)].sort((a, b) => a - b);
  const layers = sorted(data.heads.map((one) => one.layer)),
    columns = sorted(data.heads.map((one) => one.head));
  const places = new Map(data.heads.map((one, k) => [headName(one), k]));
  const cell = (layer: number, column: number): HTMLElement => {
    const k = places.get(`${layer}.${column}`);
    const head = k === undefined ? undefined : data.heads[k];
    if (k === undefined || !head) return h("td", { class: "empty" });
    const [words, background] = cellOf(data, k, hidden, colour, scale);
    const link = h(
      "a",
      {
        href: store.address({ view: "head", head: k }),
        tabindex: k === chosen ? 0 : -1,
        class: head.complete ? null : "partial",
        onclick: (event: Event) => {
          event.preventDefault();
          store.set({ view: "head", head: k });
        },
      },
      h("span", { class: "unseen" }, "head ", nameNode(head), head.complete ? ": " : ", stopped early: "),
      ...words,
    );
    link.style.background = background;
    return h("td", { class: k === chosen ? "chosen" : null }, link);
  };
  const table = h(
    "table",
    { class: "heads-grid" },
    h("caption", {}, `${colours[colour] ?? ""}, ${viewNames[hidden] ?? ""}`),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "layer"),
        ...columns.map((column) => h("th", { scope: "col" }, `head ${column}`)),
      ),
    ),
    h(
      "tbody",
      {},
      ...layers.map((layer) =>
        h("tr", {}, h("th", { scope: "row" }, String(layer)), ...columns.map((column) => cell(layer, column))),
      ),
    ),
  );
  table.addEventListener("keydown", (event) => move(table, event));
  return h(
    "div",
    {},
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All heads" }, table),
    legend(colour, scale),
  );
}

const columns = [
  "head",
  "choice",
  "share",
  "winner",
  "sinks",
  "gap 10\u202f%",
  "gap 50\u202f%",
  "gap 90\u202f%",
  "r90",
  "r95",
  "N",
  "nuclear rank",
  "rank at least",
  "gap/\u2016W\u2016",
  "null",
  "z",
];

/** One row per head: what the terminal shows. */
function table(data: Audit, store: AuditStore): HTMLElement {
  const { hidden } = store.get();
  const values = (k: number): (string | Maybe | undefined)[] => {
    const found = viewOf(data, k, hidden),
      head = data.heads[k];
    if (!found || !head) return [head ? headName(head) : ""];
    const { view } = found;
    const [low, middle, high] = view.gap;
    return [
      headName(head),
      view.kinds[0]?.words,
      view.kinds[0]?.share,
      view.weight[1],
      head.sink_weight,
      low,
      middle,
      high,
      view.r90,
      view.r95,
      view.queries,
      view.nuclear.rank,
      view.rank_bound,
      view.gap_over_norm.value,
      view.gap_over_norm.null_mean,
      view.gap_over_norm.z,
    ];
  };
  return pagedTable({
    name: `heads-${hidden ? "hidden" : "own"}`,
    caption: `All numbers of the grid, ${viewNames[hidden] ?? ""}`,
    header: columns,
    rows: data.heads.length,
    cells: (k) => {
      const found = viewOf(data, k, hidden),
        head = data.heads[k];
      if (!head) return [];
      const link = headLink(store, head, k);
      if (!found) return [link, "not run"];
      const { view, path } = found;
      const first = view.kinds[0];
      return [
        link,
        first ? h("bdi", { class: "nowrap", "data-path": `${path}.kinds.0.words` }, first.words) : "\u2013",
        first ? brief(`${path}.kinds.0.share`, first.share, true) : "\u2013",
        brief(`${path}.weight.1`, view.weight[1], true),
        brief(`heads.${k}.sink_weight`, head.sink_weight, true),
        ...[0, 1, 2].map((q) => brief(`${path}.gap.${q}`, view.gap[q])),
        num(`${path}.r90`, view.r90),
        num(`${path}.r95`, view.r95),
        num(`${path}.queries`, view.queries),
        num(`${path}.nuclear.rank`, view.nuclear.rank),
        brief(`${path}.rank_bound`, view.rank_bound),
        brief(`${path}.gap_over_norm.value`, view.gap_over_norm.value),
        brief(`${path}.gap_over_norm.null_mean`, view.gap_over_norm.null_mean),
        brief(`${path}.gap_over_norm.z`, view.gap_over_norm.z),
      ];
    },
    values,
  });
}

function headLink(store: AuditStore, head: HeadAudit, k: number): HTMLElement {
  return h(
    "a",
    {
      href: store.address({ view: "head", head: k }),
      onclick: (event: Event) => {
        event.preventDefault();
        store.set({ view: "head", head: k });
      },
    },
    nameNode(head),
  );
}

/** What no number here says. */
function limits(): HTMLElement {
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "What this cannot say"),
    h(
      "ul",
      { class: "lead" },
      h(
        "li",
        {},
        "The numbers hold for this text and these N queries. Compare heads at the same N: everything grows with it.",
      ),
      h(
        "li",
        {},
        "The features are the head\u2019s own. That some W in head space keeps the choices recovers nothing independently.",
      ),
      h(
        "li",
        {},
        "A choice is not an effect: the audit does not see what the head writes, and a head with a small gap mixes tokens.",
      ),
      h("li", {}, "No number says that a head is a max-margin solution, or how training made it."),
    ),
  );
}

function sourceCard(data: Audit): HTMLElement {
  const { source, settings } = data;
  const n = (key: "heads" | "tokens" | "sequences" | "queries" | "size"): Node => num(`source.${key}`, source[key]);
  return h(
    "p",
    { class: "lead" },
    num("source.heads", source.heads),
    source.heads === 1 ? " head of size " : " heads of size ",
    n("size"),
    " on ",
    n("tokens"),
    " tokens in ",
    n("sequences"),
    source.sequences === 1 ? " sequence, with " : " sequences, with ",
    n("queries"),
    " queries. A query\u2019s choice is the token with the largest logit. Each margin problem has at most N = ",
    num("settings.queries", settings.queries),
    " of them, without the ",
    share("settings.drop", settings.drop),
    " with the smallest gaps; each head is compared with ",
    num("settings.nulls", settings.nulls),
    " random ones. Choose a head to see its text.",
  );
}

function madeCard(data: Audit): HTMLElement {
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "How this page was made"),
    data.command === null
      ? null
      : h("p", { class: "made" }, h("code", { class: "command", "data-path": "command" }, data.command)),
    h(
      "p",
      { class: "hint" },
      "attsvm ",
      text("attsvm", data.attsvm),
      "; margin problems solved to a relative gap of ",
      num("settings.tolerance", data.settings.tolerance),
      ", those of random heads to ",
      num("settings.null_tolerance", data.settings.null_tolerance),
      "; seed ",
      num("settings.seed", data.settings.seed),
      ".",
    ),
  );
}

export function gridView(panel: HTMLElement, data: Audit, store: AuditStore): void {
  const colour = choice("Colour by", colours, store.get().colour, (value) => store.set({ colour: value }));
  followed(colour, store, "colour");
  const body = h("section", { class: "card wide" });
  const numbers = h("details", { class: "card wide" });
  const draw = (): void => {
    body.replaceChildren(grid(data, store));
    numbers.replaceChildren(h("summary", {}, "All numbers of the grid as a table"), table(data, store));
  };
  store.on((changed) => {
    if (changed.has("hidden")) return draw();
    if (changed.has("colour") || changed.has("head")) body.replaceChildren(grid(data, store));
  });
  draw();
  panel.append(
    sourceCard(data),
    data.complete ? "" : h("p", {}, h("span", { class: "badge warn" }, "Some heads ran into the time limit")),
    h("div", { class: "controls" }, viewControl(data, store), colour),
    h("div", { class: "cards" }, body, limits(), numbers, madeCard(data)),
  );
}
