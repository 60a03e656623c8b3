// The page of what sizes can separate.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  assertAccessible,
  assertAlternatives,
  assertContrast,
  assertFits,
  assertNumbers,
  assertSchema,
  attsvm,
  dataOf,
  open,
  openDetails,
  startBrowser,
} from "./support.mjs";

let browser, told;
before(async () => {
  const sizes = ["--n", 20, "--T", 5, "--d", 6, "--draws", 20, "--runs", 5];
  told = JSON.parse(attsvm("capacity", ...sizes, "--width", 3, "--heads", 2, "--page", "sizes.html", "--json"));
  attsvm("capacity", "--n", 3, "--T", 4, "--d", 6, "--draws", 1, "--want", 0, "--page", "one.html");
  browser = await startBrowser();
});
after(() => browser?.close());

for (const [file, viewport, colorScheme] of [
  ["sizes.html", { width: 1440, height: 1000 }, "light"],
  ["sizes.html", { width: 360, height: 740 }, "dark"],
  ["one.html", { width: 1440, height: 1000 }, "dark"],
]) {
  test(`${file}, ${viewport.width} pixels wide, ${colorScheme}`, async () => {
    const { page, close } = await open(browser, file, { viewport, colorScheme });
    assertSchema(dataOf(page));
    await openDetails(page);
    await assertNumbers(page);
    await assertFits(page);
    await assertAlternatives(page);
    await assertContrast(page);
    await assertAccessible(page);
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
