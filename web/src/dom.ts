// Elements are built from text: nothing in the data is ever parsed as markup.

export type Child = Node | string | null | undefined | false;
type Handler = (event: Event) => void;
export type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** h("p", { class: "note", onclick: handler }, "text", node) */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

let ids = 0;
/** A fresh id, which connects a label with its element. */
export function freshId(): string {
  ids += 1;
  return `id${ids}`;
}

export function button(label: string, onclick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick, ...attributes }, label);
}

/** A choice with its label. */
export function choice(
  label: string,
  options: string[],
  value: number,
  onchange: (value: number) => void,
): HTMLElement {
  const select = h(
    "select",
    { onchange: () => onchange(select.selectedIndex) },
    ...options.map((text, k) => h("option", { value: k, selected: k === value }, text)),
  );
  return h("label", { class: "choice" }, h("span", {}, label), select);
}
