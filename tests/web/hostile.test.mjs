// Names that would be markup, if anything read them as such.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import {
  assertFits,
  assertNumbers,
  assertSchema,
  attsvm,
  dataOf,
  folder,
  open,
  openDetails,
  python,
  startBrowser,
} from "./support.mjs";

const names = [
  '<img src=x onerror="window.hacked=1">',
  "</script><script>window.hacked=1</script>",
  '"><svg onload=window.hacked=1>',
  "<!--",
  "-->",
  "]]>",
  "W^{mm}_{*}\\",
  "${window.hacked=1}",
  "javascript:window.hacked=1",
  '=HYPERLINK("x")',
  "\u202eright to left",
  "\u0001\u0007",
  "a".repeat(300),
  "'; window.hacked=1; '",
  "&lt;b&gt;",
  "\u2028\u2029",
];
const task = "<img src=x onerror=window.hacked=1>.npz";
let browser;

before(async () => {
  attsvm("generate", "random", "--n", 2, "--T", 8, "--d", 9, "-o", "clean.npz");
  writeFileSync(path.join(folder, "names.json"), JSON.stringify(names));
  python(
    `import json; arrays = dict(np.load("clean.npz")); arrays["x_token_names"] = np.array(json.load(open("names.json"))).reshape(2, 8); np.savez(${JSON.stringify(task)}, **arrays)`,
  );
  attsvm("train", task, "--record", "every:500", "-o", "</title><b>run.npz".replace("/", "\u2044"));
  attsvm("report", task, "--run", "</title><b>run.npz".replace("/", "\u2044"), "-o", "hostile.html");
  mkdirSync(path.join(folder, "r/<b>x"), { recursive: true });
  attsvm("reproduce", "losses", "--out", "r");
  const text = "</script><img src=x onerror=window.hacked=1>";
  const summary = {
    experiment: "<b>x",
    title: text,
    setting: text,
    paper: text,
    seed: 1,
    runs: 1,
    draws: 1,
    rejected: 0,
    complete: false,
    findings: [{ paper: text, ours: text, why: text }],
    columns: [],
    rows: [],
    cells: [{ name: text, settings: { [text]: text }, runs: 1, draws: 1, rejections: { [text]: 1 } }],
    figure: {
      title: text,
      caption: text,
      columns: 1,
      panels: [
        { title: text, x_label: text, y_label: text, curves: [{ label: text, x: [1, 2], y: [1, null] }] },
        {
          title: text,
          x_label: text,
          y_label: text,
          curves: [],
          grid: {
            rows: [text, "b"],
            columns: [text, "y"],
            values: [
              [0.25, null],
              [0.75, 1],
            ],
            errors: [
              [0.125, null],
              [0.5, 0],
            ],
            outlined: [0, -1],
          },
        },
      ],
    },
  };
  writeFileSync(path.join(folder, "r/<b>x/data.json"), JSON.stringify(summary));
  attsvm("reproduce", "losses", "--out", "r");
  browser = await startBrowser();
});
after(() => browser?.close());

async function assertHarmless(page) {
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(
    await page.locator("#page img, #page script, #page iframe, #page b, #page [onerror], #page [onload]").count(),
    0,
  );
  assert.equal(await page.locator("script").count(), 2);
}

test("token names and file names are text wherever they stand", async () => {
  const { page, close } = await open(browser, "hostile.html");
  const data = dataOf(page);
  assertSchema(data);
  assert.deepEqual(data.plane.names, names);
  assert.equal(await page.locator("h1").textContent(), task);
  for (const tab of await page.getByRole("tab").all()) {
    await tab.click();
    for (const name of ["Next query", "Previous query"]) {
      const button = page.locator("[role=tabpanel]:not([hidden])").getByRole("button", { name });
      if ((await button.count()) > 0) await button.click();
    }
    await openDetails(page);
    for (const plot of await page.locator("[role=tabpanel]:not([hidden]) .plot").all()) {
      await plot.focus();
      await page.keyboard.press("End");
    }
    await assertHarmless(page);
    await assertNumbers(page);
    await assertFits(page);
  }
  const shown = await page.locator("[data-token]").allTextContents();
  const kept = data.queries.kept[0][0];
  assert.ok(shown.includes(`${kept} \u201c${names[kept]}\u201d`), shown.join("; "));
  await close();
});

test("names cannot run where the page's own rules are the last defence", async () => {
  const { page } = await open(browser, "hostile.html");
  await page.evaluate(() => {
    document.getElementById("page").innerHTML = "<img src=x onerror='window.hacked=1'>";
  });
  await page.waitForTimeout(200);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await page.context().close();
});

test("an experiment that somebody else wrote is text too", async () => {
  const { page, close } = await open(browser, "r/index.html");
  const data = dataOf(page);
  assertSchema(data);
  assert.deepEqual(
    data.experiments.map((one) => one.experiment),
    ["losses", "<b>x"],
  );
  await page.locator(".experiment").last().scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelectorAll(".experiment:last-of-type .chart").length === 2);
  await page.locator(".experiment").last().locator("summary").last().click();
  await assertHarmless(page);
  await assertNumbers(page);
  await close();
});
