// Charts as files, and the page on paper.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { attsvm, dataOf, download, open, saved, showTab, startBrowser } from "./support.mjs";

let browser;

before(async () => {
  attsvm("demo", "--out", "demo");
  attsvm("reproduce", "losses", "svm-rank", "local-convergence", "--runs", 1, "--out", "r");
  browser = await startBrowser();
});
after(() => browser?.close());

test("every chart is saved as SVG and as PNG", async () => {
  const { page, close } = await open(browser, "demo/report.html");
  for (const view of await page.getByRole("tab").allTextContents()) {
    await showTab(page, view);
    for (const chart of await page.locator("[role=tabpanel]:not([hidden]) .chart").all()) {
      const svg = await download(page, chart.locator("[data-download=svg]"));
      const found = await page.evaluate((text) => {
        const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
        const marks = root.querySelectorAll("[clip-path] , image").length;
        const words = [...root.querySelectorAll("text")].map((one) => one.textContent);
        return { name: root.localName, marks, words };
      }, svg.text);
      assert.equal(found.name, "svg", svg.name);
      assert.ok(found.marks > 0, `${svg.name} is empty`);
      const title = await chart.locator("h3").textContent();
      assert.ok(found.words[0].startsWith(title.slice(0, 9)), `${found.words[0]}, not ${title}`);
      const file = await saved(page, chart.locator("[data-download=png]"));
      const png = readFileSync(await file.path());
      assert.equal(png.toString("latin1", 1, 4), "PNG");
      assert.equal(file.suggestedFilename(), svg.name.replace(".svg", ".png"));
      const plot = await chart.locator(".plot").boundingBox();
      assert.equal(png.readUInt32BE(16), 2 * Math.round(plot.width));
      assert.ok(png.readUInt32BE(20) >= 2 * plot.height && png.length > 5000);
    }
  }
  await close();
});

/** What is on paper, asked when the browser prints. */
async function printed(page) {
  await page.evaluate(() =>
    addEventListener("beforeprint", () => {
      const light = (one) => getComputedStyle(document.documentElement).getPropertyValue(one).trim();
      globalThis.onPaper = {
        charts: document.querySelectorAll(".chart").length,
        empty: [...document.querySelectorAll(".chart")]
          .filter((chart) => !chart.querySelector(".printed [clip-path], .printed image"))
          .map((chart) => chart.querySelector("h3").textContent),
        dark: [...document.querySelectorAll(".printed > path:first-of-type")].filter(
          (one) => one.getAttribute("fill") !== "#ffffff",
        ).length,
        surface: light("--surface"),
      };
    }),
  );
  const pdf = await page.pdf();
  assert.equal(pdf.toString("latin1", 0, 5), "%PDF-");
  return page.evaluate(() => globalThis.onPaper);
}

for (const colorScheme of ["light", "dark"])
  test(`a report opened in ${colorScheme} colours prints every chart of every view, in light ones`, async () => {
    const { page, close } = await open(browser, "demo/report.html", { colorScheme });
    const before = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const paper = await printed(page);
    assert.ok(paper.charts >= 11, `${paper.charts} charts`);
    assert.deepEqual([paper.empty, paper.dark, paper.surface], [[], 0, "#ffffff"]);
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("button:visible").count(), 0);
    await page.emulateMedia({ media: null });
    assert.equal(await page.locator(".printed").count(), 0);
    assert.equal(await page.locator("[role=tabpanel]:not([hidden])").count(), 1);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), before);
    await close();
  });

test("an index prints the charts that are still far from the screen", async () => {
  const { page, close } = await open(browser, "r/index.html", { viewport: { width: 1000, height: 300 } });
  const panels = dataOf(page).experiments.flatMap((one) => one.figure.panels.filter((panel) => !panel.grid));
  assert.ok((await page.locator(".chart").count()) < panels.length, "all of them are near");
  const paper = await printed(page);
  assert.equal(paper.charts, panels.length);
  const bare = panels.filter((panel) => panel.curves.every((curve) => curve.y.every((y) => y === null)));
  assert.equal(paper.empty.length, bare.length, paper.empty.join("; "));
  await close();
});
