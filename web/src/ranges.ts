// How far axes reach.

export type Range = [number, number];

/** The least and greatest of all numbers, those alone that a logarithmic axis can show. */
export function rangeOf(lists: ArrayLike<number | null>[], log: boolean): Range | null {
  let low = Infinity, high = -Infinity;
  for (const list of lists) {
    for (let k = 0; k < list.length; k += 1) {
      const value = list[k];
      if (typeof value !== "number" || !Number.isFinite(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

/** With a little room at both ends; something to show where there is nothing. */
export function fitted(range: Range | null, log: boolean): Range {
  if (!range) return log ? [0.1, 10] : [0, 1];
  if (log) {
    const room = Math.max(0.04 * Math.log(range[1] / range[0]), 0.1);
    return [range[0] * Math.exp(-room), range[1] * Math.exp(room)];
  }
  const room = range[1] > range[0] ? 0.04 * (range[1] - range[0]) : Math.max(1e-12, 0.5 * Math.abs(range[0]) || 0.5);
  return [range[0] - room, range[1] + room];
}

/** The wider of the two units on both axes, both middles kept. */
export function squared(x: Range, y: Range, width: number, height: number): { x: Range; y: Range } {
  const unit = Math.max((x[1] - x[0]) / width, (y[1] - y[0]) / height);
  const around = ([low, high]: Range, pixels: number): Range => {
    const middle = (low + high) / 2;
    return [middle - (unit * pixels) / 2, middle + (unit * pixels) / 2];
  };
  return { x: around(x, width), y: around(y, height) };
}
