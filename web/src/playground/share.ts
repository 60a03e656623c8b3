// Files, the link and the commands.
import { button, h } from "../dom";
import { saveBlob } from "../download";
import type { App } from "./app";
import { commands, needsStart } from "./command";
import { type TaskArrays, wordsOf } from "./engine";
import { readNpz, writeNpz } from "./npz";
import { firstState } from "./presets";
import { isFlat } from "./projection";
import { addressOf, selectable, startArray, taskOf } from "./state";
import { arraysOf, keySize, kindOf } from "./task";

const bytesOf = (arrays: TaskArrays, names: string[] = []): Blob =>
  new Blob([writeNpz(arrays, names)], { type: "application/octet-stream" });

export function sharing(app: App): HTMLElement {
  const lines = h("code", { class: "command" });
  const said = h("span", { class: "note", role: "status" });
  const draw = (): void => {
    const { state } = app;
    lines.textContent = commands(app).join("\n");
    start.hidden = !needsStart(state);
  };
  const copied = (text: string, words: string): void => {
    const done = (): void => {
      said.textContent = words;
    };
    if (navigator.clipboard)
      void navigator.clipboard
        .writeText(text)
        .then(done, () => (said.textContent = "The browser does not allow it: select the text instead."));
    else said.textContent = "The browser does not allow it: select the text instead.";
  };
  const input = h("input", {
    type: "file",
    accept: ".npz",
    class: "unseen",
    tabindex: -1,
    "aria-label": "Task file",
    onchange: () => void load(),
  });
  const load = async (): Promise<void> => {
    const [file] = input.files ?? [];
    if (!file) return;
    try {
      const { arrays, names } = await readNpz(new Uint8Array(await file.arrayBuffer()));
      const task = taskOf(app.engine, arrays, names);
      const prompt = kindOf(task) === "prompt";
      app.show(
        {
          ...firstState(task),
          param: prompt ? "p" : "W",
          view: isFlat(task) ? "plane" : keySize(task) === 3 ? "turn" : "margin",
          select: selectable(task),
        },
        true,
      );
      said.textContent = `${file.name} is on screen.`;
    } catch (error) {
      said.textContent = `${file.name}: ${wordsOf(error, "it was cut off or changed")}`;
    }
    input.value = "";
  };
  const save = (): void => {
    const { task } = app.state;
    saveBlob(
      "task.npz",
      bytesOf(
        arraysOf(task),
        task.sequences.flat().map((token) => token.name),
      ),
    );
  };
  const start = button("Save start.npz", () => {
    const { state } = app;
    const arrays: TaskArrays = {};
    const W0 = startArray(state.start);
    if (W0) arrays["W0"] = W0;
    if (state.joint && state.startHead) arrays["v0"] = { shape: [state.startHead.length], data: [...state.startHead] };
    saveBlob("start.npz", bytesOf(arrays));
  });
  app.on((changed) => {
    if (changed.has("settings") || changed.has("task") || (changed.has("run") && !app.run.playing)) draw();
  });
  draw();
  return h(
    "div",
    {},
    h("p", {}, "These commands give the numbers on screen, beside the files that can be saved here:"),
    h("p", { class: "made" }, lines),
    h(
      "div",
      { class: "bar" },
      button("Copy commands", () => copied(lines.textContent, "Copied.")),
      button("Save task.npz", save),
      start,
      button("Load a task", () => input.click()),
      input,
      button("Copy link", () =>
        copied(location.href.split("#")[0] + addressOf(app.state), "The link holds the whole task."),
      ),
      said,
    ),
  );
}
