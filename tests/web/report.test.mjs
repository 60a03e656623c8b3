// The report, as a reader uses it.
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  assertContrast,
  assertFits,
  assertNumbers,
  assertSchema,
  assertSound,
  attsvm,
  dataOf,
  download,
  drawApart,
  pagesOf,
  picture,
  showTab,
  testOn,
} from "./pages.mjs";

const views = ["Overview", "Plane", "Training", "Attention", "Margins", "Spectrum", "Proof"];
const { on } = pagesOf(() => {
  attsvm("demo", "--out", "demo");
  attsvm("generate", "relu", "--seed", 3, "-o", "relu.npz");
  attsvm("train", "relu.npz", "--record", "every:200", "-o", "relu-run.npz");
  attsvm("report", "relu.npz", "--run", "relu-run.npz", "-o", "relu.html");
  attsvm("generate", "infeasible", "--n", 3, "--T", 4, "--d", 2, "-o", "infeasible.npz");
  attsvm("report", "infeasible.npz", "-o", "infeasible.html");
  attsvm("generate", "single-global", "-o", "tiny.npz");
  attsvm("report", "tiny.npz", "-o", "tiny.html");
  drawApart();
});

test("the demo's page holds what the schema says", () =>
  on("demo/report.html", {}, async (page) => assertSchema(dataOf(page))));

testOn(["a wide screen, light", "a phone, dark"], "every view", (screen) =>
  on("demo/report.html", screen, async (page) => {
    for (const view of views) {
      await showTab(page, view);
      await assertSound(page);
    }
  }),
);

for (const file of ["relu.html", "infeasible.html", "tiny.html"]) {
  test(`every view of ${file}`, () =>
    on(file, {}, async (page) => {
      assertSchema(dataOf(page));
      for (const tab of await page.getByRole("tab").all()) {
        await tab.click();
        await assertNumbers(page);
        await assertFits(page);
      }
    }));
}

test("tokens that no W keeps have a verdict of their own", () =>
  on("apart.html", {}, async (page) => {
    const { check } = dataOf(page);
    assertSchema(dataOf(page));
    assert.equal(check.verdict, "infeasible");
    assert.equal(check.separable, false);
    await page.getByRole("heading", { name: "No W keeps these tokens" }).waitFor();
    await page.getByText("no W keeps them all").waitFor();
  }));

test("a conflict is told in words and shown", () =>
  on("infeasible.html", { hash: "#proof" }, async (page) => {
    const { conflict } = dataOf(page).solutions[0];
    for (const words of conflict.words) await page.getByText(words, { exact: true }).waitFor();
    assert.deepEqual(await page.getByRole("tab").allTextContents(), ["Overview", "Plane", "Proof"]);
    for (const axis of [0, 1]) {
      const sum = conflict.rows.reduce((total, row) => total + row.arrow[axis], 0);
      assert.ok(Math.abs(sum) < 1e-12 * conflict.rows.length, `the arrows end at ${sum}`);
    }
    const chart = page.locator(".chart").first();
    const shown = await picture(page, chart);
    await chart.getByRole("button", { name: "rows in conflict" }).click();
    assert.notEqual(await picture(page, chart), shown);
  }));

test("the overview says how training ended, and which queries missed", () =>
  on("demo/report.html", {}, async (page) => {
    const { queries, runs } = dataOf(page);
    const missed = queries.optimal.filter((token, i) => !queries.kept[i].includes(token)).length;
    assert.ok(missed > 0);
    assert.equal(await page.getByText("(not kept)").count(), missed);
    await page
      .getByText(`${queries.kept.length - missed} of ${queries.kept.length}`, { exact: true })
      .first()
      .waitFor();
    for (const [r, run] of runs.entries())
      assert.equal(await page.locator(`[data-path='runs.${r}.settings']`).textContent(), run.settings);
    assert.match(runs[0].settings, /^W, ngd, step 0.1, 20000 steps/);
  }));

test("a small phone shows the names of all views, and each as a whole", () =>
  on("demo/report.html", { viewport: { width: 320, height: 568 } }, async (page) => {
    for (const tab of await page.getByRole("tab").all()) {
      const box = await tab.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= 320, await tab.textContent());
      await tab.click();
      await assertFits(page);
    }
  }));

