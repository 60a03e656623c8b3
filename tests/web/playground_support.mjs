// What tests of the playground share: the page, its handles and numbers, and the program beside it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before } from "node:test";

import { attsvm, folder, python, startBrowser, visit } from "./support.mjs";

export const file = "playground.html";
export const precision = 1e-12;
let browser;

/** To be called first: makes the page and a browser for the tests of a file. */
export function openPlayground() {
  before(async () => {
    attsvm("playground", "-o", file);
    browser = await startBrowser();
  });
  after(() => browser?.close());
}

export const on = (hash, use, options = {}) => visit(browser, file, { hash, ...options }, use);

/** Saves a file of the page into the tests' folder. */
export async function save(page, name) {
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: `Save ${name}` }).click(),
  ]);
  assert.equal(saved.suggestedFilename(), name);
  await saved.saveAs(path.join(folder, name));
}

/** Arrays of a file, in rows. */
export function arrays(name) {
  python(
    `import json\nz = np.load("${name}")\njson.dump({k: z[k].tolist() for k in z.files if z[k].dtype.kind in "fib"}, open("a.json", "w"))`,
  );
  return JSON.parse(readFileSync(path.join(folder, "a.json"), "utf8").replaceAll("NaN", "null"));
}

/** The exact value of a number on screen. */
export async function shown(page, name) {
  const found = await page.locator(`[data-number="${name}"]`).first().getAttribute("title");
  return found === null ? null : Number(found);
}

export function near(found, wanted, what, scale = Math.abs(wanted)) {
  assert.ok(Math.abs(found - wanted) <= precision * Math.max(1, scale), `${what}: ${found}, not ${wanted}`);
}

export const handle = (page, id) => page.locator(`[data-handle="${id}"]`);

export async function middle(locator) {
  const box = await locator.locator(".grip").boundingBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

/** Drags something by a number of pixels. */
export async function drag(page, id, dx, dy) {
  await page.locator(".stage").scrollIntoViewIfNeeded();
  const [x, y] = await middle(handle(page, id));
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (const part of [0.25, 0.5, 0.75, 1]) await page.mouse.move(x + dx * part, y + dy * part);
  await page.mouse.up();
  await settled(page);
}

export const settled = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

export const commandLines = async (page) => (await page.locator(".command").textContent()).split("\n");

/** Runs a command of the page in the tests' folder. */
export function run(line, ...more) {
  const words = line.split(" ");
  assert.equal(words[0], "attsvm");
  const done = spawnSync(process.env.ATTSVM_PROGRAM, [...words.slice(1), "--force", "--json", ...more], {
    cwd: folder,
    encoding: "utf8",
  });
  assert.ok([0, 3].includes(done.status), `${line}\n${done.stderr}`);
  return JSON.parse(done.stdout);
}

/** The SVM on screen is the program's, for the task that the page saves. */
export async function assertSolved(page) {
  await save(page, "task.npz");
  const solve = (await commandLines(page)).find((line) => line.startsWith("attsvm solve"));
  const answer = run(solve);
  const here = await page.evaluate(() => {
    const { W, rows, status } = globalThis.playground.answer;
    return { W, status, dual: rows.map((row) => row.dual), slack: rows.map((row) => row.slack) };
  });
  assert.equal(here.status, answer.status);
  const stored = arrays("solution.npz");
  if (answer.status === "infeasible") {
    stored.dual.forEach((wanted, k) => near(here.dual[k], wanted, `dual ${k}`));
    return answer;
  }
  near(await shown(page, "objective"), answer.objective, "objective");
  near(await shown(page, "dual_objective"), answer.dual_objective, "bound");
  near(await shown(page, "margin"), answer.margin, "margin");
  assert.equal(await shown(page, "rank"), answer.rank);
  const size = Math.max(...stored.W.flat().map(Math.abs));
  stored.W.forEach((row, i) => row.forEach((wanted, j) => near(here.W[i][j], wanted, `W ${i} ${j}`, size)));
  stored.slack.forEach((wanted, k) => near(here.slack[k], wanted, `slack ${k}`));
  return { ...answer, dual: stored.dual, ours: here.dual };
}

/** The run on screen is the program's. */
export async function assertTrained(page) {
  const lines = await commandLines(page);
  const train = lines.find((line) => line.startsWith("attsvm train"));
  if (train.includes("start.npz")) await save(page, "start.npz");
  const wanted = run(train);
  assert.equal(await shown(page, "run.step"), wanted.steps);
  near(await shown(page, "run.loss"), wanted.loss, "loss");
  near(await shown(page, "run.norm"), wanted.norm, "norm");
  const here = await page.evaluate(() => globalThis.playground.run.last);
  assert.deepEqual(here.selected, wanted.selected);
  arrays("run.npz").W.forEach((row, i) => row.forEach((one, j) => near(here.W[i][j], one, `W ${i} ${j}`, wanted.norm)));
  return wanted;
}
