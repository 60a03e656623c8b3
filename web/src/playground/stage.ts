// The stage: tokens, queries, the start and the head, all of which can be dragged, or moved by keys.
import { h, svg } from "../dom";
import type { App } from "./app";
import { type Handle, Handles, rounded, spotOf } from "./handles";
import { type Name, namesOf } from "./stage_names";
import { directionName, type Map, multipliers, parts, type Spot } from "./stage_parts";
import { tooLarge } from "./state";
import { dot, plus, times, type Vector, withNewToken } from "./task";

const nudge = 0.02; // of the radius, by an arrow key

/** Pixels from the middle: far from the stage, no further than a picture can say. */
const near = (pixels: number): number => Math.max(-1e6, Math.min(1e6, pixels));

export class Stage {
  readonly root: HTMLElement;
  private readonly picture: SVGElement;
  private readonly under = svg("g");
  private readonly over = svg("g");
  private readonly words = svg("g");
  private readonly elements = new globalThis.Map<string, SVGGElement>();
  private handles = new globalThis.Map<string, Handle>();
  private map: Map;
  private radius = 1;
  private drag: {
    pointer: number;
    id: string | null;
    from: Spot;
    turn: readonly [number, number];
    moved: boolean;
  } | null = null;

  constructor(private readonly app: App) {
    this.picture = svg("svg", {
      class: "stage",
      role: "group",
      "aria-label": "The task: every token, query and arrow tip can be focused and moved by arrow keys",
    });
    this.picture.append(this.under, this.over, this.words);
    this.root = h("div", { class: "stage-box" }, this.picture);
    this.map = this.measure();
    this.picture.addEventListener("pointerdown", (event) => this.down(event as PointerEvent));
    this.picture.addEventListener("pointermove", (event) => this.moveTo(event as PointerEvent));
    for (const name of ["pointerup", "pointercancel"])
      this.picture.addEventListener(name, (event) => this.up(event as PointerEvent));
    this.picture.addEventListener("dblclick", (event) => this.add(event as MouseEvent));
    this.picture.addEventListener("keydown", (event) => this.key(event as KeyboardEvent));
    new ResizeObserver(() => this.draw()).observe(this.root);
    app.on(() => this.draw());
  }

  /** Adds a token to the sequence in focus. */
  addToken(spot: Spot = this.freeSpot()): void {
    const { state } = this.app;
    const s = state.task.queries[state.query]?.sequence ?? 0;
    const { across, up } = this.app.projection;
    const task = withNewToken(
      state.task,
      s,
      plus(times(across, rounded(spot[0], this.radius)), up, rounded(spot[1], this.radius)),
    );
    if (tooLarge(task)) return;
    // In causal attention the token is a query too, which has no choice yet.
    const asks = task.queries.length !== state.task.queries.length;
    this.app.set({ task, select: asks && Array.isArray(state.select) ? null : state.select });
  }

  /** Of some places around the middle, the one that is furthest from all tokens. */
  private freeSpot(): Spot {
    const taken = this.app.state.task.sequences.flat().map((token) => this.map.of(token.key));
    const room = ([x, y]: Spot): number => Math.min(...taken.map(([a, b]) => Math.hypot(x - a, y - b)));
    const places = Array.from({ length: 40 }, (_, k): Spot => {
      const reach = this.radius * (0.25 + 0.015 * k);
      return [reach * Math.cos(2.4 * k), reach * Math.sin(2.4 * k)];
    });
    return places.reduce((best, one) => (room(one) > room(best) ? one : best));
  }

  draw(): void {
    this.map = this.measure();
    const { width, height } = this.map;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.picture.setAttribute("height", String(height));
    this.picture.classList.toggle("turns", this.app.projection.turns);
    this.handles = new globalThis.Map(new Handles(this.app, this.map).list().map((handle) => [handle.id, handle]));
    const drawn = parts(this.app, this.map);
    this.under.replaceChildren(...drawn);
    this.words.replaceChildren(...namesOf(this.names(), this.handles.values(), drawn, this.map));
    for (const [id, element] of this.elements) {
      if (this.handles.has(id)) continue;
      element.remove();
      this.elements.delete(id);
    }
    for (const handle of this.handles.values()) this.place(handle);
  }

  private names(): Name[] {
    const { app, map } = this;
    const handles = [...this.handles.values()].filter((handle) => handle.name !== "");
    return [
      ...directionName(app, map),
      ...handles.map((one): Name => ({ text: one.name, at: map.at(one.at), r: 11, kind: "", needed: true })),
      ...multipliers(app, map),
    ];
  }

  private measure(): Map {
    const width = Math.max(240, this.root.clientWidth || 640),
      height = Math.round(Math.min(620, Math.max(320, 0.86 * width)));
    const { projection, state, frozen } = this.app;
    const of = (x: Vector): Spot => [dot(x, projection.across), dot(x, projection.up)];
    if (!frozen) {
      const tokens = state.task.sequences.flat().map((token) => Math.hypot(...of(token.key)));
      const queries = state.task.queries.map(({ z }) => (z && z.length > 1 ? Math.hypot(...spotOf(this.app, z)) : 0));
      this.radius = 1.12 * (Math.max(...tokens, ...queries) || 1);
    }
    const { radius } = this;
    const scale = (Math.min(width, height) / 2 - 26) / radius;
    const at = ([x, y]: Spot): Spot => [width / 2 + near(scale * x), height / 2 - near(scale * y)];
    return { width, height, radius, of, at };
  }