test("the slider moves everything that has steps, by mouse and by keyboard", () =>
  on("demo/report.html", { hash: "#training" }, async (page) => {
    const [run] = dataOf(page).runs;
    const slider = page.getByRole("slider", { name: "Step" });
    const last = run.step.length - 1;
    assert.equal(await slider.inputValue(), String(last));
    await slider.focus();
    await page.keyboard.press("ArrowLeft");
    assert.equal(await page.locator(".step-at").textContent(), String(run.step[last - 1]));
    const fact = page.locator(".facts dd [data-path^='runs.0.norm']").first();
    assert.equal(await fact.getAttribute("title"), String(run.norm[last - 1]));
    await page.keyboard.press("Home");
    assert.equal(await fact.getAttribute("title"), String(run.norm[0]));
    assert.equal(await slider.getAttribute("aria-valuetext"), `step ${run.step[0]}`);
    for (const view of ["Plane", "Attention", "Spectrum"]) {
      await showTab(page, view);
      const chart = page.locator("[role=tabpanel]:not([hidden]) .chart").first();
      await slider.fill("5");
      const early = await picture(page, chart);
      await slider.fill(String(last));
      assert.notEqual(await picture(page, chart), early, view);
      await assertNumbers(page);
    }
    const box = await slider.boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    assert.ok(Math.abs(Number(await slider.inputValue()) - last / 2) <= 2);
  }));

test("play walks through the steps and can be paused", () =>
  on("demo/report.html", { hash: "#plane" }, async (page) => {
    const slider = page.getByRole("slider", { name: "Step" });
    await page.getByRole("button", { name: "Play" }).click();
    await page.waitForFunction(() => Number(document.querySelector("input[type=range]").value) > 3);
    await page.getByRole("button", { name: "Pause" }).click();
    const at = await slider.inputValue();
    await page.waitForTimeout(200);
    assert.equal(await slider.inputValue(), at);
  }));

test("curves can be hidden, axes made logarithmic, plots zoomed and shown whole again", () =>
  on("demo/report.html", { hash: "#training" }, async (page) => {
    const chart = page.locator(".chart").first();
    const whole = await picture(page, chart);
    const toggle = chart.locator(".series").first();
    await toggle.click();
    assert.equal(await toggle.getAttribute("aria-pressed"), "false");
    assert.notEqual(await picture(page, chart), whole);
    await toggle.click();
    assert.equal(await picture(page, chart), whole);
    for (const name of ["Log x", "Log y"]) {
      const button = chart.getByRole("button", { name });
      const before = await button.getAttribute("aria-pressed");
      await button.click();
      assert.notEqual(await button.getAttribute("aria-pressed"), before);
      assert.notEqual(await picture(page, chart), whole);
      await button.click();
    }
    const box = await chart.locator(".u-over").boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.3);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height * 0.7, { steps: 4 });
    await page.mouse.up();
    await page.mouse.move(box.x + box.width + 200, box.y - 100);
    assert.notEqual(await picture(page, chart), whole);
    await chart.getByRole("button", { name: "Show all" }).click();
    assert.equal(await picture(page, chart), whole);
  }));

test("values are read by pointer and by keyboard", () =>
  on("demo/report.html", { hash: "#training" }, async (page) => {
    const [run] = dataOf(page).runs;
    const chart = page.locator(".chart").nth(2);
    const plot = chart.locator(".plot");
    const readout = chart.locator(".readout");
    await plot.focus();
    await page.keyboard.press("End");
    assert.match(await readout.textContent(), new RegExp(`step = ${run.step.at(-1)}`));
    assert.equal(await readout.locator("[data-path^='runs.0.norm']").getAttribute("title"), String(run.norm.at(-1)));
    await page.keyboard.press("ArrowLeft");
    assert.equal(await readout.locator("[data-path^='runs.0.norm']").getAttribute("title"), String(run.norm.at(-2)));
    await page.keyboard.press("Escape");
    assert.equal(await readout.locator("[data-path]").count(), 0);
    const before = await picture(page, chart);
    await page.keyboard.press("+");
    assert.notEqual(await picture(page, chart), before);
    await page.keyboard.press("0");
    assert.equal(await picture(page, chart), before);
    const box = await chart.locator(".u-over").boundingBox();
    await page.mouse.move(box.x + box.width * 0.95, box.y + box.height * 0.06);
    await readout.locator("[data-path*='.norm.']").waitFor();
    await assertNumbers(page);
    const first = page.locator(".chart").first();
    await first.locator(".plot").focus();
    await page.keyboard.press("ArrowRight");
    const label = await first.locator(".readout strong").textContent();
    await page.keyboard.press("ArrowDown");
    assert.notEqual(await first.locator(".readout strong").textContent(), label);
  }));

