// The numbers of a chart: as CSV, and as a table for those who cannot see it.
import { type ChartSpec, type Series, valueNode } from "./chart_spec";
import { h } from "./dom";
import { csv } from "./download";
import { labelAscii, labelNodes, labelText } from "./label";
import { pagedTable } from "./table";

const header = (spec: ChartSpec): string[] => [
  "series",
  labelAscii(spec.x.label),
  labelAscii(spec.y.label),
  "low",
  "high",
  "name",
];

export function chartCsv(spec: ChartSpec): string {
  return csv(
    header(spec),
    (function* () {
      for (const series of spec.series) {
        for (let k = 0; k < series.x.length; k += 1) {
          yield [
            labelAscii(series.label),
            series.x[k],
            series.y[k],
            series.low?.[k],
            series.high?.[k],
            series.name?.(k),
          ];
        }
      }
    })(),
  );
}

export function chartTable(spec: ChartSpec): HTMLElement {
  const starts = [0]; // the row that each series begins at
  for (const series of spec.series) starts.push((starts.at(-1) ?? 0) + series.x.length);
  const find = (row: number): { series: Series; k: number } | null => {
    const s = starts.findLastIndex((start, j) => start <= row && (starts[j + 1] ?? 0) > row);
    const series = spec.series[s];
    return series ? { series, k: row - (starts[s] ?? 0) } : null;
  };
  return pagedTable({
    name: spec.name,
    caption: labelText(spec.title),
    header: header(spec).slice(0, 3),
    rows: starts.at(-1) ?? 0,
    cells: (row) => {
      const at = find(row);
      if (!at) return [];
      const { series, k } = at;
      const name = h("span", {}, ...labelNodes(series.label), series.name ? ` ${series.name(k)}` : "");
      return [name, valueNode(spec, series, "x", k), valueNode(spec, series, "y", k)];
    },
  });
}
