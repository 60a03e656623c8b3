// The share of the largest margin that a run has reached, in each norm.
import { Chart } from "./chart";
import type { MarginShares, Run } from "./data";
import { type Child, h } from "./dom";
import { formatted, num } from "./format";
import { pagedTable } from "./table";

const rounding = 2 ** -53; // the accuracy of shares

/** A sentence about the norm that theory names for the optimizer. */
function impliedWords(run: Run): string {
  const { implied } = run;
  if (!implied) return "Theory names no norm for this training.";
  const source = implied.proven ? "Theory for attention" : "Theory for linear models";
  const shares = run.shares.find((one) => one.norm === implied.norm);
  const last = shares?.rho.at(-1);
  const end = typeof last === "number" ? `; its share is ${formatted(last)} at the end${trendWords(shares)}` : "";
  return `${source} names the norm ${implied.norm} for ${implied.optimizer} (${implied.why})${end}.`;
}

function trendWords(shares: MarginShares | undefined): string {
  if (!shares || shares.rises === null) return "";
  if (!shares.rises) return " and does not rise over the last decade of steps";
  const fit =
    shares.exponent !== null && shares.exponent < 0 ? ` like 1 \u2212 step^${shares.exponent.toFixed(2)}` : "";
  return ` and rises${fit} over the last decade of steps`;
}

function summary(run: Run): string {
  const meaning =
    "The smallest margin of W divided by a norm of W, as a share \u03c1 of the largest that any W has in that norm; " +
    "where 1 \u2212 \u03c1 falls to 0, W tends to a max-margin solution in that norm. ";
  if (run.shares.every((one) => one.status !== "optimal"))
    return "There is no largest margin to compare with: the selected tokens cannot be separated, or no solve ended.";
  return meaning + impliedWords(run);
}

const riseWords = (rises: boolean | null): string => (rises === null ? "\u2013" : rises ? "rises" : "does not rise");

/** One row per norm: what is reached at the end, and where it is heading. */
export function sharesTable(run: Run): HTMLElement {
  const last = run.norm.length - 1;
  const table = pagedTable({
    name: "margins",
    caption: "Share of the largest margin at the end, and its trend over the last decade of steps",
    header: ["norm", "\u03c1", "1 \u2212 \u03c1", "trend", "exponent of 1 \u2212 \u03c1"],
    rows: run.shares.length,
    cells: (row): Child[] => {
      const one = run.shares[row];
      if (!one) return [];
      const name = one.norm === run.implied?.norm ? h("strong", {}, `${one.norm} (implied)`) : one.norm;
      if (one.status !== "optimal") return [name, `not known: ${one.status}`, "\u2013", "\u2013", "\u2013"];
      return [
        name,
        num(`run.shares.${row}.rho.${last}`, one.rho[last]),
        num(`run.shares.${row}.distances.${last}`, one.distances[last]),
        riseWords(one.rises),
        num(`run.shares.${row}.exponent`, one.exponent),
      ];
    },
    values: (row) => {
      const one = run.shares[row];
      return one
        ? [one.norm, one.rho[last] ?? "", one.distances[last] ?? "", String(one.rises), one.exponent ?? ""]
        : [];
    },
  });
  return h("div", { class: "card" }, h("h3", {}, "Margins in each norm"), table);
}

/** 1 − ρ over steps, one line per norm. */
export function sharesChart(
  grid: HTMLElement,
  run: Run,
  axis: { label: string; values: number[]; path: string },
): Chart {
  return new Chart(grid, {
    title: "Distance from the largest margin, in each norm",
    name: "shares",
    summary: summary(run),
    x: { label: axis.label, log: axis.path !== "" },
    y: { label: "1 \u2212 \u03c1", log: true, floor: rounding },
    include: { x: [], y: [1] },
    series: run.shares.flatMap((one, k) => {
      if (one.status !== "optimal") return [];
      const implied = one.norm === run.implied?.norm;
      return [
        {
          label: implied ? `${one.norm} (implied)` : one.norm,
          style: k,
          mark: "line" as const,
          bold: implied,
          x: axis.values,
          y: one.distances,
          path: axis.path ? { x: axis.path, y: `run.shares.${k}.distances` } : undefined,
        },
      ];
    }),
  });
}
