// The playground computes what the program computes.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import {
  arrays,
  assertSolved,
  assertTrained,
  commandLines,
  drag,
  file,
  near,
  on,
  openPlayground,
  precision,
  run,
  save,
  settled,
  shown,
} from "./playground_support.mjs";
import { attsvm, folder, python } from "./support.mjs";

openPlayground();

test("one file of less than 3 MB that names no address and works without a network", () => {
  assert.ok(statSync(path.join(folder, file)).size < 3e6);
  const html = readFileSync(path.join(folder, file), "utf8");
  assert.equal(html.replaceAll("http://www.w3.org/2000/svg", "").match(/https?:/), null);
  assert.match(html, /default-src 'none'/);
});

test("every preset is solved, and its numbers are the program's", async () => {
  await on("", async (page) => {
    const names = await page.locator(".preset option:not([hidden])").evaluateAll((all) => all.map((one) => one.value));
    assert.ok(names.length >= 12);
    for (const name of names) {
      await page.locator(".preset select").selectOption(name);
      await settled(page);
      const { status } = await assertSolved(page);
      assert.equal(status, name === "conflict" ? "infeasible" : "optimal", name);
      const [first] = await commandLines(page);
      if (!first.startsWith("attsvm generate")) continue;
      run(first.replace("task.npz", "drawn.npz"));
      const drawn = arrays("drawn.npz"),
        saved = arrays("task.npz");
      for (const array of ["tokens", "keys", "queries", "head"]) assert.deepEqual(saved[array], drawn[array], name);
    }
  });
});

test("in every norm the answer is the program's", () =>
  on("#preset=paths-5", async (page) => {
    for (const norm of ["nuc", "spec", "max", "l1", "lp:3", "schatten:4"]) {
      await page.getByLabel("Norm of W").selectOption(norm);
      await settled(page);
      await save(page, "task.npz");
      const answer = run((await commandLines(page)).find((line) => line.startsWith("attsvm solve")));
      near(await shown(page, "objective"), answer.objective, norm);
    }
  }));

test("training is the program's, from the start that is drawn, for every optimizer", () =>
  on("#preset=single-local", async (page) => {
    await save(page, "task.npz");
    const optimizers = await page
      .getByLabel("Optimizer")
      .locator("option")
      .evaluateAll((all) => all.map((one) => one.value));
    for (const optimizer of optimizers) {
      await page.getByLabel("Optimizer").selectOption(optimizer);
      await page.getByLabel("step", { exact: true }).fill("300");
      await page.getByRole("button", { name: "Train to step" }).click();
      await settled(page);
      await assertTrained(page);
    }
  }));

test("training W, K and Q, and the head is the program's, with correlation and \u03c1", async () => {
  await on("#preset=published-size", async (page) => {
    // Normalized steps on K and Q swing from side to side, and carry a rounding error far in the long run.
    for (const [param, steps] of [
      ["W", "2000"],
      ["KQ", "200"],
    ]) {
      await page.getByLabel("Trained").selectOption(param);
      await page.getByLabel("step", { exact: true }).fill(steps);
      await page.getByRole("button", { name: "Train to step" }).click();
      await settled(page);
      await assertSolved(page);
      await assertTrained(page);
      const check = JSON.parse(attsvm("check", "task.npz", "--run", "run.npz", "--json"));
      near(await shown(page, "run.rho"), check.rho.fro.at(-1), "rho");
      near(await shown(page, "run.correlation"), check.correlation_fro.at(-1), "correlation");
    }
  });
  await on("#preset=joint-loose", async (page) => {
    await save(page, "task.npz");
    await page.getByLabel("step", { exact: true }).fill("999");
    await page.getByRole("button", { name: "Train to step" }).click();
    await settled(page);
    await assertTrained(page);
  });
});

test("the atlas has the shares of the largest margin that the program finds", () =>
  on("#preset=atlas", async (page) => {
    await page.getByRole("button", { name: "Train with every optimizer" }).click();
    await page.waitForFunction(() => document.querySelectorAll("[data-number^='atlas.muon']").length === 5, null, {
      timeout: 120000,
    });
    await save(page, "task.npz");
    for (const optimizer of ["ngd", "steepest:max", "muon"]) {
      run(`attsvm train task.npz --optimizer ${optimizer} --steps 3000 -o run.npz`);
      const { rho } = JSON.parse(attsvm("check", "task.npz", "--run", "run.npz", "--json"));
      for (const norm of ["fro", "nuc", "spec", "max", "l1"])
        near(await shown(page, `atlas.${optimizer}.${norm}`), rho[norm].at(-1), `${optimizer} ${norm}`);
    }
  }));

