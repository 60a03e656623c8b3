// What can be chosen on the page of an audit, and what its parts share.
import type { Audit, HeadAudit, ViewAudit } from "./data";
import { choice, h } from "./dom";
import type { Choices, Store } from "./state";

export interface AuditState extends Choices {
  head: number; // its place in the data
  hidden: number; // which view: 0 own choices, 1 with the sinks hidden
  colour: number; // what the grid shows
}

export type AuditStore = Store<AuditState>;

export const headName = (head: HeadAudit): string => `${head.layer}.${head.head}`;

/** The name of a head, which looks like a number and is none. */
export const nameNode = (head: HeadAudit): HTMLElement => h("span", { "data-token": "" }, headName(head));

/** A file of heads without sinks has one view. */
export const viewCount = (data: Audit): number => Math.max(1, ...data.heads.map((head) => head.views.length));

export const viewNames = ["own choices", "sinks hidden"];

/** A view of a head, and its place in the data. */
export interface Shown {
  view: ViewAudit;
  path: string;
}

/** The chosen view of a head; none where it was not run. */
export function viewOf(data: Audit, h: number, hidden: number): Shown | null {
  const view = data.heads[h]?.views[hidden];
  return view ? { view, path: `heads.${h}.views.${hidden}` } : null;
}

/** Chooses between the views; nothing where there is one. */
export function viewControl(data: Audit, store: AuditStore): HTMLElement | null {
  if (viewCount(data) < 2) return null;
  const made = choice("View", viewNames, store.get().hidden, (hidden) => store.set({ hidden }));
  followed(made, store, "hidden");
  return made;
}

/** A choice that shows what the address says. */
export function followed(made: HTMLElement, store: AuditStore, key: "head" | "hidden" | "colour"): void {
  store.on(() => {
    const select = made.querySelector("select");
    if (select) select.selectedIndex = store.get()[key];
  });
}
