// The rows of a contradiction laid head to tail: they add up to zero, so they form a closed polygon.
import type { ConflictRow } from "./data";

export interface ConflictShape {
  rows: ConflictRow[]; // by angle, so that the polygon is convex
  corners: [number, number][]; // one more than rows
  flat: boolean; // there and back on one line; drawn beside each other
}

const angle = ({ arrow: [x = 0, y = 0] }: ConflictRow): number => Math.atan2(y, x);

/** Null where every row is zero by itself, such as one that asks a margin between two tokens at the same place. */
export function conflictShape(given: readonly ConflictRow[]): ConflictShape | null {
  const rows = [...given].sort((a, b) => angle(a) - angle(b));
  const far = Math.max(...rows.map(({ arrow: [x = 0, y = 0] }) => Math.hypot(x, y)));
  if (far === 0) return null;
  const flat = rows.every(({ arrow: [, y = 0] }) => Math.abs(y) < 1e-9 * far);
  const corners: [number, number][] = [[0, 0]];
  for (const { arrow } of rows) {
    const [x, y] = corners.at(-1) ?? [0, 0];
    corners.push([x + (arrow[0] ?? 0), flat ? y - 0.05 * far : y + (arrow[1] ?? 0)]);
  }
  return { rows, corners, flat };
}
