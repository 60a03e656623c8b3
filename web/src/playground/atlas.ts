// The optimizers side by side: which norm's largest margin each of them comes to.
import { button, h } from "../dom";
import { percent } from "../format";
import { shadedCell } from "../table";
import type { App } from "./app";
import { arraysOf } from "./task";

const norms = ["fro", "nuc", "spec", "max", "l1"];
const optimizers = ["ngd", "steepest:nuc", "steepest:spec", "muon", "steepest:max", "signum", "adam", "steepest:l1"];
const steps = 3000;

export function atlas(app: App): HTMLElement {
  const body = h("tbody");
  const table = h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Atlas", hidden: true },
    h(
      "table",
      { class: "shares" },
      h(
        "caption",
        {},
        `\u03c1 after ${steps} steps: the share of the largest margin, for the tokens that the run selects`,
      ),
      h("thead", {}, h("tr", {}, ...["optimizer", ...norms].map((name) => h("th", { scope: "col" }, name)))),
      body,
    ),
  );
  const words = h("p", { class: "note", role: "status" });
  let wanted = 0; // numbers the tables that were asked for: an edit ends the one before
  let settings = `${app.state.step} ${app.state.loss}`;
  const row = (optimizer: string, cells: Node[]): void => {
    body.append(h("tr", {}, h("th", { scope: "row" }, optimizer), ...cells));
  };
  const fill = async (): Promise<void> => {
    wanted += 1;
    const mine = wanted;
    const engine = await app.engine.again(); // the run on screen goes on in the other one
    body.replaceChildren();
    table.hidden = false;
    const task = arraysOf(app.state.task);
    const { step, loss } = app.state;
    for (const optimizer of optimizers) {
      words.textContent = `Training with ${optimizer} \u2026`;
      await new Promise((done) => setTimeout(done));
      if (mine !== wanted) return;
      try {
        const { implied } = engine.call("start", {
          task,
          param: "W",
          optimizer,
          step,
          loss,
          joint: false,
          seed: 0,
          W: null,
          v: null,
        });
        const { W, selected } = engine.call("advance", { until: steps });
        const cells = norms.map((norm) => {
          engine.call("solve", { task, norm, select: selected });
          const shape = [W.length, W[0]?.length ?? 0];
          const value = engine.call("compare", { W: [{ shape, data: W.flat() }] }).rho[0] ?? null;
          const shown = h(
            "span",
            { class: "num", "data-number": `atlas.${optimizer}.${norm}`, title: value },
            percent(value, 3),
          );
          return shadedCell(value, implied?.norm === norm, shown);
        });
        row(optimizer, cells);
      } catch (error) {
        row(optimizer, [h("td", { colspan: norms.length }, error instanceof Error ? error.message : "")]);
      }
    }
    words.textContent = "";
  };
  app.on((changed) => {
    const now = `${app.state.step} ${app.state.loss}`;
    if (!changed.has("task") && now === settings) return;
    settings = now;
    wanted += 1;
    body.replaceChildren();
    table.hidden = true;
    words.textContent = "";
  });
  return h(
    "div",
    {},
    h(
      "div",
      { class: "bar" },
      button("Train with every optimizer", () => void fill()),
    ),
    words,
    table,
  );
}
