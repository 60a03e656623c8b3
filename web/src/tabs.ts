// Tabs as the ARIA practices describe them: arrows, Home and End move; a panel is created when it is first shown.
import { freshId, h } from "./dom";

export interface Tab {
  name: string;
  title: string;
  make: (panel: HTMLElement) => void;
}

export function tabs(list: Tab[], onshow: (name: string) => void): HTMLElement {
  const heads: HTMLElement[] = [];
  const panels: HTMLElement[] = [];
  const made = new Set<number>();
  const bar = h("div", { role: "tablist", class: "tabs", "aria-label": "Views" });
  const body = h("div", { class: "panels" });

  const show = (index: number, focus: boolean): void => {
    heads.forEach((head, k) => {
      head.setAttribute("aria-selected", String(k === index));
      head.tabIndex = k === index ? 0 : -1;
    });
    panels.forEach((panel, k) => {
      panel.hidden = k !== index;
    });
    const tab = list[index];
    const panel = panels[index];
    if (!tab || !panel) return;
    onshow(tab.name);
    if (!made.has(index)) {
      made.add(index);
      tab.make(panel);
    }
    heads[index]?.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (focus) heads[index]?.focus();
    if (location.hash !== `#${tab.name}`) history.replaceState(null, "", `#${tab.name}`);
  };

  list.forEach((tab, k) => {
    const id = freshId();
    const head = h(
      "button",
      { type: "button", role: "tab", id, "aria-controls": `${id}-panel`, onclick: () => show(k, false) },
      tab.title,
    );
    head.addEventListener("keydown", (event) => {
      const moves: Record<string, number> = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: list.length - 1 };
      const to = moves[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show((to + list.length) % list.length, true);
    });
    heads.push(head);
    bar.append(head);
    panels.push(
      h("section", { role: "tabpanel", id: `${id}-panel`, "aria-labelledby": id, class: `view view-${tab.name}` }),
    );
  });
  body.append(...panels);
  const wanted = (): number => list.findIndex((tab) => `#${tab.name}` === location.hash);
  addEventListener("hashchange", () => {
    const index = wanted();
    if (index >= 0) show(index, false);
  });
  const root = h("div", {}, bar, body);
  queueMicrotask(() => show(Math.max(0, wanted()), false));
  return root;
}
