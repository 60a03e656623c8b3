// Tasks to begin with: the published experiments in the plane, and others that show something.
import type { Engine } from "./engine";
import type { State } from "./state";
import { type Task, taskFrom, type Vector } from "./task";

export interface Preset {
  name: string; // in addresses
  title: string;
  group: string;
  caption: string;
  command: string | null; // what draws the task
  task: (engine: Engine) => Task;
  state?: Partial<State>;
}

const drawn =
  (kind: string, sizes: { n?: number; T?: number; d?: number; C?: number; seed?: number } = {}) =>
  (engine: Engine): Task =>
    taskFrom(engine.call("draw", { kind, ...sizes }));

const prompt = { param: "p", view: "plane" } as const;
const column = (...numbers: number[]): Vector[] => numbers.map((one) => [one]);

/** The two published data sets of paths in the plane. */
const paths = {
  three: {
    tokens: {
      shape: [2, 3, 2],
      data: [
        -0.9814968109130859, 0.18639519810676575, -1.135571837425232, -0.0498390719294548, -1.4568305015563965,
        0.11450517922639847, 0.6917173862457275, -0.16891583800315857, 0.732312798500061, -0.017475053668022156,
        0.9413471221923828, -0.2896907925605774,
      ],
    },
    queries: {
      shape: [2, 2],
      data: [0.8450113534927368, 0.534748375415802, -0.6362639665603638, -0.771471381187439],
    },
    head: { shape: [2], data: [0.9273199439048767, 0.37426966428756714] },
  },
  five: {
    tokens: {
      shape: [2, 5, 2],
      data: [
        1.0, 0.5, -0.1897246241569519, -0.7983540296554565, -0.7976964116096497, 0.3056498169898987,
        -0.6198047995567322, -0.01682163029909134, -1.1724226474761963, 0.24682678282260895, 1.0, -0.5,
        -0.7574430108070374, 0.10261718928813934, -0.830785870552063, 0.67637699842453, -0.8131822943687439,
        0.006708239670842886, -0.613163411617279, -0.05462175980210304,
      ],
    },
    queries: {
      shape: [2, 2],
      data: [-0.5391289591789246, -0.8422232270240784, 0.9525519013404846, 0.30437642335891724],
    },
    head: { shape: [2], data: [0.9771237969398499, 0.2126714289188385] },
  },
};

/** Words in four dimensions, chosen so that a W can find the noun that every word refers to. */
function sentence(): Task {
  const words: [string, number, number, number, number][] = [
    ["The", 0.2, 0.2, 0.5, -0.2],
    ["cat", 0.7, 0.4, -0.2, 0.3],
    ["chased", -0.2, 1.2, -0.1, -0.3],
    ["a", 0.1, -0.4, -0.1, -0.3],
    ["mouse", 1, 0.1, -0.6, 0.1],
    ["until", -0.5, -0.1, -0.4, -0.2],
    ["it", 0.4, -0.2, -0.9, -0.2],
    ["slept", -0.5, 0.5, -0.5, 0.4],
  ];
  const tokens = words.map(([name, ...key]) => ({ key, value: null, name }));
  return {
    sequences: [tokens],
    queries: tokens.map((_, t) => ({
      sequence: 0,
      z: null,
      token: t,
      visible: t + 1 === tokens.length ? null : t + 1,
      label: 1,
    })),
    head: { v: [1, 0.3, 0.2, 0.1], hidden: null, lambda: null },
    select: null,
  };
}

