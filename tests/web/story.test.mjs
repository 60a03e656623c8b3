// What the page opens on: a sentence, the plane of a query and the distance curve, and what pointing at them tells.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  assertAccessible,
  assertNumbers,
  assertSchema,
  assertTip,
  attsvm,
  dataOf,
  download,
  drawApart,
  picture,
  python,
  startBrowser,
  visit,
} from "./support.mjs";

let browser;

before(async () => {
  attsvm("demo", "--out", "demo");
  attsvm("train", "demo/task.npz", "--steps", 300, "-o", "single.npz");
  attsvm("report", "demo/task.npz", "--run", "single.npz", "-o", "single.html");
  drawApart();
  browser = await startBrowser();
});
after(() => browser?.close());

const on = (file, options, use) => visit(browser, file, options, use);

/** W^mm is told in words before its symbol stands anywhere. */
async function assertWordsFirst(page) {
  const all = await page.locator("main").innerText();
  const words = all.search(/max-margin solution(, |: )the matrix of least/);
  assert.ok(words >= 0 && words < all.search(/W\s*mm|W\u1d50\u1d50/), "a symbol before its words");
}

test("a sentence says what was trained, what theory predicts and what happened", () =>
  on("single.html", {}, async (page) => {
    const [run] = dataOf(page).runs;
    const lead = page.locator(".lead");
    assert.match(
      await lead.textContent(),
      /^W was trained for 300 steps by ngd; theory predicts that its direction becomes that of the max-margin solution/,
    );
    const end = run.correlations.find((one) => one.norm === run.implied.norm).distances.at(-1);
    assert.equal(await lead.locator(".num").last().getAttribute("title"), String(end));
    const { answer } = JSON.parse(attsvm("check", dataOf(page).title, "--run", run.file, "--json"));
    assert.equal(run.answer, answer, "one sentence, one source");
    assert.ok(await page.locator(".answers [data-path='runs.0.answer']").isVisible());
    await assertWordsFirst(page);
    await assertNumbers(page);
  }));

test("of several runs each is told with what theory predicts for it", () =>
  on("demo/report.html", {}, async (page) => {
    const { runs } = dataOf(page);
    const items = page.locator(".lead li");
    assert.equal(await items.count(), runs.length);
    for (const [r, run] of runs.entries()) {
      const norm = { fro: "Frobenius", nuc: "nuclear" }[run.implied.norm];
      const said = run.implied.proven ? "theory predicts" : "expected, not proven, is";
      const words = new RegExp(`was trained for 20000 steps; ${said} the one of least ${norm} norm`);
      assert.match(await items.nth(r).textContent(), words);
      const end = run.correlations.find((one) => one.norm === run.implied.norm).distances.at(-1);
      assert.equal(await items.nth(r).locator(".num").last().getAttribute("title"), String(end));
      const exponent = page.locator(`.answers [data-path='runs.${r}.answer'] sup`);
      assert.match(await exponent.textContent(), /^\u2212\d\.\d+$/, "a power is raised");
    }
    await assertWordsFirst(page);
    await assertNumbers(page);
  }));

test("plane and distance stand side by side, and the slider moves both", () =>
  on("demo/report.html", {}, async (page) => {
    const charts = page.locator(".pair .chart");
    assert.equal(await charts.count(), 2);
    const [left, right] = [await charts.nth(0).boundingBox(), await charts.nth(1).boundingBox()];
    assert.ok(left.y === right.y && left.x + left.width <= right.x, JSON.stringify([left, right]));
    const tables = await page.locator(".cards").boundingBox();
    assert.ok(tables.y >= left.y + left.height);
    const ended = [await picture(page, charts.nth(0)), await picture(page, charts.nth(1))];
    await page.getByRole("slider", { name: "Step" }).fill("10");
    for (const k of [0, 1]) assert.notEqual(await picture(page, charts.nth(k)), ended[k]);
  }));

