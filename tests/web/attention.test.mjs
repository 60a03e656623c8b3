// The attention map: every query, every token, over training.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  assertAccessible,
  assertFits,
  assertNumbers,
  assertSchema,
  assertTip,
  attsvm,
  dataOf,
  open,
  picture,
  python,
  showTab,
  startBrowser,
  visit,
} from "./support.mjs";

const words = ["the", "cat", "sat", "on", "a", "mat", "and", "slept"];
let browser;

before(async () => {
  attsvm("generate", "causal", "--n", 2, "--T", 8, "--d", 9, "--seed", 1, "-o", "plain.npz");
  python(
    `np.savez("causal.npz", **np.load("plain.npz"), x_token_names=np.array([${words.map((one) => `"${one}"`)}] * 2))`,
  );
  attsvm("train", "causal.npz", "--steps", 300, "-o", "causal-run.npz");
  attsvm("report", "causal.npz", "--run", "causal-run.npz", "-o", "causal.html");
  python(`rng = np.random.default_rng(0)
np.savez("large.npz", tokens=rng.standard_normal((1, 512, 8)), query_token=np.arange(512), sequence=np.zeros(512, int), head=rng.standard_normal(8))`);
  attsvm("train", "large.npz", "--steps", 30, "--record", "every:3", "-o", "large-run.npz");
  attsvm("report", "large.npz", "--run", "large-run.npz", "-o", "large.html");
  browser = await startBrowser();
});
after(() => browser?.close());

const on = (file, options, use) =>
  visit(browser, file, { hash: "#attention", ...options }, (page) =>
    use(page, page.locator(".chart", { hasText: "Attention map" })),
  );

/** Where a cell of the map is. */
async function cell(map, data, query, token) {
  const box = await map.locator(".map").boundingBox();
  const [left, top, right, foot] = [76, 8, 12, 44];
  const columns = Math.max(...data.queries.visible),
    rows = data.task.queries;
  return [
    box.x + left + ((token + 0.5) * (box.width - left - right)) / columns,
    box.y + top + ((query + 0.5) * (box.height - top - foot)) / rows,
  ];
}

test("a causal task opens on a query that sees several tokens", async () => {
  const { page, close } = await open(browser, "causal.html");
  const data = dataOf(page);
  assertSchema(data);
  const seen = Number(/sees (\d+) token/.exec(await page.locator(".pair .summary").first().textContent())[1]);
  assert.ok(seen >= Math.min(8, data.task.longest), `${seen} tokens`);
  await close();
});

test("pointing at a cell tells its weight, clicking its row opens the query", () =>
  on("causal.html", {}, async (page, map) => {
    const data = dataOf(page);
    const [run] = data.runs;
    await page.mouse.move(...(await cell(map, data, 6, 3)));
    await assertTip(page, map);
    const tip = map.locator(".readout");
    assert.match(await tip.textContent(), /query 6 token 3 \u201con\u201d/);
    const k = run.attention[6].tokens.indexOf(3);
    assert.equal(await tip.locator("[data-path]").getAttribute("title"), String(run.attention[6].weights[k].at(-1)));
    await assertNumbers(page);
    await page.mouse.click(...(await cell(map, data, 6, 3)));
    await page.getByRole("heading", { name: "Query 6", exact: true }).waitFor();
    await page.goBack();
    assert.equal(await page.getByRole("tab", { name: "Attention" }).getAttribute("aria-selected"), "true");
    // Tokens that a query does not see are no cells.
    await page.mouse.move(...(await cell(map, data, 1, 6)));
    assert.equal(await tip.isVisible(), false);
  }));

test("the keyboard does the same", () =>
  on("causal.html", {}, async (page, map) => {
    await map.locator(".plot").focus();
    for (const key of ["ArrowRight", "ArrowUp", "ArrowUp", "ArrowRight"]) await page.keyboard.press(key);
    assert.match(await map.locator(".readout").textContent(), /query 5 token 1/);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Query 5", exact: true }).waitFor();
    assert.match(page.url(), /query=5/);
  }));

test("the colours are the weights at the step", () =>
  on("causal.html", {}, async (page, map) => {
    const data = dataOf(page);
    const [run] = data.runs;
    const colour = async (query, token) => {
      const [x, y] = await cell(map, data, query, token);
      return map.locator(".map").evaluate(
        (canvas, [px, py]) => {
          const box = canvas.getBoundingClientRect();
          const ratio = canvas.width / box.width;
          const at = [(px - box.x) * ratio, (py - box.y) * ratio + 10].map(Math.round); // beside the token's text
          const copy = document.createElement("canvas");
          copy.width = copy.height = 1;
          const pen = copy.getContext("2d", { willReadFrequently: true });
          pen.drawImage(canvas, ...at, 1, 1, 0, 0, 1, 1);
          return [...pen.getImageData(0, 0, 1, 1).data];
        },
        [x, y],
      );
    };
    const bytes = Buffer.from(run.map.weights, "base64");
    const size = bytes.length / run.map.points.length;
    const start = data.queries.visible.slice(0, 14).reduce((sum, one) => sum + one, 0);
    const slider = page.getByRole("slider", { name: "Step" });
    for (const point of [0, run.map.points.length - 1]) {
      await slider.fill(String(run.map.points[point]));
      for (const token of [0, 2, 5]) {
        const part = bytes[point * size + start + token] / 255;
        const expected = [0, 0x60, 0x9a].map((to) => Math.round(255 + part * (to - 255)));
        const shown = await colour(14, token);
        assert.ok(
          expected.every((one, k) => Math.abs(one - shown[k]) <= 1),
          `${point}, ${token}: ${shown}, not ${expected}`,
        );
      }
    }
  }));

test("512 queries of 512 tokens are one canvas", () =>
  on("large.html", { viewport: { width: 1000, height: 900 } }, async (page, map) => {
    const data = dataOf(page);
    assertSchema(data);
    assert.equal(data.runs[0].map.queries, 512);
    assert.equal(Buffer.from(data.runs[0].map.weights, "base64").length, 512 * 512 * data.runs[0].map.points.length);
    assert.ok((await page.locator("*").count()) < 1500);
    const slider = page.getByRole("slider", { name: "Step" });
    const last = await picture(page, map);
    for (const step of ["0", "3", "6"]) await slider.fill(step);
    assert.notEqual(await picture(page, map), last);
    await page.mouse.move(...(await cell(map, data, 300, 200)), { steps: 20 });
    assert.match(await map.locator(".readout").textContent(), /query 300 token 200/);
    await assertFits(page);
  }));

for (const [name, options] of [
  ["a phone", { viewport: { width: 360, height: 740 } }],
  ["dark colours", { colorScheme: "dark" }],
])
  test(`the map on ${name}`, () =>
    on("causal.html", options, async (page) => {
      await assertFits(page);
      await assertAccessible(page);
      await showTab(page, "Overview");
      await assertAccessible(page);
    }));