test("the page says what theory names, and nothing that it does not prove", () =>
  on("#preset=paths-3", async (page) => {
    await page.getByLabel("Norm of W").selectOption("max");
    for (const [optimizer, words] of [
      ["polyak", /theory for attention names the norm fro for this optimizer/],
      ["muon", /The norm spec is expected, not proven, for this optimizer/],
    ]) {
      await page.getByLabel("Optimizer").selectOption(optimizer);
      await settled(page);
      const told = await page.locator(".told").textContent();
      assert.match(told, words);
      assert.doesNotMatch(told, /is proven/);
    }
  }));

test("K and Q start from the seed on screen", () =>
  on("#preset=paths-3", async (page) => {
    const seed = page.getByLabel("Seed of the start");
    assert.equal(await seed.isVisible(), false);
    await page.getByLabel("Trained").selectOption("KQ");
    await seed.fill("7");
    await seed.press("Enter");
    await page.getByLabel("step", { exact: true }).fill("50");
    await page.getByRole("button", { name: "Train to step" }).click();
    await settled(page);
    await save(page, "task.npz");
    assert.match((await commandLines(page)).join(), /--seed 7/);
    await assertTrained(page);
  }));

test("tokens that no W keeps show the contradiction as a polygon, until they are dragged apart", () =>
  on("#preset=conflict", async (page) => {
    assert.equal(await page.locator(".stage .polygon").count(), 1);
    assert.equal(await page.locator(".stage .side.tip").count(), 3);
    const { conflict } = await assertSolved(page);
    assert.equal(conflict.length, 3);
    await drag(page, "token 0 0", 200, 0);
    assert.equal(await page.locator(".stage .polygon").count(), 0);
    assert.equal((await assertSolved(page)).status, "optimal");
    await drag(page, "token 0 0", -200, 0);
    assert.equal(await page.locator(".stage .polygon").count(), 1);
  }));

test("local optima are found, and starts lead to them", () =>
  on("#preset=single-local", async (page) => {
    await page.getByRole("button", { name: "Find all local optima" }).click();
    assert.deepEqual(await page.getByRole("button", { name: /^Keep tokens/ }).allTextContents(), ["0", "1"]);
    const trained = async () => {
      await page.getByRole("button", { name: "Train to step" }).click();
      await settled(page);
      return page.evaluate(() => globalThis.playground.run.last.selected);
    };
    assert.deepEqual(await trained(), [1]);
    await drag(page, "start", 0, -290);
    assert.deepEqual(await trained(), [0]);
  }));

test("tokens that nearly contradict each other are settled in 512 bits, as by the program", () =>
  on("", async (page) => {
    python("np.savez('near.npz', tokens=[[[1.], [0], [0]]], keys=[[[1, 0], [0, 0], [2, -1e-13]]], head=[1.])");
    const answer = run("attsvm solve near.npz -o near-solution.npz");
    await page.getByLabel("Task file").setInputFiles(path.join(folder, "near.npz"));
    await page.getByText("near.npz is on screen.").waitFor();
    await settled(page);
    const here = await page.evaluate(() => globalThis.playground.answer);
    assert.deepEqual([here.status, here.method], ["optimal", "dual active set in 512 bits"]);
    assert.equal(here.method, answer.method);
    assert.ok(Math.abs(here.objective / answer.objective - 1) <= precision);
  }));

test("what only ball arithmetic settles is called not settled, without a number", () =>
  on("", async (page) => {
    python(
      "x = np.array([[[1, 0], [1, .5], [-1, 0]]] * 2)\n" +
        "np.savez('sets.npz', tokens=x, queries=[[1., 0]] * 2, head=[1., 0], select=[[True, True, False]] * 2)",
    );
    assert.equal(run("attsvm solve sets.npz -o sets-solution.npz").status, "optimal");
    await page.getByLabel("Task file").setInputFiles(path.join(folder, "sets.npz"));
    await page.getByText("sets.npz is on screen.").waitFor();
    await settled(page);
    assert.equal(await page.locator(".answer .badge").textContent(), "not settled here");
    assert.equal(await page.locator("[data-number=objective]").count(), 0);
    assert.equal(await page.locator(".stage .margin").count(), 0);
  }));
