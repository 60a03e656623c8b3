// A chart: uPlot does axes, zoom and pixels, marks.ts draws the marks; a legend of switches, the values of the point
// under the pointer or the keyboard, and the numbers as a table for those who cannot see it.
import uPlot from "uplot";

import { type ChartSpec, reachAcross, type Series, valueNode } from "./chart_spec";
import { chartCsv, chartTable } from "./chart_table";
import { axisOf, scaleOf } from "./axes";
import { button, freshId, h } from "./dom";
import { csvButton } from "./download";
import { num } from "./format";
import { labelNodes } from "./label";
import { legend } from "./legend";
import { drawCurve, type Mapper, trace } from "./marks";
import { drawBands, drawTags } from "./tags";
import { fitted, type Range, rangeOf, squared } from "./ranges";
import { colour, look, onTheme } from "./theme";

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
    this.plot = h("div", {
      class: "plot",
      tabindex: 0,
      role: "group",
      "aria-roledescription": "chart",
      "aria-labelledby": `${id}-title`,
      "aria-describedby": `${id}-summary`,
    });
    this.details = h("details", { class: "numbers" }, h("summary", {}, "Numbers of this chart"));
    this.details.addEventListener("toggle", () => this.fillTable());
    this.root = h(
      "figure",
      { class: "chart" },
      h(
        "figcaption",
        {},
        h("h3", { id: `${id}-title` }, ...labelNodes(spec.title)),
        h("p", { id: `${id}-summary`, class: "summary" }),
      ),
      this.bar,
      this.plot,
      this.legend,
      this.readout,
      this.details,
    );
    host.append(this.root);
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.plot.addEventListener("blur", () => this.point(null));
    new ResizeObserver(() => this.resize()).observe(this.plot);
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
    const caption = this.root.querySelector("figcaption");
    caption?.querySelector("h3")?.replaceChildren(...labelNodes(spec.title));
    const summary = caption?.querySelector("p");
    summary?.replaceChildren(spec.summary, spec.more ? h("span", { class: "unseen" }, ` ${spec.more}`) : "");
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
    const map = this.mapper(false);
    for (const overlay of this.spec.overlays ?? []) {
      if (this.off.has(overlay.label)) continue;
      ctx.save();
      const style = look(overlay.style);
      ctx.strokeStyle = style.colour;
      ctx.fillStyle = style.colour;
      ctx.lineWidth = (overlay.width ?? 2) * ratio;
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
    const x = series.x[this.hit.point],
      y = series.y[this.hit.point];
    if (typeof x !== "number" || typeof y !== "number") return;
    ctx.strokeStyle = colour("text");
    ctx.lineWidth = 2 * map.ratio;
    ctx.beginPath();
    trace(ctx, "ring", map.x(x), map.y(y), 7 * map.ratio);
    ctx.stroke();
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
    this.bar.replaceChildren();
    if (!this.spec.square) this.bar.append(...(this.spec.logs ?? (["x", "y"] as const)).map(toggle));
    this.bar.append(
      button("Show all", () => this.reset(), { class: "quiet", title: "Or press 0 in the chart; + and \u2212 zoom" }),
      csvButton(this.spec.name, () => chartCsv(this.spec)),
    );
  }

  private mapper(canvas: boolean): Mapper {
    const u = this.u;
    const ratio = devicePixelRatio;
    if (!u) return { x: () => NaN, y: () => NaN, ratio, visible: () => false };
    const one = (key: "x" | "y"): ((value: number) => number) => {
      const scale = u.scales[key];
      const low = scale?.min ?? 0,
        high = scale?.max ?? 1;
      const log = this.log[key];
      const at = (value: number): number => (canvas ? u.valToPos(value, key, true) : u.valToPos(value, key) * ratio);
      const from = log ? Math.log(low) : low,
        to = log ? Math.log(high) : high;
      const start = at(low),
        slope = (at(high) - start) / (to - from);
      const floor = this.spec[key].floor ?? 0;
      return log
        ? (value) => (value > 0 || floor > 0 ? start + slope * (Math.log(Math.max(value, floor)) - from) : NaN)
        : (value) => start + slope * (value - from);
    };
    const { left, top, width, height } = u.bbox;
    const [x0, y0] = canvas ? [left, top] : [0, 0];
    const edge = 20 * ratio;
    return {
      x: one("x"),
      y: one("y"),
      ratio,
      visible: (x, y) => x > x0 - edge && x < x0 + width + edge && y > y0 - edge && y < y0 + height + edge,
    };
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
    const width = this.plot.clientWidth;
    if (width === 0) return;
    if (!this.zoomed) this.ranges = this.full();
    this.u = new uPlot(
      {
        width,
        height: this.spec.height ?? 320,
        legend: { show: false },
        padding: [10, 14, 0, 0],
        scales: { x: scaleOf(this.log.x, this.ranges.x), y: scaleOf(this.log.y, this.ranges.y) },
        axes: [
          axisOf(this.spec.x, this.log.x, "x", () => this.ranges.x),
          axisOf(this.spec.y, this.log.y, "y", () => this.ranges.y),
        ],
        series: [{}, { paths: () => null, points: { show: false } }],
        cursor: { drag: { x: true, y: true, uni: 10, setScale: false }, points: { show: false }, x: false, y: false },
        hooks: { draw: [() => this.paintCurves()], setSelect: [(u) => this.zoomTo(u)] },
      },
      [this.ranges.x, this.ranges.y],
      this.plot,
    );
    this.over = h("canvas", { class: "over", "aria-hidden": "true" });
    this.u.over.append(this.over);
    this.u.root.setAttribute("aria-hidden", "true");
    this.u.over.addEventListener("mousemove", (event) => this.point(this.nearest(event.offsetX, event.offsetY)));
    this.u.over.addEventListener("mouseleave", () => this.point(null));
    this.u.over.addEventListener("dblclick", () => this.reset());
    this.apply();
  }

  /** Scales as wanted; on a square plot one unit is as long on either axis. */
  private apply(): void {
    const u = this.u;
    if (!u) return;
    const { x, y } = this.spec.square
      ? squared(this.ranges.x, this.ranges.y, u.bbox.width, u.bbox.height)
      : this.ranges;
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
    drawBands(u.ctx, this.spec.bands ?? [], map, u.bbox, { line: colour("line"), text: colour("muted") });
    for (const series of this.shown()) drawCurve(u.ctx, series, map, look(series.style));
    drawTags(u.ctx, this.shown(), map, u.bbox, { text: colour("text"), around: colour("surface") });
    u.ctx.restore();
  }

  private nearest(x: number, y: number): Hit | null {
    const map = this.mapper(false);
    const px = x * map.ratio,
      py = y * map.ratio;
    let best: Hit | null = null,
      least = (24 * map.ratio) ** 2;
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
    this.show();
  }

  private show(): void {
    const series = this.hit ? this.spec.series[this.hit.series] : undefined;
    if (!series || !this.hit) {
      this.readout.replaceChildren(h("span", { class: "hint" }, "Point, or use the arrow keys, to read values."));
      return;
    }
    const k = this.hit.point;
    const value = (key: "x" | "y"): Node => {
      const number = series[key][k] ?? null;
      return valueNode(series, key, k, number);
    };
    const spread =
      series.low && series.high && series.path
        ? [
            " (",
            num(`${series.path.y.replace(/\.y$/, ".low")}.${k}`, series.low[k]),
            " to ",
            num(`${series.path.y.replace(/\.y$/, ".high")}.${k}`, series.high[k]),
            ")",
          ]
        : [];
    this.readout.replaceChildren(
      h("strong", {}, ...labelNodes(series.label)),
      series.name ? ` ${series.name(k)}` : "",
      ": ",
      ...labelNodes(this.spec.x.label),
      " = ",
      value("x"),
      ", ",
      ...labelNodes(this.spec.y.label),
      " = ",
      value("y"),
      ...spread,
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
    const move = (to: number): void => {
      if (here) this.point({ series: here.s, point: Math.min(here.n - 1, Math.max(0, to)) });
    };
    const at = this.hit?.point ?? -1;
    const jump = (by: number): void => {
      const next = visible[(place + by + visible.length) % visible.length];
      if (next) this.point({ series: next.s, point: Math.min(Math.max(0, at), next.n - 1) });
    };
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