test("tabs follow the arrow keys and the address", () =>
  on("demo/report.html", {}, async (page) => {
    await page.getByRole("tab", { name: "Overview" }).focus();
    for (const view of [...views.slice(1), "Overview"]) {
      await page.keyboard.press("ArrowRight");
      const tab = page.getByRole("tab", { name: view });
      assert.equal(await tab.getAttribute("aria-selected"), "true");
      assert.ok(await tab.evaluate((element) => element === document.activeElement));
      assert.equal(
        await page.locator("[role=tabpanel]:not([hidden])").getAttribute("aria-labelledby"),
        await tab.getAttribute("id"),
      );
    }
    await page.keyboard.press("End");
    assert.match(page.url(), /#proof$/);
    await page.evaluate(() => {
      location.hash = "#margins";
    });
    assert.equal(await page.getByRole("tab", { name: "Margins" }).getAttribute("aria-selected"), "true");
  }));

test("everything can be reached with the Tab key", () =>
  on("demo/report.html", { hash: "#plane" }, async (page) => {
    const reached = new Set();
    for (let k = 0; k < 40; k += 1) {
      await page.keyboard.press("Tab");
      reached.add(
        await page.evaluate(
          () => document.activeElement.className || document.activeElement.textContent || document.activeElement.type,
        ),
      );
    }
    for (const wanted of ["range", "plot", "series"])
      assert.ok(reached.has(wanted), `${wanted} not in ${[...reached].join("; ")}`);
  }));

test("queries, axes and solutions can be chosen", () =>
  on("demo/report.html", { hash: "#plane" }, async (page) => {
    const data = dataOf(page);
    const chart = page.locator("[role=tabpanel]:not([hidden]) .chart").first();
    const first = await picture(page, chart);
    await page.getByRole("button", { name: "Next query" }).first().click();
    assert.notEqual(await picture(page, chart), first);
    await page
      .getByText(`Query 1 sees ${data.queries.visible[1]} tokens and keeps token ${data.queries.kept[1][0]}`)
      .last()
      .waitFor();
    const second = await picture(page, chart);
    await page.getByLabel(/^Across/).selectOption({ label: "coordinate 3" });
    assert.notEqual(await picture(page, chart), second);
    await assertNumbers(page);
    await page.getByLabel("Query", { exact: true }).first().fill("99");
    await page.keyboard.press("Enter");
    assert.equal(await page.getByLabel("Query", { exact: true }).first().inputValue(), String(data.task.queries - 1));
    await showTab(page, "Margins");
    for (const table of ["support rows", "all rows"]) {
      await page.getByLabel("Table").selectOption({ label: table });
      const rows = data.solutions[0].rows;
      const wanted = table === "all rows" ? rows.total : rows.support.length;
      assert.equal(
        await page.locator("[role=tabpanel]:not([hidden]) > div > .table .place").textContent(),
        `rows 1 to ${Math.min(50, wanted)} of ${wanted}`,
      );
    }
    await page.getByLabel("Solution").selectOption({ index: 1 });
    await page.getByLabel("Show").selectOption({ label: "margin at norm one" });
    await assertNumbers(page);
  }));

test("support, selected and other tokens differ in shape, and the rows name them", () =>
  on("demo/report.html", { hash: "#plane" }, async (page) => {
    const { check } = dataOf(page);
    const paths = await page
      .locator("[role=tabpanel]:not([hidden]) .legend .swatch path")
      .evaluateAll((list) => list.map((path) => path.getAttribute("d")));
    assert.ok(new Set(paths.slice(0, 4)).size === 4, paths.join());
    const support = await page.locator("[role=tabpanel]:not([hidden]) .card tbody tr").count();
    assert.equal(support, check.support.query.filter((query) => query === 0).length);
  }));

test("downloads hold the data", () =>
  on("demo/report.html", {}, async (page) => {
    const data = dataOf(page);
    const json = await download(page, page.getByRole("button", { name: "Download the data (JSON)" }));
    assert.deepEqual(JSON.parse(json.text), data);
    await showTab(page, "Training");
    const norm = await download(page, page.getByRole("button", { name: "Download norm.csv" }));
    assert.equal(norm.name, "norm.csv");
    const lines = norm.text
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.split(","));
    assert.deepEqual(
      lines.map((line) => Number(line[2])),
      data.runs.flatMap((run) => run.norm),
    );
    await showTab(page, "Margins");
    const rows = await download(page, page.getByRole("button", { name: "Download support-rows.csv" }));
    assert.equal(rows.text.trim().split("\n").length - 1, data.solutions[0].support);
  }));

test("numbers can be selected and copied", () =>
  on("demo/report.html", {}, async (page) => {
    const number = page.locator("[data-path='solutions.0.objective']").first();
    const copied = await number.evaluate((element) => {
      getSelection().selectAllChildren(element);
      return getSelection().toString();
    });
    assert.equal(copied, await number.textContent());
    assert.notEqual(await number.evaluate((element) => getComputedStyle(element).userSelect), "none");
  }));

test("colours follow the system until the reader chooses", () =>
  on("demo/report.html", { colorScheme: "dark" }, async (page) => {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await background();
    await page.getByRole("button", { name: "Light colours" }).click();
    const light = await background();
    assert.notEqual(light, dark);
    await assertContrast(page);
    await page.emulateMedia({ colorScheme: "light" });
    assert.equal(await background(), light);
    await page.getByRole("button", { name: "Dark colours" }).click();
    assert.equal(await background(), dark);
  }));
