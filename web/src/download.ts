// Files made in the page.
import { button } from "./dom";

export function saveText(name: string, type: string, content: string): void {
  saveBlob(name, new Blob([content], { type }));
}

export function saveBlob(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export type Cell = string | number | boolean | null | undefined;

function field(value: Cell): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const words = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value; // spreadsheets would run it as a formula
  return /[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}

export function csv(header: string[], rows: Iterable<Cell[]>): string {
  const lines = [header.map(field).join(",")];
  for (const row of rows) lines.push(row.map(field).join(","));
  return `${lines.join("\n")}\n`;
}

export function csvButton(name: string, make: () => string, label = "CSV"): HTMLElement {
  return button(label, () => saveText(`${name}.csv`, "text/csv", make()), {
    class: "quiet",
    "aria-label": `Download ${name}.csv`,
    "data-download": "csv",
  });
}
