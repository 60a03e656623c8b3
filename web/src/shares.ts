// The share of the largest margin that runs have reached, in each norm.
import { Chart } from "./chart";
import type { ChartSpec } from "./chart_spec";
import type { Curves, MarginShares, Trained } from "./data";
import { type Child, choice, h } from "./dom";
import { num, percent, share } from "./format";
import { fewRuns, literal, normWords, runNames, runStyle, stepAxis, timeline } from "./runs";
import { pagedTable, shadedCell } from "./table";

const rounding = 2 ** -53; // the accuracy of shares

/** A sentence about the norm that theory names for the optimizer. */
function impliedWords(run: Curves): string {
  const { implied } = run;
  if (!implied) return "Theory names no norm for this training.";
  const shares = run.shares.find((one) => one.norm === implied.norm);
  const last = shares?.rho.at(-1);
  const end = typeof last === "number" ? `; its share is ${percent(last)} at the end${trendWords(shares)}` : "";
  const named = implied.proven
    ? `Theory for attention names the norm ${implied.norm} for ${implied.optimizer}`
    : `The norm ${implied.norm} is expected, not proven, for ${implied.optimizer}`;
  return `${named} (${implied.why})${end}.`;
}

function trendWords(shares: MarginShares | undefined): string {
  if (!shares || shares.rises === null) return "";
  if (!shares.rises) return " and does not rise over the last decade of steps";
  const fit =
    shares.exponent !== null && shares.exponent < 0 ? ` like 1 \u2212 step^${shares.exponent.toFixed(2)}` : "";
  return ` and rises${fit} over the last decade of steps`;
}

const meaning =
  "The smallest margin of W divided by a norm of W, as a share \u03c1 of the largest that any W has in that norm; " +
  "where 1 \u2212 \u03c1 falls to 0, W tends to a max-margin solution in that norm. ";

function summary(data: Trained): string {
  if (data.runs.every((run) => run.shares.every((one) => one.status !== "optimal")))
    return "There is no largest margin to compare with: the selected tokens cannot be separated, or no solve ended.";
  if (!fewRuns(data)) return `${meaning}Curves of the norm that theory names for the optimizer are bold.`;
  const names = runNames(data);
  return (
    meaning + data.runs.map((run, r) => (data.runs.length > 1 ? `${names[r]}: ` : "") + impliedWords(run)).join(" ")
  );
}

const riseWords = (rises: boolean | null): string => (rises === null ? "\u2013" : rises ? "rises" : "does not rise");

/** One row per run and norm: what is reached at the end, and where it is heading. */
export function sharesTable(data: Trained): HTMLElement {
  const names = runNames(data);
  const several = data.runs.length > 1;
  const rows = data.runs.flatMap((run, r) =>
    run.shares.map((one, s) => ({ run, r, one, s, last: one.rho.length - 1 })),
  );
  const header = ["norm", "\u03c1", "1 \u2212 \u03c1", "trend", "exponent of 1 \u2212 \u03c1"];
  const table = pagedTable({
    name: "margins",
    caption: "Share of the largest margin at the end, and its trend over the last decade of steps",
    header: several ? ["run", ...header] : header,
    rows: rows.length,
    cells: (row): Child[] => {
      const at = rows[row];
      if (!at) return [];
      const { run, r, one, s, last } = at;
      const name = one.norm === run.implied?.norm ? h("strong", {}, `${one.norm} (implied)`) : one.norm;
      const first = several ? [names[r], name] : [name];
      if (one.status !== "optimal") return [...first, `not known: ${one.status}`, "\u2013", "\u2013", "\u2013"];
      return [
        ...first,
        share(`runs.${r}.shares.${s}.rho.${last}`, one.rho[last]),
        num(`runs.${r}.shares.${s}.distances.${last}`, one.distances[last]),
        riseWords(one.rises),
        num(`runs.${r}.shares.${s}.exponent`, one.exponent),
      ];
    },
    values: (row) => {
      const at = rows[row];
      if (!at) return [];
      const { r, one, last } = at;
      const numbers = [one.norm, one.rho[last] ?? "", one.distances[last] ?? "", String(one.rises), one.exponent ?? ""];
      return several ? [names[r], ...numbers] : numbers;
    },
  });
  return h("div", { class: "card wide" }, h("h3", {}, "Margins in each norm"), table);
}

