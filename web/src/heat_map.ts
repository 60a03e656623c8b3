// The attention of all queries at one step: a row per query, a column per token, on a canvas.
import type { Report } from "./data";
import { h } from "./dom";
import { csv } from "./download";
import { share } from "./format";
import { Frame } from "./frame";
import { tokenName } from "./names";
import type { Pen } from "./pen";
import { literal, pointAt, runNames } from "./runs";
import type { Store } from "./state";
import { colour, onTheme } from "./theme";

interface Cell {
  query: number;
  token: number;
}
interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

const font = "system-ui, sans-serif";
const room = { left: 76, top: 8, right: 12, foot: 44 }; // around the cells
const tallest = 560,
  tall = 26; // of the map, and of a row

/** Bytes 0 to 255 are roots of weights: the colour between that of the paper and the accent. */
function palette(): number[][] {
  const rgb = (name: string): number[] =>
    [1, 3, 5].map((at) => Number.parseInt(colour(name).slice(at, at + 2), 16) || 0);
  const from = rgb("surface"),
    to = rgb("accent");
  const mix = (part: number, k: number): number => Math.round((from[k] ?? 0) + part * ((to[k] ?? 0) - (from[k] ?? 0)));
  return Array.from({ length: 256 }, (_, byte) => {
    const part = byte / 255;
    return [mix(part, 0), mix(part, 1), mix(part, 2)];
  });
}

export class HeatMap {
  private readonly frame: Frame;
  private readonly canvas = h("canvas", { class: "map", "aria-hidden": "true" });
  private readonly cells = h("canvas"); // one pixel each
  private readonly bytes: Uint8Array[];
  private readonly starts: number[][]; // per run: where each query begins, and the end
  private readonly columns: number;
  private at: Cell | null = null;

