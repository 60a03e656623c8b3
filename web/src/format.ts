// Numbers as the page shows them. Each element carries its path in the data and its exact value.
import { h } from "./dom";
import { sentenceNodes } from "./label";

const plain = 6; // significant digits
const tiny = 3; // of numbers that need an exponent

export function formatted(value: number | null | undefined, digits = plain): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "\u2013";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e7) return String(Number(value.toPrecision(digits)));
  return value.toExponential(tiny - 1);
}

/** A number of the data, with its path in it ("solutions.0.gap"). It can be selected and copied; its title is exact. */
export function num(path: string, value: number | null | undefined, digits = plain): HTMLElement {
  const shown = { class: "num", "data-path": path, "data-digits": digits === plain ? null : digits };
  return h("span", { ...shown, title: value ?? null }, formatted(value, digits));
}

/** A share of a whole, in percent. */
export function share(path: string, value: number | null | undefined, digits = plain): HTMLElement {
  const shown = { class: "num", "data-path": path, "data-digits": digits === plain ? null : digits };
  return h("span", { ...shown, title: value ?? null }, percent(value, digits));
}

export function percent(value: number | null | undefined, digits = plain): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "\u2013";
  return `${formatted(Number((100 * value).toPrecision(digits)))}\u202f%`;
}

const few = 3; // digits where there is little room

/** A number of the data in few digits, for grids. */
export function brief(path: string, value: number | null | undefined, ofWhole = false): HTMLElement {
  return (ofWhole ? share : num)(path, value, few);
}

/** 1 token, 2 tokens, 3 queries. */
export function counted(count: number, noun: string): string {
  const many = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${count} ${count === 1 ? noun : many}`;
}

/** A text of the data. */
export function text(path: string, value: string): HTMLElement {
  return h("span", { "data-path": path }, value);
}

/** A text of the data that may contain W^mm and similar names. */
export function sentence(
  path: string,
  words: string,
  tag: "span" | "p" = "span",
  kind: string | null = null,
): HTMLElement {
  return h(tag, { class: kind, "data-path": path, "data-marks": "" }, ...sentenceNodes(words));
}

const superscripts = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";

/** Ticks of a logarithmic axis. */
export function power(value: number, few: boolean): string {
  const exponent = Math.log10(value);
  const whole = Math.round(exponent);
  if (Math.abs(exponent - whole) > 1e-9) {
    const lead = Math.round(value / 10 ** Math.floor(exponent));
    if (!few || (lead !== 2 && lead !== 5)) return "";
    if (value >= 0.001 && value < 1e5) return formatted(Number(value.toPrecision(1)));
    return `${lead}\u00b7${tens(Math.floor(exponent))}`;
  }
  return whole >= -2 && whole <= 4 ? String(Number(value.toPrecision(1))) : tens(whole);
}

function tens(exponent: number): string {
  const digits = [...String(Math.abs(exponent))].map((digit) => superscripts[Number(digit)] ?? "");
  return `10${exponent < 0 ? "\u207b" : ""}${digits.join("")}`;
}
