// What can be chosen: a preset, the kind of attention, the norm, how to train, and files.
import { button, freshId, h } from "../dom";
import type { App } from "./app";
import { isPresets } from "./command";
import { presets, stateOf } from "./presets";
import { isFlat } from "./projection";
import type { State, View } from "./state";
import { arraysOf, type Kind, kindOf, withKind } from "./task";

type Option<Value> = [Value, string];

/** A choice that follows the state. */
function pick<Value extends string>(
  app: App,
  label: string,
  options: () => readonly Option<Value>[],
  value: () => Value,
  take: (value: Value) => void,
): HTMLElement {
  const id = freshId();
  const select = h("select", { id, onchange: () => take(select.value as Value) });
  const draw = (): void => {
    const list = options();
    const now = value();
    const known = list.some(([one]) => one === now) ? list : [...list, [now, now] as Option<Value>];
    const words = known.map(([one, text]) => `${one}=${text}`).join("|");
    if (select.dataset["list"] !== words) {
      select.dataset["list"] = words;
      select.replaceChildren(...known.map(([one, text]) => h("option", { value: one }, text)));
    }
    select.value = now;
  };
  draw();
  app.on((changed) => {
    if (changed.has("settings") || changed.has("task")) draw();
  });
  return h("div", { class: "choice" }, h("label", { for: id }, label), select);
}

const norms: Option<string>[] = [
  ["fro", "Frobenius"],
  ["nuc", "nuclear"],
  ["spec", "spectral"],
  ["max", "largest entry"],
  ["l1", "sum of entries"],
  ["lp:3", "entries, power 3"],
  ["schatten:4", "singular values, power 4"],
];

const optimizers: Option<string>[] = [
  ["ngd", "normalized gradient descent"],
  ["gd", "gradient descent"],
  ["polyak", "Polyak steps"],
  ["mirror:3", "mirror descent, power 3"],
  ["steepest:max", "sign descent"],
  ["steepest:spec", "spectral descent"],
  ["steepest:nuc", "steepest in the nuclear norm"],
  ["steepest:l1", "coordinate descent"],
  ["adam", "Adam"],
  ["adamw", "AdamW"],
  ["signum", "Signum"],
  ["lion", "Lion"],
  ["muon", "Muon"],
];

export function presetPicker(app: App): HTMLElement {
  const id = freshId();
  const select = h("select", {
    id,
    onchange: () => {
      const preset = presets.find((one) => one.name === select.value);
      if (preset) app.show(stateOf(preset, app.engine), true);
    },
  });
  for (const group of [...new Set(presets.map((preset) => preset.group))])
    select.append(
      h(
        "optgroup",
        { label: group },
        ...presets.filter((one) => one.group === group).map((one) => h("option", { value: one.name }, one.title)),
      ),
    );
  select.append(h("option", { value: "", disabled: true, hidden: true }, "your own"));
  const caption = h("p", { class: "lead caption" });
  const since = h("span", { class: "note" });
  const draw = (): void => {
    const preset = presets.find((one) => one.name === app.state.preset);
    select.value = preset?.name ?? "";
    // Beside the picker: a longer caption would move the stage under the hand that drags.
    since.textContent = preset && !isPresets(app) ? "changed since" : "";
    caption.textContent =
      preset?.caption ?? "A task of your own. Its address holds all of it: send the link, or save the file.";
  };
  draw();
  app.on((changed) => {
    if (changed.has("settings") || changed.has("task")) draw();
  });
  return h(
    "div",
    { class: "preset" },
    h("div", { class: "choice" }, h("label", { for: id }, "Begin with"), select, since),
    caption,
  );
}

