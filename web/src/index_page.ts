// The index of the experiments: each figure interactive, our finding beside the published one, the files.
import { Chart } from "./chart";
import type { Experiment, FigureGrid, FigurePanel, Index } from "./data";
import { freshId, h } from "./dom";
import { formatted, num, sentence, text } from "./format";
import { labelText, sentenceNodes } from "./label";
import { onPrint } from "./print";
import { shadedCell } from "./table";
import { themeButton } from "./theme";

/** Where every curve begins and ends, for those who cannot see it. */
function ends(panel: FigurePanel): string {
  return panel.curves
    .filter((curve) => curve.mark !== "points" && curve.mark !== "boxes" && curve.label !== "")
    .map((curve) => {
      const known = curve.y.filter((y) => y !== null);
      return `${labelText(curve.label)} goes from ${formatted(known[0])} to ${formatted(known.at(-1))}.`;
    })
    .join(" ");
}

/** A linear axis of whole numbers has ticks only at whole numbers. */
const counts = (panel: FigurePanel): boolean =>
  !panel.log_x && !panel.square && panel.curves.every((curve) => curve.x.every((x) => Number.isInteger(x)));

const letterOf = (one: Experiment, p: number): string =>
  one.figure.panels.length > 1 ? `(${String.fromCharCode(97 + p)}) ` : "";

/** A grid of numbers is a table whose cells are shaded. */
function panelGrid(
  host: HTMLElement,
  one: Experiment,
  e: number,
  p: number,
  panel: FigurePanel,
  grid: FigureGrid,
): void {
  const path = `experiments.${e}.figure.panels.${p}.grid`;
  const title = `${letterOf(one, p)}${panel.title}`;
  const cell = (r: number, c: number): HTMLElement => {
    const value = grid.values[r]?.[c];
    const part = (name: "values" | "errors", digits: number): HTMLElement =>
      num(`${path}.${name}.${r}.${c}`, grid[name][r]?.[c], digits);
    const known = typeof grid.errors[r]?.[c] === "number"; // a single run has none
    const spread = known ? h("span", { class: "spread" }, " \u00b1 ", part("errors", 2)) : null;
    return shadedCell(value, grid.outlined[r] === c, part("values", 3), spread);
  };
  host.append(
    h(
      "figure",
      { class: "chart shares" },
      h("figcaption", {}, h("h3", {}, ...sentenceNodes(title))),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
        h(
          "table",
          {},
          h(
            "thead",
            {},
            h("tr", {}, ...[panel.y_label, ...grid.columns].map((name) => h("th", { scope: "col" }, name))),
          ),
          h(
            "tbody",
            {},
            ...grid.rows.map((name, r) =>
              h("tr", {}, h("th", { scope: "row" }, name), ...grid.columns.map((_, c) => cell(r, c))),
            ),
          ),
        ),
      ),
    ),
  );
}

function panelChart(host: HTMLElement, one: Experiment, e: number, p: number, panel: FigurePanel): void {
  const names = [...new Set(panel.curves.map((curve) => labelText(curve.label)).filter((name) => name !== ""))];
  const listed = names.length > 0 ? `: ${names.join("; ")}` : "";
  new Chart(host, {
    title: `${letterOf(one, p)}${panel.title}`,
    name: `${one.experiment}-${p + 1}`,
    summary: `${labelText(panel.y_label)} against ${labelText(panel.x_label)}${listed}.`,
    more: panel.square ? "" : ends(panel),
    x: { label: panel.x_label, log: panel.log_x, range: panel.x_range, whole: counts(panel) },
    y: { label: panel.y_label, log: panel.log_y, range: panel.y_range },
    square: panel.square,
    height: panel.square ? 380 : 300,
    series: panel.curves.map((curve, c) => {
      const path = `experiments.${e}.figure.panels.${p}.curves.${c}`;
      return {
        label: curve.label,
        style: curve.style,
        mark: curve.mark,
        thin: curve.thin,
        ruled: curve.mark === "line" && curve.x.length === 2,
        width: curve.width,
        x: curve.x,
        y: curve.y,
        low: curve.low,
        high: curve.high,
        size: curve.x.length > 100 ? 2 : undefined,
        path: { x: `${path}.x`, y: `${path}.y` },
      };
    }),
  });
}

/** The heads of the findings' columns; our own experiments have expectations where others have a paper. */
function columnsOf(one: Experiment): Record<"paper" | "ours" | "why", string> {
  return { paper: one.published ? "published" : "expected", ours: "found here", why: "why they differ" };
}

function findings(one: Experiment, e: number): HTMLElement {
  const columns = columnsOf(one);
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": `Findings of ${one.experiment}` },
    h(
      "table",
      { class: "findings" },
      h("thead", {}, h("tr", {}, ...Object.values(columns).map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        {},
        ...one.findings.map((finding, k) =>
          h(
            "tr",
            {},
            ...(["paper", "ours", "why"] as const).map((key) =>
              h("td", { "data-name": columns[key] }, sentence(`experiments.${e}.findings.${k}.${key}`, finding[key])),
            ),
          ),
        ),
      ),
    ),
  );
}

