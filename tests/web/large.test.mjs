// 100,000 tokens: the page opens, and draws them without an element per token, which is what keeps it quick.
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

const tokens = 100000;
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

/** The page has far fewer elements than tokens. */
async function assertFewElements(page, name) {
  const elements = await page.locator("*").count();
  assert.ok(elements < tokens / 20, `${name}: ${elements} elements`);
}

for (const file of ["large.html", "long.html"]) {
  test(`${file} opens and stays small`, async () => {
    const { page, close } = await open(browser, file);
    const data = dataOf(page);
    assertSchema(data);
    assert.equal(data.plane.coordinates.at(-1).length, tokens);
    for (const view of await page.getByRole("tab").allTextContents()) {
      await showTab(page, view);
      await assertFewElements(page, view);
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
    if (data.runs.length > 0)
      actions.slide = async () => {
        for (const value of ["0", "5", "10", "15"]) await page.getByRole("slider", { name: "Step" }).fill(value);
      };
    actions.hide = async () => first.click();
    for (const [name, action] of Object.entries(actions)) {
      await action();
      await assertFewElements(page, name);
    }
    assert.ok((await picture(page, chart)).length > 10000);
    await close();
  });
}
