// The page of what sizes can separate.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { assertSchema, assertSound, attsvm, attsvmCode, dataOf, download, open, startBrowser } from "./support.mjs";

let browser, told;
before(async () => {
  const sizes = ["--n", 20, "--T", 5, "--d", 6, "--draws", 20, "--runs", 5];
  told = JSON.parse(attsvm("capacity", ...sizes, "--width", 3, "--heads", 2, "--page", "sizes.html", "--json"));
  attsvm("capacity", "--n", 3, "--T", 4, "--d", 6, "--draws", 1, "--want", 0, "--page", "one.html");
  const long = ["--n", 8, "--T", 2, "--d", 4, "--draws", 10 ** 7];
  assert.equal(attsvmCode("capacity", ...long, "--time-limit", 1, "--page", "stopped.html"), 4);
  assert.equal(attsvmCode("capacity", ...long, "--time-limit", 1e-9, "--page", "none.html"), 4);
  browser = await startBrowser();
});
after(() => browser?.close());

for (const [file, viewport, colorScheme] of [
  ["sizes.html", { width: 1440, height: 1000 }, "light"],
  ["sizes.html", { width: 360, height: 740 }, "dark"],
  ["one.html", { width: 1440, height: 1000 }, "dark"],
  ["stopped.html", { width: 1440, height: 1000 }, "light"],
  ["none.html", { width: 360, height: 740 }, "light"],
]) {
  test(`${file}, ${viewport.width} pixels wide, ${colorScheme}`, async () => {
    const { page, close } = await open(browser, file, { viewport, colorScheme });
    assertSchema(dataOf(page));
    await assertSound(page);
    await close();
  });
}

test("the page says what the program prints", async () => {
  const { page, close } = await open(browser, "sizes.html");
  const data = dataOf(page);
  for (const name of Object.keys(data).filter((key) => key in told && key !== "attsvm" && key !== "command"))
    assert.deepEqual(data[name], told[name], name);
  const { low, high } = told.smallest_d;
  const headline = await page.locator("h2").first().textContent();
  assert.ok(headline.includes(low === high ? `d = ${high} is the smallest` : `from d = ${low} to ${high}`), headline);
  await page.locator(".plot").focus();
  await page.keyboard.press("End");
  const shown = await page.locator(".readout").textContent();
  assert.match(shown, /predicted|counted|wanted/);
  await close();
});

test("the chance that is wanted is a level line", async () => {
  const { page, close } = await open(browser, "sizes.html");
  const { text } = await download(page, page.locator("[data-download=svg]").first());
  const line = /<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" fill="none"[^>]*stroke-width="1"[^>]*stroke-dasharray/;
  const [, x0, y0, x1, y1] = text.match(line) ?? [];
  assert.ok(Number(x1) > Number(x0) && y0 === y1, "no line");
  await close();
});

test("a page of what was counted before a stop says so, and draws what there is", async () => {
  for (const [file, charts] of [
    ["stopped.html", 1],
    ["none.html", 0],
  ]) {
    const { page, close } = await open(browser, file);
    assert.deepEqual(dataOf(page).prediction, { d: [], chance: [] });
    assert.equal(await page.locator(".badge.warn").count(), 1);
    assert.equal(await page.locator(".chart").count(), charts, file);
    await close();
  }
});
