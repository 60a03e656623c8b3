// The ranges of axes.

export type Range = [number, number];

/** The least and greatest of all numbers; a logarithmic axis shows those above zero, and the others at its floor. */
export function rangeOf(lists: ArrayLike<number | null>[], log: boolean, floor = 0): Range | null {
  let low = Infinity,
    high = -Infinity;
  for (const list of lists) {
    for (let k = 0; k < list.length; k += 1) {
      const given = list[k];
      if (typeof given !== "number" || !Number.isFinite(given)) continue;
      const value = log ? Math.max(given, floor) : given;
      if (log && value <= 0) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

const smallest = 1e-300; // on a logarithmic axis; smaller numbers are subnormal

/** The range with a margin at both ends; a default range if there are no numbers. */
export function fitted(range: Range | null, log: boolean): Range {
  if (!range) return log ? [0.1, 10] : [0, 1];
  if (log) {
    const room = Math.max(0.04 * Math.log(range[1] / range[0]), 0.1);
    return [Math.max(smallest, range[0] * Math.exp(-room)), Math.max(10 * smallest, range[1] * Math.exp(room))];
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

/**
 * Where a logarithmic axis has its lines: at powers of ten, at most `most` of them; at their multiples too where there
 * are few. uPlot's own would draw every multiple of every power.
 */
export function logSplits([low, high]: Range, most: number): number[] {
  const first = Math.floor(Math.log10(low)),
    last = Math.ceil(Math.log10(high));
  const every = Math.max(1, Math.ceil((last - first) / most));
  const lines: number[] = [];
  for (let power = first; power <= last; power += 1) {
    if (power % every !== 0) continue;
    for (const lead of last - first <= 4 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : [1]) {
      const line = Number(`${lead}e${power}`);
      if (line >= low && line <= high) lines.push(line);
    }
  }
  return lines;
}

/** Where another axis has its lines: at multiples of 1, 2 or 5 times a power of ten, at most `most` of them. */
export function evenSplits([low, high]: Range, most: number, whole: boolean): number[] {
  const rough = (high - low) / most;
  const ten = 10 ** Math.floor(Math.log10(rough));
  let step = ([1, 2, 5, 10].find((lead) => lead * ten >= rough) ?? 10) * ten;
  if (whole) step = Math.max(1, step);
  const lines: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1)
    lines.push(Number((k * step).toPrecision(12)));
  return lines;
}
