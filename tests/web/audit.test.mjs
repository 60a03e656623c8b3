// The page of an audit: the grid, one head, its text.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import {
  assertAccessible,
  assertContrast,
  assertNumbers,
  assertSchema,
  assertSound,
  attsvm,
  dataOf,
  download,
  folder,
  openDetails,
  pagesOf,
  python,
  showTab,
  testOn,
} from "./pages.mjs";

let shown;
const { on } = pagesOf(() => {
  // Two layers of three heads: previous token, first token, same word, and noise. Words that would be markup.
  python(`
rng = np.random.default_rng(0)
D, T, S = 10, 9, 12
words = np.array(["the", "cat", "<b>sat</b>", "</script>", "\\u05e9\\u05dc\\u05d5\\u05dd", "on", "3.14"])
ids = np.array([rng.permutation(np.tile(rng.choice(7, 5, replace=False), 2))[:T] for _ in range(S)])
places, names = np.linalg.qr(rng.normal(size=(D, D)))[0][:T], rng.normal(size=(7, D))
keys, queries = [], []
for job in ("previous", "first", "word", "noise", "previous", "word"):
    k = np.repeat(places[None], S, 0) if job in ("previous", "first") else names[ids]
    q = {"previous": np.roll(k, 1, 1), "first": np.repeat(k[:, :1], T, 1), "word": k, "noise": rng.normal(size=k.shape)}[job]
    keys.append((k + 0.05 * rng.normal(size=k.shape)).reshape(-1, D))
    queries.append((5 * q + 0.05 * rng.normal(size=k.shape)).reshape(-1, D))
np.savez("heads.npz", keys=keys, queries=queries, layer=[0, 0, 0, 2, 2, 2], head=[0, 1, 2, 0, 1, 5],
         offsets=np.arange(S + 1) * T, sequence=np.repeat(np.arange(S), T), position=np.tile(np.arange(T), S),
         text=words[ids.ravel()], difference=[1e-8] * 6)
np.savez("cross.npz", keys=keys[:1], queries=[queries[2][:8]], text=words[ids.ravel()], query_text=words[:7].tolist() + ["?"],
         sink=np.zeros(S * T, bool))
`);
  shown = JSON.parse(attsvm("audit", "heads.npz", "--nulls", 2, "--page", "audit.html", "--json"));
  attsvm("audit", "cross.npz", "--nulls", 0, "--page", "cross.html");
});

const chosen = (page) => page.locator(".heads-grid .chosen .unseen").textContent();

testOn(["a wide screen, light", "a wide screen, dark", "a phone, dark"], "every view", async (screen) => {
  await on("audit.html", screen, async (page) => {
    assertSchema(dataOf(page));
    for (const tab of ["All heads", "One head"]) {
      await showTab(page, tab);
      await assertSound(page);
    }
  });
});

test("the data is what --json prints, and its size is small", async () => {
  await on("audit.html", {}, async (page) => {
    const data = dataOf(page);
    const heads = shown.heads.map(({ seconds, ...head }) => {
      assert.ok(seconds >= 0);
      return head;
    });
    assert.deepEqual(data.heads, heads);
    for (const [key, value] of Object.entries(data.settings)) assert.equal(shown[key], value, key);
    assert.match(data.command, /^attsvm audit heads\.npz --nulls 2 --page audit\.html$/);
    assert.ok(statSync(path.join(folder, "audit.html")).size < 1e6);
  });
});

test("the grid has every head, coloured by what is chosen, in both views", async () => {
  await on("audit.html", {}, async (page) => {
    const cells = page.locator(".heads-grid td");
    assert.equal(await cells.count(), 2 * 4, "layers 0 and 2, heads 0, 1, 2 and 5");
    assert.equal(await page.locator(".heads-grid td.empty").count(), 2);
    assert.equal(await page.locator(".heads-grid a").first().locator("bdi").textContent(), "offset -1");
    const looks = async () =>
      page.locator(".heads-grid a").evaluateAll((list) => list.map((one) => getComputedStyle(one).backgroundColor));
    const kinds = await looks();
    assert.notEqual(kinds[0], kinds[1], "different kinds have different colours");
    const colour = page.getByLabel("Colour by");
    for (const [name, key] of [
      ["r95", (view) => view.r95],
      ["gap", (view) => view.gap[1]],
      ["nuclear rank", (view) => view.nuclear.rank],
    ]) {
      await colour.selectOption(name);
      for (const [hidden, words] of ["own choices", "sinks hidden"].entries()) {
        await page.locator(".view-heads select").first().selectOption(words);
        const titles = await page
          .locator(".heads-grid a .num")
          .evaluateAll((list) => list.map((one) => Number(one.title)));
        assert.deepEqual(
          titles,
          shown.heads.map((head) => key(head.views[hidden])),
        );
        await assertNumbers(page);
        await assertContrast(page);
      }
    }
    assert.match(page.url(), /colour=3/);
    assert.match(page.url(), /hidden=1/);
    await openDetails(page);
    const file = await download(page, page.getByRole("button", { name: "Download heads-hidden.csv" }));
    assert.equal(file.text.trim().split("\n").length, 7);
    assert.match(file.text.split("\n")[1], /^0\.0,/);
  });
});

