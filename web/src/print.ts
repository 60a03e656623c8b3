// Paper: every view, every chart, in light colours. Views are made first, then charts draw themselves.
import { announce } from "./theme";

const before: (() => void)[] = [];
const after: (() => void)[] = [];

/** `prepare` is called before the page is printed, in the order of these calls, and `restore` afterwards. */
export function onPrint(prepare: () => void, restore: () => void): void {
  before.push(prepare);
  after.push(restore);
}

const root = document.documentElement;
let chosen: string | undefined;

addEventListener("beforeprint", () => {
  chosen = root.dataset["theme"];
  root.dataset["theme"] = "light";
  for (let k = 0; k < before.length; k += 1) before[k]?.(); // making views adds to the list
  announce();
});
addEventListener("afterprint", () => {
  if (chosen === undefined) delete root.dataset["theme"];
  else root.dataset["theme"] = chosen;
  for (const restore of after) restore();
  announce();
});
