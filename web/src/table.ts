// Tables of many rows: a page at a time, everything as CSV.
import { button, type Child, h } from "./dom";
import { type Cell, csv, csvButton } from "./download";

export interface Table {
  name: string; // of the CSV file
  caption: string;
  header: string[];
  rows: number;
  cells: (row: number) => Child[]; // shown
  values?: (row: number) => Cell[]; // in the CSV file; left out: it has none
}

const pageRows = 50;

export function pagedTable(table: Table): HTMLElement {
  let first = 0;
  const body = h("tbody");
  const place = h("span", { class: "place", role: "status" });
  const last = (): number => Math.max(0, Math.floor((table.rows - 1) / pageRows) * pageRows);
  const draw = (): void => {
    const end = Math.min(table.rows, first + pageRows);
    body.replaceChildren();
    for (let k = first; k < end; k += 1) body.append(h("tr", {}, ...table.cells(k).map((cell) => h("td", {}, cell))));
    place.textContent = table.rows === 0 ? "none" : `rows ${first + 1} to ${end} of ${table.rows}`;
    back.disabled = first === 0;
    on.disabled = end >= table.rows;
  };
  const go = (to: number): void => {
    first = Math.min(last(), Math.max(0, to));
    draw();
  };
  const back = button("Previous", () => go(first - pageRows), { class: "quiet" });
  const on = button("Next", () => go(first + pageRows), { class: "quiet" });
  const { values } = table;
  const all = values
    ? csvButton(table.name, () =>
        csv(
          table.header,
          (function* () {
            for (let k = 0; k < table.rows; k += 1) yield values(k);
          })(),
        ),
      )
    : null;
  const bar = h(
    "div",
    { class: "bar" },
    place,
    table.rows > pageRows ? back : null,
    table.rows > pageRows ? on : null,
    all,
  );
  draw();
  return h(
    "div",
    { class: "table" },
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": table.caption },
      h(
        "table",
        {},
        h("caption", {}, table.caption),
        h("thead", {}, h("tr", {}, ...table.header.map((name) => h("th", { scope: "col" }, name)))),
        body,
      ),
    ),
    bar,
  );
}

/** A cell that is the stronger in colour, the nearer its share is to 1. */
export function shadedCell(value: number | null | undefined, framed: boolean, ...words: Child[]): HTMLElement {
  const cell = h("td", { class: framed ? "framed" : null }, ...words);
  const part = Math.round(30 * Math.max(0, Math.min(1, value ?? 0)));
  cell.style.background = `color-mix(in srgb, var(--accent) ${part}%, transparent)`;
  return cell;
}

/** A name and what it is. */
export type Fact = [Child | Child[], Child | Child[]];

/** Names and what they are, side by side. */
export function facts(rows: Fact[]): HTMLElement {
  const list = (one: Child | Child[]): Child[] => (Array.isArray(one) ? one : [one]);
  return h(
    "dl",
    { class: "facts" },
    ...rows.flatMap(([name, value]) => [h("dt", {}, ...list(name)), h("dd", {}, ...list(value))]),
  );
}
