// What can be chosen on the page of a stack, and what its heads are called.
import type { Stack } from "./data";

/** What can be chosen on this page. */
export interface Place {
  view: string;
  layer: number;
  head: number;
  sequence: number;
}

export const indexOf = (data: Stack, layer: number, head: number): number => layer * data.heads + head;

export function nameOf(data: Stack, k: number): string {
  const head = data.judged[k];
  return data.heads === 1 ? `layer ${head?.layer}` : `layer ${head?.layer}, head ${head?.head}`;
}
