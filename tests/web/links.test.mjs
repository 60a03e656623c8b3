// Links and files from strangers, in the playground: refused with a reason, and nothing of them reaches a command.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";

import { attsvm, attsvmCode, folder, python, startBrowser, visit } from "./support.mjs";

const file = "links.html";
let browser;

before(async () => {
  attsvm("playground", "-o", file);
  browser = await startBrowser();
});
after(() => browser?.close());

const on = (hash, use) => visit(browser, file, { hash }, use);

/** An address with other words or numbers in it. */
function forged(hash, change) {
  const bytes = Buffer.from(hash.slice("#task=".length), "base64url");
  const length = bytes.readUInt32LE(0);
  const words = JSON.parse(bytes.subarray(4, 4 + length).toString());
  const numbers = new Float64Array(new Uint8Array(bytes.subarray(4 + length)).buffer);
  change(words, numbers);
  const text = Buffer.from(JSON.stringify(words));
  const head = Buffer.alloc(4);
  head.writeUInt32LE(text.length);
  return `#task=${Buffer.concat([head, text, Buffer.from(numbers.buffer)]).toString("base64url")}`;
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

test("tasks that the library refuses are refused in addresses too, in words of ours", async () => {
  const own = await ownAddress();
  const cases = [
    [(words, numbers) => (numbers[words.arrays.keys.from] = NaN), /keys\[0,0,0\] = nan; must be finite/],
    [(words, numbers) => (numbers[words.arrays.head.from] = Infinity), /head\[0\] = inf; must be finite/],
    [(words, numbers) => (numbers[words.start.from] = NaN), /its start is not finite/],
    [
      (words, numbers) =>
        (words.arrays.select = { shape: [1], from: numbers.findIndex((one) => !Number.isInteger(one)) }),
      /select: must be integers/,
    ],
    [(words) => (words.arrays.banana = words.arrays.head), /unknown array 'banana'/],
    [(words) => (words.arrays.tokens.shape = [-1, 3, -3]), /an array has no size/],
    [(words) => (words.arrays.tokens.shape = "333"), /an array has no size/],
    [(words) => (words.arrays = null), /it was cut off or changed/],
    [(words) => (words.arrays.tokens = "x"), /it was cut off or changed/],
  ].map(([change, reason]) => [forged(own, change), reason]);
  for (const [hash, reason] of [
    ...cases,
    [own.slice(0, 9), /it was cut off or changed/],
    [own.slice(0, own.length / 2), /it was cut off or changed/],
    ["#preset=__proto__", /there is no preset __proto__/],
  ])
    await on(hash, async (page) => {
      const said = await page.getByRole("alert").textContent();
      assert.match(said, /holds no task that can be shown/, hash);
      assert.match(said, reason, hash);
      assert.equal(await page.locator('[data-handle^="token"]').count(), 3);
    });
});

test("odd tasks that the library takes are shown, whatever their scale", async () => {
  const own = await ownAddress();
  const scaled = (by) => (words, numbers) => {
    for (const name of ["tokens", "keys", "queries"])
      for (let k = 0; words.arrays[name] && k < words.arrays[name].shape.reduce((a, b) => a * b); k += 1)
        numbers[words.arrays[name].from + k] *= by;
  };
  for (const change of [
    scaled(1e-150),
    scaled(1e-9),
    scaled(1e9),
    scaled(1e150),
    (words) => (words.query = 99),
    (words, numbers) => numbers.fill(1e308, words.start.from, words.start.from + words.start.shape[0]),
    (words) => (words.names = ["<img src=x onerror=alert(1)>", "\u202eabc", "a".repeat(5000)]),
  ])
    await on(forged(own, change), async (page) => {
      assert.equal(await page.getByRole("alert").count(), 0, String(change));
      const spots = await page
        .locator('[data-handle^="token"] .mark')
        .evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ x, y }) => [x, y]));
      assert.equal(spots.length, 3);
      for (const [k, [x, y]] of spots.entries())
        for (const [a, b] of spots.slice(0, k)) assert.ok(Math.hypot(x - a, y - b) > 60, String(change));
      assert.equal(await page.locator(".stage .name.dual").count(), 1, String(change));
      await page.getByRole("button", { name: "Train to step" }).click();
      assert.doesNotMatch(await page.locator(".stage").innerHTML(), /NaN|Infinity/);
      assert.equal(await page.locator("[data-number=objective]").count(), 1);
      const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} pixels too wide`);
    });
});

test("draws that the page cannot show are refused", async () => {
  for (const hash of [
    "#draw=random&n=2000&T=60&d=64",
    "#draw=random&n=-1",
    "#draw=random&T=0",
    "#draw=random&n=2.5",
    "#draw=random&seed=9007199254740993",
  ])
    await on(hash, async (page) => {
      assert.match(await page.getByRole("alert").textContent(), /must be an integer/, hash);
    });
});

test("a drawn task without a head comes with its selection", () =>
  on("#draw=infeasible&n=2&T=3&d=4", async (page) => {
    assert.equal(await page.getByRole("alert").count(), 0);
    assert.equal(await page.locator(".answer .badge").textContent(), "no W keeps these tokens");
  }));

test("files that the program refuses are refused, with a reason", () =>
  on("#preset=single-local", async (page) => {
    const cases = {
      sequence: "tokens=np.ones((3,2,2)), queries=np.ones((1,2)), sequence=np.arange(3)",
      labels: "tokens=rng.normal(size=(2,3,2)), queries=np.ones((2,2)), labels=np.ones(4)",
      select: "tokens=rng.normal(size=(1,3,2)), select=np.array([1.7])",
      text: "tokens=np.array(['a'])",
      names: "tokens=rng.normal(size=(1,3,2)), x_token_names=np.arange(3)",
      bomb: "tokens=np.zeros((1,1000000,10))",
      large: "tokens=np.array([[[2**53 + 1, 1], [0, 1]]]), head=np.ones(2)",
      banana: "tokens=rng.normal(size=(1,3,2)), head=np.ones(2), banana=np.ones(1)",
    };
    python(
      "import zipfile, warnings\nwarnings.simplefilter('ignore')\n" +
        "np.savez('whole.npz', tokens=np.ones((1,3,2)), head=np.ones(2))\n" +
        "bytes = bytearray(open('whole.npz', 'rb').read())\nbytes[bytes.find(b'\\n') + 3] ^= 1\n" +
        "open('damaged.npz', 'wb').write(bytes)\n" +
        "with zipfile.ZipFile('twice.npz', 'w') as out:\n" +
        "  for _ in range(2): out.writestr('tokens.npy', zipfile.ZipFile('whole.npz').read('tokens.npy'))\n",
    );
    const made = ["damaged", "twice"];
    for (const [name, words] of [...Object.entries(cases), ...made.map((name) => [name, null])]) {
      if (words) python(`rng = np.random.default_rng(0)\nnp.savez_compressed("${name}.npz", ${words})`);
      if (!["names", "bomb"].includes(name)) assert.equal(attsvmCode("solve", `${name}.npz`, "-o", "x.npz"), 2, name);
      await page.getByLabel("Task file").setInputFiles(path.join(folder, `${name}.npz`));
      const said = page.getByText(new RegExp(`^${name}\\.npz: .{5,}`));
      await said.waitFor();
      assert.doesNotMatch(await said.textContent(), /on screen|undefined|internal error/);
    }
    assert.equal(await page.locator('[data-handle^="token"]').count(), 3, "the task before is still there");
  }));
