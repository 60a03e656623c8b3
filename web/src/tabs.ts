// Tabs as the ARIA practices describe them: arrows, Home and End move; a panel is created when it is first shown, or
// when the page is printed, which shows all of them.
import { freshId, h } from "./dom";
import { onPrint } from "./print";
import type { Choices, Store } from "./state";

export interface Tab {
  name: string;
  title: string;
  make: (panel: HTMLElement) => void;
}

export function tabs<S extends Choices>(
  list: Tab[],
  store: Store<S>,
  onshow: (name: string) => void = () => undefined,
): HTMLElement {
  const open = (name: string): void => store.set({ view: name } as Partial<S>);
  const heads: HTMLElement[] = [];
  const panels: HTMLElement[] = [];
  const made = new Set<number>();
  const bar = h("div", { role: "tablist", class: "tabs", "aria-label": "Views" });
  const body = h("div", { class: "panels" });

  const make = (index: number): void => {
    const tab = list[index];
    const panel = panels[index];
    if (!tab || !panel || made.has(index)) return;
    made.add(index);
    tab.make(panel);
  };
  const show = (): void => {
    const index = Math.max(
      0,
      list.findIndex((tab) => tab.name === store.get().view),
    );
    heads.forEach((head, k) => {
      head.setAttribute("aria-selected", String(k === index));
      head.tabIndex = k === index ? 0 : -1;
    });
    panels.forEach((panel, k) => {
      panel.hidden = k !== index;
    });
    onshow(list[index]?.name ?? "");
    make(index);
    heads[index]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  list.forEach((tab, k) => {
    const id = freshId();
    const head = h(
      "button",
      {
        type: "button",
        role: "tab",
        id,
        "aria-controls": `${id}-panel`,
        onclick: () => open(tab.name),
      },
      tab.title,
    );
    head.addEventListener("keydown", (event) => {
      const moves: Record<string, number> = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: list.length - 1 };
      const to = moves[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const index = (to + list.length) % list.length;
      open(list[index]?.name ?? "");
      heads[index]?.focus();
    });
    heads.push(head);
    bar.append(head);
    panels.push(
      h(
        "section",
        { role: "tabpanel", id: `${id}-panel`, "aria-labelledby": id, class: `view view-${tab.name}` },
        h("h2", { class: "unseen" }, tab.title),
      ),
    );
  });
  body.append(...panels);
  store.on((changed) => {
    if (changed.has("view")) show();
  });
  onPrint(
    () =>
      list.forEach((_, k) => {
        make(k);
        const panel = panels[k];
        if (panel) panel.hidden = false;
      }),
    show,
  );
  queueMicrotask(show);
  return h("div", {}, bar, body);
}
