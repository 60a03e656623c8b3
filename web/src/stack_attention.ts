// The attention of every head of a stack, sequence by sequence.
import type { Stack } from "./data";
import { type Child, choice, h } from "./dom";
import { brief, percent } from "./format";
import { indexOf, nameOf, type Place } from "./stack_state";
import type { Store } from "./state";
import { shadedCell } from "./table";

const roomy = 12; // tokens whose weights have room for their numbers
const least = 0.0005; // weights that round to 0.1 % at least

/** The attention of a head in one sequence: a row per position, a column per token. */
function attentionTable(data: Stack, place: Readonly<Place>): HTMLElement {
  const { layer, head, sequence } = place;
  const rows = data.attention.weights[layer]?.[head]?.[sequence] ?? [];
  const asks = data.attention.positions[layer]?.[sequence] ?? [],
    live = new Set(data.attention.live[layer]?.[sequence] ?? []);
  const width = Math.max(...rows.map((row) => row.length), 1);
  const path = `attention.weights.${layer}.${head}.${sequence}`;
  const cells = (row: number[], i: number): HTMLElement[] => {
    const best = row.indexOf(Math.max(...row));
    return [...Array(width).keys()].map((t) => {
      const value = row[t];
      if (value === undefined) return h("td");
      const number = value < least ? "\u00b7" : brief(`${path}.${i}.${t}`, value, true);
      const made = shadedCell(value, t === best, width <= roomy ? number : null);
      made.title = `position ${asks[i]}, token ${t}: ${percent(value)}`;
      return made;
    });
  };
  const table = h(
    "table",
    { class: "shares attention" },
    h(
      "caption",
      {},
      "A row per position that asks, a column per token that it sees. Framed: what it selects; a dot: next to nothing",
    ),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["position", ...[...Array(width).keys()].map(String)].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      ...rows.map((row, i) =>
        h(
          "tr",
          {},
          h(
            "th",
            { scope: "row", class: "nowrap" },
            String(i),
            live.has(i) ? h("span", { class: "badge good" }, "live") : null,
          ),
          ...cells(row, i),
        ),
      ),
    ),
  );
  table.style.minWidth = `${(width + 2) * (width <= roomy ? 3.6 : 1)}rem`;
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Attention" }, table);
}

export function attentionView(panel: HTMLElement, data: Stack, store: Store<Place>): void {
  const pick = (label: string, key: "layer" | "head" | "sequence", count: number): Child => {
    if (count < 2) return null;
    const made = choice(label, [...Array(count).keys()].map(String), store.get()[key], (to) =>
      store.set({ [key]: to }),
    );
    store.on(() => {
      const select = made.querySelector("select");
      if (select) select.selectedIndex = store.get()[key];
    });
    return made;
  };
  const host = h("section", { class: "card wide" });
  panel.append(
    h(
      "div",
      { class: "controls" },
      pick("Layer", "layer", data.layers),
      pick("Head", "head", data.heads),
      pick("Sequence", "sequence", data.attention.sequences),
    ),
    host,
    h(
      "p",
      { class: "note" },
      "At the end of training. Only what live positions select changes the output: nothing is learnt where nobody looks. " +
        (data.attention.sequences < data.task.queries
          ? `The page holds the first ${data.attention.sequences} of ${data.task.queries} sequences.`
          : ""),
    ),
  );
  const show = (): void => {
    const place = store.get();
    host.replaceChildren(
      h("h2", {}, `${nameOf(data, indexOf(data, place.layer, place.head))}, sequence ${place.sequence}`),
      attentionTable(data, place),
    );
  };
  store.on(show);
  show();
}
