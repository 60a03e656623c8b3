// bundle.mjs PREFIX: src/ as one HTML file without a single address in it, and as the C++ file that holds it.
// bundle.mjs --without REASON PREFIX: the C++ file of a program that has no page.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));

/** Replaces a file only where it changes, so that nothing is compiled for nothing. */
function write(file, text) {
  mkdirSync(path.dirname(file), { recursive: true });
  if (!existsSync(file) || readFileSync(file, "utf8") !== text) writeFileSync(file, text);
}

/** Raw strings of a size that every compiler takes. */
function literals(text) {
  if (text.includes(')~page"')) throw new Error("the page holds the end of a raw string");
  const parts = [];
  for (let at = 0; at < text.length; at += 30000) parts.push(`R"~page(${text.slice(at, at + 30000)})~page"`);
  return parts;
}

function cpp(html, problem) {
  const pieces = literals(html).map((part) => `  html += ${part};\n`);
  return `#include "report/page.h"
namespace attsvm::internal {
BuiltPage built_page() {
  static const std::string page = [] {
    std::string html;
${pieces.join("")}    return html;
  }();
  return {page, ${JSON.stringify(problem)}};
}
}  // namespace attsvm::internal
`;
}

async function bundle() {
  const { build } = await import("esbuild");
  const made = await build({
    entryPoints: [path.join(here, "src/main.ts")],
    bundle: true,
    write: false,
    minify: true,
    charset: "ascii",
    legalComments: "none",
    target: ["es2022"],
    format: "iife",
    outdir: "out",
    loader: { ".css": "css" },
  });
  const text = (end) =>
    made.outputFiles
      .find((file) => file.path.endsWith(end))
      .text.trim()
      .replaceAll("</script", "<\\/script");
  const script = text(".js"),
    style = text(".css");
  const hash = (source) => `'sha256-${createHash("sha256").update(source).digest("base64")}'`;
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src 'self' file: data: blob:`;
  // Functions, so that a $ in the sources means nothing.
  const html = readFileSync(path.join(here, "src/page.html"), "utf8")
    .replace("<!--policy-->", () => policy)
    .replace("<!--style-->", () => style)
    .replace("<!--script-->", () => script);
  for (const mark of ["<!--attsvm:fallback-->", "<!--attsvm:data-->"]) {
    if (html.split(mark).length !== 2) throw new Error(`the page must have ${mark} once`);
  }
  // The name of SVG's elements is written as an address; there must be no other.
  const address = html.replaceAll("http://www.w3.org/2000/svg", "").match(/https?:\/\/[^"'` )]*/);
  if (address) throw new Error(`the page names an address: ${address[0]}`);
  return html;
}

const [first, second, third] = process.argv.slice(2);
if (first === "--without") {
  write(`${third}.cpp`, cpp("", second));
} else {
  const html = await bundle();
  write(`${first}.html`, html);
  write(`${first}.cpp`, cpp(html, ""));
}
