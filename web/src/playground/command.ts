// The commands that give what is on screen, for a saved task.
import type { App } from "./app";
import { presets } from "./presets";
import type { State } from "./state";
import { arraysOf } from "./task";

const selection = (app: App): string => {
  const { select } = app.state;
  if (select === null) return "";
  if (select === "opt") return " --select opt";
  return ` --select ${select === "run" ? (app.answer?.kept.join(",") ?? "opt") : select.join(",")}`;
};

const drawn = new Map<string, string>(); // what presets draw, by their names

/** Whether the task is still the one of its preset. */
export function isPresets({ state, engine }: App): boolean {
  const preset = presets.find((one) => one.name === state.preset);
  if (!preset) return false;
  const first = drawn.get(preset.name) ?? JSON.stringify(arraysOf(preset.task(engine)));
  drawn.set(preset.name, first);
  return JSON.stringify(arraysOf(state.task)) === first;
}

/** The command that draws the task; null where none does. */
function drawing(app: App): string | null {
  const preset = presets.find((one) => one.name === app.state.preset);
  return preset?.command && isPresets(app) ? preset.command : null;
}

export function needsStart({ start, startHead, joint, param }: State): boolean {
  return (start !== null && param !== "KQ") || (joint && startHead !== null);
}

export function commands(app: App): string[] {
  const { state, run } = app;
  if (app.problem) return [];
  const draw = drawing(app);
  const lines = draw ? [draw] : [];
  lines.push(`attsvm solve task.npz${selection(app)} --norm ${state.norm} -o solution.npz`);
  if (run.problem) return lines;
  const given = [
    `--param ${state.param}`,
    `--optimizer ${state.optimizer}`,
    `--step ${state.step}`,
    `--steps ${run.last?.step ?? 0}`,
    state.loss === "logistic" ? "" : `--loss ${state.loss}`,
    state.joint ? "--joint" : "",
    state.param === "KQ" ? `--seed ${state.seed}` : "",
    needsStart(state) ? "--init start.npz" : "",
  ];
  lines.push(`attsvm train task.npz ${given.filter(Boolean).join(" ")} -o run.npz`);
  return lines;
}
