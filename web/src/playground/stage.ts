// The stage: tokens, queries, the start and the head, all of which can be dragged, or moved by keys.
import { h, svg } from "../dom";
import { formatted } from "../format";
import type { App } from "./app";
import { bent, type Map, parts, type Spot, straight, subscript, words } from "./stage_parts";
import type { State } from "./state";
import {
  apply,
  asked,
  dot,
  keySize,
  plus,
  seen,
  type Task,
  times,
  type Vector,
  withNewToken,
  withoutQuery,
  withoutToken,
  withQuery,
  withToken,
} from "./task";

interface Handle {
  id: string;
  label: string; // for those who cannot see it
  name: string; // beside it
  kind: string; // class
  shape: "circle" | "diamond" | "triangle" | "square" | "ring" | "cross";
  at: Spot; // in units, as drawn
  halo: number; // attention from 0 to 1
  own: boolean; // of the query in focus: keys reach it
  move: (to: Spot) => Partial<State> | null; // in units, as drawn
  remove: (() => Partial<State> | null) | null;
  press: (() => Partial<State>) | null; // a click, or Enter
}

const nudge = 0.02; // of the radius, by an arrow key

export class Stage {
  readonly root: HTMLElement;
  private readonly picture: SVGElement;
  private readonly under = svg("g");
  private readonly over = svg("g");
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
    this.picture.append(this.under, this.over);
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

  /** Adds a token to the sequence in focus, where there is room. */
  addToken(spot: Spot = [0.35 * this.radius, 0.3 * this.radius]): void {
    const { state } = this.app;
    const s = state.task.queries[state.query]?.sequence ?? 0;
    const { across, up } = this.app.projection;
    const task = withNewToken(state.task, s, plus(times(across, this.round(spot[0])), up, this.round(spot[1])));
    this.app.set({ task, select: Array.isArray(state.select) ? null : state.select });
  }

  draw(): void {
    this.map = this.measure();
    const { width, height } = this.map;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.picture.setAttribute("height", String(height));
    this.picture.classList.toggle("turns", this.app.projection.turns);
    this.under.replaceChildren(...parts(this.app, this.map));
    this.handles = new globalThis.Map(this.list().map((handle) => [handle.id, handle]));
    for (const [id, element] of this.elements) {
      if (this.handles.has(id)) continue;
      element.remove();
      this.elements.delete(id);
    }
    for (const handle of this.handles.values()) this.place(handle);
  }

  private measure(): Map {
    const width = Math.max(240, this.root.clientWidth || 640),
      height = Math.round(Math.min(620, Math.max(320, 0.86 * width)));
    const { projection, state, frozen } = this.app;
    const of = (x: Vector): Spot => [dot(x, projection.across), dot(x, projection.up)];
    if (!frozen) {
      const tokens = state.task.sequences.flat().map((token) => Math.hypot(...of(token.key)));
      const queries = state.task.queries.map(({ z }) => (z && z.length > 1 ? Math.hypot(...this.spotOf(z)) : 0));
      this.radius = 1.12 * Math.max(1e-6, ...tokens, ...queries);
    }
    const { radius } = this;
    const scale = (Math.min(width, height) / 2 - 26) / radius;
    return { width, height, radius, of, at: ([x, y]) => [width / 2 + scale * x, height / 2 - scale * y] };
  }

  /** Where a query vector is drawn: in the view of the keys where it is as long, else its first two numbers. */
  private spotOf(z: Vector): Spot {
    const { projection, state } = this.app;
    if (z.length === keySize(state.task)) return [dot(z, projection.across), dot(z, projection.up)];
    return [z[0] ?? 0, z[1] ?? 0];
  }

  private movedBy(x: Vector, from: Spot, to: Spot): number[] {
    const { across, up } = this.app.projection;
    if (x.length !== across.length) return [to[0], to[1], ...x.slice(2)];
    return plus(plus(x, across, to[0] - from[0]), up, to[1] - from[1]);
  }

  /** Coordinates as people write them. */
  private round(x: number): number {
    const unit = 10 ** (Math.floor(Math.log10(this.radius)) - 3);
    return Number((Math.round(x / unit) * unit).toPrecision(12));
  }

  private rounded = ([x, y]: Spot): Spot => [this.round(x), this.round(y)];

  private list(): Handle[] {
    return [...this.tokens(), ...this.queries(), ...this.weights()];
  }