/** One row per run, one column per norm: what is reached at the end. The norm that theory names is framed. */
export function sharesMatrix(data: Trained, noun = "run"): HTMLElement | null {
  const names = runNames(data);
  const norms = [...new Set(data.runs.flatMap((run) => run.shares.map((one) => one.norm)))];
  if (norms.length === 0) return null;
  const cell = (run: Curves, r: number, norm: string): HTMLElement => {
    const s = run.shares.findIndex((one) => one.norm === norm),
      rho = run.shares[s]?.rho ?? [];
    const last = rho.length - 1,
      value = rho[last] ?? null;
    const shown = run.shares[s]?.status === "optimal" ? share(`runs.${r}.shares.${s}.rho.${last}`, value) : "\u2013";
    return shadedCell(value, run.implied?.norm === norm, shown);
  };
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, "How much of the largest margin each has"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Shares of the largest margin" },
      h(
        "table",
        { class: "shares" },
        h(
          "caption",
          {},
          "\u03c1 at the end: the margin of W as a share of the largest in that norm. Framed: the norm that theory names",
        ),
        h("thead", {}, h("tr", {}, ...[noun, ...norms].map((name) => h("th", { scope: "col" }, name)))),
        h(
          "tbody",
          {},
          ...data.runs.map((run, r) =>
            h("tr", {}, h("th", { scope: "row" }, names[r]), ...norms.map((norm) => cell(run, r, norm))),
          ),
        ),
      ),
    ),
  );
}

/** 1 − ρ over steps: every norm of one run, or every run in one norm, which a control chooses. */
export function sharesChart(grid: HTMLElement, controls: HTMLElement, data: Trained): Chart {
  const names = runNames(data);
  const axis = timeline(data);
  const norms = [...new Set(data.runs.flatMap((run) => run.shares.map((one) => one.norm)))];
  const several = data.runs.length > 1;
  const spec = (norm: string | null): ChartSpec => ({
    title:
      norm === null ? "Distance from the largest margin, in each norm" : `Distance from the largest margin: ${norm}`,
    name: norm === null ? "shares" : `shares-${norm.replace(":", "-")}`,
    summary: (norm === null ? "" : `In the norm ${norm}, ${normWords(norm)}. `) + summary(data),
    x: { label: axis.label, log: axis.label === "step" },
    y: { label: "1 \u2212 \u03c1", log: true, floor: rounding },
    include: { x: [], y: [1] },
    series: data.runs.flatMap((run, r) =>
      run.shares.flatMap((one, k) => {
        if (one.status !== "optimal" || (norm !== null && one.norm !== norm)) return [];
        const implied = one.norm === run.implied?.norm;
        const steps = stepAxis(data, r);
        return [
          {
            label: `${several ? literal(names[r] ?? "") : one.norm}${implied ? " (implied)" : ""}`,
            style: several ? runStyle(r) : k,
            mark: "line" as const,
            bold: implied,
            x: steps.values,
            y: one.distances,
            path: steps.path ? { x: steps.path, y: `runs.${r}.shares.${k}.distances` } : undefined,
          },
        ];
      }),
    ),
  });
  if (!several) return new Chart(grid, spec(null));
  const first = Math.max(0, norms.indexOf(data.runs[0]?.implied?.norm ?? ""));
  const chart = new Chart(grid, spec(norms[first] ?? ""));
  controls.append(choice("Norm", norms, first, (value) => chart.update(spec(norms[value] ?? ""))));
  return chart;
}
