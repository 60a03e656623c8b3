import "uplot/dist/uPlot.min.css";
import "../page.css";
import "./playground.css";

import { h } from "../dom";
import { themeButton } from "../theme";
import { App, edits } from "./app";
import { atlas } from "./atlas";
import { charts } from "./charts";
import { localOptima, playBar, presetPicker, taskControls, trainingControls, viewControls } from "./controls";
import { Engine, wordsOf } from "./engine";
import { numbers } from "./numbers";
import { firstState, presets, stateOf } from "./presets";
import { sharing } from "./share";
import { Stage } from "./stage";
import { drawFrom, presetFrom, selectable, type State, stateFrom, taskOf } from "./state";

/** What the address asks for; null where it asks for nothing. Error where the page cannot show it. */
function addressed(engine: Engine): State | null {
  const draw = drawFrom(location.hash);
  if (draw) {
    const task = taskOf(engine, engine.call("draw", draw), []);
    return { ...firstState(task), view: "margin", select: task.head ? "run" : selectable(task) };
  }
  const name = presetFrom(location.hash);
  if (name === null) return stateFrom(location.hash, engine);
  const preset = presets.find((one) => one.name === name);
  if (!preset) throw new Error(`there is no preset ${name}`);
  return stateOf(preset, engine);
}

const keys: [string, string][] = [
  ["Tab", "to the next token, query or arrow tip"],
  ["arrows", "move it; with Shift further"],
  ["Enter", "keep this token, or look at this query"],
  ["Delete", "leave it out"],
  ["Space", "on the page: train, pause"],
  ["Ctrl+Z", "take the last edit back, as Back does"],
];

function page(root: HTMLElement, engine: Engine): App {
  const notice = h("p", { class: "badge bad", role: "alert", hidden: true });
  const first = (): State => stateOf(presets[1] ?? (presets[0] as (typeof presets)[number]), engine);
  const wanted = (): State => {
    notice.hidden = true;
    try {
      return addressed(engine) ?? first();
    } catch (error) {
      notice.hidden = false;
      notice.textContent = `The address holds no task that can be shown: ${wordsOf(error, "it was cut off or changed")}`;
      return first();
    }
  };
  const app = new App(engine, wanted());
  const stage = new Stage(app);
  const section = (title: string, caption: string, ...parts: Node[]): HTMLElement =>
    h("section", { class: "card" }, h("h2", {}, title), caption ? h("p", { class: "note" }, caption) : null, ...parts);
  root.append(
    h(
      "header",
      { class: "top" },
      h("div", {}, h("p", { class: "kind" }, "attsvm playground"), h("h1", {}, "Training attention solves an SVM")),
      themeButton(),
    ),
    h(
      "main",
      {},
      notice,
      presetPicker(app),
      h(
        "div",
        { class: "beside play" },
        h(
          "section",
          { class: "card" },
          h("h2", { class: "unseen" }, "The stage"),
          stage.root,
          playBar(app),
          viewControls(app),
          h(
            "p",
            { class: "note" },
            "Diamonds are kept, triangles are support tokens: they touch the second line, one margin behind the kept " +
              "token. The blue arrow is the SVM\u2019s direction, the orange one is training; its scale bends, so that " +
              "the rim is infinity. Drag anything; double-click adds a token; click one to keep it.",
          ),
          h(
            "details",
            {},
            h("summary", {}, "Keys"),
            h(
              "dl",
              { class: "facts" },
              ...keys.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]),
            ),
          ),
        ),
        numbers(app, () => stage.addToken()),
      ),
      section(
        "What is solved",
        "The smallest W that puts the kept token of every query ahead of its other tokens by a margin of 1.",
        taskControls(app),
        localOptima(app),
      ),
      section(
        "Training",
        "Softmax attention on the same tokens, with gradients that stay exact when it saturates.",
        trainingControls(app),
      ),
      charts(app),
      section(
        "The atlas of this task",
        "Each optimizer trains W on this task. Its W is set against the largest margin that there is in each norm. The " +
          "norm that theory names for the optimizer, for most of them as a conjecture, is framed.",
        atlas(app),
      ),
      section("Take it with you", "", sharing(app)),
    ),
  );
  stage.draw();
  addEventListener("popstate", () => app.show(wanted(), false));
  addEventListener("keydown", (event) => {
    const free = event.target === document.body;
    if (event.key === " " && free) {
      event.preventDefault();
      app.play(!app.run.playing);
    }
    const typing = event.target instanceof HTMLInputElement;
    if (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !typing) {
      event.preventDefault();
      if (event.shiftKey) history.forward();
      else if (edits() > 0) history.back();
    }
  });
  return app;
}

const root = document.getElementById("page");
const source = document.getElementById("engine")?.textContent ?? "";
if (root) {
  try {
    const app = page(root, await Engine.load(source.trim()));
    Object.assign(globalThis, { playground: app }); // for tests, and for the curious
    root.dataset["ready"] = "";
  } catch (error) {
    root.append(
      h(
        "p",
        { class: "badge bad" },
        `The playground cannot start: ${error instanceof Error ? error.message : "unknown error"}`,
      ),
    );
    throw error;
  }
}
