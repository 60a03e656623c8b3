// What the stage of the playground looks like: names that cover nothing, lines on which the tokens lie.
import assert from "node:assert/strict";
import { test } from "node:test";

import { drag, handle, on, openPlayground, settled } from "./playground_support.mjs";

openPlayground();

const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

/** Boxes on the screen of what a selector finds. */
const boxes = (page, selector) =>
  page.locator(selector).evaluateAll((all) =>
    all.map((one) => {
      const { left, top, right, bottom } = one.getBoundingClientRect();
      return { left, top, right, bottom, text: one.textContent };
    }),
  );

const meet = (a, b, by = 0) =>
  a.left < b.right - by && b.left < a.right - by && a.top < b.bottom - by && b.top < a.bottom - by;

for (const [name, options] of Object.entries({ wide: {}, phone }))
  test(`names cover neither each other nor marks, and stay inside: ${name}`, async () => {
    for (const preset of ["single-local", "single-global", "paths-3", "two-inputs", "conflict"])
      await on(
        `#preset=${preset}`,
        async (page) => {
          const names = await boxes(page, ".stage .name");
          assert.ok(names.length >= 4, preset);
          const [stage] = await boxes(page, ".stage");
          const marks = await boxes(page, ".stage .handle:not(.far) .mark");
          for (const [k, one] of names.entries()) {
            assert.ok(one.left >= stage.left && one.right <= stage.right, `${preset}: ${one.text} is outside`);
            assert.ok(one.top >= stage.top && one.bottom <= stage.bottom, `${preset}: ${one.text} is outside`);
            for (const other of names.slice(0, k))
              assert.ok(!meet(one, other, 2), `${preset}: ${one.text} covers ${other.text}`);
            for (const mark of marks) assert.ok(!meet(one, mark, 2), `${preset}: ${one.text} covers a mark`);
          }
        },
        options,
      );
  });

test("names follow what they name while it is dragged", () =>
  on("#preset=single-global", async (page) => {
    const place = async () => (await boxes(page, ".stage .name")).find(({ text }) => text === "0");
    const before = await place();
    await drag(page, "token 0 0", -80, 60);
    const after = await place();
    const [mark] = await boxes(page, '[data-handle="token 0 0"] .mark');
    assert.ok(Math.hypot(after.left - before.left, after.top - before.top) > 20);
    assert.ok(Math.hypot(after.left - mark.left, after.top - mark.top) < 40);
  }));

test("support tokens lie on the line one margin behind the kept one", () =>
  on("#preset=paths-5", async (page) => {
    await handle(page, "token 0 0").press("ArrowUp");
    await settled(page);
    const far = await page.evaluate(() => {
      const middle = (element) => {
        const { left, top, width, height } = element.getBoundingClientRect();
        return [left + width / 2, top + height / 2];
      };
      const distance = (line, [x, y]) => {
        const box = document.querySelector(".stage").getBoundingClientRect();
        const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((name) => Number(line.getAttribute(name)));
        const [dx, dy] = [x2 - x1, y2 - y1];
        return Math.abs((x - box.left - x1) * dy - (y - box.top - y1) * dx) / Math.hypot(dx, dy);
      };
      const [kept, behind] = [".margin.kept", ".margin:not(.kept)"].map((one) => document.querySelector(one));
      const grips = (kind) => [...document.querySelectorAll(`.token.${kind} .grip`)].map(middle);
      return [...grips("kept").map((at) => distance(kept, at)), ...grips("support").map((at) => distance(behind, at))];
    });
    assert.ok(far.length >= 2);
    for (const pixels of far) assert.ok(pixels < 1, `${pixels} pixels away`);
  }));
