// Names on the stage: each beside what it names, where it covers nothing.
import { svg } from "../dom";
import { isolated, shortened } from "../names";
import { boxesAlong, type Box, freePlace, type Named } from "../tags";
import type { Handle } from "./handles";
import type { Map, Spot } from "./stage_parts";

/** What is to be named, in pixels. */
export interface Name {
  text: string;
  at: Spot;
  r: number; // of what is there
  kind: string; // class
  needed: boolean; // without room it stands above, whatever it covers; others are then left out
}

const pen = document.createElement("canvas").getContext("2d");
const height = 16;
const mark = 11; // radius around the middle of what can be dragged

function widthOf(text: string): number {
  if (!pen) return 8 * text.length;
  pen.font = "13px system-ui, sans-serif";
  return pen.measureText(text).width;
}

const number = (line: SVGElement, name: string): number => Number(line.getAttribute(name));

/** `drawn`: whose lines names keep off. In the order of `names`: the first has all the room. */
export function namesOf(
  names: readonly Name[],
  handles: Iterable<Handle>,
  drawn: SVGElement[],
  map: Map,
): SVGElement[] {
  const stage: Box = { left: 2, top: 2, width: map.width - 4, height: map.height - 4 };
  const taken = [...handles].map((handle): Box => {
    const [x, y] = map.at(handle.at);
    const r = handle.own ? mark : mark / 2;
    return { left: x - r, top: y - r, width: 2 * r, height: 2 * r };
  });
  for (const line of drawn.filter((one) => one.matches("line.solution, line.trained, line.clash, line.side")))
    taken.push(...boxesAlong([number(line, "x1"), number(line, "y1")], [number(line, "x2"), number(line, "y2")], 6));
  return names.flatMap(({ text, at: [x, y], r, kind, needed }) => {
    const words = isolated(shortened(text));
    const width = widthOf(words);
    const point: Named = { x, y, r, name: words, along: null };
    const free = freePlace(point, [width, height], stage, taken);
    if (!free && !needed) return [];
    const place = free ?? { left: x - width / 2, top: y - r - height, width, height };
    taken.push(place);
    const spot = { x: (place.left + width / 2).toFixed(1), y: (place.top + 12).toFixed(1) };
    return [svg("text", { class: `name ${kind}`, "text-anchor": "middle", ...spot }, words)];
  });
}
