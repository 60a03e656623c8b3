// What the reader chose stands in the address: it can be linked to, and Back takes it back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { attsvm, dataOf, startBrowser, visit } from "./support.mjs";

let browser;

before(async () => {
  attsvm("demo", "--out", "demo");
  browser = await startBrowser();
});
after(() => browser?.close());

const on = (hash, use) => visit(browser, "demo/report.html", { hash }, use);

const tab = (page) => page.locator("[role=tab][aria-selected=true]").textContent();
const query = (page) => page.locator("[role=tabpanel]:not([hidden]) .query input").inputValue();
const hash = (page) => new URL(page.url()).hash;

test("view, query, axes, run and step are in the address", () =>
  on("", async (page) => {
    await page.getByRole("tab", { name: "Plane" }).click();
    assert.equal(hash(page), "#plane");
    await page.getByRole("button", { name: "Next query" }).first().click();
    assert.equal(hash(page), "#plane?query=1");
    await page.getByLabel(/^Up/).selectOption({ label: "coordinate 3" });
    const up = dataOf(page).plane.axes.findIndex((axis) => axis.kind === "coordinate" && axis.index === 3);
    assert.equal(hash(page), `#plane?query=1&up=${up}`);
    await page.getByRole("slider", { name: "Step" }).fill("7");
    await page.waitForFunction(() => location.hash.includes("step=7"));
    await page.getByRole("tab", { name: "Attention" }).click();
    await page.getByLabel(/^Run/).selectOption({ index: 1 });
    assert.equal(hash(page), `#attention?query=1&step=7&run=1&up=${up}`);
    await page.reload();
    await page.waitForSelector("#page[data-ready]");
    assert.equal(await tab(page), "Attention");
    assert.equal(await query(page), "1");
    assert.equal(await page.getByRole("slider", { name: "Step" }).inputValue(), "7");
    assert.equal(await page.getByLabel(/^Run/).inputValue(), "1");
    await page.getByRole("tab", { name: "Plane" }).click();
    assert.equal(await page.getByLabel(/^Up/).inputValue(), String(up));
  }));

test("Back takes choices back one by one, Forward brings them again", () =>
  on("", async (page) => {
    await page.getByRole("tab", { name: "Plane" }).click();
    await page.getByRole("button", { name: "Next query" }).first().click();
    await page.getByRole("tab", { name: "Margins" }).click();
    await page.goBack();
    assert.deepEqual([await tab(page), await query(page)], ["Plane", "1"]);
    await page.goBack();
    assert.deepEqual([await tab(page), await query(page)], ["Plane", "0"]);
    await page.goBack();
    assert.equal(await tab(page), "Overview");
    await page.goForward();
    assert.equal(await tab(page), "Plane");
  }));

test("every row that names a query leads to it", () =>
  on("", async (page) => {
    const data = dataOf(page);
    const links = page.locator(".query-link");
    assert.equal(await links.count(), data.task.queries);
    await links.nth(3).click();
    assert.deepEqual([await tab(page), await query(page)], ["Plane", "3"]);
    await page.getByRole("heading", { name: "Query 3", exact: true }).waitFor();
    await page.goBack();
    assert.equal(await tab(page), "Overview");
    await page.getByRole("tab", { name: "Margins" }).click();
    const rows = data.solutions[0].rows;
    const link = page.locator("[role=tabpanel]:not([hidden]) .query-link").nth(2);
    await link.focus();
    await page.keyboard.press("Enter");
    assert.equal(await query(page), String(rows.query[rows.support[2]]));
  }));

for (const wrong of ["#plane?query=999999&step=-1&up=x&run=1.5", "#nothing?query=", "#%E0%A4%A", "#plane?&&==?"])
  test(`an address of nonsense is no harm: ${wrong}`, () =>
    on(wrong, async (page) => {
      assert.match(await tab(page), /Overview|Plane/);
      await page.getByRole("tab", { name: "Plane" }).click();
      assert.equal(await query(page), "0");
    }));
