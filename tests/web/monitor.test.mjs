// The page of a training monitor.
import assert from "node:assert/strict";
import { test } from "node:test";

import { assertSchema, assertSound, attsvm, dataOf, download, pagesOf, python, testOn } from "./pages.mjs";

const { on } = pagesOf(() => {
  // Two layers of three and of two heads; rho at the first and the last of five measurements.
  for (const [name, points, heads] of [
    ["monitor", 5, 3],
    ["two", 2, 11],
  ]) {
    writeFile(name, points, heads);
    attsvm("report", `${name}.npz`, "-o", `${name}.html`);
  }
});

/** The last head of the second layer does not exist. */
function writeFile(name, points, heads) {
  python(`
rng = np.random.default_rng(0)
shape = (${points}, 2, ${heads})
counts = dict(gap=3, weight=0, entropy=0, largest_logit=0, sink_weight=0, sink_share=0, drift=0, norm=3, kind=4, forecast=0, rho=3)
arrays = {name: rng.uniform(0.1, 1, shape + ((count,) if count else ())) for name, count in counts.items()}
arrays["largest_logit"] *= 200
arrays["rho"][1:-1] = np.nan
arrays["drift"][0] = np.nan
for one in arrays.values():
    one[:, 1, -1] = np.nan
words = np.full(shape, "offset -1")
words[:, 1, -1] = ""
np.savez("${name}.npz", step=np.arange(${points}) * 100, layer_name=["encoder.0", "<b>&"], kind_words=words.ravel(), rho_norm="spec",
         warnings=["step 400: encoder.0, head 1: its largest logit is 123.4"], **arrays)`);
}

testOn(["a wide screen, dark", "a phone, light"], "every layer", async (screen) => {
  await on("monitor.html", screen, async (page) => {
    const data = dataOf(page);
    assertSchema(data);
    for (const section of await page.locator(".experiment").all()) await section.scrollIntoViewIfNeeded();
    await page.waitForFunction(() => {
      [...document.querySelectorAll(".experiment")].find((one) => !one.querySelector(".chart"))?.scrollIntoView();
      return document.querySelectorAll(".chart").length === 18;
    });
    await assertSound(page, { details: false });
    assert.equal(await page.locator(".shares tbody td").count(), 6);
    assert.equal((await page.locator(".shares tbody td").nth(5).textContent()) ?? "", "", "there is no such head");
    assert.equal(await page.locator("#layer-1 .chart").first().locator(".series").count(), 2);
    assert.equal(await page.locator(".badge.bad").count(), 1);
  });
});

test("a point of a curve says its number", async () => {
  await on("monitor.html", { hash: "#layer-0" }, async (page) => {
    const chart = page.locator("#layer-0 .chart").first();
    await chart.scrollIntoViewIfNeeded();
    await chart.locator(".plot").focus();
    await page.keyboard.press("End");
    const shown = await chart.locator(".readout [data-path$='.4']").last().getAttribute("title");
    assert.ok(dataOf(page).measures.gap_50[0].some((curve) => String(curve[4]) === shown));
  });
});

test("of two measurements every head has its points, also those whose lines would be thin", async () => {
  await on("two.html", { hash: "#layer-1" }, async (page) => {
    const chart = page.locator("#layer-1 .chart").first();
    await chart.scrollIntoViewIfNeeded();
    const { text } = await download(page, chart.locator("[data-download=svg]"));
    const drawn = [...text.matchAll(/<path d="[^"]+"[^>]*clip-path/g)].length;
    assert.equal(drawn, 10, "a path per head, with the points that were measured");
  });
});
