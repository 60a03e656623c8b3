// Controls for the current query and step.
import type { Report, Trained } from "./data";
import { button, choice, freshId, h } from "./dom";
import { num } from "./format";
import { runNames, timeline } from "./runs";
import type { Store } from "./state";

export function queryControl(data: Report, store: Store, count = data.task.queries): HTMLElement {
  const id = freshId();
  const input = h("input", {
    type: "number",
    id,
    min: 0,
    max: count - 1,
    step: 1,
    value: Math.min(count - 1, store.get().query),
    inputmode: "numeric",
  });
  const take = (to: number): void => {
    const query = Math.min(count - 1, Math.max(0, Math.round(to) || 0));
    store.set({ query });
    input.value = String(query);
  };
  input.addEventListener("change", () => take(Number(input.value)));
  store.on(() => {
    input.value = String(Math.min(count - 1, store.get().query));
  });
  return h(
    "div",
    { class: "choice query" },
    h("label", { for: id }, "Query"),
    button("\u2039", () => take(store.get().query - 1), { "aria-label": "Previous query", class: "quiet" }),
    input,
    button("\u203a", () => take(store.get().query + 1), { "aria-label": "Next query", class: "quiet" }),
    h("span", { class: "hint" }, "of ", count === data.task.queries ? num("task.queries", count) : String(count)),
  );
}

/** Chooses one of several runs; nothing where there is one. */
export function runControl(data: Report, store: Store): HTMLElement | null {
  if (data.runs.length < 2) return null;
  const made = choice("Run", runNames(data), store.get().run, (run) => store.set({ run }));
  store.on(() => {
    const select = made.querySelector("select");
    if (select) select.selectedIndex = store.get().run;
  });
  return made;
}

/** The slider over recorded steps, with a button that plays them. */
export function stepControl(data: Trained, store: Store): HTMLElement | null {
  const { label, values, paths } = timeline(data);
  const last = values.length - 1;
  if (last < 1) return null;
  const id = freshId();
  const at = h("output", { for: id, class: "step-at" });
  const slider = h("input", { type: "range", id, min: 0, max: last, step: 1, value: store.get().step });
  let timer = 0;
  const stop = (): void => {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  };
  const play = button("Play", () => {
    if (timer !== 0) return stop();
    if (store.get().step === last) store.set({ step: 0 });
    play.textContent = "Pause";
    timer = window.setInterval(
      () => {
        if (store.get().step >= last) stop();
        else store.set({ step: store.get().step + 1 });
      },
      Math.max(30, 6000 / last),
    );
  });
  const draw = (): void => {
    const { step } = store.get();
    slider.value = String(step);
    const value = values[step] ?? 0,
      path = paths[step] ?? "";
    at.replaceChildren(path ? num(path, value) : `point ${value}`);
    slider.setAttribute("aria-valuetext", `${label} ${value}`);
  };
  slider.addEventListener("input", () => {
    if (timer !== 0) stop();
    store.set({ step: Number(slider.value) });
  });
  store.on(draw);
  draw();
  return h("div", { class: "stepper" }, play, h("label", { for: id }, "Step"), slider, at);
}
