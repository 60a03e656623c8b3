// The heads of a model while it trained: where they ended, and every number over the steps.
import { Chart } from "./chart";
import type { Series } from "./chart_spec";
import type { HeadCurves, Maybe, Monitor } from "./data";
import { freshId, h } from "./dom";
import { num, share, text } from "./format";
import { pageTop, whenNear } from "./index_page";

interface Measure {
  name: string;
  title: string;
  label: string;
  percent?: boolean;
  log?: boolean;
}

const measures: Measure[] = [
  { name: "gap_50", title: "Gap between the choice and the next token", label: "median gap of logits" },
  { name: "weight", title: "Attention of the choice", label: "mean attention", percent: true },
  { name: "entropy", title: "Entropy of the attention", label: "nats" },
  { name: "largest_logit", title: "Largest logit", label: "absolute value", log: true },
  { name: "sink_share", title: "Choices that are the first token", label: "share of choices", percent: true },
  { name: "drift", title: "Choices that changed since the last measurement", label: "share of choices", percent: true },
  { name: "norm_fro", title: "Norm of W", label: "Frobenius norm" },
  { name: "forecast", title: "When the choice will have 99\u202f% of the attention", label: "step forecast" },
];
const styles = 8; // that curves can have

const last = <T>(list: T[] | undefined): T | undefined => list?.at(-1);
const known = (curve: Maybe[] | undefined): boolean => curve?.some((value) => value !== null) === true;

/** The heads that a layer has: others have no numbers. */
const headsOf = (data: Monitor, l: number): number[] =>
  [...Array(data.heads).keys()].filter((k) => known(data.measures["largest_logit"]?.[l]?.[k]));

function chartOf(host: HTMLElement, data: Monitor, l: number, measure: Measure): void {
  const curves: HeadCurves | undefined = data.measures[measure.name];
  const heads = headsOf(data, l).filter((k) => known(curves?.[l]?.[k]));
  if (!curves || heads.length === 0) return;
  new Chart(host, {
    title: measure.title,
    name: `layer-${l}-${measure.name}`,
    summary: `${measure.label} of ${heads.length} heads over the steps of training.`,
    x: { label: "step", whole: true },
    y: { label: measure.label, log: measure.log === true, percent: measure.percent === true },
    height: 280,
    logs: ["y"],
    series: heads.map((k) => ({
      label: `head ${k}`,
      style: k % styles,
      mark: "line" as const,
      thin: k >= styles,
      x: data.step,
      y: curves[l]?.[k] ?? [],
      path: { x: "step", y: `measures.${measure.name}.${l}.${k}` },
    })),
  });
}

function rhoChart(host: HTMLElement, data: Monitor, l: number): void {
  const { rho } = data;
  if (!rho) return;
  const heads = headsOf(data, l).filter((k) => known(rho.rho[l]?.[k]));
  if (heads.length === 0) return;
  const series = (k: number, name: "rho" | "null_mean"): Series => ({
    label: name === "rho" ? `head ${k}` : `head ${k}, random`,
    style: k % styles,
    mark: "line",
    thin: name === "null_mean",
    x: rho.step,
    y: rho[name][l]?.[k] ?? [],
    path: { x: "rho.step", y: `rho.${name}.${l}.${k}` },
    hidden: name === "null_mean" && heads.length > 4,
  });
  new Chart(host, {
    title: `Share of the largest margin in the norm ${rho.norm}`,
    name: `layer-${l}-rho`,
    summary: `\u03c1 of ${heads.length} heads, and thin the mean of random heads with the same activations.`,
    x: { label: "step", whole: true },
    y: { label: "\u03c1" },
    height: 280,
    logs: ["y"],
    series: heads.flatMap((k) => [series(k, "rho"), series(k, "null_mean")]),
  });
}