test("the plane names both lines of the margin, stars the best token and stands upright", () =>
  on("demo/report.html", { hash: "#plane" }, async (page) => {
    const chart = page.locator("[role=tabpanel]:not([hidden]) .chart").first();
    for (const name of ["best score", "selected", "support tokens"])
      await chart.getByRole("button", { name }).waitFor();
    const { text } = await download(page, chart.locator("[data-download=svg]"));
    for (const line of ["selected", "one margin behind"])
      assert.match(text, new RegExp(`font-size="11.5"[^>]*>${line}<`), "a line without its name");
    const name = text.lastIndexOf(">one margin behind<");
    assert.match(text.slice(0, name).match(/<text[^<]*<\/text>\s*<text[^>]*$/)[0], /fill="none" stroke=/, "no halo");
    const paths = [...text.matchAll(/<path[^>]*>/g)].filter(
      ([one]) => /stroke-width="2"/.test(one) && /clip/.test(one),
    );
    assert.ok(paths.length >= 2 && paths.every(({ index }) => index < name), "a path is drawn over the name");
    for (const words of ["along the max-margin direction", "at right angles"]) assert.ok(text.includes(words), words);
    // The thick arrow of the solution goes straight up.
    const [, x0, y0, x1, y1] = text.match(
      /d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" fill="none" stroke="[^"]*" stroke-width="7"/,
    );
    assert.equal(x0, x1);
    assert.ok(Number(y1) < Number(y0));
  }));

/** Moves over the plot until a point is found. */
async function findPoint(page, chart, touch) {
  const box = await chart.locator(".u-over").boundingBox();
  for (let y = 10; y < box.height; y += 16) {
    for (let x = 10; x < box.width; x += 16) {
      const at = [box.x + x, box.y + y];
      if (touch) await page.touchscreen.tap(...at);
      else await page.mouse.move(...at);
      if (await chart.locator(".readout").isVisible()) return at;
    }
  }
  return null;
}

for (const [name, options] of [
  ["a mouse", {}],
  ["a finger", { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }],
]) {
  test(`${name} reads scores at the point, within the window`, () =>
    on("demo/report.html", options, async (page) => {
      const data = dataOf(page);
      const chart = page.locator(".chart").first();
      await chart.locator(".plot").scrollIntoViewIfNeeded();
      const at = await findPoint(page, chart, options.hasTouch);
      assert.ok(at, "no point");
      const box = await assertTip(page, chart);
      const far = Math.hypot(
        Math.max(box.x - at[0], 0, at[0] - box.x - box.width),
        Math.max(box.y - at[1], 0, at[1] - box.y - box.height),
      );
      assert.ok(far < 90, `the tip is ${far} pixels away`);
      const score = chart.locator(".readout [data-path^='plane.scores']");
      const [query, token] = (await score.getAttribute("data-path")).split(".").slice(2).map(Number);
      assert.equal(await score.getAttribute("title"), String(data.plane.scores[query][token]));
      await assertNumbers(page);
    }));
}

test("the keyboard reads every token, within the window", () =>
  on("demo/report.html", { viewport: { width: 420, height: 600 } }, async (page) => {
    const { queries } = dataOf(page);
    const chart = page.locator(".chart").first();
    await chart.locator(".plot").focus();
    const seen = new Set();
    await page.keyboard.press("ArrowRight");
    for (let k = 0; k < 40; k += 1) {
      await assertTip(page, chart);
      seen.add(await chart.locator(".readout").textContent());
      await page.keyboard.press(k % 8 === 7 ? "ArrowDown" : k % 8 === 6 ? "Home" : "ArrowRight");
    }
    const tokens = [...seen].map((words) => /token (\d+)/.exec(words)?.[1]);
    assert.equal(new Set(tokens).size, queries.visible[0]);
  }));

test("tokens that no W keeps: the headline, what contradicts what, and ways out", () =>
  on("apart.html", {}, async (page) => {
    const data = dataOf(page);
    assertSchema(data);
    await page.getByRole("heading", { name: "No W keeps these tokens" }).waitFor();
    const card = page.locator(".way-out");
    const { conflict } = data.solutions.find((one) => one.conflict);
    const named = await card.locator("ul").first().locator("li").count();
    const words = conflict.total > named ? `the ${named} heaviest of them:` : "the heaviest first:";
    assert.match(await card.textContent(), new RegExp(`${conflict.total} contradict each other, ${words}`));
    const { leave, instead } = data.way_out;
    for (const { query, token } of instead)
      assert.match(await card.textContent(), new RegExp(`for query ${query} token ${token} instead of`));
    assert.equal(
      await card.locator("[data-path='task.separability.needed_key_size']").textContent(),
      String(data.task.separability.needed_key_size),
    );
    const told = await page.locator(".pair .chart .summary").textContent();
    assert.match(told, /Arrows between tokens are rows in conflict/);
    assert.doesNotMatch(told, /directions W z/, "there are none");
    await assertAccessible(page);
    await card
      .getByRole("link", { name: String(leave[0]), exact: true })
      .first()
      .click();
    await page.getByRole("heading", { name: `Query ${leave[0]}`, exact: true }).waitFor();
    await page.goBack();
    await card.getByRole("link", { name: "The proof" }).click();
    await page.getByRole("heading", { name: "The contradiction, drawn" }).waitFor();
  }));

test("names of rows keep off the arrows of the contradiction", () =>
  on("apart.html", { hash: "#proof" }, async (page) => {
    const { text } = await download(page, page.locator("[role=tabpanel]:not([hidden]) [data-download=svg]"));
    const { names, crossed } = await page.evaluate((words) => {
      const root = document.importNode(new DOMParser().parseFromString(words, "image/svg+xml").documentElement, true);
      document.body.append(root);
      const sides = [...root.querySelectorAll("path[stroke-width='2']")]
        .map((one) => one.getAttribute("d").match(/^M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)$/))
        .filter((found) => found)
        .map((found) => found.slice(1).map(Number));
      const named = [...root.querySelectorAll("text")].filter((one) => /^query \d+: /.test(one.textContent));
      const hit = (box, [x1, y1, x2, y2]) =>
        Array.from({ length: 400 }, (_, k) => [x1 + ((x2 - x1) * k) / 399, y1 + ((y2 - y1) * k) / 399]).some(
          ([x, y]) => x > box.x + 2 && x < box.x + box.width - 2 && y > box.y + 2 && y < box.y + box.height - 2,
        );
      const found = named.filter((one) => sides.some((side) => hit(one.getBBox(), side))).map((one) => one.textContent);
      root.remove();
      return { names: named.length, crossed: sides.length < 5 ? ["too few sides"] : found };
    }, text);
    assert.ok(names >= 4);
    assert.deepEqual(crossed, []);
  }));