export function viewControls(app: App): HTMLElement {
  const names: Record<View, string> = {
    plane: "two coordinates",
    turn: "turning in space",
    margin: "along the margin",
  };
  const turns = (["\u2190", "\u2192", "\u2191", "\u2193"] as const).map((sign, k) =>
    button(
      sign,
      () => {
        const [a, b] = app.state.turn;
        const by = [
          [-10, 0],
          [10, 0],
          [0, 10],
          [0, -10],
        ][k] ?? [0, 0];
        app.set({ turn: [a + (by[0] ?? 0), Math.max(-90, Math.min(90, b + (by[1] ?? 0)))] });
      },
      { class: "quiet", "aria-label": `Turn the view ${["left", "right", "up", "down"][k]}` },
    ),
  );
  const turning = h("span", { class: "bar turning" }, ...turns);
  const share = h("span", { class: "hint" });
  const draw = (): void => {
    turning.hidden = !app.projection.turns;
    const part = Math.round(100 * app.projection.share);
    share.textContent = part < 100 ? `shows ${part}\u202f% of the tokens\u2019 squared lengths` : "";
  };
  app.on(draw);
  draw();
  return h(
    "div",
    { class: "controls" },
    pick(
      app,
      "View",
      () =>
        (Object.keys(names) as View[])
          .filter((one) => one !== "turn" || !isFlat(app.state.task))
          .map((one) => [one, names[one]]),
      () => (app.state.view === "turn" && isFlat(app.state.task) ? "plane" : app.state.view),
      (view) => app.set({ view }),
    ),
    turning,
    share,
  );
}

export function taskControls(app: App): HTMLElement {
  const kinds: Option<Kind>[] = [
    ["prompt", "prompt: one vector asks"],
    ["cross", "cross: queries of their own"],
    ["self", "self: tokens ask"],
    ["causal", "causal: every token asks, sees those before it"],
  ];
  const selects = (): Option<string>[] => {
    const list: Option<string>[] = [
      ["opt", "the best ones"],
      ["run", "those that training selects"],
    ];
    if (app.state.task.select) list.unshift(["task", "those of the task"]);
    if (Array.isArray(app.state.select)) list.push(["own", `chosen: ${app.state.select.join(", ")}`]);
    return list;
  };
  const now = (): string => {
    const { select, task } = app.state;
    if (select === null) return task.select ? "task" : "opt";
    return typeof select === "string" ? select : "own";
  };
  return h(
    "div",
    { class: "controls" },
    pick(
      app,
      "Attention",
      () => kinds,
      () => kindOf(app.state.task),
      (kind) => {
        const task = withKind(app.state.task, kind);
        const param = kind === "prompt" ? "p" : app.state.param === "p" ? "W" : app.state.param;
        app.set({ task, query: 0, select: null, start: null, param });
      },
    ),
    pick(app, "Tokens to keep", selects, now, (select) => {
      if (select !== "own") app.set({ select: select === "task" ? null : (select as "opt" | "run") });
    }),
    pick(
      app,
      "Norm of W",
      () => norms,
      () => app.state.norm,
      (norm) => app.set({ norm }),
    ),
  );
}

/** Trains, pauses and rewinds, and tells where the run is. */
export function playBar(app: App): HTMLElement {
  const to = h("input", { type: "number", min: 1, max: 1_000_000, step: 100, value: 2000, "aria-label": "step" });
  const go = button("Train to step", () =>
    app.trainTo(Math.min(1_000_000, Math.max(1, Math.round(Number(to.value)) || 1))),
  );
  const play = button("Train", () => app.play(!app.run.playing), { class: "primary" });
  const words = h("p", { class: "note told" });
  const draw = (): void => {
    const { run } = app;
    play.textContent = run.playing ? "Pause" : (run.last?.step ?? 0) > 0 && !run.ended ? "Train on" : "Train";
    play.disabled = run.problem !== "";
    words.replaceChildren(...told(app));
  };
  app.on(draw);
  draw();
  return h(
    "div",
    { class: "play-bar" },
    h(
      "div",
      { class: "controls" },
      play,
      button("Back to step 0", () => app.rewind()),
      h("span", { class: "choice" }, go, to),
    ),
    words,
  );
}

