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

/** Where there is no room for sub- and superscripts: canvases, options, CSV. */
export function labelText(label: string): string {
  return pieces(label)
    .map((piece) => (piece.kind === "plain" ? piece.text : piece.kind === "sup" ? `^${piece.text}` : `_${piece.text}`))
    .join("");
}
