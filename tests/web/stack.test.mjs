// The page of a stack of layers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { assertSchema, assertSound, attsvm, dataOf, open, showTab, startBrowser } from "./support.mjs";

let browser;
before(async () => {
  attsvm("generate", "random", "--attention", "prompt", "--n", 4, "--T", 6, "--seed", 1, "-o", "task.npz");
  attsvm("stack", "task.npz", "--heads", 2, "--steps", 2000, "-o", "stack.npz");
  attsvm("report", "task.npz", "--run", "stack.npz", "-o", "stack.html");
  attsvm("stack", "task.npz", "--layers", 1, "--steps", 2000, "-o", "one.npz");
  attsvm("report", "task.npz", "--run", "one.npz", "-o", "one.html");
  browser = await startBrowser();
});
after(() => browser?.close());

for (const [name, viewport, colorScheme] of [
  ["a wide screen, dark", { width: 1440, height: 1000 }, "dark"],
  ["a phone, light", { width: 360, height: 740 }, "light"],
]) {
  test(`every view on ${name}`, async () => {
    const { page, close } = await open(browser, "stack.html", { viewport, colorScheme });
    assertSchema(dataOf(page));
    for (const tab of ["Overview", "Training", "Attention"]) {
      await showTab(page, tab);
      for (const section of await page.locator(".view:not([hidden]) .experiment").all())
        await section.scrollIntoViewIfNeeded();
      await assertSound(page);
    }
    await close();
  });
}

test("the page says what check says of every head", async () => {
  const { page, close } = await open(browser, "stack.html");
  const check = JSON.parse(attsvm("check", "task.npz", "--run", "stack.npz", "--json"));
  const data = dataOf(page);
  assert.deepEqual(data.record_step, check.record_step);
  check.judged.forEach((head, k) => {
    for (const [key, value] of Object.entries(head)) {
      if (key.startsWith("last_")) {
        const { mean_distance: distance, ...rest } = data.judged[k][key];
        assert.deepEqual(rest, value);
        assert.equal(distance, 1 - value.mean);
      } else assert.deepEqual(data.judged[k][key], value, key);
    }
    assert.ok(data.judged[k].rho_distances.every((one, r) => one === null || one === 1 - head.rho[r]));
  });
  const ahead = check.judged.filter(({ last_correlation: one }) => one.null.every((other) => other < one.value)).length;
  const headline = await page.locator(".story h2").textContent();
  assert.match(headline, ahead === 4 ? /each is nearer to its SVM/ : new RegExp(`: ${ahead} nearer`));
  await close();
});

test("attention adds up, and a cell of the grid leads to it", async () => {
  const { page, close } = await open(browser, "stack.html");
  const { attention, judged } = dataOf(page);
  for (const head of judged) assert.equal(attention.live[head.layer].flat().length, head.queries);
  for (const row of attention.weights.flat(3)) assert.ok(Math.abs(row.reduce((sum, one) => sum + one, 0) - 1) < 1e-12);
  assert.deepEqual(attention.live[1], attention.positions[1], "only the token that is read asks in the last layer");
  assert.ok(attention.live[0].every((list, s) => list.every((one) => attention.positions[0][s].includes(one))));
  await page.getByRole("link", { name: "Attention of layer 1, head 1" }).click();
  assert.match(page.url(), /#attention\?layer=1&head=1/);
  assert.match(await page.locator(".view-attention h2").last().textContent(), /layer 1, head 1, sequence 0/);
  const framed = page.locator(".view-attention td.framed");
  assert.equal(await framed.count(), attention.positions[1][0].length);
  await page.locator(".view-attention select").first().selectOption("0");
  assert.equal(await page.locator(".view-attention tbody tr").count(), attention.positions[0][0].length);
  assert.equal(await page.locator(".view-attention .badge").count(), attention.live[0][0].length);
  await close();
});

test("of a single head the headline speaks in the singular", async () => {
  const { page, close } = await open(browser, "one.html");
  const { value, null: list } = dataOf(page).judged[0].last_correlation;
  const nearer = list.every((one) => one < value) ? "nearer" : "not nearer";
  assert.equal(
    await page.locator(".story h2").textContent(),
    `1 head in 1 layer: ${nearer} to its SVM than all of its null`,
  );
  await close();
});
