// The priority graph of a last token: components as boxes, those before others above them, arrows between them.
import type { NextToken, PriorityGraph, TokenGroup } from "./data";
import { h } from "./dom";
import { csv } from "./download";
import { counted } from "./format";
import { Frame } from "./frame";
import { literal } from "./runs";
import { drawArrow } from "./marks";
import type { Pen } from "./pen";
import type { Store } from "./state";
import { colour, onTheme } from "./theme";

interface Box {
  x: number;
  y: number;
  width: number;
  lines: string[];
}

const font = "13px system-ui, sans-serif";
const line = 20,
  inner = 9, // between the words of a box and its edge
  beside = 14, // between boxes
  between = 46, // between levels: room for arrows
  edge = 8;

export const quoted = (word: string): string => `\u00ab${word}\u00bb`;

/** The words of a group, in lines that fit. */
function linesOf(pen: Pen, group: TokenGroup, width: number): string[] {
  const rest = group.size - group.words.length;
  const words = rest > 0 ? [...group.words, `and ${rest} more`] : group.words;
  const lines: string[] = [];
  for (const word of words) {
    const longer = `${lines.at(-1) ?? ""}  ${word}`;
    if (lines.length > 0 && pen.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(clipped(pen, word, width));
  }
  return lines;
}

function clipped(pen: Pen, word: string, width: number): string {
  let all = [...word];
  while (all.length > 1 && pen.measureText(`${all.join("")}\u2026`).width > width) all = all.slice(0, -1);
  return all.length === [...word].length ? word : `${all.join("")}\u2026`;
}

/** Where the groups stand: level below level, a level in as many rows as it needs. */
function layout(pen: Pen, graph: PriorityGraph, width: number): { boxes: Box[]; height: number } {
  const boxes: Box[] = graph.groups.map(() => ({ x: 0, y: 0, width: 0, lines: [] }));
  const levels = 1 + Math.max(0, ...graph.groups.map((group) => group.level));
  let top = edge;
  for (let level = 0; level < levels; level += 1) {
    const rows: number[][] = [[]];
    let used = 0;
    graph.groups.forEach((group, k) => {
      const box = boxes[k];
      if (group.level !== level || !box) return;
      box.lines = linesOf(pen, group, Math.min(320, width - 2 * edge - 2 * inner));
      box.width = Math.max(...box.lines.map((words) => pen.measureText(words).width)) + 2 * inner;
      if (used > 0 && used + box.width > width - 2 * edge) {
        rows.push([]);
        used = 0;
      }
      rows.at(-1)?.push(k);
      used += box.width + beside;
    });
    for (const row of rows) {
      const list = row.map((k) => boxes[k]).filter((box) => box !== undefined);
      const whole = list.reduce((sum, box) => sum + box.width + beside, -beside);
      let x = (width - whole) / 2,
        tallest = 0;
      for (const box of list) {
        box.x = x;
        box.y = top;
        x += box.width + beside;
        tallest = Math.max(tallest, box.lines.length * line + 2 * inner);
      }
      top += tallest + beside;
    }
    top += between - beside;
  }
  return { boxes, height: top - between + edge };
}

const tall = (box: Box): number => box.lines.length * line + 2 * inner;

export class GraphView {
  private readonly frame: Frame;
  private readonly canvas = h("canvas", { class: "map", "aria-hidden": "true" });
  private boxes: Box[] = [];
  private at: number | null = null;

  constructor(
    host: HTMLElement,
    private readonly data: NextToken,
    private readonly store: Store,
  ) {
    this.frame = new Frame(host, "graph", (pen, width, ratio) => this.drawFigure(pen, width, ratio));
    const { plot } = this.frame;
    plot.append(this.canvas);
    const point = (event: PointerEvent): void => this.read(this.groupAt(event));
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.read(null); // a finger leaves when it is lifted
    });
    plot.addEventListener("keydown", (event) => this.key(event));
    plot.addEventListener("blur", () => this.read(null));
    new ResizeObserver(() => this.draw()).observe(plot);
    onTheme(() => this.draw());
    store.on((changed) => {
      if (changed.has("query")) this.update();
    });
    this.update();
  }

  private graph(): PriorityGraph | undefined {
    return this.data.graphs[this.store.get().query];
  }

  private update(): void {
    const graph = this.graph();
    if (!graph) return;
    this.at = null;
    const left = graph.tokens - graph.drawn;
    const parts = [
      `Arrows lead from a token to those that it comes before in the ${counted(graph.sequences, "sequence")} that ` +
        `end in ${quoted(graph.word)}.`,
      graph.components > 0
        ? "A box of several tokens is a component: no W orders them, and their logits stay finite."
        : "Every token is a component of its own: all can be ordered.",
      graph.implied > 0 ? `${counted(graph.implied, "arrow")} that follow from others are not drawn.` : "",
      left > 0
        ? `${graph.drawn} of ${graph.tokens} tokens are drawn: components of several first, then those with most edges.`
        : "",
    ];
    this.frame.describe(`graph-${graph.last}`, `After ${literal(quoted(graph.word))}`, parts.filter(Boolean).join(" "));
    this.frame.buttons([], () =>
      csv(
        ["from", "to"],
        graph.arrows.map(([from = 0, to = 0]) => [this.words(graph.groups[from]), this.words(graph.groups[to])]),
      ),
    );
    this.draw();
    this.read(null);
  }

  private words(group: TokenGroup | undefined): string {
    if (!group) return "";
    const rest = group.size - group.words.length;
    return [...group.words.map(quoted), ...(rest > 0 ? [`${rest} more`] : [])].join(", ");
  }

  private draw(): void {
    const graph = this.graph(),
      width = this.frame.plot.clientWidth,
      pen = this.canvas.getContext("2d");
    if (!graph || !pen || width === 0) return;
    const ratio = devicePixelRatio;
    pen.font = font;
    const made = layout(pen, graph, width);
    this.boxes = made.boxes;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(made.height * ratio);
    this.canvas.style.height = `${made.height}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint(pen, graph, made.boxes, 0);
    pen.setTransform(1, 0, 0, 1, 0, 0);
  }

  /** Sizes are in pixels of the page; a picture of more pixels is drawn larger by its caller's ratio. */
  private paint(pen: Pen, graph: PriorityGraph, boxes: Box[], head: number, ratio = 1): void {
    const scaled = (value: number): number => value * ratio;
    pen.font = font.replace("13", String(13 * ratio));
    pen.lineWidth = 1.5 * ratio;
    for (const [from = 0, to = 0] of graph.arrows) {
      const [a, b] = [boxes[from], boxes[to]];
      if (!a || !b) continue;
      const marked = this.at === from || this.at === to;
      pen.strokeStyle = pen.fillStyle = colour(marked ? "accent" : "muted");
      drawArrow(
        pen,
        [scaled(a.x + a.width / 2), scaled(head + a.y + tall(a))],
        [scaled(b.x + b.width / 2), scaled(head + b.y)],
        ratio,
      );
    }
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    boxes.forEach((box, k) => {
      const tied = (graph.groups[k]?.size ?? 1) > 1;
      const [x, y, width, height] = [box.x, head + box.y, box.width, tall(box)].map(scaled) as [
        number,
        number,
        number,
        number,
      ];
      pen.fillStyle = colour(tied ? "warn-soft" : "surface");
      pen.fillRect(x, y, width, height);
      pen.strokeStyle = colour(this.at === k ? "accent" : tied ? "warn" : "line");
      pen.lineWidth = (this.at === k || tied ? 2 : 1) * ratio;
      pen.strokeRect(x, y, width, height);
      pen.fillStyle = colour(tied ? "warn" : "text");
      box.lines.forEach((words, n) => pen.fillText(words, x + width / 2, y + scaled(inner + (n + 0.5) * line)));
    });
  }

  private drawFigure(pen: Pen, width: number, ratio: number): number {
    const graph = this.graph();
    if (!graph) return 0;
    const head = 34;
    pen.font = font;
    const { boxes, height } = layout(pen, graph, width);
    pen.fillStyle = colour("surface");
    pen.fillRect(0, 0, width * ratio, (height + head) * ratio);
    pen.fillStyle = colour("text");
    pen.font = `600 ${15 * ratio}px system-ui, sans-serif`;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText(`After ${quoted(graph.word)}`, 12 * ratio, 18 * ratio);
    pen.save();
    pen.beginPath();
    pen.rect(0, head * ratio, width * ratio, height * ratio);
    pen.clip();
    this.paint(pen, graph, boxes, head, ratio);
    pen.restore();
    return height + head;
  }

  private groupAt(event: PointerEvent): number | null {
    const rect = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - rect.left, event.clientY - rect.top];
    const found = this.boxes.findIndex(
      (box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + tall(box),
    );
    return found < 0 ? null : found;
  }

  private key(event: KeyboardEvent): void {
    const last = this.boxes.length - 1;
    const now = this.at ?? -1;
    const moves: Record<string, number> = {
      ArrowRight: now + 1,
      ArrowDown: now + 1,
      ArrowLeft: now - 1,
      ArrowUp: now - 1,
      Home: 0,
      End: last,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.read(Math.min(last, Math.max(0, to)));
  }

  private read(k: number | null): void {
    const graph = this.graph(),
      changed = k !== this.at;
    this.at = k;
    if (changed) this.draw();
    const box = k === null ? undefined : this.boxes[k],
      group = k === null ? undefined : graph?.groups[k];
    if (!graph || !box || !group) return this.frame.read(null);
    const names = (list: number[]): string => list.map((one) => this.words(graph.groups[one])).join(", ");
    const after = graph.arrows.filter(([from]) => from === k).map(([, to = 0]) => to),
      before = graph.arrows.filter(([, to]) => to === k).map(([from = 0]) => from);
    this.frame.read(
      { x: box.x + box.width / 2, y: box.y },
      h("strong", {}, this.words(group)),
      group.size > 1 ? ": no W orders these tokens" : "",
      after.length > 0 ? `; before ${names(after)}` : "",
      before.length > 0 ? `; after ${names(before)}` : "",
    );
  }
}
