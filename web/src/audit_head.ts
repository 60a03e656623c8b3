// One head: its choices, the rank that keeps them, the margin problems beside the null, and the text.
import {
  type AuditStore,
  followed,
  headName,
  nameNode,
  type Shown,
  viewControl,
  viewNames,
  viewOf,
} from "./audit_state";
import { pairsCard, uncertainCard } from "./audit_text";
import { Chart } from "./chart";
import type { ChartSpec, Series } from "./chart_spec";
import type { Audit, MarginFacts, NullFacts } from "./data";
import { button, type Child, choice, h } from "./dom";
import { brief, num } from "./format";
import { facts, pagedTable } from "./table";

/** The 10, 50 and 90 % quantiles of a number over queries. */
function quantiles(path: string, values: (number | null)[], ofWhole = false): Child[] {
  return values.flatMap((value, k): Child[] => [k > 0 ? " \u00b7 " : "", brief(`${path}.${k}`, value, ofWhole)]);
}

function choicesCard(data: Audit, k: number, { view, path }: Shown): HTMLElement {
  const head = data.heads[k];
  return h(
    "section",
    { class: "card" },
    h("h3", {}, "What it chooses"),
    h(
      "table",
      { class: "weights" },
      h("caption", {}, "Shares of the choices of all queries; a choice can be of several kinds"),
      h(
        "thead",
        {},
        h("tr", {}, ...["choice", "share", ""].map((name) => (name ? h("th", { scope: "col" }, name) : h("td")))),
      ),
      h(
        "tbody",
        {},
        ...view.kinds.map((one, j) =>
          h(
            "tr",
            { class: j === 0 ? "kept" : null },
            h("th", { scope: "row" }, h("bdi", { "data-path": `${path}.kinds.${j}.words` }, one.words)),
            h("td", {}, brief(`${path}.kinds.${j}.share`, one.share, true)),
            h(
              "td",
              { class: "meter" },
              h("progress", { max: 1, value: one.share ?? 0, "aria-label": `share of ${one.words}` }),
            ),
          ),
        ),
      ),
    ),
    facts([
      ["attention of the choice", quantiles(`${path}.weight`, view.weight, true)],
      ["gap to the next logit", quantiles(`${path}.gap`, view.gap)],
      ["radius", quantiles(`${path}.radius`, view.radius)],
      ["attention on sinks", brief(`heads.${k}.sink_weight`, head?.sink_weight, true)],
      ["attention recomputed to", num(`heads.${k}.difference`, head?.difference)],
    ]),
    h(
      "p",
      { class: "hint" },
      "Three numbers are the 10, 50 and 90\u202f% quantiles over ",
      num(`${path}.choosing`, view.choosing),
      " queries. The radius is how far all keys may move, in units of their spread, before a choice can change: proven, " +
        "but far below what really changes one.",
    ),
  );
}

const statuses: Record<MarginFacts["status"], [string, string]> = {
  optimal: ["good", "optimal, proven"],
  infeasible: ["warn", "no solution exists"],
  limit: ["warn", "stopped early"],
  stalled: ["warn", "not solved to the tolerance"],
  "not run": ["warn", "not run"],
};

/** A table that scrolls by itself where the screen is narrow. */
function scrollingTable(name: string, columns: string[], rows: (HTMLElement | null)[]): HTMLElement {
  const head = columns.map((one) => (one ? h("th", { scope: "col" }, one) : h("td")));
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": name },
    h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
  );
}