/** Layers in rows, heads in columns: what most choices have in common at the end, and how hard they are. */
function table(data: Monitor, ids: string[]): HTMLElement {
  const end = data.step.length - 1;
  const kinds = ["offset", "constant", "same word", "induction"];
  const cell = (l: number, k: number): HTMLElement => {
    if (!headsOf(data, l).includes(k)) return h("td");
    const shares = kinds.map((name) => data.measures[name]?.[l]?.[k]?.[end] ?? -1);
    const best = kinds[shares.indexOf(Math.max(...shares))] ?? "offset";
    const weight = data.measures["weight"]?.[l]?.[k]?.[end];
    const element = h(
      "td",
      {},
      text(`kinds.${l}.${k}`, data.kinds[l]?.[k] ?? ""),
      " ",
      share(`measures.${best}.${l}.${k}.${end}`, data.measures[best]?.[l]?.[k]?.[end]),
      h("br"),
      h("span", { class: "spread" }, "attention ", share(`measures.weight.${l}.${k}.${end}`, weight)),
    );
    element.style.background = `color-mix(in srgb, var(--accent) ${Math.round(35 * (weight ?? 0))}%, transparent)`;
    return element;
  };
  const columns = [...Array(data.heads).keys()];
  return h(
    "div",
    { class: "scroll shares", tabindex: 0, role: "region", "aria-label": "The heads at the end" },
    h(
      "table",
      {},
      h("caption", {}, "What most choices have in common, their share, and the attention of the choice"),
      h(
        "thead",
        {},
        h("tr", {}, h("th", { scope: "col" }, "layer"), ...columns.map((k) => h("th", { scope: "col" }, `head ${k}`))),
      ),
      h(
        "tbody",
        {},
        ...data.layers.map((name, l) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, h("a", { href: `#${ids[l]}` }, text(`layers.${l}`, name))),
            ...columns.map((k) => cell(l, k)),
          ),
        ),
      ),
    ),
  );
}

function layer(data: Monitor, l: number, id: string): HTMLElement {
  const charts = h("div", { class: "grid" });
  charts.style.minHeight = "1800px"; // kept free, so that the page does not jump when they come
  whenNear(charts, () => {
    charts.style.minHeight = "";
    for (const measure of measures) chartOf(charts, data, l, measure);
    rhoChart(charts, data, l);
  });
  const title = freshId();
  return h(
    "section",
    { class: "card experiment", id, "aria-labelledby": title },
    h("h2", { id: title, "data-path": `layers.${l}` }, data.layers[l]),
    charts,
  );
}

export function monitorPage(root: HTMLElement, data: Monitor): void {
  const ids = data.layers.map((_, l) => `layer-${l}`);
  const end = data.step.length - 1;
  const hard = data.layers.flatMap((_, l) =>
    headsOf(data, l).filter((k) => (last(data.measures["weight"]?.[l]?.[k]) ?? 0) >= 0.99),
  ).length;
  const all = data.layers.reduce((sum, _, l) => sum + headsOf(data, l).length, 0);
  root.append(
    pageTop(data),
    h(
      "main",
      {},
      ...data.warnings.map((_, w) =>
        h("p", {}, h("span", { class: "badge bad", "data-path": `warnings.${w}` }, data.warnings[w])),
      ),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Where training ended"),
        h(
          "p",
          { class: "lead" },
          "After ",
          num(`step.${end}`, data.step[end]),
          ` steps, ${hard} of ${all} heads give their choice 99\u202f% of the attention or more. `,
          "A choice is the token with the largest logit. All numbers are of one probe.",
        ),
        table(data, ids),
        data.rho
          ? h(
              "p",
              { class: "note" },
              "\u03c1 is the smallest gap of a head over its norm, as a share of the largest that is possible. That " +
                "training brings it near 1 in the norm of the optimizer is proven for simpler models only; compare it " +
                "with random heads.",
            )
          : null,
        h("p", {}, h("code", { class: "command", "data-path": "command" }, data.command)),
      ),
      ...data.layers.map((_, l) => layer(data, l, ids[l] ?? "")),
    ),
  );
}
