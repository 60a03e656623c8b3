// The page of a run of many heads.
import assert from "node:assert/strict";
import { test } from "node:test";

import { assertSchema, assertSound, attsvm, dataOf, pagesOf, showTab, testOn } from "./pages.mjs";

const { on } = pagesOf(() => {
  attsvm("generate", "random", "--seed", 1, "-o", "task.npz");
  attsvm("train", "task.npz", "--heads", 3, "--shared-norm", "--steps", 3000, "-o", "heads.npz");
  attsvm("report", "task.npz", "--run", "heads.npz", "-o", "heads.html");
});

testOn(["a wide screen, light", "a phone, dark"], "every view", async (screen) => {
  await on("heads.html", screen, async (page) => {
    assertSchema(dataOf(page));
    for (const tab of ["All heads", "Training", "One head", "Plane", "Attention", "Margins", "Spectrum", "Proof"]) {
      await showTab(page, tab);
      await assertSound(page);
    }
  });
});

test("the page says what check says", async () => {
  await on("heads.html", {}, async (page) => {
    const check = JSON.parse(attsvm("check", "task.npz", "--run", "heads.npz", "--json"));
    const data = dataOf(page);
    assert.equal(data.distinct_selections, check.distinct_selections);
    assert.equal(data.tokens_per_query, check.tokens_per_query);
    check.heads.forEach((head, h) => {
      assert.equal(data.runs[h].verdict, head.verdict);
      assert.deepEqual(data.runs[h].kept.flat(), head.selected);
      assert.deepEqual(data.runs[h].optimal, head.optimal);
      const fro = data.runs[h].correlations.find((one) => one.norm === "fro");
      assert.ok(Math.abs(fro.values.at(-1) - head.correlation_fro.at(-1)) < 1e-12);
    });
    const story = await page.locator(".story .lead").textContent();
    assert.match(story, /\((theory predicts|expected, not proven, is) the one of least /);
    const row = page.locator("tr", { has: page.getByRole("link", { name: "head 1" }) });
    assert.match(await row.textContent(), new RegExp(data.runs[1].verdict));
    const cells = page.locator(".card", { hasText: "Who selects what" }).locator("tbody tr").nth(2).locator("td");
    const tokens = await cells.allTextContents();
    assert.deepEqual(
      tokens.slice(1, 4).map((token) => Number(token.replace("*", ""))),
      data.runs.map((run) => run.kept[2][0]),
    );
    assert.equal(tokens[4], String(new Set(tokens.slice(1, 4).map((token) => token.replace("*", ""))).size));
  });
});

test("a head in full is what its own report shows", async () => {
  attsvm("report", "task.npz", "--run", "heads.npz", "--head", 2, "-o", "one.html");
  let own;
  await on("one.html", {}, (page) => (own = dataOf(page)));
  await on("heads.html", {}, async (page) => {
    const inside = dataOf(page).reports[2];
    for (const name of ["title", "command"]) (delete own[name], delete inside[name]);
    assert.deepEqual(inside, own);
    await page.getByRole("link", { name: "head 2" }).click();
    assert.match(page.url(), /#one\?.*head=2/);
    assert.equal(await page.locator("[data-within]:not([hidden])").first().getAttribute("data-within"), "reports.2");
    await page.locator(".one-head select").selectOption("0");
    assert.equal(await page.locator(".view-one [data-within]:not([hidden])").getAttribute("data-within"), "reports.0");
    await showTab(page, "Plane");
    assert.equal(
      await page.locator(".view-plane [data-within]:not([hidden])").getAttribute("data-within"),
      "reports.0",
    );
    await page.goBack();
    await page.goBack();
    assert.equal(await page.locator(".view-one [data-within]:not([hidden])").getAttribute("data-within"), "reports.2");
  });
});

test("loss and gradient, which belong to all heads, are drawn once", async () => {
  await on("heads.html", { hash: "#training" }, async (page) => {
    const series = (title) => page.locator(".chart", { hasText: title }).first().locator(".series").count();
    assert.equal(await series("Loss"), 1);
    assert.equal(await series("Entropy of the attention"), 3);
  });
});
