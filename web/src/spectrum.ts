// Singular values of W, W^mm and W^mm_*.
import { Chart } from "./chart";
import type { ChartSpec, Series } from "./chart_spec";
import type { Report, Spectrum } from "./data";
import { choice, h } from "./dom";
import { labelText } from "./label";
import { literal, pointAt, runNames, runStyle } from "./runs";
import type { Store } from "./state";

const floor = 1e-16; // below this share of the largest there is rounding alone

export function spectrumView(panel: HTMLElement, data: Report, store: Store): void {
  let shown: keyof Spectrum = "relative";
  const series = (): Series[] => {
    const list: Series[] = [];
    const add = (
      label: string,
      style: number,
      spectrum: Spectrum | null | undefined,
      path: string,
      wide = false,
    ): void => {
      if (spectrum)
        list.push({
          label,
          style,
          mark: "line",
          wide,
          x: spectrum[shown].map((_, k) => k + 1),
          y: spectrum[shown],
          path: { y: `${path}.${shown}` },
        });
    };
    data.solutions.forEach((solution, k) =>
      add(
        solution.file ? `${solution.label} (${solution.norm_words})` : solution.label,
        [0, 3, 4, 5][k % 4] ?? 0,
        solution.singular_values,
        `solutions.${k}.singular_values`,
        data.runs.length > 0 && k === 0, // training may end on it, and both are to be seen
      ),
    );
    const names = runNames(data);
    data.runs.forEach((run, r) => {
      const at = pointAt(data, r, store.get().step);
      const point = run.singular_values[at] ? at : run.singular_values.length - 1;
      add(
        data.runs.length > 1 ? `W of ${literal(names[r] ?? "")}` : "W of training",
        runStyle(r),
        run.singular_values[point],
        `runs.${r}.singular_values.${point}`,
      );
    });
    return list;
  };
  const spec = (): ChartSpec => {
    const ranks = data.solutions
      .filter((solution) => solution.rank !== null)
      .map((solution) => `${labelText(solution.label)} has rank ${solution.rank}`);
    return {
      title: "Singular values",
      name: "singular-values",
      height: 360,
      series: series(),
      summary:
        `Singular values, largest first${shown === "relative" ? ", as shares of the largest" : ""}. ` +
        `${ranks.join("; ")}${ranks.length > 0 ? "." : ""}`,
      logs: ["y"],
      x: { label: "number", whole: true },
      y: {
        label: shown === "relative" ? "share of the largest" : "singular value",
        percent: shown === "relative",
        log: shown === "relative",
        range: null,
      },
      include: { x: [1], y: shown === "relative" ? [1] : [0] },
    };
  };
  const trimmed = (): ChartSpec => {
    const made = spec();
    // On a logarithmic axis rounding would take all the room.
    for (const one of shown === "relative" ? made.series : []) {
      const end = Array.from(one.y).findLastIndex((value) => value !== null && value > floor) + 1;
      one.x = Array.from(one.x).slice(0, end);
      one.y = Array.from(one.y).slice(0, end);
    }
    return made;
  };
  panel.append(
    h(
      "div",
      { class: "controls" },
      choice("Show", ["shares of the largest", "values"], 0, (value) => {
        shown = value === 0 ? "relative" : "values";
        chart.update(trimmed());
      }),
    ),
  );
  const chart = new Chart(panel, trimmed());
  store.on((changed) => {
    if (changed.has("step")) chart.update(trimmed());
  });
}
