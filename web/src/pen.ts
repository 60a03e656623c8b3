// What marks are drawn with: a canvas, or a pen that writes SVG. Only what we draw with is here.

export type Pen = Pick<
  CanvasRenderingContext2D,
  | "beginPath"
  | "moveTo"
  | "lineTo"
  | "arc"
  | "rect"
  | "closePath"
  | "fill"
  | "stroke"
  | "clip"
  | "save"
  | "restore"
  | "setLineDash"
  | "fillRect"
  | "strokeRect"
  | "fillText"
  | "strokeText"
  | "measureText"
  | "translate"
  | "rotate"
  | "strokeStyle"
  | "fillStyle"
  | "lineWidth"
  | "lineJoin"
  | "globalAlpha"
  | "font"
  | "textAlign"
  | "textBaseline"
> & { drawImage: (image: HTMLCanvasElement, x: number, y: number, width: number, height: number) => void };

interface Style {
  strokeStyle: string;
  fillStyle: string;
  lineWidth: number;
  lineJoin: CanvasLineJoin;
  globalAlpha: number;
  font: string;
  textAlign: CanvasTextAlign;
  textBaseline: CanvasTextBaseline;
  dash: number[];
  transform: string;
  clip: string;
}

const plain: Style = {
  strokeStyle: "black",
  fillStyle: "black",
  lineWidth: 1,
  lineJoin: "miter",
  globalAlpha: 1,
  font: "12px sans-serif",
  textAlign: "left",
  textBaseline: "alphabetic",
  dash: [],
  transform: "",
  clip: "",
};

