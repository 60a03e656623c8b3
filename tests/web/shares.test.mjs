// The share of the largest margin along a run, in each norm.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { assertNumbers, assertSchema, attsvm, dataOf, download, python, startBrowser, visit } from "./support.mjs";

let browser;

before(async () => {
  attsvm("generate", "random", "--seed", 1, "-o", "task.npz");
  attsvm("train", "task.npz", "--optimizer", "mirror:3", "-o", "cubic.npz");
  attsvm("report", "task.npz", "--run", "cubic.npz", "-o", "cubic.html");
  attsvm("solve", "task.npz", "-o", "solution.npz");
  python(`np.savez("point.npz", W=np.load("solution.npz")["W"])
np.savez("twins.npz", tokens=np.array([[[1.0], [1.0], [0.0]]]), head=np.ones(1))
np.savez("ones.npz", W=np.ones((1, 1)))`);
  attsvm("report", "task.npz", "--run", "point.npz", "-o", "point.html");
  attsvm("report", "twins.npz", "--run", "ones.npz", "-o", "stuck.html");
  browser = await startBrowser();
});
after(() => browser?.close());

/** Opens the view of the training; what `use` leaves on the console fails the test. */
const on = (file, use) =>
  visit(browser, file, { hash: "#training" }, async (page) => {
    await use(page);
    assertSchema(dataOf(page));
  });

test("margins in each norm are drawn and listed, the implied norm above all", () =>
  on("cubic.html", async (page) => {
    const [run] = dataOf(page).runs;
    assert.equal(run.implied.norm, "lp:3");
    const names = run.shares.map((one) => one.norm);
    assert.deepEqual(names, ["fro", "nuc", "spec", "max", "l1", "lp:3"]);
    const chart = page.locator(".chart", { hasText: "Distance from the largest margin" });
    for (const name of names.slice(0, -1)) await chart.getByRole("button", { name, exact: true }).waitFor();
    await chart.getByRole("button", { name: "lp:3 (implied)" }).waitFor();
    assert.match(await chart.textContent(), /Theory for attention names the norm lp:3 for mirror:3/);
    await chart.locator(".plot").focus();
    await page.keyboard.press("End");
    const read = chart.locator(".readout [data-path^='runs.0.shares']").first();
    assert.equal(await read.getAttribute("title"), String(run.shares[0].distances.at(-1)));
    const table = page.locator(".card", { hasText: "Margins in each norm" });
    const rows = table.locator("tbody tr");
    assert.equal(await rows.count(), names.length);
    assert.equal(await rows.last().locator("strong").textContent(), "lp:3 (implied)");
    for (const [k, one] of run.shares.entries()) {
      const shown = rows.nth(k).locator("[data-path]");
      const titles = await Promise.all([0, 1, 2].map((n) => shown.nth(n).getAttribute("title")));
      assert.deepEqual(titles, [one.rho.at(-1), one.distances.at(-1), one.exponent].map(String));
    }
    const csv = await download(page, table.getByRole("button", { name: "Download margins.csv" }));
    assert.equal(csv.text.trim().split("\n").length, names.length + 1);
    await assertNumbers(page);
  }));

test("where nothing separates there is no largest margin", () =>
  on("stuck.html", async (page) => {
    assert.ok(dataOf(page).runs[0].shares.every((one) => one.status === "infeasible"));
    await page.getByText("There is no largest margin to compare with").first().waitFor();
    await page.getByText("not known: infeasible").first().waitFor();
  }));

test("a run without records is one point", () =>
  on("point.html", async (page) => {
    const [run] = dataOf(page).runs;
    assert.deepEqual([run.step, run.implied, run.shares[0].rho.length], [null, null, 1]);
    assert.ok(Math.abs(run.shares[0].distances[0]) < 1e-9, "the point is the Frobenius solution");
    await page.getByText("Theory names no norm for this training.").first().waitFor();
    await assertNumbers(page);
  }));

for (const [steps, dots, lines] of [
  ["40", 1, 0],
  ["20,40", 2, 0],
  ["10,20,40", 3, 1],
])
  test(`a run recorded at ${steps}: a marker at each point, and no line through less than three`, async () => {
    attsvm("train", "task.npz", "--steps", 40, "--record", steps, "-o", "few.npz", "--force");
    attsvm("report", "task.npz", "--run", "few.npz", "-o", "few.html", "--force");
    await on("few.html", async (page) => {
      assert.equal(dataOf(page).runs[0].step.length, dots);
      for (const [view, title] of [
        ["Overview", "Distance from the predicted direction"],
        ["Training", "Norm of W"],
      ]) {
        await page.getByRole("tab", { name: view }).click();
        const heading = page.getByRole("heading", { name: title, exact: true });
        const chart = page.locator("[role=tabpanel]:not([hidden]) .chart").filter({ has: heading });
        const { text } = await download(page, chart.locator("[data-download=svg]"));
        const drawn = await page.evaluate((words) => {
          const root = new DOMParser().parseFromString(words, "image/svg+xml");
          const curves = [...root.querySelectorAll("[clip-path] path, path[clip-path]")].map((one) => [
            one.getAttribute("d"),
            one.getAttribute("fill"),
            one.getAttribute("stroke-width"),
          ]);
          return {
            lines: curves.filter(([d, fill, width]) => fill === "none" && width === "2" && !/V|H/.test(d)).length,
            marks: curves.filter(([, fill]) => fill !== "none").flatMap(([d]) => d.match(/M/g)).length,
          };
        }, text);
        assert.deepEqual(drawn, { lines, marks: dots }, title);
      }
    });
  });