function marginCard({ view, path }: Shown): HTMLElement {
  const row = (name: string, key: "frobenius" | "nuclear"): HTMLElement => {
    const one = view[key];
    const [kind, words] = statuses[one.status];
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", {}, h("span", { class: `badge ${kind}` }, words)),
      h("td", {}, num(`${path}.${key}.objective`, one.objective)),
      h("td", {}, num(`${path}.${key}.dual_objective`, one.dual_objective)),
      h("td", {}, brief(`${path}.${key}.rho`, one.rho, true)),
      h("td", {}, num(`${path}.${key}.support`, one.support)),
    );
  };
  const name = "The smallest W that makes the same choices";
  return h(
    "section",
    { class: "card wide" },
    h("h3", {}, name),
    scrollingTable(
      name,
      ["norm", "status", "least norm", "proven at least", "\u03c1", "support rows"],
      [row("Frobenius", "frobenius"), row("nuclear", "nuclear")],
    ),
    h(
      "p",
      { class: "hint" },
      "N = ",
      num(`${path}.queries`, view.queries),
      " queries, ",
      num(`${path}.rows`, view.rows),
      " rows. \u03c1 is the head\u2019s own margin as a share of the largest that a W of its norm could have.",
    ),
    facts([
      [
        "rank",
        [
          view.nuclear.rank_certified || view.nuclear.rank === null ? "" : "at most ",
          num(`${path}.nuclear.rank`, view.nuclear.rank),
          " in the nuclear norm, for these N queries: it grows with N",
        ],
      ],
      [
        "lower bound",
        [
          "a W of least Frobenius norm has rank at least ",
          brief(`${path}.rank_bound`, view.rank_bound),
          ", and one within a factor c of that norm at least that over c\u00b2",
        ],
      ],
    ]),
  );
}

function nullCard({ view, path }: Shown): HTMLElement {
  const row = (name: string, key: "gap_over_norm" | "rho", one: NullFacts): HTMLElement =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      ...(["value", "null_mean", "null_deviation", "z", "draws"] as const).map((field) =>
        h("td", {}, brief(`${path}.${key}.${field}`, one[field])),
      ),
    );
  const name = "Beside random heads";
  return h(
    "section",
    { class: "card" },
    h("h3", {}, name),
    scrollingTable(
      name,
      ["", "head", "null", "deviation", "z", "draws"],
      [
        row("smallest gap/\u2016W\u2016", "gap_over_norm", view.gap_over_norm),
        view.rho.draws > 0 ? row("\u03c1, Frobenius", "rho", view.rho) : null,
      ],
    ),
    h(
      "p",
      { class: "hint" },
      "The null has the head\u2019s size and reads the same keys and queries, with random signs along their principal " +
        "directions. It makes choices of its own. z is the distance from its mean in deviations.",
    ),
  );
}

function kindsCard({ view, path }: Shown): HTMLElement {
  return h(
    "section",
    { class: "card" },
    h("h3", {}, "What the margin rests on, by kind"),
    pagedTable({
      name: "kind-pairs",
      caption: "Weight of the support rows by what the kept and the dropped token are to the query",
      header: ["kept", "dropped", "weight", "rows"],
      rows: view.kind_pairs.length,
      cells: (k) => {
        const one = view.kind_pairs[k];
        const at = `${path}.kind_pairs.${k}`;
        return one
          ? [
              h("span", { "data-path": `${at}.keep` }, one.keep),
              h("span", { "data-path": `${at}.drop` }, one.drop),
              brief(`${at}.weight`, one.weight, true),
              num(`${at}.rows`, one.rows),
            ]
          : [];
      },
      values: (k) => {
        const one = view.kind_pairs[k];
        return one ? [one.keep, one.drop, one.weight, one.rows] : [];
      },
    }),
  );
}

/** Curves of both views of a head; the chosen one is drawn first. */
function curves(
  data: Audit,
  store: AuditStore,
  key: "agreement" | "singular_values" | "nuclear.singular_values",
): Series[] {
  const { head, hidden } = store.get();
  return [0, 1].flatMap((v): Series[] => {
    const found = viewOf(data, head, v);
    const values = key === "nuclear.singular_values" ? found?.view.nuclear.singular_values : found?.view[key];
    if (!found || !values || values.length === 0) return [];
    return [
      {
        label: viewNames[v] ?? "",
        style: v,
        mark: "line",
        wide: v === hidden,
        x: values.map((_, r) => r + 1),
        y: values,
        path: { y: `${found.path}.${key}` },
      },
    ];
  });
}

