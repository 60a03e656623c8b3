// The page of a next-token task: the graph of every last token, and how close training comes.
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  assertFits,
  assertNumbers,
  assertSchema,
  assertSound,
  assertTip,
  attsvm,
  dataOf,
  pagesOf,
  picture,
  python,
  showTab,
  testOn,
} from "./pages.mjs";

const { on } = pagesOf(() => {
  python(`
open("story.txt", "w").write("the cat saw the dog and the dog saw the cat and the cat ran and the dog ran")
E = np.array([[1., 0], [0, 1], [0, 1]])
np.savez("equal.npz", ids=[1, 2, 0], offsets=[0, 3], embeddings=E, next=[1], vocabulary=["the", "<b>cat</b>", "dog"])`);
  attsvm("generate", "corpus", "story.txt", "--T", 6, "--stride", 1, "--d", 8, "-o", "story.npz");
  for (const param of ["W", "KQ"])
    attsvm(
      "train",
      "story.npz",
      "--param",
      param,
      "--optimizer",
      "gd",
      "--step",
      1,
      "--steps",
      2000,
      "-o",
      `${param}.npz`,
    );
  attsvm("report", "story.npz", "--run", "W.npz", "--run", "KQ.npz", "-o", "story.html");
  attsvm("report", "equal.npz", "-o", "equal.html");
});

const graph = (page) => page.locator(".chart", { has: page.locator("[aria-roledescription=graph]") });

test("numbers are those of check", () =>
  on("story.html", {}, async (page) => {
    const data = dataOf(page);
    assertSchema(data);
    for (const [r, param] of ["W", "KQ"].entries()) {
      const check = JSON.parse(attsvm("check", "story.npz", "--run", `${param}.npz`, "--json"));
      for (const name of ["graphs", "components", "orders", "edges"])
        assert.equal(data.counts[name], check[name], name);
      assert.equal(data.finite.norm, check.finite_norm);
      assert.equal(data.finite.loss, check.finite_loss);
      assert.equal(data.solutions[0].objective, check.objective_fro);
      assert.equal(data.solutions[1].objective, check.objective_nuc);
      const run = data.runs[r];
      assert.deepEqual(run.step, check.record_step);
      assert.deepEqual(run.finite_distance, check.finite_distance);
      assert.deepEqual(run.correlations[0].values, check.correlation_fro);
      assert.deepEqual(run.correlations[1].values, check.correlation_nuc);
      // Every graph of check is drawn: its edges are arrows, or follow from them, or lie inside a group.
      for (const one of check.graph) {
        const drawn = data.graphs.find((other) => other.last === one.last);
        assert.deepEqual(
          drawn.groups.filter((group) => group.size > 1).map((group) => group.tokens),
          one.components,
        );
        const place = (token) => drawn.groups.findIndex((group) => group.tokens.includes(token));
        const reaches = (from, to) => drawn.arrows.some(([a, b]) => a === from && (b === to || reaches(b, to)));
        for (const [from, to] of one.edges)
          assert.ok(place(from) === place(to) || reaches(place(from), place(to)), `${from} before ${to}`);
        for (const [from, to] of drawn.arrows) assert.ok(drawn.groups[from].level < drawn.groups[to].level);
      }
    }
    await assertNumbers(page);
  }));

testOn(["a wide screen, light", "a phone, dark"], "every view", (screen) =>
  on("story.html", { ...screen, hasTouch: true }, async (page) => {
    for (const view of await page.getByRole("tab").allTextContents()) {
      await showTab(page, view);
      await assertSound(page);
    }
  }),
);

test("a last token is chosen, by list and by address, and its boxes are read by keys and touch", () =>
  on("story.html", { hasTouch: true }, async (page) => {
    const data = dataOf(page);
    assert.ok(data.graphs[0].components > 0, "graphs with tied tokens come first");
    await page.getByText(data.graphs[0].words[0]).waitFor();
    const before = await picture(page, graph(page));
    await page.getByLabel("Last token").selectOption({ index: 1 });
    assert.equal(new URL(page.url()).hash, "#overview?query=1");
    assert.notEqual(await picture(page, graph(page)), before);
    await page.goBack();
    assert.equal(await picture(page, graph(page)), before);
    const plot = graph(page).locator(".plot");
    await plot.focus();
    const tied = data.graphs[0].groups.findIndex((group) => group.size > 1);
    for (let k = 0; k <= tied; k += 1) await page.keyboard.press("ArrowRight");
    const words = await graph(page).locator(".readout").textContent();
    assert.ok(words.includes("no W orders these tokens"), words);
    for (const word of data.graphs[0].groups[tied].words) assert.ok(words.includes(`«${word}»`), words);
    await assertTip(page, graph(page));
  }));

test("orders that no W keeps are said in words, and words are no markup", () =>
  on("equal.html", {}, async (page) => {
    assertSchema(dataOf(page));
    await page.getByRole("heading", { name: "No W keeps these orders" }).waitFor();
    await showTab(page, "Proof");
    await page.getByText("but the two tokens are equal").waitFor();
    assert.equal(await page.locator("#page b").count(), 0);
    await assertNumbers(page);
  }));

test("a large vocabulary is drawn in part, and the page says so", () => {
  attsvm("generate", "nexttoken", "--n", 4000, "--T", 10, "--vocabulary", 350, "--d", 4, "-o", "large.npz");
  attsvm("report", "large.npz", "-o", "large.html");
  return on("large.html", { viewport: { width: 360, height: 740 } }, async (page) => {
    const data = dataOf(page);
    assertSchema(data);
    assert.ok(data.counts.graphs > 300 && data.graphs.length === 300);
    await page.getByText(`300 of ${data.counts.graphs} graphs`).waitFor();
    const partial = data.graphs.findIndex((one) => one.drawn < one.tokens);
    assert.ok(partial >= 0);
    await page.getByLabel("Last token").selectOption({ index: partial });
    await page.getByText(`${data.graphs[partial].drawn} of ${data.graphs[partial].tokens} tokens are drawn`).waitFor();
    await assertFits(page);
  });
});

test("the graph is printed and saved", () =>
  on("story.html", {}, async (page) => {
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const marks = await graph(page).first().locator(".printed [clip-path]").count();
    assert.ok(marks > 4, `${marks} marks`);
  }));
