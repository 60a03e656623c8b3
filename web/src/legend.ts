// Names of curves, each a switch.
import type { ChartSpec } from "./chart_spec";
import { h } from "./dom";
import { labelNodes } from "./label";
import { swatch } from "./marks";
import { look } from "./theme";

/** `off` holds the labels of what is hidden, and is changed by the switches. Curves of one label share one. */
export function legend(spec: ChartSpec, off: Set<string>, onchange: () => void): HTMLElement[] {
  const icons = new Map<string, SVGElement>();
  for (const { label, style, mark, shape } of spec.series) {
    if (!icons.has(label)) icons.set(label, swatch(style, look(style), mark, shape));
  }
  for (const { label, style, mark, dash } of spec.overlays ?? [])
    icons.set(label, swatch(style, { ...look(style), dash }, mark));
  icons.delete("");
  return [...icons].map(([label, icon]) => {
    const made = h(
      "button",
      {
        type: "button",
        class: "series",
        "aria-pressed": String(!off.has(label)),
        title: "Show or hide",
        onclick: () => {
          if (!off.delete(label)) off.add(label);
          made.setAttribute("aria-pressed", String(!off.has(label)));
          onchange();
        },
      },
      icon,
      h("span", {}, ...labelNodes(label)),
    );
    return made;
  });
}
