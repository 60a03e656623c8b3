// Names of tokens, axes and queries.
import type { Axis, Report } from "./data";
import { type Child, h } from "./dom";
import type { Store } from "./state";

/** A token of a query: its number, and its name where the task has names; a long one is cut where it is to be brief. */
export function tokenName(data: Report, query: number, token: number, brief = false): string {
  return tokenAt(data, data.queries.sequence[query] ?? 0, token, brief);
}

export function tokenAt(data: Report, sequence: number, token: number, brief = false): string {
  const start = data.plane.offsets[sequence];
  const name = start === undefined ? undefined : data.plane.names?.[start + token];
  return name ? `${token} \u201c${isolated(brief ? shortened(name) : name)}\u201d` : String(token);
}

const letters = 22; // of a name where there is little room

export function shortened(name: string): string {
  const all = [...name];
  return all.length > letters ? `${all.slice(0, letters - 1).join("")}\u2026` : name;
}

/** Names written from right to left, or that hold marks of direction, must not turn the words around them. */
export function isolated(name: string): string {
  return /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufefc]/.test(name) ? `\u2068${name}\u2069` : name;
}

export function axisName(axis: Axis | undefined): string {
  if (!axis) return "";
  if (axis.kind === "max-margin") return "along the max-margin direction W^{mm} z";
  if (axis.kind === "across") return "at right angles to W^{mm} z";
  return axis.kind === "principal" ? `principal component ${axis.index + 1}` : `coordinate ${axis.index}`;
}

/** A query that leads to its plane. */
export function queryLink(store: Store, query: number, ...words: Child[]): HTMLElement {
  const to = { view: "plane", query };
  return h(
    "a",
    {
      href: store.address(to),
      class: "query-link",
      onclick: (event: Event) => {
        event.preventDefault();
        store.set(to);
      },
    },
    ...(words.length > 0 ? words : [String(query)]),
  );
}
