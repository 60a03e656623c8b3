// The index of the experiments.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import {
  assertNumbers,
  assertSchema,
  assertSound,
  attsvm,
  dataOf,
  download,
  folder,
  pagesOf,
  picture,
  testOn,
} from "./pages.mjs";

// Curves in the plane, lines, bands, boxes and bars; square panels and logarithmic axes.
const names = ["single-input", "gd-paths", "local-convergence", "convergence-types", "quadratic-head", "svm-rank"];
const { on, browser } = pagesOf(() => {
  attsvm("reproduce", ...names, "--runs", 2, "--out", "r");
});

/** All charts are made: each when it comes near the screen. */
async function scrollThrough(page) {
  for (const section of await page.locator(".experiment").all()) await section.scrollIntoViewIfNeeded();
  await page.waitForFunction(() => {
    const data = JSON.parse(document.getElementById("data").textContent);
    const open = [...document.querySelectorAll(".experiment")].find((section) => !section.querySelector(".chart"));
    open?.scrollIntoView();
    return (
      document.querySelectorAll(".chart").length ===
      data.experiments.reduce((sum, one) => sum + one.figure.panels.length, 0)
    );
  });
}

testOn(["a wide screen, dark", "a phone, light"], "every experiment", async (screen) => {
  await on("r/index.html", screen, async (page) => {
    const data = dataOf(page);
    assertSchema(data);
    assert.deepEqual(
      data.experiments.map((one) => one.experiment),
      names,
    );
    await scrollThrough(page);
    await assertSound(page, { details: false });
    assert.equal(
      await page.locator(".findings tbody tr").count(),
      data.experiments.reduce((sum, one) => sum + one.findings.length, 0),
    );
  });
});

test("each experiment names its paper and the counts that were run; tables have three digits", async () => {
  attsvm("reproduce", "atlas", "--runs", 1, "--out", "atlas");
  await on("atlas/index.html", {}, async (page) => {
    const [one] = dataOf(page).experiments;
    assert.match(one.setting, /here --runs 1 was given/);
    assert.match(await page.locator("#atlas").textContent(), /Ours; for softmax attention/);
    await scrollThrough(page);
    const cells = await page.locator("#atlas .shares td > [data-path]").allTextContents();
    assert.ok(cells.length > 50);
    for (const text of cells) assert.match(text, /^(\u2013|-?0?[.\d]{1,5})$/);
    await assertNumbers(page);
  });
  await on("r/index.html", {}, async (page) => {
    for (const published of dataOf(page).experiments) {
      const shown = await page.locator(`#${published.experiment}`).textContent();
      assert.match(shown, /Reproduces: .*\(arXiv 230[68]\.\d+\), the (figures?|section) /);
    }
  });
});

test("figures are interactive: values, switches, logarithmic axes", async () => {
  await on("r/index.html", { hash: "#svm-rank" }, async (page) => {
    const chart = page.locator("#svm-rank .chart").first();
    await chart.scrollIntoViewIfNeeded();
    const data = dataOf(page);
    const curve = data.experiments.at(-1).figure.panels[0].curves[0];
    const before = await picture(page, chart);
    await chart.locator(".plot").focus();
    await page.keyboard.press("End");
    assert.equal(
      await chart.locator(".readout [data-path$='.y." + (curve.y.length - 1) + "']").getAttribute("title"),
      String(curve.y.at(-1)),
    );
    await assertNumbers(page);
    await page.keyboard.press("Escape");
    for (const button of [
      chart.locator(".series").first(),
      chart.getByRole("button", { name: "Log x" }),
      chart.getByRole("button", { name: "Log y" }),
    ]) {
      await button.click();
      assert.notEqual(await picture(page, chart), before);
      await button.click();
      assert.equal(await picture(page, chart), before);
    }
    await chart.getByText("Numbers of this chart").click();
    await assertNumbers(page);
    const file = await download(page, chart.getByRole("button", { name: "Download svm-rank-1.csv" }));
    const points = data.experiments.at(-1).figure.panels[0].curves.reduce((sum, one) => sum + one.x.length, 0);
    assert.equal(file.text.trim().split("\n").length - 1, points);
  });
});

test("the files of every experiment are a click away", async () => {
  await on("r/index.html", {}, async (page) => {
    const data = dataOf(page);
    for (const one of data.experiments) {
      for (const link of await page.locator(`#${one.experiment} .files a`).all()) {
        const file = fileURLToPath(await link.evaluate((element) => element.href));
        assert.ok(existsSync(file), file);
        assert.ok(file.startsWith(path.join(folder, "r", one.experiment)));
      }
      const shown = JSON.parse(readFileSync(path.join(folder, "r", one.experiment, "data.json"), "utf8"));
      const absent = { log_x: false, log_y: false, x_range: null, y_range: null, square: false, grid: null };
      const panels = shown.figure.panels.map((panel) => ({ ...absent, ...panel }));
      assert.deepEqual(one.figure, { ...shown.figure, panels });
      assert.deepEqual(one.findings, shown.findings);
    }
    assert.equal(await page.locator(".files a").count(), 3 * names.length);
  });
});

test("without scripts there is a plain page", async () => {
  const context = await browser().newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`file://${path.join(folder, "r/index.html")}`);
  assert.equal(await page.locator("noscript h2").count(), names.length);
  await context.close();
});
