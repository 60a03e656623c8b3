// What every chart has around it: a title and a summary, buttons that save it, a tip at the point that is read, and
// the picture that is printed in its place.
import { button, type Child, freshId, h } from "./dom";
import { csvButton, saveBlob, saveText } from "./download";
import { labelNodes } from "./label";
import { type Pen, SvgPen } from "./pen";
import { onPrint } from "./print";

/** A chart as a picture of its own: draws it `width` wide, and returns how high it is. */
type Picture = (pen: Pen, width: number, ratio: number) => number;

const paper = 680; // the width of printed charts

export class Frame {
  readonly root: HTMLElement;
  readonly plot: HTMLElement;
  readonly bar = h("div", { class: "bar" });
  private readonly title: HTMLElement;
  private readonly summary: HTMLElement;
  private readonly tip = h("output", { class: "readout", "aria-live": "polite", hidden: true });
  private name = "";

  constructor(
    host: HTMLElement,
    role: string,
    private readonly picture: Picture,
  ) {
    const id = freshId();
    this.plot = h("div", {
      class: "plot",
      tabindex: 0,
      role: "group",
      "aria-roledescription": role,
      "aria-labelledby": `${id}-title`,
      "aria-describedby": `${id}-summary`,
    });
    this.title = h("h3", { id: `${id}-title` });
    this.summary = h("p", { id: `${id}-summary`, class: "summary" });
    this.root = h(
      "figure",
      { class: "chart" },
      h("figcaption", {}, this.title, this.summary),
      this.bar,
      this.plot,
      this.tip,
    );
    host.append(this.root);
    onPrint(
      () => this.print(),
      () => this.root.querySelector(".printed")?.remove(),
    );
  }

  describe(name: string, title: string, summary: string, more = ""): void {
    this.name = name;
    this.title.replaceChildren(...labelNodes(title));
    this.summary.replaceChildren(summary, more ? h("span", { class: "unseen" }, ` ${more}`) : "");
  }

  /** Buttons, the last of which save the chart. */
  buttons(list: Child[], csv: () => string): void {
    const save = (end: string, act: () => void): HTMLElement =>
      button(end.toUpperCase(), act, {
        class: "quiet",
        "aria-label": `Download ${this.name}.${end}`,
        "data-download": end,
      });
    this.bar.replaceChildren(
      ...list.filter((one) => one !== null && one !== undefined && one !== false),
      csvButton(this.name, csv),
      save("svg", () => saveText(`${this.name}.svg`, "image/svg+xml", this.svg(this.width()))),
      save("png", () => this.savePng()),
    );
  }

  /** Shows the values of a point at this place of the plot, in pixels; null: none. */
  read(at: { x: number; y: number } | null, ...words: Child[]): void {
    this.tip.hidden = at === null;
    this.tip.replaceChildren(...words.filter((one) => one !== null && one !== undefined && one !== false));
    if (!at) return;
    const figure = this.root.getBoundingClientRect(),
      plot = this.plot.getBoundingClientRect(),
      own = this.tip.getBoundingClientRect();
    const gap = 14,
      edge = 6;
    const x = plot.left + at.x,
      y = plot.top + at.y;
    const left = x + gap + own.width < innerWidth - edge ? x + gap : x - gap - own.width;
    const above = y - gap - own.height;
    const clamp = (value: number, most: number): number => Math.max(edge, Math.min(value, most - edge));
    this.tip.style.left = `${clamp(left, innerWidth - own.width) - figure.left}px`;
    this.tip.style.top = `${clamp(above > edge ? above : y + gap, innerHeight - own.height) - figure.top}px`;
  }

  private width(): number {
    return Math.max(320, this.plot.clientWidth || paper);
  }

  private svg(width: number): string {
    const pen = new SvgPen();
    const height = this.picture(pen, width, 1);
    return pen.svg(width, height, this.title.textContent ?? "");
  }

  private savePng(): void {
    const ratio = 2,
      width = this.width();
    const canvas = h("canvas");
    const draw = (): number => {
      const pen = canvas.getContext("2d");
      return pen ? this.picture(pen, width, ratio) : 0;
    };
    const height = draw(); // how high it must be is known when it has been drawn
    canvas.width = width * ratio;
    canvas.height = Math.ceil(height * ratio);
    draw();
    canvas.toBlob((blob) => {
      if (blob) saveBlob(`${this.name}.png`, blob);
    });
  }

  private print(): void {
    this.root.querySelector(".printed")?.remove();
    const parsed = new DOMParser().parseFromString(this.svg(paper), "image/svg+xml").documentElement;
    const picture = document.importNode(parsed, true);
    picture.setAttribute("class", "printed");
    this.root.prepend(picture);
  }
}
