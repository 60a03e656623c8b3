// bundle.mjs PREFIX: src/ as one HTML file without a single address in it, and as the C++ file that holds it. The last
// part of PREFIX names the C++ function.
// bundle.mjs PREFIX MODULE: the same for the playground, with the WebAssembly module inside.
// bundle.mjs --without REASON PREFIX: the C++ file of a program that has no page.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";

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

function cpp(name, html, problem) {
  const pieces = literals(html).map((part) => `  html += ${part};\n`);
  return `#include "report/page.h"
namespace attsvm::internal {
BuiltPage ${name}() {
  static const std::string page = [] {
    std::string html;
${pieces.join("")}    return html;
  }();
  return {page, ${JSON.stringify(problem)}};
}
}  // namespace attsvm::internal
`;
}

/** The scripts and styles of an entry, in its template, under a policy that allows nothing else. */
async function bundle(entry, template, format, rules) {
  const { build } = await import("esbuild");
  const made = await build({
    entryPoints: [path.join(here, "src", entry)],
    bundle: true,
    write: false,
    minify: true,
    charset: "ascii",
    legalComments: "none",
    target: ["es2022"],
    format,
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
  const policy = `default-src 'none'; script-src ${hash(script)}${rules}; style-src ${hash(style)}; img-src 'self' file: data: blob:`;
  // Functions, so that a $ in the sources means nothing.
  const html = readFileSync(path.join(here, "src", template), "utf8")
    .replace("<!--policy-->", () => policy)
    .replace("<!--style-->", () => style)
    .replace("<!--script-->", () => script);
  // The name of SVG's elements is written as an address; there must be no other.
  const address = html.replaceAll("http://www.w3.org/2000/svg", "").match(/https?:\/\/[^"'` )]*/);
  if (address) throw new Error(`the page names an address: ${address[0]}`);
  return html;
}

function once(html, ...marks) {
  for (const mark of marks) if (html.split(mark).length !== 2) throw new Error(`the page must have ${mark} once`);
  return html;
}

async function report() {
  return once(await bundle("main.ts", "page.html", "iife", ""), "<!--attsvm:fallback-->", "<!--attsvm:data-->");
}

async function playground(module) {
  const html = once(
    await bundle("playground/main.ts", "playground.html", "esm", " 'wasm-unsafe-eval'"),
    "<!--engine-->",
  );
  const engine = deflateRawSync(readFileSync(module), { level: 9 }).toString("base64");
  return html.replace("<!--engine-->", () => engine);
}

const [first, second, third] = process.argv.slice(2);
if (first === "--without") {
  write(`${third}.cpp`, cpp(path.basename(third), "", second));
} else {
  const html = second ? await playground(second) : await report();
  write(`${first}.html`, html);
  write(`${first}.cpp`, cpp(path.basename(first), html, ""));
}
