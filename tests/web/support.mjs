// A browser, files to open in it, and what must hold on every page.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import Ajv from "ajv/dist/2020.js";
import { chromium } from "playwright-core";

export const root = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../..");
const schema = JSON.parse(readFileSync(path.join(root, "docs/page.schema.json"), "utf8"));

export const folder = mkdtempSync(path.join(os.tmpdir(), "attsvm-web-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Runs the program in the tests' folder. */
export function attsvm(...args) {
  const done = spawnSync(process.env.ATTSVM_PROGRAM, args.map(String), { cwd: folder, encoding: "utf8" });
  assert.equal(done.status, 0, `${args.join(" ")}\n${done.stderr}`);
  return done.stdout;
}

/** The exit code of the program. */
export const attsvmCode = (...args) =>
  spawnSync(process.env.ATTSVM_PROGRAM, args.map(String), { cwd: folder, encoding: "utf8" }).status;

/** Python with NumPy, for files that no verb writes. */
export function python(code) {
  const done = spawnSync("/usr/bin/python3", ["-c", `import numpy as np\n${code}`], { cwd: folder, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
}

export async function startBrowser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
}

/** Opens a file of the tests' folder. Anything on the console, an error, or a request for another file fails the test. */
export async function open(browser, file, { hash = "", ...options } = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    acceptDownloads: true,
    ...options,
  });
  const page = await context.newPage();
  const complaints = [];
  const url = pathToFileURL(path.join(folder, file)).href;
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(error.stack ?? error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== url && !/^(data|blob):/.test(request.url()))
      complaints.push(`request: ${request.url()}`);
  });
  await page.goto(url + hash);
  await page.waitForSelector("#page[data-ready]");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const close = async () => {
    assert.deepEqual(complaints, []);
    await context.close();
  };
  return { page, close, url };
}

/** Opens a page and uses it; what that leaves on the console fails the test. */
export async function visit(browser, file, options, use) {
  const opened = await open(browser, file, options);
  await use(opened.page, opened);
  await opened.close();
}

/** A report on tokens that no W keeps: apart.npz, apart.html. */
export function drawApart() {
  attsvm("generate", "random", "--n", 10, "--T", 5, "--d", 3, "--seed", 1, "-o", "apart.npz");
  attsvm("report", "apart.npz", "-o", "apart.html");
}

/** The data inside the page, read from its file. */
export function dataOf(page) {
  const html = readFileSync(fileURLToPath(page.url().split("#")[0]), "utf8");
  return JSON.parse(html.match(/<script type="application\/json" id="data">(.*?)<\/script>/s)[1]);
}

export function assertSchema(data) {
  const check = new Ajv({ allErrors: true }).compile(schema);
  assert.ok(check(data), JSON.stringify(check.errors?.slice(0, 5)));
}

export async function showTab(page, name) {
  await page.getByRole("tab", { name }).click();
  await page.waitForSelector(`[role=tabpanel]:not([hidden])`);
}

/**
 * Every number on the page is one of the data. Those that say where they stand are held to it, to the last digit shown,
 * their titles to the last digit there is; numbers inside sentences must be somewhere in the data.
 */
export async function assertNumbers(page) {
  const wrong = await page.evaluate(() => {
    const data = (globalThis.parsedData ??= JSON.parse(document.getElementById("data").textContent));
    const walk = (value, parts) => {
      if (parts.length === 0) return value;
      for (let n = 1; n <= parts.length; n += 1) {
        const key = parts.slice(0, n).join(".");
        if (value !== null && typeof value === "object" && Object.hasOwn(value, key))
          return walk(value[key], parts.slice(n));
      }
      return undefined;
    };
    // Six digits, fewer where the element says so, or three with an exponent: what the page promises. Shares are in
    // percent.
    const agrees = (text, value, digits) => {
      if (text.endsWith("%")) return agrees(text.slice(0, -2), Number((100 * value).toPrecision(digits)), digits);
      return Number(text) === value || Number(text) === Number(value.toPrecision(text.includes("e") ? 3 : digits));
    };
    const near = (words) => {
      const text = words.replace("\u202f%", "");
      const unit = text === words ? 1 : 100;
      const [lead, power = "0"] = text.toLowerCase().split("e");
      const room = 0.5 * 10 ** (Number(power) - (lead.split(".")[1] ?? "").length) * (1 + 1e-6),
        middle = Number(text);
      return (value) => Math.abs(unit * value - middle) <= room;
    };
    const small = (_all, above, below) => above?.replace("-", "\u2212") ?? below; // W^mm is written with a superscript
    const found = [];
    const seen = document.querySelectorAll("[data-path]");
    for (const element of seen) {
      const within = element.closest("[data-within]")?.dataset.within; // a part of the data that a view is made from
      const value = walk(data, `${within ? `${within}.` : ""}${element.dataset.path}`.split("."));
      const text = element.textContent;
      if (value === undefined) found.push(`${element.dataset.path} is not in the data`);
      else if (value === null) {
        if (text !== "\u2013") found.push(`${element.dataset.path}: ${text} for nothing`);
      } else if (typeof value === "string") {
        const shown =
          "marks" in element.dataset ? value.replace(/\^(mm|gsvm|-?\d+(?:\.\d+)?)|_(fin|\*)/g, small) : value;
        if (text !== shown) found.push(`${element.dataset.path}: ${text}, not ${shown}`);
      } else if (!agrees(text, value, Number(element.dataset.digits ?? 6)) || element.title !== String(value))
        found.push(`${element.dataset.path}: ${text} (${element.title}), not ${value}`);
    }
    for (const element of document.querySelectorAll("[data-json]")) {
      if (element.textContent !== JSON.stringify(walk(data, element.dataset.json.split("."))))
        found.push(element.dataset.json);
    }
    globalThis.flatData ??= (() => {
      const numbers = [],
        strings = [];
      const visit = (value) => {
        if (typeof value === "number") numbers.push(value);
        else if (typeof value === "string") strings.push(value);
        else if (value !== null && typeof value === "object") Object.values(value).forEach(visit);
      };
      visit(data);
      return { numbers, strings };
    })();
    const { numbers, strings } = globalThis.flatData;
    const walker = document.createTreeWalker(document.getElementById("page"), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.parentElement.closest("[data-path],[data-json],[data-token],option,sup,sub")) continue;
      for (const text of node.textContent.match(/(-?\d+\.\d+(e-?\d+)?|-?\d+e-?\d+)(\u202f%)?/g) ?? []) {
        if (!numbers.some(near(text)) && !strings.some((one) => one.includes(text)))
          found.push(`"${node.textContent}" has ${text}, which is not in the data`);
      }
    }
    return { found, seen: seen.length };
  });
  assert.deepEqual(wrong.found, []);
  assert.ok(wrong.seen > 5, `only ${wrong.seen} numbers`);
}

