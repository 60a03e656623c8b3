// Labels of figures are written as gnuplot reads them: W^{mm}_{*}, with a backslash before what is meant literally.
import { h } from "./dom";

interface Piece {
  kind: "plain" | "sup" | "sub";
  text: string;
}

function pieces(label: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  const literal = (): string => {
    if (label[at] === "\\" && at + 1 < label.length) at += 1;
    const code = label.codePointAt(at);
    const character = code === undefined ? "" : String.fromCodePoint(code);
    at += character.length;
    return character;
  };
  const add = (kind: Piece["kind"], words: string): void => {
    const last = found.at(-1);
    if (last && last.kind === kind && kind === "plain") last.text += words;
    else found.push({ kind, text: words });
  };
  while (at < label.length) {
    const mark = label[at];
    if ((mark === "^" || mark === "_") && at + 1 < label.length) {
      at += 1;
      let inner = "";
      if (label[at] === "{") {
        at += 1;
        while (at < label.length && label[at] !== "}") inner += literal();
        at += 1;
      } else {
        inner = literal();
      }
      add(mark === "^" ? "sup" : "sub", inner);
    } else if (mark === "{" || mark === "}") {
      at += 1;
    } else {
      add("plain", literal());
    }
  }
  return found;
}

export function labelNodes(label: string): Node[] {
  return pieces(label).map((piece) =>
    piece.kind === "plain" ? document.createTextNode(piece.text) : h(piece.kind, {}, piece.text),
  );
}

const raised: Record<string, string> = {
  g: "\u1d4d",
  m: "\u1d50",
  s: "\u02e2",
  v: "\u1d5b",
  "-": "\u207b",
  ...digits("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"),
};
const lowered: Record<string, string> = {
  "*": "\u204e",
  ...digits("\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089"),
};

function digits(characters: string): Record<string, string> {
  return Object.fromEntries([...characters].map((character, k) => [String(k), character]));
}

/** In small characters where there is one for each; else behind a mark. */
function small(words: string, characters: Record<string, string>, mark: string): string {
  const found = [...words].map((character) => characters[character]);
  return found.includes(undefined) ? mark + words : found.join("");
}

/** Where there are no elements for sub- and superscripts: canvases, options, sentences. */
export function labelText(label: string): string {
  return pieces(label)
    .map((piece) =>
      piece.kind === "plain"
        ? piece.text
        : piece.kind === "sup"
          ? small(piece.text, raised, "^")
          : small(piece.text, lowered, "_"),
    )
    .join("");
}

/** In files, where every program must read it. */
export function labelAscii(label: string): string {
  return pieces(label)
    .map(({ kind, text }) => (kind === "plain" ? text : kind === "sup" ? `^${text}` : `_${text}`))
    .join("");
}

const marks = /\^(mm|gsvm|-?\d+(?:\.\d+)?)|_(fin|\*)/g;

/** A sentence of the program, which writes W^mm, 2^-52 and t^-0.5, as the page writes them. */
export function sentenceNodes(words: string): Node[] {
  const nodes: Node[] = [];
  let at = 0;
  for (const found of words.matchAll(marks)) {
    nodes.push(document.createTextNode(words.slice(at, found.index)));
    nodes.push(found[1] ? h("sup", {}, found[1].replace("-", "\u2212")) : h("sub", {}, found[2] ?? ""));
    at = found.index + found[0].length;
  }
  nodes.push(document.createTextNode(words.slice(at)));
  return nodes;
}