test("a head is chosen by mouse, by keyboard and by address", async () => {
  await on("audit.html", {}, async (page) => {
    await page.locator(".heads-grid a").nth(2).click();
    assert.equal(await page.locator(".head-title").textContent(), "Head 0.2, own choices");
    assert.match(page.url(), /#head\?head=2$/);
    await page.goBack();
    await page.waitForSelector(".heads-grid", { state: "visible" });
    await page.locator(".heads-grid a").first().focus();
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator(".head-title").textContent(), "Head 2.1, own choices");
    await page.getByRole("button", { name: "Next head" }).click();
    await page.locator(".view-head .controls select").nth(1).selectOption("sinks hidden");
    assert.equal(await page.locator(".head-title").textContent(), "Head 2.5, sinks hidden");
    await assertNumbers(page);
    await showTab(page, "All heads");
    assert.equal(await chosen(page), "head 2.5: ");
  });
  await on("audit.html", { hash: "#head?head=1&hidden=1" }, async (page) => {
    assert.equal(await page.locator(".head-title").textContent(), "Head 0.1, sinks hidden");
  });
  await on("audit.html", { hash: "#head?head=99&hidden=-1&colour=x" }, async (page) => {
    assert.equal(await page.locator(".head-title").textContent(), "Head 0.0, own choices");
  });
});

test("pairs and uncertain queries are sentences in their text", async () => {
  await on("audit.html", { hash: "#head?head=2" }, async (page) => {
    const { views } = shown.heads[2];
    const data = dataOf(page);
    const lists = page.locator(".sentences");
    assert.equal(await lists.nth(0).locator("> li").count(), views[0].pairs.length);
    assert.equal(await lists.nth(1).locator("> li").count(), views[0].uncertain.length);
    for (const [j, pair] of views[0].pairs.entries()) {
      const item = lists.nth(0).locator("> li").nth(j);
      const words = data.text.find((one) => one.sequence === pair.sequence).words;
      assert.equal(words[pair.keep], pair.keep_text);
      assert.deepEqual(await item.locator(".excerpt bdi").allTextContents(), words);
      assert.equal(await item.locator(".excerpt .keeps").textContent(), pair.keep_text);
      assert.equal(await item.locator(".excerpt .drops").textContent(), pair.drop_text);
      if (pair.keep !== pair.position && pair.drop !== pair.position)
        assert.equal(await item.locator(".excerpt .asks").textContent(), pair.query_text);
      const away = pair.drop - pair.position;
      if (away !== 0) assert.ok((await item.textContent()).includes(`(${away < 0 ? "\u2212" : "+"}${Math.abs(away)})`));
    }
    assert.equal(await page.locator("#page b").count(), 0, "words are text");
    const kept = await page.locator(".view-head").innerText();
    assert.match(kept, /cannot|grows with N/);
  });
});

test("charts show both views, and can be read", async () => {
  await on("audit.html", { hash: "#head?head=4" }, async (page) => {
    const chart = page.locator(".chart").first();
    await chart.locator(".plot").focus();
    await page.keyboard.press("End");
    const last = shown.heads[4].views[0].agreement.length - 1;
    const read = chart.locator(`.readout [data-path="heads.4.views.0.agreement.${last}"]`);
    assert.equal(await read.getAttribute("title"), String(shown.heads[4].views[0].agreement[last]));
    assert.equal(await chart.locator(".series").count(), 2);
    const file = await download(page, chart.getByRole("button", { name: "Download agreement.csv" }));
    assert.equal(file.text.trim().split("\n").length - 1, 2 * (last + 1));
    assert.equal(await page.locator(".chart").count(), 3);
  });
});

test("what it cannot say is on the page", async () => {
  await on("audit.html", {}, async (page) => {
    const words = await page.locator(".view-heads").innerText();
    for (const one of ["these N queries", "the head\u2019s own", "not an effect", "max-margin"])
      assert.ok(words.includes(one), one);
  });
});

test("paper has the grid and the chosen head", async () => {
  await on("audit.html", { hash: "#heads?head=3" }, async (page) => {
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.locator(".heads-grid").isVisible(), true);
    assert.equal(await page.locator(".head-title").isVisible(), true);
    assert.equal(await page.locator(".printed").count(), 3);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  });
});

test("cross attention has one view without sinks, and no places from the query", async () => {
  await on("cross.html", { hash: "#head" }, async (page) => {
    assertSchema(dataOf(page));
    assert.equal(await page.locator(".view-head .controls select").count(), 1, "the head alone can be chosen");
    assert.match(await page.locator(".sentences").first().innerText(), / at \d+/);
    await assertNumbers(page);
    await assertAccessible(page);
  });
});
