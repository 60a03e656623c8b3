// 100,000 tokens: the page opens, and never stands still for long.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  assertNumbers,
  assertSchema,
  attsvm,
  dataOf,
  open,
  picture,
  python,
  showTab,
  startBrowser,
} from "./support.mjs";

const still = 1.0; // seconds that the page may stand still at most, on a machine that is busy with other tests
let browser;

before(async () => {
  attsvm("generate", "separable", "--n", 1000, "--T", 100, "--d", 16, "--rank", 4, "-o", "plain.npz");
  python(
    `arrays = dict(np.load("plain.npz")); arrays.pop("select"); arrays["head"] = np.random.default_rng(0).standard_normal(16); np.savez("large.npz", **arrays)`,
  );
  attsvm("train", "large.npz", "--steps", 60, "--record", "every:3", "-o", "run.npz");
  attsvm("report", "large.npz", "--run", "run.npz", "-o", "large.html");
  python(`np.savez("long.npz", tokens=np.random.default_rng(1).standard_normal((1, 100000, 2)), select=np.array([0]))
arrays = dict(np.load("long.npz")); x = arrays["tokens"][0]; arrays["select"] = np.array([np.argmax(x @ np.array([1.0, 0.5]))]); np.savez("long.npz", **arrays)`);
  attsvm("report", "long.npz", "-o", "long.html");
  browser = await startBrowser();
});
after(() => browser?.close());

/** The longest time for which the page did nothing else while `use` ran, in seconds. */
async function longestTask(page, use) {
  await page.evaluate(() => {
    globalThis.longest = 0;
    globalThis.watch?.disconnect();
    globalThis.watch = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, entry.duration);
    });
    globalThis.watch.observe({ entryTypes: ["longtask"] });
  });
  await use();
  await page.waitForTimeout(100);
  return (await page.evaluate(() => globalThis.longest)) / 1000;
}

for (const file of ["large.html", "long.html"]) {
  test(`${file} opens and stays quick`, async () => {
    const { page, close, seconds } = await open(browser, file);
    console.log(`# ${file} opened in ${seconds.toFixed(2)} s`);
    assert.ok(seconds < 6, `${seconds} s`);
    const data = dataOf(page);
    assertSchema(data);
    assert.equal(data.plane.coordinates[0].length, 100000);
    for (const view of await page.getByRole("tab").allTextContents()) {
      const stood = await longestTask(page, () => showTab(page, view));
      console.log(`# ${view}: ${stood.toFixed(2)} s`);
      assert.ok(stood < still, `${view}: ${stood} s`);
      await assertNumbers(page);
    }
    await showTab(page, "Plane");
    const chart = page.locator("[role=tabpanel]:not([hidden]) .chart").first();
    const first = chart.locator(".series").first();
    const actions = {
      show: async () => {
        if ((await first.getAttribute("aria-pressed")) === "false") await first.click();
      },
      zoom: async () => {
        await chart.locator(".plot").focus();
        await page.keyboard.press("+");
        await page.keyboard.press("+");
      },
      hover: async () => {
        const box = await chart.locator(".u-over").boundingBox();
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 10 });
      },
    };
    if (data.task.queries > 1)
      actions.query = async () => {
        for (let k = 0; k < 3; k += 1) await page.getByRole("button", { name: "Next query" }).first().click();
      };
    if (data.run)
      actions.slide = async () => {
        for (const value of ["0", "5", "10", "15"]) await page.getByRole("slider", { name: "Step" }).fill(value);
      };
    actions.hide = async () => first.click();
    for (const [name, action] of Object.entries(actions)) {
      const stood = await longestTask(page, action);
      console.log(`# ${name}: ${stood.toFixed(2)} s`);
      assert.ok(stood < still, `${name}: ${stood} s`);
    }
    assert.ok((await picture(page, chart)).length > 10000);
    await close();
  });
}