  private tokens(): Handle[] {
    const { state, answer, run } = this.app;
    const { task } = state;
    const query = task.queries[state.query];
    if (!query) return [];
    const kept = new Set(answer?.kept[state.query] ?? []);
    const support = new Set(
      (answer?.status === "infeasible" ? [] : (answer?.rows ?? []))
        .filter((row) => row.query === state.query && (row.slack ?? 1) <= 1e-6)
        .map((row) => row.drop),
    );
    const attention = run.last?.attention[state.query] ?? [];
    const visible = seen(task, query);
    let number = 0;
    const all = task.sequences.flatMap((tokens, s) =>
      tokens.map((token, t): Handle => {
        const own = s === query.sequence;
        const score = answer?.scores?.values[number];
        number += 1;
        const role = !own
          ? "far"
          : kept.has(t)
            ? "kept"
            : support.has(t)
              ? "support"
              : t < visible
                ? "plain"
                : "unseen";
        const spot = this.map.of(token.key);
        const told = [
          `token ${t}${token.name ? ` \u201c${token.name}\u201d` : ""}${task.sequences.length > 1 ? ` of input ${s}` : ""}`,
          { far: "", kept: "selected", support: "support token", plain: "", unseen: "not seen by this query" }[role],
          `at ${formatted(spot[0])}, ${formatted(spot[1])}`,
          score === undefined ? "" : `score ${formatted(score * query.label)}`,
        ];
        return {
          id: `token ${s} ${t}`,
          label: told.filter(Boolean).join(", "),
          name: own ? token.name || String(t) : "",
          kind: `token ${role}`,
          shape: ({ far: "cross", kept: "diamond", support: "triangle", plain: "circle", unseen: "ring" } as const)[
            role
          ],
          at: spot,
          halo: own ? (attention[t] ?? 0) : 0,
          own,
          move: (to) => {
            const key = this.movedBy(token.key, this.rounded(spot), this.rounded(to));
            return { task: withToken(task, s, t, (one) => ({ ...one, key })) };
          },
          remove: () => {
            const without = withoutToken(task, s, t);
            return (
              without && {
                task: without,
                query: Math.min(state.query, without.queries.length - 1),
                select: this.loose(),
              }
            );
          },
          press: () => this.chosen(task, s, t),
        };
      }),
    );
    return all.sort((a, b) => Number(a.own) - Number(b.own));
  }

  private loose(): State["select"] {
    const { select } = this.app.state;
    return Array.isArray(select) ? null : select;
  }

  /** A press on a token: the query in focus keeps it; one of another sequence moves the focus there. */
  private chosen(task: Task, s: number, t: number): Partial<State> {
    const { state, answer } = this.app;
    const query = task.queries[state.query];
    if (query?.sequence !== s)
      return {
        query: Math.max(
          0,
          task.queries.findIndex((one) => one.sequence === s),
        ),
      };
    if (t >= seen(task, query)) return {};
    const kept = answer?.kept.map(([first = 0]) => first) ?? task.queries.map(() => 0);
    return { select: kept.map((token, i) => (i === state.query ? t : token)) };
  }

  private queries(): Handle[] {
    const { state } = this.app;
    const { task } = state;
    return task.queries.flatMap((query, i): Handle[] => {
      const { z } = query;
      if (!z || z.length < 2) return [];
      const spot = this.spotOf(z);
      return [
        {
          id: `query ${i}`,
          label: `query ${i} at ${formatted(spot[0])}, ${formatted(spot[1])}, label ${query.label}`,
          name: `z${subscript(i)}`,
          kind: `query ${i === state.query ? "focus" : ""}`,
          shape: "square",
          at: spot,
          halo: 0,
          own: true,
          move: (to) => ({
            task: withQuery(task, i, (one) => ({ ...one, z: this.movedBy(z, this.rounded(spot), this.rounded(to)) })),
          }),
          remove: () => {
            const without = withoutQuery(task, i);
            return (
              without && {
                task: without,
                query: Math.max(0, state.query - (i <= state.query ? 1 : 0)),
                select: this.loose(),
              }
            );
          },
          press: () => ({ query: i }),
        },
      ];
    });
  }

  /** The start of training and the head. */
  private weights(): Handle[] {
    const { state } = this.app;
    const { task, param, start } = state;
    const list: Handle[] = [];
    const query = task.queries[state.query];
    const canStart = task.head !== null || (state.joint && state.startHead !== null);
    if (query && canStart && param !== "KQ") {
      const z = asked(task, query);
      const d = keySize(task);
      const W = start ?? Array.from({ length: d }, () => new Array<number>(z.length).fill(0));
      const spot = bent(this.map.of(apply(W, z)), this.radius);
      list.push({
        id: "start",
        label: "start of training",
        name: "start",
        kind: "start",
        shape: "ring",
        at: spot,
        halo: 0,
        own: true,
        move: (to) => {
          const now = this.map.of(apply(W, z));
          const aim = this.rounded(straight(to, this.radius));
          const step = this.movedBy(new Array<number>(d).fill(0), now, aim);
          const square = dot(z, z);
          if (square === 0) return null;
          return { start: W.map((row, k) => plus(row, z, (step[k] ?? 0) / square)) };
        },
        remove: () => ({ start: null }),
        press: null,
      });
    }
    const { head } = task;
    const shared = task.sequences[0]?.[0]?.value === null;
    if (head && shared && !head.hidden) {
      const spot = this.map.of(head.v);
      list.push({
        id: "head",
        label: `head v at ${formatted(spot[0])}, ${formatted(spot[1])}: scores are inner products with it`,
        name: "v",
        kind: "head",
        shape: "cross",
        at: spot,
        halo: 0,
        own: true,
        move: (to) => ({
          task: { ...task, head: { ...head, v: this.movedBy(head.v, this.rounded(spot), this.rounded(to)) } },
        }),
        remove: null,
        press: null,
      });
    }
    return list;
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
    const drawn = `${handle.shape} ${handle.name} ${handle.kind} ${handle.halo.toFixed(3)}`;
    if (element.dataset["drawn"] === drawn) return;
    element.dataset["drawn"] = drawn;
    const title = handle.name ? words(handle.name, [0, handle.kind.startsWith("start") ? 22 : -13], "name") : null;
    element.replaceChildren(
      svg("circle", { class: "grip", r: 20 }),
      ...(handle.halo > 0.005
        ? [svg("circle", { class: "halo", r: (8 + 16 * Math.sqrt(handle.halo)).toFixed(1) })]
        : []),
      shapeOf(handle.shape),
      ...(title ? [title] : []),
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
