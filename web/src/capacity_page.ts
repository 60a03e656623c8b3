// What sizes can separate: the chance against d, predicted and counted, and what a separating W is like.
import { Chart } from "./chart";
import type { Capacity, CountedShare, Measured } from "./data";
import { type Child, h } from "./dom";
import { brief, num, share, text } from "./format";
import { pageTop } from "./index_page";
import { madeCard } from "./overview";
import { type Fact, facts } from "./table";

/** A share and its interval. */
function counted(path: string, one: CountedShare | null): Child[] {
  if (!one) return ["not counted"];
  return [
    brief(`${path}.share`, one.share, true),
    " (",
    brief(`${path}.low`, one.low, true),
    " to ",
    brief(`${path}.high`, one.high, true),
    "), ",
    num(`${path}.count`, one.count),
    " of ",
    num(`${path}.of`, one.of),
  ];
}

/** A mean with its deviation, and the range. */
function measured(path: string, one: Measured): Child[] {
  return [
    brief(`${path}.mean`, one.mean),
    " \u00b1 ",
    brief(`${path}.deviation`, one.deviation),
    ", from ",
    brief(`${path}.least`, one.least),
    " to ",
    brief(`${path}.most`, one.most),
  ];
}

function headline(data: Capacity): string {
  const search = data.smallest_d;
  if (data.always) return `d = ${data.d} is enough for every selection`;
  if (!search || search.high === 0) return `What ${data.n} queries of ${data.T} tokens can keep`;
  if (search.low >= search.high) return `d = ${search.high} is the smallest size that suffices`;
  return `The smallest size that suffices lies from d = ${search.low} to ${search.high}`;
}

function story(data: Capacity): HTMLElement {
  const search = data.smallest_d;
  return h(
    "section",
    { class: "story" },
    h("h2", {}, headline(data)),
    h(
      "p",
      { class: "lead" },
      num("n", data.n),
      " queries each select a random one of ",
      num("T", data.T),
      ` tokens (${data.attention} attention, unit Gaussian tokens). That asks for `,
      num("rows", data.rows),
      " rows of the ",
      num("unknowns", data.unknowns),
      " entries of W. At d = ",
      num("d", data.d),
      " a W keeps them in ",
      ...(data.separable ? [brief("separable.share", data.separable.share, true)] : ["\u2013"]),
      " of the draws, each decided by a certificate",
      ...(data.predicted === null ? ["."] : ["; predicted are ", brief("predicted", data.predicted, true), "."]),
    ),
    search
      ? h(
          "p",
          { class: "lead" },
          "Suffices means: the chance is at least ",
          share("smallest_d.wanted", search.wanted),
          search.complete ? "." : ". The search was not narrowed down further.",
        )
      : null,
    data.complete ? null : h("p", { class: "badge warn" }, "Stopped before all draws were done."),
  );
}

function chanceChart(host: HTMLElement, data: Capacity): void {
  const points = (data.smallest_d?.points ?? []).map((one, k) => ({
    ...one,
    path: `smallest_d.points.${k}.separable`,
  }));
  const own = data.separable && { d: data.d, separable: data.separable, path: "separable" };
  const all = [...points, ...(own && points.every((one) => one.d !== own.d) ? [own] : [])].sort((a, b) => a.d - b.d);
  const predicted = data.prediction.d;
  if (all.length === 0 && predicted.length === 0) return; // stopped before
  const sizes = [...predicted, ...all.map((one) => one.d)];
  const range = [Math.min(...sizes), Math.max(...sizes)];
  const wanted = data.smallest_d?.wanted;
  new Chart(host, {
    title: "The chance that a random selection is separable",
    name: "capacity",
    summary:
      "Against d: predicted from the statistical dimension of a query\u2019s rows, and counted, with Wilson\u2019s " +
      "intervals of 95\u202f%.",
    x: { label: data.attention === "prompt" ? "size d of tokens" : "size d", whole: true },
    y: { label: "share of selections", percent: true },
    include: { x: [], y: [0, 1] },
    height: 380,
    series: [
      ...(predicted.length === 0
        ? []
        : [
            {
              label: "predicted",
              style: 0,
              mark: "line" as const,
              x: predicted,
              y: data.prediction.chance,
              path: { x: "prediction.d", y: "prediction.chance" },
            },
          ]),
      {
        label: "counted",
        style: 1,
        mark: "bars",
        x: all.map((one) => one.d),
        y: all.map((one) => one.separable.share),
        low: all.map((one) => one.separable.low),
        high: all.map((one) => one.separable.high),
        more: (point) => {
          const one = all[point];
          return one ? [`, d = ${one.d}: `, ...counted(one.path, one.separable)] : [];
        },
      },
      ...(wanted === undefined
        ? []
        : [
            {
              label: "wanted",
              style: 7,
              mark: "line" as const,
              thin: true,
              ruled: true,
              x: range,
              y: [wanted, wanted],
              more: () => [": ", share("smallest_d.wanted", wanted)],
            },
          ]),
    ],
  });
}

function cards(data: Capacity): HTMLElement {
  const found: Fact[] = [["separable", counted("separable", data.separable)]];
  if (data.undecided > 0) found.push(["undecided draws", num("undecided", data.undecided)]);
  if (data.heads > 1) found.push([`all of ${data.heads} heads`, counted("all_heads", data.all_heads)]);
  if (data.width !== null) {
    found.push([`proven with width ${data.width}`, counted("fits_width", data.fits_width)]);
    if (data.width_margin)
      found.push(["margin that this width keeps, at most", measured("width_margin", data.width_margin)]);
  }
  if (data.global) found.push(["runs that end at the best tokens", counted("global", data.global)]);
  const like: Fact[] = [];
  if (data.margin) like.push(["largest margin", measured("margin", data.margin)]);
  if (data.rank) like.push(["rank that suffices", measured("rank", data.rank)]);
  if (data.rank_floor) like.push(["rank for the largest margin, at least", measured("rank_floor", data.rank_floor)]);
  if (data.support) like.push(["rows met with equality, as a share", measured("support", data.support)]);
  return h(
    "div",
    { class: "cards" },
    h("section", { class: "card" }, h("h2", {}, "What was counted"), facts(found)),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "What theory says"),
      facts([
        ["every selection", [data.always ? "separable: " : "need not be separable: ", text("why", data.why)]],
        ["dimension \u03b4 of a query\u2019s rows", num("dimension", data.dimension)],
        ["load n\u00b7\u03b4/(d\u00b7dz)", [num("load", data.load), "; half are separable at 1"]],
        ["Cover\u2019s count", [num("cover", data.cover), "; right for two tokens"]],
      ]),
    ),
    like.length > 0
      ? h("section", { class: "card wide" }, h("h2", {}, "What a separating W is like"), facts(like))
      : null,
    madeCard(data, [
      ["draws", num("draws", data.draws)],
      ["seed", num("seed", data.seed)],
    ]),
  );
}

export function capacityPage(root: HTMLElement, data: Capacity): void {
  const main = h("main", {}, story(data));
  root.append(pageTop(data), main);
  chanceChart(main, data);
  main.append(cards(data));
}
