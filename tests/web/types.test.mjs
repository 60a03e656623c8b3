// The sources are sound TypeScript, and their types say what the schema says.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, "../..");
const schema = JSON.parse(readFileSync(path.join(root, "docs/page.schema.json"), "utf8"));
const tsc = path.join(here, "node_modules/.bin/tsc");

/** A schema as a TypeScript type; knows what ours uses. */
function type(node) {
  if (node.$ref) return type(schema.$defs[node.$ref.split("/").at(-1)]);
  if ("const" in node) return JSON.stringify(node.const);
  if (node.enum) return node.enum.map((one) => JSON.stringify(one)).join(" | ");
  const either = node.anyOf ?? node.oneOf;
  if (either) return either.map((one) => `(${type(one)})`).join(" | ");
  if (Array.isArray(node.type)) return node.type.map((one) => type({ ...node, type: one })).join(" | ");
  switch (node.type) {
    case "array":
      return node.prefixItems ? `[${node.prefixItems.map(type).join(", ")}]` : `(${type(node.items)})[]`;
    case "object":
      if (!node.properties)
        return `Record<string, ${node.additionalProperties ? type(node.additionalProperties) : "unknown"}>`;
      return `{ ${Object.entries(node.properties)
        .map(([name, one]) => `${name}${node.required.includes(name) ? "" : "?"}: ${type(one)};`)
        .join(" ")} }`;
    case "integer":
      return "number";
    case "number":
    case "string":
    case "boolean":
    case "null":
      return node.type;
    default:
      throw new Error(`unknown: ${JSON.stringify(node)}`);
  }
}

function compiles(...args) {
  const done = spawnSync(tsc, args, { cwd: path.join(root, "web"), encoding: "utf8" });
  assert.equal(done.status, 0, done.stdout);
}

test("one layout", () => {
  const files = ["web/src/**/*.ts", "web/*.mjs", "tests/web/*.mjs"];
  const done = spawnSync(path.join(here, "node_modules/.bin/prettier"), ["--check", ...files], {
    cwd: root,
    encoding: "utf8",
  });
  assert.equal(done.status, 0, done.stdout + done.stderr);
});

test("the sources compile under strict rules", () => compiles("-p", "."));

test("the types of the data are those of the schema", () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "attsvm-types-"));
  const file = path.join(folder, "agreement.ts");
  writeFileSync(
    file,
    `import type { PageData } from ${JSON.stringify(path.join(root, "web/src/data"))};\ntype Schema = ${type(schema)};\nexport const there = (data: Schema): PageData => data;\nexport const back = (data: PageData): Schema => data;\n`,
  );
  try {
    compiles(
      "--ignoreConfig",
      "--noEmit",
      "--strict",
      "--exactOptionalPropertyTypes",
      "--target",
      "es2022",
      "--module",
      "esnext",
      "--moduleResolution",
      "bundler",
      "--types",
      "",
      file,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the page without data is small and names no address", () => {
  const html = readFileSync(process.env.ATTSVM_PAGE, "utf8");
  assert.ok(statSync(process.env.ATTSVM_PAGE).size < 2e6);
  assert.equal(html.replaceAll("http://www.w3.org/2000/svg", "").match(/https?:/), null);
});

test("no lock file names a registry", () => {
  for (const folder of ["web", "tests/web"])
    assert.doesNotMatch(
      readFileSync(path.join(root, folder, "package-lock.json"), "utf8"),
      /"resolved"|https?:\/\/registry/,
    );
});
