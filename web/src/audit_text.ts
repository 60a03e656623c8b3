// Support pairs and uncertain queries as sentences, each in its text.
import type { Shown } from "./audit_state";
import type { Audit, SupportPair, UncertainQuery } from "./data";
import { type Child, h } from "./dom";
import { brief } from "./format";

/** Tokens of a sentence that play a part in it. */
interface Part {
  token: number;
  part: "asks" | "keeps" | "drops";
}

const around = 7; // words shown on either side of a part
const whole = 48; // sequences up to this length are shown whole

/** A token with its distance from the query, where that is one of its tokens. */
function tokenWords(path: string, words: string, token: number, position: number | null): Node {
  const away = position === null ? ` at ${token}` : token === position ? "" : `(${signed(token - position)})`;
  return h("span", { class: "word" }, "\u00ab", h("bdi", { "data-path": path }, words), "\u00bb", away);
}

const signed = (offset: number): string => (offset < 0 ? `\u2212${-offset}` : `+${offset}`);

/** The words around the parts of a sentence; nothing where the page does not hold its sequence. */
function excerpt(data: Audit, sequence: number, parts: Part[]): HTMLElement | null {
  const words = data.text.find((one) => one.sequence === sequence)?.words;
  if (!words) return null;
  const near = (t: number): boolean => words.length <= whole || parts.some((one) => Math.abs(one.token - t) <= around);
  const nodes: Child[] = [];
  let left = false; // words were left out since the last one
  words.forEach((word, t) => {
    if (!near(t)) {
      if (!left) nodes.push("\u2026 ");
      left = true;
      return;
    }
    left = false;
    const part = parts.find((one) => one.token === t)?.part;
    nodes.push(part ? h("bdi", { class: `part ${part}`, title: names[part] }, word) : h("bdi", {}, word), " ");
  });
  return h("p", { class: "excerpt", "data-token": "" }, ...nodes);
}

const names: Record<Part["part"], string> = { asks: "the query", keeps: "chosen", drops: "not chosen" };

/** Which mark is which. */
function partsLegend(): HTMLElement {
  return h(
    "p",
    { class: "hint" },
    "In the text: ",
    ...(["asks", "keeps", "drops"] as const).flatMap((part, k): Child[] => [
      k > 0 ? ", " : "",
      h("span", { class: `part ${part}` }, names[part]),
    ]),
    ". Numbers in brackets are places from the query.",
  );
}

/** A token of a sentence: where its text stands in the data, and which it is. */
interface Told {
  key: string;
  words: string;
  token: number;
}

/** "«query» keeps «first» over «second»", what is known about it, and the text around it. */
function sentence(
  data: Audit,
  at: string,
  one: SupportPair | UncertainQuery,
  [keep, keeps]: [string, Told],
  [over, drops]: [string, Told],
  ...more: Child[]
): HTMLElement {
  const { position } = one;
  const told = ({ key, words, token }: Told): Node => tokenWords(`${at}.${key}`, words, token, position);
  const own = position ?? one.query;
  return h(
    "li",
    {},
    h(
      "p",
      {},
      tokenWords(`${at}.query_text`, one.query_text, own, own),
      keep,
      told(keeps),
      over,
      told(drops),
      h("span", { class: "hint" }, ...more),
    ),
    excerpt(data, one.sequence, [
      { token: keeps.token, part: "keeps" },
      { token: drops.token, part: "drops" },
      ...(position === null ? [] : [{ token: position, part: "asks" } as const]),
    ]),
  );
}

export function pairsCard(data: Audit, { view, path }: Shown): HTMLElement {
  const some = view.pairs.length > 0;
  const list = view.pairs.map((one, j) => {
    const at = `${path}.pairs.${j}`;
    return sentence(
      data,
      at,
      one,
      [" keeps ", { key: "keep_text", words: one.keep_text, token: one.keep }],
      [" over ", { key: "drop_text", words: one.drop_text, token: one.drop }],
      brief(`${at}.weight`, one.weight, true),
      ` \u00b7 ${one.keep_kind} over ${one.drop_kind}`,
    );
  });
  return h(
    "section",
    { class: "card wide" },
    h("h3", {}, "Support pairs"),
    h(
      "p",
      { class: "hint" },
      some
        ? "The comparisons that the smallest W rests on, heaviest first, with their share of all multipliers."
        : "There are none: the problem was not run, or has no rows.",
    ),
    some ? partsLegend() : null,
    h("ol", { class: "sentences" }, ...list),
  );
}

export function uncertainCard(data: Audit, { view, path }: Shown): HTMLElement {
  const list = view.uncertain.map((one, j) => {
    const at = `${path}.uncertain.${j}`;
    return sentence(
      data,
      at,
      one,
      [": ", { key: "first_text", words: one.first_text, token: one.first }],
      [" or ", { key: "second_text", words: one.second_text, token: one.second }],
      "gap ",
      brief(`${at}.gap`, one.gap),
      ", attention ",
      brief(`${at}.weight`, one.weight, true),
    );
  });
  return h(
    "section",
    { class: "card wide" },
    h("h3", {}, "Least certain queries"),
    h("p", { class: "hint" }, "The queries whose two best tokens are closest, of all that choose."),
    h("ol", { class: "sentences" }, ...list),
  );
}