export function trainingControls(app: App): HTMLElement {
  const params = (): Option<State["param"]>[] =>
    kindOf(app.state.task) === "prompt"
      ? [["p", "the prompt p"]]
      : [
          ["W", "W"],
          ["KQ", "K and Q, W = KQ\u1d40"],
        ];
  const step = h("input", {
    type: "number",
    min: 0,
    step: 0.05,
    onchange: () => {
      const to = Number(step.value);
      if (to > 0 && Number.isFinite(to)) app.set({ step: to });
      else step.value = String(app.state.step);
    },
  });
  const seed = h("input", {
    type: "number",
    min: 0,
    step: 1,
    onchange: () => {
      const to = Number(seed.value);
      if (seed.value !== "" && Number.isSafeInteger(to) && to >= 0) app.set({ seed: to });
      else seed.value = String(app.state.seed);
    },
  });
  const start = h("label", { class: "choice" }, h("span", {}, "Seed of the start"), seed);
  const draw = (): void => {
    if (document.activeElement !== step) step.value = String(app.state.step);
    if (document.activeElement !== seed) seed.value = String(app.state.seed);
    start.hidden = app.state.param !== "KQ"; // others start where the reader puts them
  };
  app.on(draw);
  draw();
  return h(
    "div",
    { class: "controls" },
    pick(
      app,
      "Trained",
      params,
      () => (kindOf(app.state.task) === "prompt" ? "p" : app.state.param),
      (param) => app.set({ param }),
    ),
    pick(
      app,
      "Optimizer",
      () => optimizers,
      () => app.state.optimizer,
      (optimizer) => app.set({ optimizer }),
    ),
    h("label", { class: "choice" }, h("span", {}, "Step size"), step),
    start,
    pick(
      app,
      "Loss",
      () => [
        ["logistic", "logistic"],
        ["exponential", "exponential"],
        ["linear", "linear"],
      ],
      () => app.state.loss,
      (loss) => app.set({ loss }),
    ),
  );
}

/** Where the run is, and what theory says about its optimizer. */
function told(app: App): (Node | string)[] {
  const { run, state } = app;
  if (run.problem) return [`No training: ${run.problem}`];
  const { last, implied } = run;
  const number = (name: string, value: number | null | undefined, digits = 6): HTMLElement =>
    h(
      "span",
      { class: "num", "data-number": `run.${name}`, title: value ?? null },
      value === null || value === undefined ? "\u2013" : String(Number(value.toPrecision(digits))),
    );
  const parts: (Node | string)[] = [
    "Step ",
    number("step", last?.step),
    ", loss ",
    number("loss", last?.loss),
    ", |W| ",
    number("norm", last?.norm),
  ];
  parts.push(", correlation ", number("correlation", last?.correlation), ", \u03c1 ", number("rho", last?.rho), ". ");
  if (run.ended)
    parts.push(run.ended === "steps" ? "A million steps are enough here. " : `The run ended: ${run.ended}. `);
  if (implied && implied.norm !== state.norm)
    parts.push(
      implied.proven
        ? `Under its conditions, theory for attention names the norm ${implied.norm} for this optimizer: `
        : `The norm ${implied.norm} is expected, not proven, for this optimizer: `,
      button(`show that SVM`, () => app.set({ norm: implied.norm }), { class: "quiet" }),
    );
  return parts;
}

/** Selections at which training can end. */
export function localOptima(app: App): HTMLElement {
  const list = h("div", { class: "bar" });
  const words = h("p", { class: "note", role: "status" });
  const find = (): void => {
    try {
      const found = app.engine.call("local", { task: arraysOf(app.state.task) });
      const kept = found.locally_optimal.slice(0, 24);
      words.textContent =
        `${found.locally_optimal.length} of ${found.selections} selections are locally optimal` +
        `${found.complete ? "" : ", as far as the search came"}${kept.length < found.locally_optimal.length ? `; the first ${kept.length}:` : "."}`;
      list.replaceChildren(
        ...kept.map((tokens) =>
          button(tokens.join(" "), () => app.set({ select: tokens }), {
            class: "quiet",
            "aria-label": `Keep tokens ${tokens.join(", ")}`,
          }),
        ),
      );
    } catch (error) {
      words.textContent = error instanceof Error ? error.message : "";
    }
  };
  app.on((changed) => {
    if (!changed.has("task")) return;
    list.replaceChildren();
    words.textContent = "";
  });
  return h("div", {}, h("div", { class: "bar" }, button("Find all local optima", find)), words, list);
}