export const presets: readonly Preset[] = [
  {
    name: "single-global",
    title: "One input, one limit",
    group: "Published, in the plane",
    caption:
      "One prompt reads three tokens. Token 0 scores best and the others score the same, so every start turns to its " +
      "SVM. Drag the start anywhere and train.",
    command: "attsvm generate single-global -o task.npz",
    task: drawn("single-global"),
    state: { ...prompt, start: column(0, -1, 0) },
  },
  {
    name: "single-local",
    title: "One input, two limits",
    group: "Published, in the plane",
    caption:
      "One prompt reads three tokens. Token 0 scores best, but token 1 scores more than its support token, token 2: " +
      "starts below end at token 1, a local optimum. Drag the start up until training ends at token 0.",
    command: "attsvm generate single-local -o task.npz",
    task: drawn("single-local"),
    state: { ...prompt, select: "run", start: column(0, -1, 0) },
  },
  {
    name: "multi-input",
    title: "Three noisy inputs",
    group: "Published, in the plane",
    caption:
      "Three inputs share one prompt. Each has a good token near (1, 0) and six others. The " +
      "published starts all turn to the one direction that separates the good tokens of all inputs.",
    command: "attsvm generate multi-input --seed 0 -o task.npz",
    task: drawn("multi-input", { seed: 0 }),
    state: { ...prompt, start: column(-1, 0, 0) },
  },
  {
    name: "joint-tight",
    title: "Head and prompt together",
    group: "Published, in the plane",
    caption: "The head v is trained too. All three inputs are support vectors of v, so p turns to the full SVM.",
    command: "attsvm generate joint-tight -o task.npz",
    task: drawn("joint-tight"),
    state: { ...prompt, joint: true, start: column(0, -1), startHead: [-1, 0] },
  },
  {
    name: "joint-loose",
    title: "The third input is no support vector",
    group: "Published, in the plane",
    caption:
      "The last token of input 2 lies further out, so v needs less of it, and p ends away from the SVM that is drawn: " +
      "that input asks for a smaller margin.",
    command: "attsvm generate joint-loose -o task.npz",
    task: drawn("joint-loose"),
    state: { ...prompt, joint: true, start: column(0, -1), startHead: [-1, 0] },
  },
  {
    name: "losses",
    title: "Scores that differ",
    group: "Published, in the plane",
    caption:
      "The first input scores 10 times as much as the second. The path depends on the loss and on that factor, the " +
      "limit does not: change the loss and train again.",
    command: "attsvm generate losses --C 10 -o task.npz",
    task: drawn("losses", { C: 10 }),
    state: { ...prompt },
  },
  {
    name: "paths-3",
    title: "Two queries, three tokens",
    group: "Published, in the plane",
    caption:
      "A matrix W gives each query its own direction W z. Both leave the origin and turn to those of the SVM. Choose " +
      "K and Q to train a product: it leans to the nuclear norm.",
    command: null,
    task: () => taskFrom(paths.three),
  },
  {
    name: "paths-5",
    title: "Two queries, five tokens",
    group: "Published, in the plane",
    caption:
      "The second published data set. Drag a query: its direction and its margins follow, those of the other too.",
    command: null,
    task: () => taskFrom(paths.five),
  },
  {
    name: "two-inputs",
    title: "A start that never arrives",
    group: "Ours",
    caption:
      "Two inputs of two tokens. From (6, 0) the prompt stays at the first input\u2019s direction for ever: the second " +
      "input is too far behind to pull. From 0 it reaches the SVM. Drag the start and look for the border.",
    command: null,
    task: () =>
      taskFrom({
        tokens: { shape: [2, 2, 1], data: [1, 0, 1, 0] },
        keys: { shape: [2, 2, 2], data: [1, 0, 0, 0, -2, 1, 0, 0] },
        head: { shape: [1], data: [1] },
      }),
    state: { ...prompt, start: column(6, 0) },
  },
  {
    name: "conflict",
    title: "Tokens that no W keeps",
    group: "Ours",
    caption:
      "Token 0 lies between the others, so no direction puts it first. The rows that contradict each other form a " +
      "closed polygon. Drag token 0 out of the triangle.",
    command: null,
    task: () =>
      taskFrom({
        tokens: { shape: [1, 4, 1], data: [1, 0, 0, 0] },
        keys: { shape: [1, 4, 2], data: [0.1, 0.1, 1, -0.4, -0.9, -0.5, 0, 1] },
        head: { shape: [1], data: [1] },
      }),
    state: { ...prompt },
  },
  {
    name: "published-size",
    title: "Six queries in ten dimensions",
    group: "Published size",
    caption:
      "n = 6, T = 8, d = 10, as in the published experiments. The margin view looks along the margins of one query: " +
      "upwards is its direction W z, and the tokens stay behind the lines in all ten dimensions.",
    command: "attsvm generate random --seed 1 -o task.npz",
    task: drawn("random", { n: 6, T: 8, d: 10, seed: 1 }),
    state: { view: "margin", select: "run" },
  },
  {
    name: "atlas",
    title: "Which SVM does an optimizer solve?",
    group: "Ours",
    caption:
      "Steps of sign descent are steepest in the largest entry, and its W turns to the SVM of that norm: \u03c1 goes to " +
      "1. Change the norm, or the optimizer (Muon: spectral norm), and see which pairs fit.",
    command: "attsvm generate random --n 4 --T 6 --d 8 --seed 3 -o task.npz",
    task: drawn("random", { n: 4, T: 6, d: 8, seed: 3 }),
    state: { view: "margin", select: "run", optimizer: "steepest:max", norm: "max" },
  },
  {
    name: "sentence",
    title: "A causal sentence",
    group: "Ours",
    caption:
      "Every word asks, and sees the words up to itself. Attention turns to \u201ccat\u201d, and once \u201cmouse\u201d is " +
      "there, to that. Turn the view by dragging the empty space.",
    command: null,
    task: sentence,
    state: { query: 7, view: "turn" },
  },
];

export const firstState = (task: Task): State => ({
  task,
  query: 0,
  norm: "fro",
  select: null,
  param: "W",
  optimizer: "ngd",
  step: 0.1,
  loss: "logistic",
  joint: false,
  seed: 0,
  start: null,
  startHead: null,
  preset: "",
  view: "plane",
  turn: [30, 20],
});

export const stateOf = (preset: Preset, engine: Engine): State => ({
  ...firstState(preset.task(engine)),
  preset: preset.name,
  ...preset.state,
});