test("one row, no row, and names without end are told as what they are", async () => {
  python(
    'np.savez("twins.npz", tokens=np.array([[[1.0], [1.0], [0.0]]]), head=np.ones(1))\n' +
      'np.savez("alone.npz", tokens=np.ones((1, 1, 2)), head=np.ones(2))\n' +
      'np.savez("long.npz", tokens=np.eye(3)[None], head=np.arange(3.0), x_token_names=["x" * 3000] * 3)',
  );
  attsvm("train", "alone.npz", "--param", "p", "--steps", 5, "-o", "alone-run.npz");
  attsvm("report", "alone.npz", "--run", "alone-run.npz", "-o", "alone.html");
  for (const name of ["twins", "long"]) attsvm("report", `${name}.npz`, "-o", `${name}.html`);
  await on("twins.html", {}, (page) => page.getByText("Of 2 rows one cannot be met:").waitFor());
  await on("twins.html", { hash: "#proof" }, async (page) => {
    await page.getByText("No W keeps all of these tokens: of 2 rows one cannot be met.").waitFor();
    await page.getByText("It demands a margin from a matrix that is zero.").waitFor();
  });
  await on("alone.html", {}, async (page) => {
    const words = await page.locator(".lead").textContent();
    assert.match(words, /there is nothing to compare: W is zero, or no query has a choice\.$/);
  });
  await on("long.html", {}, async (page) => {
    const words = await page.locator(".pair .chart .summary").first().textContent();
    assert.ok(words.length < 600 && words.includes("\u2026"), words);
  });
});