const short = (value: number): string => String(Math.round(value * 100) / 100);
/** Text for XML, without the characters that no XML may hold. */
const escaped = (words: string): string =>
  words
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "")
    .replace(/[&<>"]/g, (mark) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[mark] ?? mark);

let clips = 0; // names of clip paths must differ within a page

export class SvgPen implements Pen {
  private style: Style = { ...plain };
  private readonly stack: Style[] = [];
  private readonly out: string[] = [];
  private path = "";
  private rects: { at: number; style: string; path: string } | null = null; // what fillRect wrote last
  private readonly ruler = document.createElement("canvas").getContext("2d");

  get strokeStyle(): string {
    return this.style.strokeStyle;
  }
  set strokeStyle(value: string | CanvasGradient | CanvasPattern) {
    this.style.strokeStyle = String(value);
  }
  get fillStyle(): string {
    return this.style.fillStyle;
  }
  set fillStyle(value: string | CanvasGradient | CanvasPattern) {
    this.style.fillStyle = String(value);
  }
  get lineWidth(): number {
    return this.style.lineWidth;
  }
  set lineWidth(value: number) {
    this.style.lineWidth = value;
  }
  get lineJoin(): CanvasLineJoin {
    return this.style.lineJoin;
  }
  set lineJoin(value: CanvasLineJoin) {
    this.style.lineJoin = value;
  }
  get globalAlpha(): number {
    return this.style.globalAlpha;
  }
  set globalAlpha(value: number) {
    this.style.globalAlpha = value;
  }
  get font(): string {
    return this.style.font;
  }
  set font(value: string) {
    this.style.font = value;
  }
  get textAlign(): CanvasTextAlign {
    return this.style.textAlign;
  }
  set textAlign(value: CanvasTextAlign) {
    this.style.textAlign = value;
  }
  get textBaseline(): CanvasTextBaseline {
    return this.style.textBaseline;
  }
  set textBaseline(value: CanvasTextBaseline) {
    this.style.textBaseline = value;
  }

  beginPath(): void {
    this.path = "";
  }
  moveTo(x: number, y: number): void {
    this.path += `M${short(x)} ${short(y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `${this.path ? "L" : "M"}${short(x)} ${short(y)}`;
  }
  /** Whole circles: we draw no other arcs. */
  arc(x: number, y: number, r: number): void {
    const [a, b] = [short(r), short(2 * r)];
    this.path += `M${short(x + r)} ${short(y)}a${a} ${a} 0 1 0 -${b} 0a${a} ${a} 0 1 0 ${b} 0`;
  }
  rect(x: number, y: number, width: number, height: number): void {
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`;
  }
  closePath(): void {
    this.path += "Z";
  }
  fill(): void {
    this.add(`<path d="${this.path}" fill="${escaped(this.style.fillStyle)}"`);
  }
  stroke(): void {
    this.add(`<path d="${this.path}" fill="none" ${this.line()}`);
  }
  clip(): void {
    clips += 1;
    this.out.push(`<clipPath id="clip${clips}"><path d="${this.path}"/></clipPath>`);
    this.style.clip = `clip${clips}`;
  }
  save(): void {
    this.stack.push({ ...this.style });
  }
  restore(): void {
    this.style = this.stack.pop() ?? this.style;
  }
  setLineDash(dash: number[]): void {
    this.style.dash = dash;
  }
  /** Rectangles of one colour in a row are one element: there may be 100,000 of them. */
  fillRect(x: number, y: number, width: number, height: number): void {
    const last = this.out.length - 1;
    const before = this.rects?.at === last && this.rects.style === JSON.stringify(this.style) ? this.rects.path : "";
    if (before) this.out.pop();
    this.path = before;
    this.rect(x, y, width, height);
    this.rects = { at: this.out.length, style: JSON.stringify(this.style), path: this.path };
    this.fill();
  }
  strokeRect(x: number, y: number, width: number, height: number): void {
    this.path = "";
    this.rect(x, y, width, height);
    this.stroke();
  }
  fillText(words: string, x: number, y: number): void {
    this.text(words, x, y, `fill="${escaped(this.style.fillStyle)}"`);
  }
  strokeText(words: string, x: number, y: number): void {
    this.text(words, x, y, `fill="none" ${this.line()}`);
  }
  measureText(words: string): TextMetrics {
    if (!this.ruler) return { width: 7 * words.length } as TextMetrics;
    this.ruler.font = this.style.font;
    return this.ruler.measureText(words);
  }
  translate(x: number, y: number): void {
    this.style.transform += `translate(${short(x)} ${short(y)})`;
  }
  rotate(angle: number): void {
    this.style.transform += `rotate(${short((angle * 180) / Math.PI)})`;
  }
  drawImage(image: HTMLCanvasElement, x: number, y: number, width: number, height: number): void {
    this.add(
      `<image href="${image.toDataURL()}" x="${short(x)}" y="${short(y)}" width="${short(width)}" ` +
        `height="${short(height)}" preserveAspectRatio="none" image-rendering="pixelated"`,
    );
  }

  /** The picture, with its title for those who cannot see it. */
  svg(width: number, height: number, title: string): string {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `role="img"><title>${escaped(title)}</title>\n${this.out.join("\n")}\n</svg>\n`
    );
  }

  private line(): string {
    const { strokeStyle, lineWidth, lineJoin, dash } = this.style;
    const dashes = dash.length > 0 ? ` stroke-dasharray="${dash.map(short).join(" ")}"` : "";
    return `stroke="${escaped(strokeStyle)}" stroke-width="${short(lineWidth)}" stroke-linejoin="${lineJoin}"${dashes}`;
  }

  private text(words: string, x: number, y: number, paint: string): void {
    const found = /(?:(\d+|bold) )?([\d.]+)px (.*)/.exec(this.style.font);
    const anchor = { center: "middle", right: "end", end: "end", left: "start", start: "start" }[this.style.textAlign];
    const line = { top: "hanging", middle: "central", bottom: "text-after-edge" }[this.style.textBaseline as string];
    this.add(
      `<text x="${short(x)}" y="${short(y)}" font-size="${found?.[2] ?? 12}" font-family="${escaped(found?.[3] ?? "")}" ` +
        `${found?.[1] ? `font-weight="${found[1]}" ` : ""}text-anchor="${anchor}" ` +
        `dominant-baseline="${line ?? "auto"}" ${paint}`,
      `${escaped(words)}</text>`,
    );
  }

  /** Closes an element, after what all of them share. */
  private add(open: string, inner?: string): void {
    const { globalAlpha, transform, clip } = this.style;
    const shared =
      (globalAlpha < 1 ? ` opacity="${short(globalAlpha)}"` : "") +
      (transform ? ` transform="${transform}"` : "") +
      (clip ? ` clip-path="url(#${clip})"` : "");
    this.out.push(inner === undefined ? `${open}${shared}/>` : `${open}${shared}>${inner}`);
  }
}
