// Colours come from the style sheet, so that light and dark are decided in one place.
import { button } from "./dom";

export type Shape = "circle" | "square" | "triangle" | "diamond" | "down" | "ring" | "box" | "cross" | "star";

export interface Look {
  colour: string;
  dash: number[];
  shape: Shape;
}

/** Colour, dash pattern and marker together tell curves apart, in black and white too; as in the SVG figures. */
const styles: { dash: number[]; shape: Shape }[] = [
  { dash: [], shape: "circle" },
  { dash: [10, 5], shape: "square" },
  { dash: [3, 4], shape: "triangle" },
  { dash: [12, 4, 3, 4], shape: "diamond" },
  { dash: [6, 3], shape: "down" },
  { dash: [16, 4], shape: "ring" },
  { dash: [2, 2], shape: "box" },
  { dash: [8, 3, 2, 3, 2, 3], shape: "cross" },
];

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function look(style: number): Look {
  const k = style % styles.length;
  // Beyond the eighth, colours come again with another marker and pattern.
  const found = styles[(k + 3 * Math.floor(style / styles.length)) % styles.length] ?? {
    dash: [],
    shape: "circle" as const,
  };
  return { colour: colour(`style-${k}`), ...found };
}

const listeners = new Set<() => void>();
/** Calls back when colours change. */
export function onTheme(listener: () => void): void {
  listeners.add(listener);
}

/** Colours have changed. */
export const announce = (): void => listeners.forEach((listener) => listener());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);

/** A button that turns from light to dark and back; before its first use the page follows the system. */
export function themeButton(): HTMLElement {
  const root = document.documentElement;
  const dark = (): boolean =>
    root.dataset["theme"] ? root.dataset["theme"] === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const words = (): string => (dark() ? "Light colours" : "Dark colours");
  const made = button(words(), () => {
    root.dataset["theme"] = dark() ? "light" : "dark";
    announce();
  });
  onTheme(() => {
    made.textContent = words();
  });
  return made;
}
