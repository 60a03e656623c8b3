// What can be moved on the stage: where it is, and what moving, leaving out or pressing it does to the state.
import { formatted } from "../format";
import type { App } from "./app";
import { bent, type Map, type Spot, straight, subscript } from "./stage_parts";
import type { State } from "./state";
import {
  apply,
  asked,
  dot,
  keySize,
  plus,
  seen,
  type Task,
  type Vector,
  withoutQuery,
  withoutToken,
  withQuery,
  withToken,
} from "./task";

export interface Handle {
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

/** Where a query vector is drawn: in the view of the keys where it is as long, else its first two numbers. */
export function spotOf({ projection, state }: App, z: Vector): Spot {
  if (z.length === keySize(state.task)) return [dot(z, projection.across), dot(z, projection.up)];
  return [z[0] ?? 0, z[1] ?? 0];
}

/** A coordinate as people write it. */
export function rounded(x: number, radius: number): number {
  const unit = 10 ** (Math.floor(Math.log10(radius)) - 3);
  return Number((Math.round(x / unit) * unit).toPrecision(12));
}

export class Handles {
  constructor(
    private readonly app: App,
    private readonly map: Map,
  ) {}

  private movedBy(x: Vector, from: Spot, to: Spot): number[] {
    const { across, up } = this.app.projection;
    if (x.length !== across.length) return [to[0], to[1], ...x.slice(2)];
    return plus(plus(x, across, to[0] - from[0]), up, to[1] - from[1]);
  }

  private rounded = ([x, y]: Spot): Spot => [rounded(x, this.map.radius), rounded(y, this.map.radius)];

  list(): Handle[] {
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
        const score = answer?.scores?.[number];
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
      const spot = spotOf(this.app, z);
      return [
        {
          id: `query ${i}`,
          label: `z${subscript(i)}, query ${i} at ${formatted(spot[0])}, ${formatted(spot[1])}, label ${query.label}`,
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
      const spot = bent(W, z, this.map);
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
          const aim = this.rounded(straight(to, this.map.radius));
          const step = this.movedBy(new Array<number>(d).fill(0), now, aim);
          const square = dot(z, z);
          if (square === 0 || !step.every(Number.isFinite)) return null;
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
}