function agreementSpec(data: Audit, store: AuditStore): ChartSpec {
  const { head, hidden } = store.get();
  const found = viewOf(data, head, hidden);
  const ranks =
    found && found.view.r95 > 0
      ? ` Rank ${found.view.r90} suffices for 90\u202f% and rank ${found.view.r95} for 95\u202f% of ${found.view.held_out} held-out choices.`
      : "";
  return {
    title: "Choices kept at each rank",
    name: "agreement",
    summary: `Share of held-out choices that the head keeps when it is truncated to a rank.${ranks}`,
    height: 300,
    series: curves(data, store, "agreement"),
    logs: ["x"],
    x: { label: "rank", whole: true },
    y: { label: "choices kept", percent: true, range: [0, 1.02] },
    include: { x: [1], y: [0, 1] },
  };
}

function spectrumSpec(data: Audit, store: AuditStore, nuclear: boolean): ChartSpec {
  return {
    title: nuclear ? "Singular values of the nuclear answer" : "Singular values of the head",
    name: nuclear ? "nuclear-singular-values" : "singular-values",
    summary: nuclear
      ? "Singular values of the W of least nuclear norm that makes the same choices, largest first."
      : "Singular values of the head, weighted by what its keys and queries hold, largest first. Truncation leaves out the last ones.",
    height: 300,
    series: curves(data, store, nuclear ? "nuclear.singular_values" : "singular_values"),
    logs: ["y"],
    x: { label: "number", whole: true },
    y: { label: "singular value", range: null },
    include: { x: [1], y: [0] },
  };
}

/** Chooses a head. */
function headControl(data: Audit, store: AuditStore): HTMLElement {
  const last = data.heads.length - 1;
  const to = (head: number): void => store.set({ head: Math.min(last, Math.max(0, head)) });
  const list = choice("Head", data.heads.map(headName), store.get().head, to);
  followed(list, store, "head");
  return h(
    "div",
    { class: "choice" },
    button("\u2039", () => to(store.get().head - 1), { "aria-label": "Previous head", class: "quiet" }),
    list,
    button("\u203a", () => to(store.get().head + 1), { "aria-label": "Next head", class: "quiet" }),
  );
}

export function headView(panel: HTMLElement, data: Audit, store: AuditStore): void {
  const title = h("h2", { class: "head-title" });
  const top = h("div", { class: "beside-chart" });
  const charts = h("div", { class: "grid" });
  const below = h("div", { class: "cards" });
  const first = h("div");
  panel.append(
    h("div", { class: "controls" }, headControl(data, store), viewControl(data, store)),
    title,
    top,
    charts,
    below,
  );
  const agreement = new Chart(first, agreementSpec(data, store));
  const spectra = [false, true].map((nuclear) => new Chart(charts, spectrumSpec(data, store, nuclear)));
  const draw = (): void => {
    const { head: k, hidden } = store.get();
    const head = data.heads[k];
    const found = viewOf(data, k, hidden);
    title.replaceChildren(
      h("span", {}, "Head ", head ? nameNode(head) : "", `, ${viewNames[hidden] ?? ""}`),
      head?.complete ? "" : h("span", { class: "badge warn" }, "stopped early"),
    );
    charts.hidden = !found;
    if (!found) {
      top.replaceChildren(h("p", {}, "This view was not run."));
      below.replaceChildren();
      return;
    }
    top.replaceChildren(choicesCard(data, k, found), first);
    below.replaceChildren(
      marginCard(found),
      nullCard(found),
      kindsCard(found),
      pairsCard(data, found),
      uncertainCard(data, found),
    );
    agreement.update(agreementSpec(data, store));
    spectra.forEach((chart, nuclear) => chart.update(spectrumSpec(data, store, nuclear === 1)));
  };
  store.on((changed) => {
    if (changed.has("head") || changed.has("hidden")) draw();
  });
  draw();
}