  private place(handle: Handle): void {
    let element = this.elements.get(handle.id);
    if (!element) {
      element = svg("g", { role: "button", "data-handle": handle.id }) as SVGGElement;
      this.elements.set(handle.id, element);
    }
    if (element.parentNode !== this.over) this.over.append(element);
    const [x, y] = this.map.at(handle.at);
    element.setAttribute("class", `handle ${handle.kind}`);
    element.setAttribute("tabindex", handle.own ? "0" : "-1");
    element.setAttribute("aria-label", handle.label);
    element.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);
    const drawn = `${handle.shape} ${handle.kind} ${handle.halo.toFixed(3)}`;
    if (element.dataset["drawn"] === drawn) return;
    element.dataset["drawn"] = drawn;
    element.replaceChildren(
      svg("circle", { class: "grip", r: 20 }),
      ...(handle.halo > 0.005
        ? [svg("circle", { class: "halo", r: (8 + 16 * Math.sqrt(handle.halo)).toFixed(1) })]
        : []),
      shapeOf(handle.shape),
    );
  }

  /** Where a pointer is, in units. */
  private spot(event: MouseEvent): Spot {
    const box = this.picture.getBoundingClientRect();
    const { width, height, radius } = this.map;
    const scale = ((Math.min(width, height) / 2 - 26) / radius) * (box.width / width);
    return [(event.clientX - box.left - box.width / 2) / scale, (box.top + box.height / 2 - event.clientY) / scale];
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0 || this.drag) return;
    const id = (event.target as Element).closest<SVGGElement>("[data-handle]")?.dataset["handle"] ?? null;
    if (id === null && !this.app.projection.turns) return;
    this.drag = {
      pointer: event.pointerId,
      id,
      from: [event.clientX, event.clientY],
      turn: this.app.state.turn,
      moved: false,
    };
    this.picture.setPointerCapture(event.pointerId);
  }

  private moveTo(event: PointerEvent): void {
    const { drag } = this;
    if (!drag || event.pointerId !== drag.pointer) return;
    const [dx, dy] = [event.clientX - drag.from[0], event.clientY - drag.from[1]];
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag.moved = true;
    event.preventDefault();
    if (drag.id === null) {
      const turn = [drag.turn[0] - 0.5 * dx, Math.max(-90, Math.min(90, drag.turn[1] + 0.5 * dy))] as const;
      this.app.set({ turn }, "going on");
      return;
    }
    this.app.frozen = true;
    const to = this.handles.get(drag.id)?.move(this.within(this.spot(event)));
    if (to) this.app.set(to, "going on");
  }

  private up(event: PointerEvent): void {
    const { drag } = this;
    if (!drag || event.pointerId !== drag.pointer) return;
    this.drag = null;
    this.app.frozen = false;
    const handle = drag.id === null ? undefined : this.handles.get(drag.id);
    if (drag.moved) this.app.set({});
    else if (handle) {
      this.elements.get(handle.id)?.focus();
      if (handle.press) this.app.set(handle.press());
    }
  }

  /** Nothing leaves the stage. */
  private within([x, y]: Spot): Spot {
    const { width, height, radius } = this.map;
    const edge = radius * 1.04;
    const wide = edge * Math.max(1, width / height),
      high = edge * Math.max(1, height / width);
    return [Math.max(-wide, Math.min(wide, x)), Math.max(-high, Math.min(high, y))];
  }

  private add(event: MouseEvent): void {
    if ((event.target as Element).closest("[data-handle]")) return;
    this.addToken(this.spot(event));
  }

  private key(event: KeyboardEvent): void {
    const id = (event.target as Element).closest<SVGGElement>("[data-handle]")?.dataset["handle"];
    const handle = id === undefined ? undefined : this.handles.get(id);
    if (!handle || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = nudge * this.radius * (event.shiftKey ? 5 : 1);
    const steps: Record<string, Spot> = {
      ArrowLeft: [-by, 0],
      ArrowRight: [by, 0],
      ArrowUp: [0, by],
      ArrowDown: [0, -by],
    };
    const step = steps[event.key];
    const to = step
      ? handle.move([handle.at[0] + step[0], handle.at[1] + step[1]])
      : event.key === "Delete" || event.key === "Backspace"
        ? handle.remove?.()
        : event.key === "Enter" || event.key === " "
          ? handle.press?.()
          : undefined;
    if (to === undefined) return;
    event.preventDefault();
    if (!to) return;
    this.app.set(to, step ? "keys" : "done");
    if (!step && event.key !== "Enter" && event.key !== " ")
      requestAnimationFrame(() => this.picture.querySelector<SVGGElement>("[data-handle][tabindex='0']")?.focus());
  }
}

function shapeOf(shape: Handle["shape"]): SVGElement {
  switch (shape) {
    case "diamond":
      return svg("polygon", { class: "mark", points: "0,-10 10,0 0,10 -10,0" });
    case "triangle":
      return svg("polygon", { class: "mark", points: "0,-9 9,7 -9,7" });
    case "square":
      return svg("rect", { class: "mark", x: -6, y: -6, width: 12, height: 12 });
    case "cross":
      return svg("path", { class: "mark", d: "M-5-5L5 5M-5 5L5-5" });
    case "ring":
      return svg("circle", { class: "mark", r: 8 });
    default:
      return svg("circle", { class: "mark", r: 6 });
  }
}
