// A chart: uPlot does axes, zoom and pixels, marks.ts draws the marks; a legend of switches, the values of the point
// under the pointer, the finger or the keyboard, and the numbers as a table for those who cannot see it.
import uPlot from "uplot";

import { axisOf, scaleOf } from "./axes";
import { type ChartSpec, reachAcross, reading, type Series } from "./chart_spec";
import { chartCsv, chartTable } from "./chart_table";
import { button, h } from "./dom";
import { drawFigure, drawOver, mapperOf } from "./figure";
import { Frame } from "./frame";
import { legend } from "./legend";
import { drawCurve, type Mapper, trace } from "./marks";
import { fitted, type Range, rangeOf, squared } from "./ranges";
import { drawBands } from "./tags";
import { colour, look, onTheme } from "./theme";

interface Hit {
  series: number;
  point: number;
}

const reachOf = { mouse: 24, touch: 40 }; // how near to a point counts as on it, in pixels

export class Chart {
  private readonly frame: Frame;
  private spec: ChartSpec;
  private readonly legend = h("div", { class: "legend" });
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
    this.frame = new Frame(host, "chart", (pen, width, ratio) => {
      const { log, off, marker } = this;
      const ranges = this.zoomed ? this.ranges : this.full();
      return drawFigure(pen, this.spec, { ranges, log, off, marker }, { width, height: this.height(), ratio });
    });
    this.details = h("details", { class: "numbers" }, h("summary", {}, "Numbers of this chart"));
    this.details.addEventListener("toggle", () => this.fillTable());
    this.frame.root.append(this.legend, this.details);
    const { plot } = this.frame;
    plot.addEventListener("keydown", (event) => this.key(event));
    plot.addEventListener("blur", () => this.point(null));
    new ResizeObserver(() => this.resize()).observe(plot);
    onTheme(() => this.paint());
    this.update(spec);
  }

  /** Shows another chart in the same frame; switches keep their state. */
  update(spec: ChartSpec): void {
    this.spec = spec;
    this.log = { x: spec.x.log ?? false, y: spec.y.log ?? false };
    for (const series of spec.series) {
      if (series.hidden && !this.known.has(series.label)) this.off.add(series.label);
      this.known.add(series.label);
    }
    this.frame.describe(spec.name, spec.title, spec.summary, spec.more);
    this.hit = null;
    this.zoomed = false;
    this.legend.replaceChildren(...legend(spec, this.off, () => this.paint()));
    this.drawBar();
    this.show();
    this.rebuild();
    this.fillTable();
  }

  /** A vertical line at the current step. */
  setMarker(x: number | null): void {
    this.marker = x;
    this.paintOver();
  }

  /** Redraws only what moves. */
  paintOver(): void {
    const u = this.u,
      canvas = this.over;
    if (!u || !canvas) return;
    const ratio = devicePixelRatio;
    const width = Math.round(u.over.clientWidth * ratio),
      height = Math.round(u.over.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const ctx = canvas.getContext("2d");
    if (!ctx) return;
    ctx.clearRect(0, 0, width, height);
    const box = { left: 0, top: 0, width, height };
    const map = this.mapper(box);
    drawOver(ctx, this.spec, { off: this.off, marker: this.marker }, map, box);
    this.drawHit(ctx, map);
    this.show();
  }

  private height(): number {
    return this.spec.height ?? 320;
  }

  private drawHit(ctx: CanvasRenderingContext2D, map: Mapper): void {
    const at = this.place(map);
    if (!at) return;
    ctx.strokeStyle = colour("text");
    ctx.lineWidth = 2 * map.ratio;
    ctx.beginPath();
    trace(ctx, "ring", at.x, at.y, 7 * map.ratio);
    ctx.stroke();
  }

  /** Where the point that is read lies. */
  private place(map: Mapper): { x: number; y: number } | null {
    const series = this.hit ? this.spec.series[this.hit.series] : undefined;
    const x = series?.x[this.hit?.point ?? 0],
      y = series?.y[this.hit?.point ?? 0];
    return typeof x === "number" && typeof y === "number" ? { x: map.x(x), y: map.y(y) } : null;
  }

  private drawBar(): void {
    const toggle = (axis: "x" | "y"): HTMLElement => {
      const made = button(
        `Log ${axis}`,
        () => {
          this.log[axis] = !this.log[axis];
          made.setAttribute("aria-pressed", String(this.log[axis]));
          this.zoomed = false;
          this.rebuild();
        },
        { class: "quiet", "aria-pressed": String(this.log[axis]) },
      );
      return made;
    };
    const logs = this.spec.square ? [] : (this.spec.logs ?? (["x", "y"] as const)).map(toggle);
    const all = button("Show all", () => this.reset(), {
      class: "quiet",
      title: "Or press 0 in the chart; + and \u2212 zoom",
    });
    this.frame.buttons([...logs, all], () => chartCsv(this.spec));
  }

  private mapper(box: { left: number; top: number; width: number; height: number }): Mapper {
    return mapperOf(this.spec, { ranges: this.scales(), log: this.log }, box, devicePixelRatio);
  }

  /** The ranges as drawn; on a square plot one unit is as long on either axis. */
  private scales(): { x: Range; y: Range } {
    const u = this.u;
    if (!u || !this.spec.square) return this.ranges;
    return squared(this.ranges.x, this.ranges.y, u.bbox.width, u.bbox.height);
  }

  private shown(): Series[] {
    return this.spec.series.filter((series) => !this.off.has(series.label));
  }

  private full(): { x: Range; y: Range } {
    const { spec } = this;
    const all = this.shown();
    const x =
      spec.x.range && !this.log.x
        ? spec.x.range
        : fitted(rangeOf([...all.flatMap(reachAcross), spec.include?.x ?? []], this.log.x, spec.x.floor), this.log.x);
    const spread = all.flatMap((s) => [s.y, s.low ?? [], s.high ?? []]);
    const y =
      spec.y.range && !this.log.y
        ? spec.y.range
        : fitted(
            rangeOf([...(this.log.y ? all.map((s) => s.y) : spread), spec.include?.y ?? []], this.log.y, spec.y.floor),
            this.log.y,
          );
    return { x, y };
  }

  private rebuild(): void {
    this.u?.destroy();
    this.u = null;
    this.over = null;
    const width = this.frame.plot.clientWidth;
    if (width === 0) return;
    if (!this.zoomed) this.ranges = this.full();
    this.u = new uPlot(
      {
        width,
        height: this.height(),
        legend: { show: false },
        padding: [10, 14, 0, 0],
        scales: { x: scaleOf(this.log.x, this.ranges.x), y: scaleOf(this.log.y, this.ranges.y) },
        axes: [axisOf(this.spec.x, this.log.x, "x"), axisOf(this.spec.y, this.log.y, "y")],
        series: [{}, { paths: () => null, points: { show: false } }],
        cursor: { drag: { x: true, y: true, uni: 10, setScale: false }, points: { show: false }, x: false, y: false },
        hooks: { draw: [() => this.paintCurves()], setSelect: [(u) => this.zoomTo(u)] },
      },
      [this.ranges.x, this.ranges.y],
      this.frame.plot,
    );
    this.over = h("canvas", { class: "over", "aria-hidden": "true" });
    this.u.over.append(this.over);
    this.u.root.setAttribute("aria-hidden", "true");
    for (const name of ["pointermove", "pointerdown"] as const)
      this.u.over.addEventListener(name, (event) =>
        this.point(
          this.nearest(event.offsetX, event.offsetY, reachOf[event.pointerType === "mouse" ? "mouse" : "touch"]),
        ),
      );
    this.u.over.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.point(null); // a finger leaves when it is lifted
    });
    this.u.over.addEventListener("dblclick", () => this.reset());
    this.apply();
  }

  private apply(): void {
    const u = this.u;
    if (!u) return;
    const { x, y } = this.scales();
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
      const a = log ? Math.log(low) : low,
        b = log ? Math.log(high) : high;
      const middle = (a + b) / 2,
        half = ((b - a) / 2) * factor;
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
    const width = this.frame.plot.clientWidth;
    if (width === 0) return;
    if (!this.u) this.rebuild();
    else if (this.u.width !== width) {
      this.u.setSize({ width, height: this.height() });
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
    const map = this.mapper(u.bbox);
    drawBands(u.ctx, this.spec.bands ?? [], map, u.bbox, { line: colour("line"), text: colour("muted") });
    for (const series of this.shown()) drawCurve(u.ctx, series, map, look(series.style));
    u.ctx.restore();
  }

  private nearest(x: number, y: number, reach: number): Hit | null {
    const over = this.u?.over;
    if (!over) return null;
    const ratio = devicePixelRatio;
    const map = this.mapper({ left: 0, top: 0, width: over.clientWidth * ratio, height: over.clientHeight * ratio });
    const px = x * ratio,
      py = y * ratio;
    let best: Hit | null = null,
      least = (reach * ratio) ** 2;
    this.spec.series.forEach((series, s) => {
      if (this.off.has(series.label)) return;
      for (let k = 0; k < series.x.length; k += 1) {
        const vx = series.x[k],
          vy = series.y[k];
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
  }

  /** The values of the point that is read, beside it. */
  private show(): void {
    const over = this.u?.over;
    const series = this.hit ? this.spec.series[this.hit.series] : undefined;
    if (!over || !series || !this.hit) return this.frame.read(null);
    const map = this.mapper({ left: 0, top: 0, width: over.clientWidth, height: over.clientHeight });
    const at = this.place(map);
    if (!at) return this.frame.read(null);
    const plot = this.frame.plot.getBoundingClientRect(),
      inner = over.getBoundingClientRect();
    this.frame.read(
      { x: inner.left - plot.left + at.x, y: inner.top - plot.top + at.y },
      ...reading(this.spec, series, this.hit.point),
    );
  }

  private key(event: KeyboardEvent): void {
    const visible = this.spec.series
      .map((series, s) => ({ s, n: series.x.length }))
      .filter(({ s, n }) => n > 0 && !this.off.has(this.spec.series[s]?.label ?? ""));
    const place = Math.max(
      0,
      visible.findIndex(({ s }) => s === this.hit?.series),
    );
    const here = visible[place];
    const at = this.hit?.point ?? -1;
    /** To a point of a curve, or the next one that there is. */
    const go = (to: { s: number; n: number } | undefined, wanted: number): void => {
      if (!to) return;
      const { x = [], y = [] } = this.spec.series[to.s] ?? {};
      const back = wanted < at || wanted >= to.n - 1;
      let point = Math.min(to.n - 1, Math.max(0, wanted));
      while (point >= 0 && point < to.n && (x[point] === null || y[point] === null)) point += back ? -1 : 1;
      if (point >= 0 && point < to.n) this.point({ series: to.s, point });
    };
    const move = (to: number): void => go(here, to);
    const jump = (by: number): void => go(visible[(place + by + visible.length) % visible.length], at);
    const actions: Record<string, () => void> = {
      ArrowRight: () => move(at + 1),
      ArrowLeft: () => move(at < 0 ? 0 : at - 1),
      Home: () => move(0),
      End: () => move((here?.n ?? 1) - 1),
      PageDown: () => move(at + 10),
      PageUp: () => move(at - 10),
      ArrowDown: () => jump(this.hit ? 1 : 0),
      ArrowUp: () => jump(this.hit ? -1 : 0),
      "+": () => this.scaleBy(0.7),
      "=": () => this.scaleBy(0.7),
      "-": () => this.scaleBy(1 / 0.7),
      "0": () => this.reset(),
      Escape: () => this.point(null),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  private fillTable(): void {
    this.details.querySelector(".table")?.remove();
    if (this.details.open) this.details.append(chartTable(this.spec));
  }
}