function cells(one: Experiment, e: number): HTMLElement {
  const path = (k: number, name: string): string => `experiments.${e}.cells.${k}.${name}`;
  return h(
    "details",
    {},
    h("summary", {}, "Settings, runs and rejections"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": `Settings of ${one.experiment}` },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...["cell", "runs", "draws", "rejected because", "settings"].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h(
          "tbody",
          {},
          ...one.cells.map((cell, k) =>
            h(
              "tr",
              {},
              h("td", { "data-path": path(k, "name") }, cell.name),
              h("td", {}, num(path(k, "runs"), cell.runs)),
              h("td", {}, num(path(k, "draws"), cell.draws)),
              h(
                "td",
                {},
                ...Object.entries(cell.rejections).map(([reason, count]) =>
                  h("div", {}, num(path(k, `rejections.${reason}`), count), ` ${reason}`),
                ),
              ),
              h("td", {}, h("code", { "data-json": path(k, "settings") }, JSON.stringify(cell.settings))),
            ),
          ),
        ),
      ),
    ),
  );
}

/** Charts are created when they come near the screen, or are printed: creating all at once would block the page. */
export function whenNear(element: HTMLElement, make: () => void): void {
  let made = false;
  const once = (): void => {
    observer.disconnect();
    if (!made) make();
    made = true;
  };
  const observer = new IntersectionObserver(
    (entries) => {
      if (entries.some((entry) => entry.isIntersecting)) once();
    },
    { rootMargin: "600px" },
  );
  observer.observe(element);
  onPrint(once, () => undefined);
}

function experiment(one: Experiment, e: number): HTMLElement {
  const id = freshId();
  const charts = h("div", {
    class: one.figure.columns > 1 && one.figure.panels.length > 1 ? "grid" : "",
    "aria-label": one.figure.caption,
  });
  const tall = Math.ceil(one.figure.panels.length / (innerWidth > 1100 ? 2 : 1)) * 560;
  charts.style.minHeight = `${tall}px`; // kept free, so that the page does not jump when they come
  whenNear(charts, () => {
    charts.style.minHeight = "";
    one.figure.panels.forEach((panel, p) => {
      if (panel.grid) panelGrid(charts, one, e, p, panel, panel.grid);
      else panelChart(charts, one, e, p, panel);
    });
  });
  const path = `experiments.${e}`;
  const files = one.files.map((file) =>
    h(
      "a",
      { href: `${encodeURIComponent(one.experiment)}/${file}`, download: `${one.experiment}-${file}`, class: "button" },
      file.slice(file.lastIndexOf(".") + 1).toUpperCase(),
    ),
  );
  return h(
    "section",
    { class: "card experiment", id: one.experiment, "aria-labelledby": id },
    h("h2", { id, "data-path": `${path}.title` }, one.title),
    h(
      "p",
      { class: "lead" },
      one.published ? h("strong", {}, "Reproduces: ") : null,
      sentence(`${path}.paper`, one.paper),
    ),
    sentence(`${path}.setting`, one.setting, "p"),
    one.complete
      ? null
      : h("p", { class: "badge warn" }, "Stopped before all runs were done; the same command continues from here."),
    charts,
    sentence(`${path}.figure.caption`, one.figure.caption, "p", "note"),
    one.findings.length > 0 ? findings(one, e) : null,
    h(
      "p",
      { class: "files" },
      h(
        "span",
        {},
        "Seed ",
        num(`${path}.seed`, one.seed),
        ", ",
        num(`${path}.runs`, one.runs),
        one.runs === 1 ? " run, " : " runs, ",
        num(`${path}.rejected`, one.rejected),
        one.rejected === 1 ? " draw rejected." : " draws rejected.",
      ),
      ...files,
    ),
    cells(one, e),
  );
}

/** The title, and the program that made the page. */
export function pageTop(data: { attsvm: string; title: string }): HTMLElement {
  return h(
    "header",
    { class: "top" },
    h(
      "div",
      {},
      h("p", { class: "kind" }, "attsvm ", text("attsvm", data.attsvm)),
      h("h1", { "data-path": "title" }, data.title),
    ),
    themeButton(),
  );
}

export function indexPage(root: HTMLElement, data: Index): void {
  root.append(
    pageTop(data),
    h(
      "main",
      {},
      h(
        "p",
        {},
        "Every support vector machine behind these pictures was solved with a certificate and checked by independent " +
          "code. Point at a curve to read it, click its name to hide it, drag to zoom. Where what is published " +
          "or expected differs from what was found, the table below the figure says why.",
      ),
      h(
        "nav",
        { class: "contents", "aria-label": "Experiments" },
        h(
          "ul",
          {},
          ...data.experiments.map((one, e) =>
            h(
              "li",
              {},
              h(
                "a",
                { href: `#${encodeURIComponent(one.experiment)}` },
                h("span", { "data-path": `experiments.${e}.title` }, one.title),
                one.findings.some(({ why }) => why !== "") ? h("span", { class: "differs" }, " \u00b7 differs") : null,
              ),
            ),
          ),
        ),
      ),
      ...data.experiments.map(experiment),
    ),
  );
}
