// The commands that give what is on screen, for a saved task.
import type { App } from "./app";
import { presets } from "./presets";
import type { State } from "./state";

const selection = (app: App): string => {
  const { select } = app.state;
  if (select === null) return "";
  if (select === "opt") return " --select opt";
  return ` --select ${select === "run" ? (app.answer?.kept.join(",") ?? "opt") : select.join(",")}`;
};

/** Whether the task is still the one that its preset draws. */
export function drawnBy(app: App, original: State | null): string | null {
  const preset = presets.find((one) => one.name === app.state.preset);
  return preset?.command && original?.task === app.state.task ? preset.command : null;
}

export function needsStart({ start, startHead, joint, param }: State): boolean {
  return (start !== null && param !== "KQ") || (joint && startHead !== null);
}

export function commands(app: App, draw: string | null): string[] {
  const { state, run } = app;
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
