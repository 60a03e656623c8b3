// The plane of a query, with a choice of axes and its support tokens in numbers.
import { queryControl } from "./controls";
import type { Report } from "./data";
import { type Child, choice, h } from "./dom";
import { counted, num, share } from "./format";
import { labelText } from "./label";
import { axisName, tokenName } from "./names";
import { axesOf, planeChart, supportOf } from "./plane_chart";
import type { Store } from "./state";
import { facts } from "./table";

/** What the picture shows, in numbers. */
function sideCard(data: Report, query: number): HTMLElement {
  const { queries } = data;
  const support = supportOf(data, query);
  const rows = data.main === null ? null : data.solutions[data.main]?.rows;
  const path = (name: string, k: number): string => `solutions.${data.main}.rows.${name}.${k}`;
  const names = (tokens: number[]): Node =>
    h("span", { "data-token": "" }, tokens.map((token) => tokenName(data, query, token)).join(", "));
  const best = queries.optimal?.[query];
  const shown = support.slice(0, 30);
  return h(
    "div",
    { class: "card" },
    h("h3", {}, `Query ${query}`),
    facts(
      [
        ["keeps", names(queries.kept[query] ?? [])],
        best === undefined ? null : ["best score", names([best])],
        ["sees", counted(queries.visible[query] ?? 0, "token")],
        ["label", num(`queries.label.${query}`, queries.label[query])],
      ].filter((one) => one !== null) as [string, Child | Child[]][],
    ),
    rows && shown.length > 0
      ? h(
          "table",
          {},
          h("caption", {}, "Support tokens: one margin behind, and no further"),
          h(
            "thead",
            {},
            h("tr", {}, ...["token", "slack", "multiplier"].map((name) => h("th", { scope: "col" }, name))),
          ),
          h(
            "tbody",
            {},
            ...shown.map(({ token, row }) =>
              h(
                "tr",
                {},
                h("td", {}, names([token])),
                h("td", {}, num(path("slack", row), rows.slack[row])),
                h("td", {}, num(path("dual", row), rows.dual[row])),
              ),
            ),
          ),
        )
      : null,
  );
}

export function planeView(panel: HTMLElement, data: Report, store: Store): void {
  const names = data.plane.axes.map((axis) => labelText(axisName(axis)));
  const axis = (label: string, key: "across" | "up"): HTMLElement => {
    const made = choice(label, names, store.get()[key], (value) => store.set({ [key]: value }));
    store.on(() => {
      const select = made.querySelector("select");
      if (select) select.selectedIndex = store.get()[key];
    });
    return made;
  };
  panel.append(h("div", { class: "controls" }, queryControl(data, store), axis("Across", "across"), axis("Up", "up")));
  const layout = h("div", { class: "beside" });
  const side = h("div");
  const shares = h("p", { class: "note" });
  panel.append(layout, shares);
  planeChart(layout, data, store, innerWidth < 600 ? 380 : 560);
  layout.append(side);
  const describe = (): void => {
    const state = store.get();
    const axes = axesOf(data, state);
    shares.replaceChildren(
      ...[...new Set([axes.x, axes.y])]
        .filter((k) => typeof data.plane.axes[k]?.share === "number")
        .map((k) =>
          h(
            "span",
            {},
            `${names[k]} holds `,
            share(`plane.axes.${k}.share`, data.plane.axes[k]?.share),
            " of the tokens\u2019 variance. ",
          ),
        ),
    );
    side.replaceChildren(sideCard(data, state.query));
  };
  describe();
  store.on((changed) => {
    if (!changed.has("step")) describe();
  });
}
