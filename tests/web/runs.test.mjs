// Several runs on one page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  assertFits,
  assertNumbers,
  assertSchema,
  attsvm,
  dataOf,
  download,
  showTab,
  startBrowser,
  visit,
} from "./support.mjs";

const files = ["gd.npz", "adam.npz", "signum.npz"];
const many = ["gd", "ngd", "polyak", "signum", "lion", "muon", "steepest:spec", "steepest:max", "steepest:nuc"];
let browser;

before(async () => {
  attsvm("generate", "random", "--seed", 1, "-o", "task.npz");
  for (const [k, file] of files.entries()) {
    const records = k === 0 ? [] : ["--record", `every:${4 + 3 * k}`]; // at other moments than the first
    attsvm("train", "task.npz", "--optimizer", file.replace(".npz", ""), "--steps", 400, ...records, "-o", file);
  }
  attsvm("report", "task.npz", ...files.flatMap((file) => ["--run", file]), "-o", "runs.html");
  // The first one is the shortest.
  for (const [k, optimizer] of many.entries())
    attsvm("train", "task.npz", "--optimizer", optimizer, "--steps", 20 + 10 * k, "-o", `${k}.npz`);
  attsvm("report", "task.npz", ...many.flatMap((_, k) => ["--run", `${k}.npz`]), "-o", "many.html");
  attsvm("demo", "--out", "demo");
  browser = await startBrowser();
});
after(() => browser?.close());

const on = (file, hash, use) => visit(browser, file, { hash }, use);

test("every view shows every run, and every number is the data's", () =>
  on("runs.html", "", async (page) => {
    const data = dataOf(page);
    assertSchema(data);
    assert.deepEqual(
      data.runs.map((run) => run.file),
      files,
    );
    for (const view of await page.getByRole("tab").allTextContents()) {
      await showTab(page, view);
      await assertNumbers(page);
      await assertFits(page);
    }
    await showTab(page, "Plane");
    const plane = page.locator("[role=tabpanel]:not([hidden]) .chart").first();
    for (const name of ["gd", "adam", "signum"])
      await plane.getByRole("button", { name: `W z of W by ${name}` }).waitFor();
  }));

test("optimizers are compared in every norm", () =>
  on("runs.html", "#training", async (page) => {
    const { runs } = dataOf(page);
    const chart = page.locator(".chart", { hasText: "Distance from the largest margin" });
    const choice = page.getByRole("combobox", { name: /^Norm/ });
    const norms = await choice.locator("option").allTextContents();
    assert.deepEqual(norms, [...new Set(runs.flatMap((run) => run.shares.map((one) => one.norm)))]);
    for (const norm of norms) {
      await choice.selectOption({ label: norm });
      const { text } = await download(page, chart.getByRole("button", { name: /csv$/ }));
      const lines = text
        .trim()
        .split("\n")
        .slice(1)
        .map((line) => line.split(","));
      const expected = runs.flatMap((run) => run.shares.find((one) => one.norm === norm)?.distances ?? []);
      assert.deepEqual(
        lines.map((line) => (line[2] === "" ? null : Number(line[2]))),
        expected,
        norm,
      );
    }
    const rows = page.locator(".card", { hasText: "Margins in each norm" }).locator("tbody tr");
    assert.equal(
      await rows.count(),
      runs.reduce((sum, run) => sum + run.shares.length, 0),
    );
  }));

for (const file of ["runs.html", "many.html"])
  test(`one slider moves all runs over every step that one has, each to the last that it had reached: ${file}`, () =>
    on(file, "#training", async (page) => {
      const { runs } = dataOf(page);
      const steps = [...new Set(runs.flatMap((run) => run.step))].sort((a, b) => a - b);
      const slider = page.getByRole("slider", { name: "Step" });
      assert.equal(await slider.getAttribute("max"), String(steps.length - 1));
      for (const place of [0, Math.floor(steps.length / 2), steps.length - 1]) {
        await slider.fill(String(place));
        assert.equal(await slider.getAttribute("aria-valuetext"), `step ${steps[place]}`);
        await assertNumbers(page);
        for (const [r, run] of runs.entries()) {
          const point = Math.max(
            0,
            run.step.findLastIndex((one) => one <= steps[place]),
          );
          const norm = page.locator(`.facts [data-path='runs.${r}.norm.${point}']`);
          assert.equal(await norm.getAttribute("title"), String(run.norm[point]));
        }
      }
    }));

test("Overview has the share of the largest margin of every run in every norm", () =>
  on("many.html", "", async (page) => {
    const { runs } = dataOf(page);
    const card = page.locator(".card", { hasText: "How much of the largest margin" });
    for (const [r, run] of runs.entries())
      for (const [s, one] of run.shares.entries()) {
        const cell = card.locator(`[data-path='runs.${r}.shares.${s}.rho.${one.rho.length - 1}']`);
        assert.equal(await cell.getAttribute("title"), String(one.rho.at(-1)));
        const framed = await cell.evaluate((element) => element.closest("td").className === "framed");
        assert.equal(framed, run.implied.norm === one.norm);
      }
    await assertNumbers(page);
    await assertFits(page);
  }));

test("no two of nine runs look the same, and eight differ in colour", () =>
  on("many.html", "", async (page) => {
    const looks = await page
      .locator(".pair .chart")
      .nth(1)
      .locator(".series .swatch")
      .evaluateAll((all) => all.map((one) => [one.querySelector("line").getAttribute("stroke"), one.innerHTML]));
    assert.equal(looks.length, many.length);
    assert.equal(new Set(looks.slice(0, 8).map(([stroke]) => stroke)).size, 8);
    assert.equal(new Set(looks.map(([, html]) => html)).size, many.length);
  }));

test("the demo sets W against K and Q, each against what theory predicts for it", () =>
  on("demo/report.html", "", async (page) => {
    const { runs } = dataOf(page);
    assert.deepEqual(
      runs.map((run) => run.implied.norm),
      ["fro", "nuc"],
    );
    const chart = page.locator(".pair .chart").nth(1);
    const { text } = await download(page, chart.getByRole("button", { name: /csv$/ }));
    const ends = runs.map((run) => run.correlations.find((one) => one.norm === run.implied.norm).distances);
    const shown = text
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.match(/,([^,]*),,,$/)[1]);
    assert.deepEqual(
      shown.map((one) => (one === "" ? null : Number(one))),
      ends.flat(),
    );
  }));
