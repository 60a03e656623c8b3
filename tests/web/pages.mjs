// What tests of whole pages share: the pages, a browser and the screens.
import { after, before, test } from "node:test";

import { startBrowser, visit } from "./support.mjs";

export * from "./support.mjs";

/**
 * Makes pages and starts a browser before the tests of a file. Returns on(file, options, use), which opens one of them
 * and uses it, and browser() for what that cannot do.
 */
export function pagesOf(make) {
  let browser;
  before(async () => {
    await make();
    browser = await startBrowser();
  });
  after(() => browser?.close());
  return { on: (file, options, use) => visit(browser, file, options, use), browser: () => browser };
}

const wide = { width: 1440, height: 1000 },
  phone = { width: 360, height: 740 };
const screens = {
  "a wide screen, light": { viewport: wide, colorScheme: "light" },
  "a wide screen, dark": { viewport: wide, colorScheme: "dark" },
  "a phone, light": { viewport: phone, colorScheme: "light" },
  "a phone, dark": { viewport: phone, colorScheme: "dark" },
};

/** A test on each of the screens named, whose options for on() it gets. */
export function testOn(names, title, use) {
  for (const name of names) test(`${title} on ${name}`, () => use(screens[name]));
}