  constructor(
    host: HTMLElement,
    private readonly data: Report,
    private readonly store: Store,
  ) {
    this.bytes = data.runs.map((run) => Uint8Array.from(atob(run.map.weights), (letter) => letter.charCodeAt(0)));
    this.starts = data.runs.map((run) => {
      const list = [0];
      for (let i = 0; i < run.map.queries; i += 1) list.push((list[i] ?? 0) + (data.queries.reach[i] ?? 0));
      return list;
    });
    this.columns = data.queries.reach.slice(0, this.rows()).reduce((most, one) => Math.max(most, one), 1);
    this.frame = new Frame(host, "heat map", (pen, width, ratio) => this.drawFigure(pen, width, ratio));
    const { plot } = this.frame;
    plot.append(this.canvas);
    plot.addEventListener("pointermove", (event) => this.point(this.cellAt(event)));
    plot.addEventListener("pointerdown", (event) => this.point(this.cellAt(event)));
    plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.point(null); // a finger leaves when it is lifted
    });
    plot.addEventListener("click", (event) => this.open(this.cellAt(event)));
    plot.addEventListener("keydown", (event) => this.key(event));
    plot.addEventListener("blur", () => this.point(null));
    new ResizeObserver(() => this.draw()).observe(plot);
    onTheme(() => this.update());
    store.on(() => this.update());
    this.update();
    this.frame.buttons([], () => this.csv());
  }

  private run(): number {
    return this.store.get().run;
  }
  private rows(): number {
    return this.data.runs[this.run()]?.map.queries ?? 0;
  }
  private moment(): number {
    return pointAt(this.data, this.run(), this.store.get().step);
  }

  /** Where the picture of the current step begins: the last one reached. */
  private picture(): number {
    const points = this.data.runs[this.run()]?.map.points ?? [];
    const reached = points.findLastIndex((one) => one <= this.moment());
    return Math.max(0, reached) * (this.starts[this.run()]?.at(-1) ?? 0);
  }

  /** The weight of a token as the map holds it: 255 times its root. */
  private weight({ query, token }: Cell, picture = this.picture()): number {
    return this.bytes[this.run()]?.[picture + (this.starts[this.run()]?.[query] ?? 0) + token] ?? 0;
  }

  private update(): void {
    const { data } = this;
    const run = data.runs[this.run()];
    const map = run?.map;
    if (!map) return;
    const several = data.runs.length > 1 ? ` of ${literal(runNames(data)[this.run()] ?? "")}` : "";
    const parts: string[] = [];
    if (map.queries < data.task.queries) parts.push(`The page holds the first ${map.queries} queries.`);
    if (map.points.length < run.norm.length)
      parts.push(`It holds ${map.points.length} of ${run.norm.length} points, and shows the last one reached.`);
    this.frame.describe(
      "attention-map",
      `Attention map${several}`,
      "One row per query, one cell per token: the stronger its colour, the more attention at this step. Framed: the " +
        `tokens that the run selects in the end. Click a row, or press Enter, to open that query. ${parts.join(" ")}`,
    );
    this.paintCells();
    this.draw();
  }

  private paintCells(): void {
    const rows = this.rows();
    this.cells.width = this.columns;
    this.cells.height = rows;
    const pen = this.cells.getContext("2d");
    if (!pen) return;
    const image = pen.createImageData(this.columns, rows);
    const pixels = new Uint32Array(image.data.buffer); // one per cell: quicker than four bytes
    const colours = palette().map(([r = 0, g = 0, b = 0]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
    const picture = this.picture();
    for (let query = 0; query < rows; query += 1) {
      for (let token = 0; token < (this.data.queries.reach[query] ?? 0); token += 1)
        pixels[query * this.columns + token] = colours[this.weight({ query, token }, picture)] ?? 0;
      for (const token of this.data.queries.hidden?.[query] ?? []) pixels[query * this.columns + token] = 0;
    }
    pen.putImageData(image, 0, 0);
  }

  private height(): number {
    return Math.min(tallest, Math.max(120, this.rows() * tall)) + room.top + room.foot;
  }

  private box(width: number): Box {
    return {
      left: room.left,
      top: room.top,
      width: width - room.left - room.right,
      height: this.height() - room.top - room.foot,
    };
  }

  private draw(): void {
    const width = this.frame.plot.clientWidth;
    if (width === 0) return;
    const ratio = devicePixelRatio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height() * ratio);
    this.canvas.style.height = `${this.height()}px`;
    const pen = this.canvas.getContext("2d");
    if (!pen) return;
    this.drawMap(pen, this.box(width), ratio);
    this.show();
  }

  private drawFigure(pen: Pen, width: number, ratio: number): number {
    const head = 34;
    pen.fillStyle = colour("surface");
    pen.fillRect(0, 0, width * ratio, (this.height() + head) * ratio);
    pen.fillStyle = colour("text");
    pen.font = `600 ${15 * ratio}px ${font}`;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText("Attention map", 12 * ratio, 18 * ratio);
    const box = this.box(width);
    this.drawMap(pen, { ...box, top: box.top + head }, ratio);
    return this.height() + head;
  }

  private drawMap(pen: Pen, box: Box, ratio: number): void {
    const rows = this.rows();
    const [left, top, width, height] = [box.left, box.top, box.width, box.height].map((one) => one * ratio) as [
      number,
      number,
      number,
      number,
    ];
    const cell = { width: width / this.columns, height: height / rows };
    pen.fillStyle = colour("background");
    pen.fillRect(left, top, width, height);
    if ("imageSmoothingEnabled" in pen) pen.imageSmoothingEnabled = cell.height < 1 || cell.width < 1;
    pen.drawImage(this.cells, left, top, width, height);
    pen.font = `${12 * ratio}px ${font}`;
    pen.textBaseline = "middle";
    pen.lineWidth = ratio;
    const large = cell.width > 10 * ratio && cell.height > 8 * ratio;
    for (let i = 0; i < rows && large; i += 1) {
      for (const token of this.data.runs[this.run()]?.kept[i] ?? []) {
        pen.strokeStyle = colour("text");
        pen.strokeRect(
          left + token * cell.width + ratio,
          top + i * cell.height + ratio,
          cell.width - 2 * ratio,
          cell.height - 2 * ratio,
        );
      }
      this.drawNames(pen, i, left, top + i * cell.height, cell, ratio);
    }
    this.drawAxes(pen, left, top, width, height, cell, ratio);
    const mark = (query: number, token: number | null): void => {
      pen.strokeStyle = colour("warn");
      pen.lineWidth = 2 * ratio;
      const y = top + query * cell.height;
      if (token === null) pen.strokeRect(left - 3 * ratio, y, width + 6 * ratio, cell.height);
      else pen.strokeRect(left + token * cell.width, y, cell.width, cell.height);
    };
    if (this.store.get().query < rows) mark(this.store.get().query, null);
    if (this.at) mark(this.at.query, this.at.token);
  }

  /** The texts of a row's tokens, where the task has them and they fit. */
  private drawNames(
    pen: Pen,
    query: number,
    left: number,
    top: number,
    cell: { width: number; height: number },
    ratio: number,
  ): void {
    const { plane, queries } = this.data;
    const start = plane.offsets[queries.sequence[query] ?? 0];
    if (!plane.names || start === undefined || cell.height < 14 * ratio) return;
    pen.textAlign = "center";
    for (let token = 0; token < (queries.reach[query] ?? 0); token += 1) {
      const name = plane.names[start + token] ?? "";
      if (pen.measureText(name).width > cell.width - 6 * ratio) continue;
      pen.fillStyle = colour(this.weight({ query, token }) > 140 ? "surface" : "text");
      pen.fillText(name, left + (token + 0.5) * cell.width, top + cell.height / 2);
    }
  }

  private drawAxes(
    pen: Pen,
    left: number,
    top: number,
    width: number,
    height: number,
    cell: { width: number; height: number },
    ratio: number,
  ): void {
    const every = (size: number, space: number): number => {
      const least = (space * ratio) / size;
      return [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => step >= least) ?? Math.ceil(least);
    };
    pen.fillStyle = colour("text");
    pen.textAlign = "right";
    const down = every(cell.height, 16);
    for (let i = 0; i < this.rows(); i += down)
      pen.fillText(String(i), left - 8 * ratio, top + (i + 0.5) * cell.height);
    pen.textAlign = "center";
    const along = every(cell.width, 30);
    for (let t = 0; t < this.columns; t += along)
      pen.fillText(String(t), left + (t + 0.5) * cell.width, top + height + 12 * ratio);
    pen.textAlign = "left";
    pen.fillText("token", left, top + height + 32 * ratio);
    this.drawScale(pen, left + width, top + height + 32 * ratio, ratio);
    pen.textAlign = "center";
    pen.save();
    pen.translate(12 * ratio, top + height / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText("query", 0, 0);
    pen.restore();
  }

  /** Which colour is which weight. */
  private drawScale(pen: Pen, right: number, y: number, ratio: number): void {
    const [strip, parts] = [2 * ratio, 60];
    const left = right - strip * parts - 42 * ratio;
    palette().forEach(([r, g, b], byte) => {
      if ((byte * parts) % 256 >= parts) return; // one colour per strip
      pen.fillStyle = `rgb(${r},${g},${b})`;
      pen.fillRect(left + Math.floor((byte * parts) / 256) * strip, y - 5 * ratio, strip, 10 * ratio);
    });
    pen.fillStyle = colour("text");
    pen.textAlign = "right";
    pen.fillText("0\u202f%", left - 4 * ratio, y);
    pen.textAlign = "left";
    pen.fillText("100\u202f%", right - 38 * ratio, y);
  }

  private cellAt(event: MouseEvent): Cell | null {
    const frame = this.canvas.getBoundingClientRect();
    const box = this.box(frame.width);
    const query = Math.floor(((event.clientY - frame.top - box.top) / box.height) * this.rows());
    const token = Math.floor(((event.clientX - frame.left - box.left) / box.width) * this.columns);
    const inside = query >= 0 && query < this.rows() && token >= 0;
    return inside && token < (this.data.queries.reach[query] ?? 0) ? { query, token } : null;
  }

  private point(cell: Cell | null): void {
    if (cell?.query === this.at?.query && cell?.token === this.at?.token) return;
    this.at = cell;
    this.draw();
  }

  private show(): void {
    const cell = this.at;
    if (!cell) return this.frame.read(null);
    const { data } = this;
    const one = data.runs[this.run()]?.attention[cell.query];
    const k = one?.tokens.indexOf(cell.token) ?? -1;
    const point = this.moment();
    const exact =
      k >= 0
        ? share(`runs.${this.run()}.attention.${cell.query}.weights.${k}.${point}`, one?.weights[k]?.[point])
        : h("span", { class: "num" }, `about ${Math.round(100 * (this.weight(cell) / 255) ** 2)}\u202f%`);
    const box = this.box(this.frame.plot.clientWidth);
    this.frame.read(
      {
        x: box.left + ((cell.token + 0.5) * box.width) / this.columns,
        y: box.top + ((cell.query + 0.5) * box.height) / this.rows(),
      },
      h("strong", {}, `query ${cell.query}`),
      " token ",
      h("span", { "data-token": "" }, tokenName(data, cell.query, cell.token)),
      ": ",
      exact,
    );
  }

  private open(cell: Cell | null): void {
    if (cell) this.store.set({ view: "plane", query: cell.query });
  }

  private key(event: KeyboardEvent): void {
    const moves: Record<string, [number, number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const move = moves[event.key];
    if (event.key === "Enter") this.open(this.at);
    else if (event.key === "Escape") this.point(null);
    else if (move && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const from = this.at ?? { query: Math.min(this.rows() - 1, this.store.get().query), token: 0 };
      const [down, across] = this.at ? move : [0, 0];
      const query = Math.min(this.rows() - 1, Math.max(0, from.query + down));
      const last = (this.data.queries.reach[query] ?? 1) - 1;
      this.point({ query, token: Math.min(last, Math.max(0, from.token + across)) });
    } else return;
    event.preventDefault();
  }

  private csv(): string {
    const { data } = this;
    const point = this.moment();
    const list = data.runs[this.run()]?.attention ?? [];
    return csv(
      ["query", "token", "weight"],
      list.flatMap((one, i) => one.tokens.map((token, k) => [i, token, one.weights[k]?.[point]])),
    );
  }
}