/** Nothing sticks out of the screen to the side. */
export async function assertFits(page) {
  const out = await page.evaluate(() => {
    const wide = document.scrollingElement.scrollWidth - innerWidth;
    if (wide <= 0) return null;
    const culprit = [...document.querySelectorAll("#page *")].find(
      (e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .tabs"),
    );
    return `${wide} pixels too wide: ${culprit?.outerHTML.slice(0, 200)}`;
  });
  assert.equal(out, null);
}

/** Every chart says what it shows. */
export async function assertAlternatives(page) {
  const silent = await page.evaluate(
    () =>
      [...document.querySelectorAll(".plot")].filter((plot) =>
        ["aria-labelledby", "aria-describedby"].some(
          (name) => !document.getElementById(plot.getAttribute(name))?.textContent.trim(),
        ),
      ).length,
  );
  assert.equal(silent, 0);
}

/** Contrast of words (4.5) and of what charts are drawn with (3), as WCAG counts it. */
export async function assertContrast(page) {
  const weak = await page.evaluate(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgb = (colour) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = (colour) => {
      const [r, g, b] = rgb(colour)
        .map((part) => part / 255)
        .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (a, b) => {
      const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
      return (bright + 0.05) / (dark + 0.05);
    };
    const found = [];
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if (rgb(colour)[3] === 255) return colour;
      }
      return "white";
    };
    for (const element of document.querySelectorAll("#page *")) {
      if (
        ![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) ||
        element.closest("button:disabled, svg, canvas") ||
        element.getClientRects().length === 0
      )
        continue;
      const value = ratio(getComputedStyle(element).color, behind(element));
      if (value < 4.5)
        found.push(
          `${element.tagName}.${element.className} "${element.textContent.slice(0, 30)}": ${value.toFixed(2)}`,
        );
    }
    const style = getComputedStyle(document.documentElement);
    for (let k = 0; k < 8; k += 1) {
      const value = ratio(style.getPropertyValue(`--style-${k}`), style.getPropertyValue("--surface"));
      if (value < 3) found.push(`style ${k}: ${value.toFixed(2)}`);
    }
    return [...new Set(found)];
  });
  assert.deepEqual(weak, []);
}

const axe = readFileSync(path.join(import.meta.dirname, "node_modules/axe-core/axe.min.js"), "utf8");

/** axe-core finds nothing. */
export async function assertAccessible(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document)).violations);
  assert.deepEqual(
    found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`),
    [],
  );
}

/** The tip at a point: inside the window, and beside the point. */
export async function assertTip(page, chart) {
  const box = await chart.locator(".readout").boundingBox();
  const { width, height } = page.viewportSize();
  assert.ok(box, "no tip");
  assert.ok(
    box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height,
    JSON.stringify(box),
  );
  return box;
}

/** What a chart's canvases show now, as text to compare. */
export const picture = (page, chart) =>
  chart.evaluate((figure) => [...figure.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL()).join());

/** What a click saves. Chromium drops downloads that follow each other too fast, more than about ten per second. */
export async function saved(page, locator) {
  await page.waitForTimeout(150);
  const [file] = await Promise.all([page.waitForEvent("download"), locator.click()]);
  return file;
}

/** The text file that a click saves. */
export async function download(page, locator) {
  const file = await saved(page, locator);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}

/** Opens every table behind a chart of the view. */
export const openDetails = (page) =>
  page
    .evaluate(() => {
      for (const details of document.querySelectorAll("details"))
        if (details.getClientRects().length > 0) details.open = true;
    })
    .then(() => page.waitForTimeout(50));

// What holds for every view: its details opened, numbers are those of the data, and everybody can read it. Pages with
// many charts of one name leave them closed: their tables would be regions of one name.
export async function assertSound(page, { details = true } = {}) {
  if (details) await openDetails(page);
  for (const sound of [assertNumbers, assertFits, assertAlternatives, assertContrast, assertAccessible])
    await sound(page);
}
