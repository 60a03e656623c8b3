// A chart: axes, zoom and pixels by uPlot, marks by ours; a legend of switches, the values of the point under the
// pointer or the keyboard, and the numbers as a table for those who cannot see it.
import uPlot from "uplot";

import { button, freshId, h } from "./dom";
import { csv, csvButton } from "./download";
import { formatted, num, power } from "./format";
import { labelNodes, labelText } from "./label";
import { type Curve, drawCurve, type Mapper, swatch, trace } from "./marks";
import { fitted, logSplits, type Range, rangeOf, squared } from "./ranges";
import { pagedTable } from "./table";
import { colour, look, onTheme } from "./theme";

export interface Series extends Curve {
  label: string;
  style: number;
  path?: { x?: string | undefined; y: string } | undefined; // lists of the data; left out for x: it counts
  name?: ((point: number) => string) | undefined; // of a point
  hidden?: boolean | undefined; // until its switch is used
}

/** Something drawn over the curves that moves on its own, with a switch in the legend. */
export interface Overlay {
  label: string;
  style: number;
  mark: "arrow" | "rule";
  dash: number[];
  draw: (ctx: CanvasRenderingContext2D, map: Mapper) => void;
}

export interface ChartAxis {
  label: string;
  log?: boolean;
  range?: Range | null;
  whole?: boolean; // counts: no ticks between them
}

export interface ChartSpec {
  title: string;
  summary: string; // the text alternative
  name: string; // of files
  x: ChartAxis;
  y: ChartAxis;
  series: Series[];
  overlays?: Overlay[];
  square?: boolean;
  height?: number;
  logs?: boolean; // offer logarithmic axes
  include?: { x: number[]; y: number[] }; // to be seen too
}

function valueNode(series: Series, key: "x" | "y", k: number, value: number | null): Node {
  const path = series.path?.[key];
  return path ? num(`${path}.${k}`, value) : h("span", { class: "num", "data-derived": "" }, formatted(value));
}

/** Where a series lies on the x axis: boxes reach to both sides of their places. */
function reachAcross(series: Series): ArrayLike<number | null>[] {
  if (series.mark !== "boxes") return [series.x];
  const half = (series.width ?? 0) / 2;
  return [-half, half].map((by) => Array.from(series.x, (value) => (value === null ? null : value + by)));
}

interface Hit {
  series: number;
  point: number;
}

export class Chart {
  readonly root: HTMLElement;
  private spec: ChartSpec;
  private readonly plot: HTMLElement;
  private readonly legend = h("div", { class: "legend" });
  private readonly readout = h("output", { class: "readout", "aria-live": "polite" });
  private readonly bar = h("div", { class: "bar" });
  private readonly details: HTMLDetailsElement;
  private readonly off = new Set<string>();
  private readonly known = new Set<string>(); // labels whose switch the reader may have moved
  private u: uPlot | null = null;
  private over: HTMLCanvasElement | null = null;
  private log = { x: false, y: false };
  private ranges: { x: Range; y: Range } = { x: [0, 1], y: [0, 1] };
  private zoomed = false;
  private hit: Hit | null = null;
  private marker: number | null = null;

  constructor(host: HTMLElement, spec: ChartSpec) {
    this.spec = spec;
    const id = freshId();
    const hint = "Arrow keys move from point to point, up and down from curve to curve, plus and minus zoom, 0 shows all.";
    this.plot = h("div", { class: "plot", tabindex: 0, role: "group", "aria-roledescription": "chart", "aria-labelledby": `${id}-title`, "aria-describedby": `${id}-summary`, title: hint });
    this.details = h("details", { class: "numbers" }, h("summary", {}, "Numbers of this chart"));
    this.details.addEventListener("toggle", () => this.fillTable());
    this.root = h("figure", { class: "chart" },
      h("figcaption", {}, h("h3", { id: `${id}-title` }, ...labelNodes(spec.title)), h("p", { id: `${id}-summary`, class: "summary" }, spec.summary)),
      this.bar, this.plot, this.legend, this.readout, this.details);
    host.append(this.root);
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.plot.addEventListener("blur", () => this.point(null));
    new ResizeObserver(() => this.resize()).observe(this.plot);
    onTheme(() => this.paint());
    this.update(spec);
  }

