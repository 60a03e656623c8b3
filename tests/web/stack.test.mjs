// The page of a stack of layers.
import assert from "node:assert/strict";
import { test } from "node:test";

import { assertSchema, assertSound, attsvm, dataOf, pagesOf, showTab, testOn } from "./pages.mjs";

const { on } = pagesOf(() => {
  attsvm("generate", "random", "--attention", "prompt", "--n", 4, "--T", 6, "--seed", 1, "-o", "task.npz");
  attsvm("stack", "task.npz", "--heads", 2, "--steps", 2000, "-o", "stack.npz");
  attsvm("report", "task.npz", "--run", "stack.npz", "-o", "stack.html");
  attsvm("stack", "task.npz", "--layers", 1, "--steps", 2000, "-o", "one.npz");
  attsvm("report", "task.npz", "--run", "one.npz", "-o", "one.html");
});

testOn(["a wide screen, dark", "a phone, light"], "every view", async (screen) => {
  await on("stack.html", screen, async (page) => {
    assertSchema(dataOf(page));
    for (const tab of ["Overview", "Training", "Attention"]) {
      await showTab(page, tab);
      for (const section of await page.locator(".view:not([hidden]) .experiment").all())
        await section.scrollIntoViewIfNeeded();
      await assertSound(page);
    }
  });
});

test("the page says what check says of every head", async () => {
  await on("stack.html", {}, async (page) => {
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
    const ahead = check.judged.filter(({ last_correlation: one }) =>
      one.null.every((other) => other < one.value),
    ).length;
    const headline = await page.locator(".story h2").textContent();
    assert.match(headline, ahead === 4 ? /each is nearer to its SVM/ : new RegExp(`: ${ahead} nearer`));
  });
});

test("attention adds up, and a cell of the grid leads to it", async () => {
  await on("stack.html", {}, async (page) => {
    const { attention, judged } = dataOf(page);
    for (const head of judged) assert.equal(attention.live[head.layer].flat().length, head.queries);
    for (const [k] of judged.entries()) {
      const shown = await page.locator(`[data-path="judged.${k}.attention_min"]`).first().textContent();
      assert.match(shown, /^[\d.]{1,4}\u202f%$/, "few digits, as beside it");
    }
    for (const row of attention.weights.flat(3))
      assert.ok(Math.abs(row.reduce((sum, one) => sum + one, 0) - 1) < 1e-12);
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
  });
});

test("of a single head the headline speaks in the singular", async () => {
  await on("one.html", {}, async (page) => {
    const { value, null: list } = dataOf(page).judged[0].last_correlation;
    const nearer = list.every((one) => one < value) ? "nearer" : "not nearer";
    assert.equal(
      await page.locator(".story h2").textContent(),
      `1 head in 1 layer: ${nearer} to its SVM than all of its null`,
    );
  });
});
