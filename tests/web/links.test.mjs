// Links and files from strangers, in the playground: refused with a reason, and nothing of them reaches a command.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";

import { attsvm, folder, python, startBrowser, visit } from "./support.mjs";

const file = "links.html";
let browser;

before(async () => {
  attsvm("playground", "-o", file);
  browser = await startBrowser();
});
after(() => browser?.close());

const on = (hash, use) => visit(browser, file, { hash }, use);

/** An address with other words in it. */
function forged(hash, change) {
  const bytes = Buffer.from(hash.slice("#task=".length), "base64url");
  const length = bytes.readUInt32LE(0);
  const words = JSON.parse(bytes.subarray(4, 4 + length).toString());
  change(words);
  const text = Buffer.from(JSON.stringify(words));
  const head = Buffer.alloc(4);
  head.writeUInt32LE(text.length);
  return `#task=${Buffer.concat([head, text, bytes.subarray(4 + length)]).toString("base64url")}`;
}

async function ownAddress() {
  let hash = "";
  await on("#preset=single-local", async (page) => {
    await page.locator('[data-handle^="token"]').first().press("ArrowUp");
    await page.waitForFunction(() => location.hash.startsWith("#task="));
    hash = await page.evaluate(() => location.hash);
  });
  return hash;
}

test("settings that the page would not write are refused, and no command carries them", async () => {
  const own = await ownAddress();
  for (const change of [
    (words) => (words.norm = "fro; touch /tmp/owned\n"),
    (words) => (words.select = ["0; id #"]),
    (words) => (words.select = "zzz"),
    (words) => (words.optimizer = "ngd$(id)"),
    (words) => (words.loss = { toString: "x" }),
    (words) => (words.step = 0),
    (words) => (words.step = null),
    (words) => (words.seed = -1),
    (words) => (words.param = "Z"),
    (words) => (words.turn = [1]),
    (words) => (words.names = [7]),
    (words) => (words.start = { shape: [1e9, 1e9], from: 0 }),
    (words) => (words.arrays.tokens.shape = [1e9, 1e9, 1]),
  ]) {
    await on(forged(own, change), async (page) => {
      assert.match(await page.getByRole("alert").textContent(), /holds no task that can be shown/, String(change));
      const command = await page.locator("code.command").textContent();
      assert.match(command, /^(attsvm [\w .,:=-]+\n?)+$/, command);
    });
  }
});

test("draws that the page cannot show are refused", async () => {
  for (const hash of [
    "#draw=random&n=2000&T=60&d=64",
    "#draw=random&n=-1",
    "#draw=random&n=2.5",
    "#draw=random&seed=9007199254740993",
  ])
    await on(hash, async (page) => {
      assert.match(await page.getByRole("alert").textContent(), /must be an integer/, hash);
    });
});

test("files that the program refuses are refused, with a reason", () =>
  on("#preset=single-local", async (page) => {
    const cases = {
      sequence: "tokens=np.ones((3,2,2)), queries=np.ones((1,2)), sequence=np.arange(3)",
      labels: "tokens=rng.normal(size=(2,3,2)), queries=np.ones((2,2)), labels=np.ones(4)",
      select: "tokens=rng.normal(size=(1,3,2)), select=np.array([1.7])",
      text: "tokens=np.array(['a'])",
      names: "tokens=rng.normal(size=(1,3,2)), x_token_names=np.arange(3)",
      bomb: "tokens=np.zeros((1,1000000,10))",
    };
    for (const [name, words] of Object.entries(cases)) {
      python(`rng = np.random.default_rng(0)\nnp.savez_compressed("${name}.npz", ${words})`);
      await page.getByLabel("Task file").setInputFiles(path.join(folder, `${name}.npz`));
      const said = page.getByText(new RegExp(`^${name}\\.npz: .{5,}`));
      await said.waitFor();
      assert.doesNotMatch(await said.textContent(), /on screen|undefined|internal error/);
    }
    assert.equal(await page.locator('[data-handle^="token"]').count(), 3, "the task before is still there");
  }));