  /** Another picture in the same frame; switches keep their places. */
  update(spec: ChartSpec): void {
    this.spec = spec;
    this.log = { x: spec.x.log ?? false, y: spec.y.log ?? false };
    for (const series of spec.series) {
      if (series.hidden && !this.known.has(series.label)) this.off.add(series.label);
      this.known.add(series.label);
    }
    const caption = this.root.querySelector("figcaption");
    caption?.querySelector("h3")?.replaceChildren(...labelNodes(spec.title));
    const summary = caption?.querySelector("p");
    if (summary) summary.textContent = spec.summary;
    this.hit = null;
    this.zoomed = false;
    this.drawLegend();
    this.drawBar();
    this.show();
    this.rebuild();
    this.fillTable();
  }

  /** A vertical line where the reader stands. */
  setMarker(x: number | null): void {
    this.marker = x;
    this.paintOver();
  }

  /** Draws what moves again, and nothing else. */
  paintOver(): void {
    const u = this.u, canvas = this.over;
    if (!u || !canvas) return;
    const ratio = devicePixelRatio;
    const width = Math.round(u.over.clientWidth * ratio), height = Math.round(u.over.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const ctx = canvas.getContext("2d");
    if (!ctx) return;
    ctx.clearRect(0, 0, width, height);
    const map = this.mapper(false);
    for (const overlay of this.spec.overlays ?? []) {
      if (this.off.has(overlay.label)) continue;
      ctx.save();
      const style = look(overlay.style);
      ctx.strokeStyle = style.colour;
      ctx.fillStyle = style.colour;
      ctx.lineWidth = 2 * ratio;
      ctx.setLineDash(overlay.dash.map((part) => part * ratio));
      overlay.draw(ctx, map);
      ctx.restore();
    }
    if (this.marker !== null) {
      const x = map.x(this.marker);
      ctx.strokeStyle = colour("muted");
      ctx.lineWidth = ratio;
      ctx.beginPath();
      ctx.moveTo(x, 0);
      ctx.lineTo(x, height);
      ctx.stroke();
    }
    this.drawHit(ctx, map);
  }

  private drawHit(ctx: CanvasRenderingContext2D, map: Mapper): void {
    const series = this.hit ? this.spec.series[this.hit.series] : undefined;
    if (!series || !this.hit) return;
    const x = series.x[this.hit.point], y = series.y[this.hit.point];
    if (typeof x !== "number" || typeof y !== "number") return;
    ctx.strokeStyle = colour("text");
    ctx.lineWidth = 2 * map.ratio;
    ctx.beginPath();
    trace(ctx, "ring", map.x(x), map.y(y), 7 * map.ratio);
    ctx.stroke();
  }

  private drawLegend(): void {
    const entries = [
      ...this.spec.series.map((series) => ({ label: series.label, icon: swatch(series.style, look(series.style), series.mark, series.shape) })),
      ...(this.spec.overlays ?? []).map((overlay) => ({ label: overlay.label, icon: swatch(overlay.style, { ...look(overlay.style), dash: overlay.dash }, overlay.mark) })),
    ];
    const seen = new Set<string>();
    this.legend.replaceChildren();
    for (const { label, icon } of entries) {
      if (label === "" || seen.has(label)) continue;
      seen.add(label);
      const made = h("button", { type: "button", class: "series", "aria-pressed": String(!this.off.has(label)), title: "Show or hide",
        onclick: () => {
          if (!this.off.delete(label)) this.off.add(label);
          made.setAttribute("aria-pressed", String(!this.off.has(label)));
          this.paint();
        } }, icon, h("span", {}, ...labelNodes(label)));
      this.legend.append(made);
    }
  }

  private drawBar(): void {
    const toggle = (axis: "x" | "y"): HTMLElement => {
      const made = button(`Log ${axis}`, () => {
        this.log[axis] = !this.log[axis];
        made.setAttribute("aria-pressed", String(this.log[axis]));
        this.zoomed = false;
        this.rebuild();
      }, { class: "quiet", "aria-pressed": String(this.log[axis]) });
      return made;
    };
    this.bar.replaceChildren();
    if (this.spec.logs !== false && !this.spec.square) this.bar.append(toggle("x"), toggle("y"));
    this.bar.append(button("Show all", () => this.reset(), { class: "quiet" }), csvButton(this.spec.name, () => this.csv()));
  }

  private mapper(canvas: boolean): Mapper {
    const u = this.u;
    const ratio = devicePixelRatio;
    if (!u) return { x: () => NaN, y: () => NaN, ratio, visible: () => false };
    const one = (key: "x" | "y"): ((value: number) => number) => {
      const scale = u.scales[key];
      const low = scale?.min ?? 0, high = scale?.max ?? 1;
      const log = this.log[key];
      const at = (value: number): number => (canvas ? u.valToPos(value, key, true) : u.valToPos(value, key) * ratio);
      const from = log ? Math.log(low) : low, to = log ? Math.log(high) : high;
      const start = at(low), slope = (at(high) - start) / (to - from);
      return log ? (value) => (value > 0 ? start + slope * (Math.log(value) - from) : NaN) : (value) => start + slope * (value - from);
    };
    const { left, top, width, height } = u.bbox;
    const [x0, y0] = canvas ? [left, top] : [0, 0];
    const edge = 20 * ratio;
    return { x: one("x"), y: one("y"), ratio, visible: (x, y) => x > x0 - edge && x < x0 + width + edge && y > y0 - edge && y < y0 + height + edge };
  }

  private shown(): Series[] {
    return this.spec.series.filter((series) => !this.off.has(series.label));
  }

  private full(): { x: Range; y: Range } {
    const { spec } = this;
    const all = this.shown();
    const x = spec.x.range && !this.log.x ? spec.x.range : fitted(rangeOf([...all.flatMap(reachAcross), spec.include?.x ?? []], this.log.x), this.log.x);
    const spread = all.flatMap((s) => [s.y, s.low ?? [], s.high ?? []]);
    const y = spec.y.range && !this.log.y ? spec.y.range : fitted(rangeOf([...(this.log.y ? all.map((s) => s.y) : spread), spec.include?.y ?? []], this.log.y), this.log.y);
    return { x, y };
  }

  private rebuild(): void {
    this.u?.destroy();
    this.u = null;
    this.over = null;
    const width = this.plot.clientWidth;
    if (width === 0) return;
    if (!this.zoomed) this.ranges = this.full();
    const axis = (key: "x" | "y"): uPlot.Axis => ({
      label: labelText(this.spec[key].label), labelSize: 22, labelFont: "13px system-ui, sans-serif", font: "12px system-ui, sans-serif", gap: 4, size: key === "x" ? 32 : 58,
      stroke: () => colour("text"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { stroke: () => colour("grid"), width: 1, size: 5 },
      values: (_, splits) => this.ticks(key, splits),
      ...(this.log[key] ? { splits: (_u: uPlot, _axis: number, low: number, high: number) => logSplits([low, high]), filter: (_u: uPlot, splits: number[]) => splits } : {}),
    });
    const scale = (key: "x" | "y"): uPlot.Scale => ({ time: false, auto: false, distr: this.log[key] ? 3 : 1, min: this.ranges[key][0], max: this.ranges[key][1], range: (_, min, max) => [min, max] });
    this.u = new uPlot({
      width, height: this.spec.height ?? 320, legend: { show: false }, padding: [10, 14, 0, 0],
      scales: { x: scale("x"), y: scale("y") }, axes: [axis("x"), axis("y")],
      series: [{}, { paths: () => null, points: { show: false } }],
      cursor: { drag: { x: true, y: true, uni: 10, setScale: false }, points: { show: false }, x: false, y: false },
      hooks: { draw: [() => this.paintCurves()], setSelect: [(u) => this.zoomTo(u)] },
    }, [this.ranges.x, this.ranges.y], this.plot);
    this.over = h("canvas", { class: "over", "aria-hidden": "true" });
    this.u.over.append(this.over);
    this.u.root.setAttribute("aria-hidden", "true");
    this.u.over.addEventListener("mousemove", (event) => this.point(this.nearest(event.offsetX, event.offsetY)));
    this.u.over.addEventListener("mouseleave", () => this.point(null));
    this.u.over.addEventListener("dblclick", () => this.reset());
    this.apply();
  }

  private ticks(key: "x" | "y", splits: number[]): string[] {
    const [low, high] = this.ranges[key];
    const few = this.log[key] && high / low < 300; // few powers of ten: 2 and 5 are named too
    return splits.map((value) => {
      if (value === null || (this.spec[key].whole && !Number.isInteger(value))) return "";
      return this.log[key] ? power(value, few) : formatted(Number(value.toPrecision(12)));
    });
  }

  /** Scales as wanted; on a square plot one unit is as long on either axis. */
  private apply(): void {
    const u = this.u;
    if (!u) return;
    const { x, y } = this.spec.square ? squared(this.ranges.x, this.ranges.y, u.bbox.width, u.bbox.height) : this.ranges;
    u.batch(() => {
      u.setScale("x", { min: x[0], max: x[1] });
      u.setScale("y", { min: y[0], max: y[1] });
    });
    this.paintOver();
  }

  private zoomTo(u: uPlot): void {
    const { left, top, width, height } = u.select;
    if (width < 5 && height < 5) return;
    const across: Range = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    const down: Range = [u.posToVal(top + height, "y"), u.posToVal(top, "y")];
    this.ranges = { x: width < 5 ? this.ranges.x : across, y: height < 5 ? this.ranges.y : down };
    this.zoomed = true;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.apply();
  }

  private scaleBy(factor: number): void {
    for (const key of ["x", "y"] as const) {
      const [low, high] = this.ranges[key];
      const log = this.log[key];
      const a = log ? Math.log(low) : low, b = log ? Math.log(high) : high;
      const middle = (a + b) / 2, half = ((b - a) / 2) * factor;
      const ends: Range = [middle - half, middle + half];
      this.ranges[key] = log ? [Math.exp(ends[0]), Math.exp(ends[1])] : ends;
    }
    this.zoomed = true;
    this.apply();
  }

  private reset(): void {
    this.zoomed = false;
    this.ranges = this.full();
    this.apply();
  }

  private resize(): void {
    const width = this.plot.clientWidth;
    if (width === 0) return;
    if (!this.u) this.rebuild();
    else if (this.u.width !== width) {
      this.u.setSize({ width, height: this.spec.height ?? 320 });
      this.apply();
    }
  }

  private paint(): void {
    this.u?.redraw(false, true);
    this.paintOver();
  }

  private paintCurves(): void {
    const u = this.u;
    if (!u) return;
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    const map = this.mapper(true);
    for (const series of this.shown()) drawCurve(u.ctx, series, map, look(series.style));
    u.ctx.restore();
  }

  private nearest(x: number, y: number): Hit | null {
    const map = this.mapper(false);
    const px = x * map.ratio, py = y * map.ratio;
    let best: Hit | null = null, least = (24 * map.ratio) ** 2;
    this.spec.series.forEach((series, s) => {
      if (this.off.has(series.label)) return;
      for (let k = 0; k < series.x.length; k += 1) {
        const vx = series.x[k], vy = series.y[k];
        if (typeof vx !== "number" || typeof vy !== "number") continue;
        const distance = (map.x(vx) - px) ** 2 + (map.y(vy) - py) ** 2;
        if (distance < least) {
          least = distance;
          best = { series: s, point: k };
        }
      }
    });
    return best;
  }

  private point(hit: Hit | null): void {
    if (hit?.series === this.hit?.series && hit?.point === this.hit?.point) return;
    this.hit = hit;
    this.paintOver();
    this.show();
  }

  private show(): void {
    const series = this.hit ? this.spec.series[this.hit.series] : undefined;
    if (!series || !this.hit) {
      this.readout.replaceChildren("Point at a value, or press an arrow key here, to read it.");
      return;
    }
    const k = this.hit.point;
    const value = (key: "x" | "y"): Node => {
      const number = series[key][k] ?? null;
      return valueNode(series, key, k, number);
    };
    const spread = series.low && series.high && series.path ? [" (", num(`${series.path.y.replace(/\.y$/, ".low")}.${k}`, series.low[k]), " to ", num(`${series.path.y.replace(/\.y$/, ".high")}.${k}`, series.high[k]), ")"] : [];
    this.readout.replaceChildren(
      h("strong", {}, ...labelNodes(series.label)), series.name ? ` ${series.name(k)}` : "", ": ",
      ...labelNodes(this.spec.x.label), " = ", value("x"), ", ", ...labelNodes(this.spec.y.label), " = ", value("y"), ...spread);
  }

  private key(event: KeyboardEvent): void {
    const visible = this.spec.series.map((series, s) => ({ s, n: series.x.length })).filter(({ s, n }) => n > 0 && !this.off.has(this.spec.series[s]?.label ?? ""));
    const place = Math.max(0, visible.findIndex(({ s }) => s === this.hit?.series));
    const here = visible[place];
    const move = (to: number): void => {
      if (here) this.point({ series: here.s, point: Math.min(here.n - 1, Math.max(0, to)) });
    };
    const at = this.hit?.point ?? -1;
    const jump = (by: number): void => {
      const next = visible[(place + by + visible.length) % visible.length];
      if (next) this.point({ series: next.s, point: Math.min(Math.max(0, at), next.n - 1) });
    };
    const actions: Record<string, () => void> = {
      ArrowRight: () => move(at + 1), ArrowLeft: () => move(at < 0 ? 0 : at - 1), Home: () => move(0), End: () => move((here?.n ?? 1) - 1),
      PageDown: () => move(at + 10), PageUp: () => move(at - 10), ArrowDown: () => jump(this.hit ? 1 : 0), ArrowUp: () => jump(this.hit ? -1 : 0),
      "+": () => this.scaleBy(0.7), "=": () => this.scaleBy(0.7), "-": () => this.scaleBy(1 / 0.7), "0": () => this.reset(), Escape: () => this.point(null),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  private header(): string[] {
    return ["series", labelText(this.spec.x.label), labelText(this.spec.y.label), "low", "high", "name"];
  }

  private *lines(): Generator<{ series: Series; s: number; k: number }> {
    for (const [s, series] of this.spec.series.entries()) {
      for (let k = 0; k < series.x.length; k += 1) yield { series, s, k };
    }
  }

  private csv(): string {
    return csv(this.header(), (function* (lines) {
      for (const { series, k } of lines) yield [labelText(series.label), series.x[k], series.y[k], series.low?.[k], series.high?.[k], series.name?.(k)];
    })(this.lines()));
  }

  private fillTable(): void {
    this.details.querySelector(".table")?.remove();
    if (!this.details.open) return;
    const starts: number[] = [0];
    for (const series of this.spec.series) starts.push((starts.at(-1) ?? 0) + series.x.length);
    const find = (row: number): { series: Series; k: number } | null => {
      const s = starts.findLastIndex((start, j) => start <= row && j < this.spec.series.length && (starts[j + 1] ?? 0) > row);
      const series = this.spec.series[s];
      return series ? { series, k: row - (starts[s] ?? 0) } : null;
    };
    this.details.append(pagedTable({
      name: this.spec.name, caption: labelText(this.spec.title), header: this.header().slice(0, 3), rows: starts.at(-1) ?? 0,
      cells: (row) => {
        const at = find(row);
        if (!at) return [];
        const { series, k } = at;
        const cell = (key: "x" | "y"): Node => valueNode(series, key, k, series[key][k] ?? null);
        return [h("span", {}, ...labelNodes(series.label), series.name ? ` ${series.name(k)}` : ""), cell("x"), cell("y")];
      },
    }));
  }
}
