// Repeats the published training runs in plain arithmetic, as far as rounding lets two programs agree.
#include <cmath>

#include "support.h"

namespace attsvm {
namespace {

constexpr double kMachine = 0x1p-52;  // the ε and the ridge of the published code

struct Published {
  std::string name;
  AttentionTask task;
  NpzFile expect;
};

Published published(const std::string& name) {
  Threads threads(1);
  const std::string stem = test::fixture(name);
  return {name, load_task(stem + ".task.npz", threads), NpzFile(stem + ".expect.npz")};
}

std::vector<std::string> names_with(const std::string& start) {
  std::vector<std::string> names;
  for (const std::string& path : test::fixture_tasks()) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name.starts_with(start)) names.push_back(name.substr(0, name.find('.')));
  }
  return names;
}

Array numbers(const NpzFile& file, const std::string& name) {
  Threads threads(1);
  return to_f64(file.read(name, threads));
}

/// Matrix number `index` of an array of matrices (or vectors: columns = 1) of this size.
RowMatrix matrix(const Array& array, Index index, Index rows, Index cols) {
  return ConstRows(f64_span(array).data() + index * rows * cols, rows, cols);
}

RowMatrix matrix(const NpzFile& file, const std::string& name) {
  const Array array = numbers(file, name);
  return matrix(array, 0, array.shape[0], array.rank() > 1 ? array.shape[1] : 1);
}

std::vector<Index> indices(const NpzFile& file, const std::string& name) {
  Threads threads(1);
  return to_indices(file.read(name, threads), name);
}

double correlation(const RowMatrix& a, const RowMatrix& b) {
  return (a.array() * b.array()).sum() / (a.norm() * b.norm());
}

/// A run of the second paper: normalized steps of 0.1.
TrainedRun follow(const Published& run, bool factored, Index steps = 0) {
  Threads threads(1);
  TrainSettings settings{.epsilon = kMachine, .arithmetic = Arithmetic::plain};
  settings.record.at = indices(run.expect, "record_step");
  settings.steps = steps > 0 ? steps : settings.record.at.back();
  while (settings.record.at.back() > settings.steps) settings.record.at.pop_back();
  Start start;
  if (factored) {
    settings.param = Parametrization::KQ;
    settings.ridge = kMachine;
    start.K = matrix(run.expect, "K0");
    start.Q = matrix(run.expect, "Q0");
  } else {
    start.W = matrix(run.expect, "W0");
  }
  return train(run.task, settings, threads, start);
}

double distance(const Published& run, const Record& record, std::size_t k) {
  const Array weights = numbers(run.expect, "record_W");
  return (record.W - matrix(weights, static_cast<Index>(k), record.W.rows(), record.W.cols())).cwiseAbs().maxCoeff();
}

/// Expects the weights recorded up to step `last` to be the published ones.
void expect_records(const Published& run, const TrainedRun& trained, Index last, double tolerance) {
  for (std::size_t k = 0; k < trained.records.size(); ++k) {
    const Record& record = trained.records[k];
    if (record.step <= last) {
      EXPECT_LE(distance(run, record, k), tolerance) << record.step;
    }
  }
}

void expect_selection(const Published& run, const TrainedRun& trained) {
  Threads threads(1);
  EXPECT_EQ(attention_map(run.task, trained.W, threads).selected, indices(run.expect, "selected"));
}

TEST(TrainingReference, WeightsOfLocalConvergence) {
  for (const std::string& name : names_with("local_W")) {
    SCOPED_TRACE(name);
    const Published run = published(name);
    const TrainedRun trained = follow(run, false);
    expect_records(run, trained, 100, 1e-12);
    expect_records(run, trained, 500, 1e-8);
    expect_selection(run, trained);
    const RowMatrix svm = matrix(run.expect, "fro_W");
    const Array expected = numbers(run.expect, "correlation_fro");
    const auto steps = indices(run.expect, "correlation_step");
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const TrainedRun part = follow(run, false, steps[k]);
      EXPECT_NEAR(correlation(part.W, svm), f64_span(expected)[k], steps[k] <= 500 ? 1e-6 : 1e-2) << steps[k];
    }
  }
}

TEST(TrainingReference, FactorsOfLocalConvergence) {
  for (const std::string& name : names_with("local_KQ")) {
    SCOPED_TRACE(name);
    const Published run = published(name);
    const TrainedRun trained = follow(run, true);
    expect_records(run, trained, 100, 1e-6);
    EXPECT_LE((trained.K * trained.Q.transpose() - trained.W).norm(), 1e-12 * trained.norm);
    expect_selection(run, trained);
    const Array expected = numbers(run.expect, "correlation_nuc");
    EXPECT_NEAR(correlation(trained.W, matrix(run.expect, "nuc_W")), f64_span(expected)[3], 1e-2);
  }
}

TEST(TrainingReference, PathsInThePlane) {
  for (const std::string& name : names_with("vis")) {
    SCOPED_TRACE(name);
    const Published run = published(name);
    const TrainedRun trained = follow(run, name.find("KQ") != std::string::npos);
    expect_records(run, trained, name.starts_with("vis2") ? 10 : 100, 1e-6);  // rounding takes over early in vis2
    expect_selection(run, trained);
  }
}

/// Paper 1: prompts of size d at the recorded steps, one start after another.
void expect_prompts(const AttentionTask& task, TrainSettings settings, const RowMatrix& starts, const Array& expected,
                    double tolerance) {
  Threads threads(1);
  settings.param = Parametrization::p;
  settings.arithmetic = Arithmetic::plain;
  const Index d = task.key_size(), count = static_cast<Index>(settings.record.at.size());
  settings.steps = settings.record.at.back();
  for (Index s = 0; s < starts.rows(); ++s) {
    const TrainedRun run = train(task, settings, threads, {.W = starts.row(s).transpose()});
    for (Index k = 0; k < count; ++k) {
      const RowMatrix p = matrix(expected, s * count + k, d, 1);
      EXPECT_LE((run.records[static_cast<std::size_t>(k)].W - p).cwiseAbs().maxCoeff(), tolerance)
          << "start " << s << " step " << settings.record.at[static_cast<std::size_t>(k)];
    }
  }
}

TEST(TrainingReference, SingleInput) {
  for (const std::string& name : names_with("single_")) {
    SCOPED_TRACE(name);
    const Published run = published(name);
    expect_prompts(run.task, {.epsilon = 1e-9, .record = {.at = indices(run.expect, "record_step")}},
                   matrix(run.expect, "starts"), numbers(run.expect, "record_p"), 1e-5);
  }
}

TEST(TrainingReference, SeveralInputs) {
  const Published run = published("multi_input");
  const RecordPlan plan{.at = indices(run.expect, "record_step")};
  const RowMatrix starts = matrix(run.expect, "starts");
  expect_prompts(run.task, {.epsilon = 1e-12, .record = plan}, starts, numbers(run.expect, "record_p_ngd"), 1e-5);
  expect_prompts(run.task, {.optimizer = Optimizer::gd, .step = 1.0, .record = plan}, starts,
                 numbers(run.expect, "record_p_gd"), 1e-5);
}

TEST(TrainingReference, HeadAndPromptTogether) {
  Threads threads(1);
  for (const std::string& name : names_with("joint_")) {
    SCOPED_TRACE(name);
    const Published run = published(name);
    TrainSettings settings{.param = Parametrization::p,
                           .joint = true,
                           .epsilon = 1e-19,
                           .head_epsilon = 1e-9,
                           .arithmetic = Arithmetic::plain};
    settings.record.at = indices(run.expect, "record_step");
    settings.steps = settings.record.at.back();
    const TrainedRun trained =
        train(run.task, settings, threads, {.W = matrix(run.expect, "p0"), .v = matrix(run.expect, "v0")});
    const Array p = numbers(run.expect, "record_p"), v = numbers(run.expect, "record_v");
    for (std::size_t k = 0; k < trained.records.size(); ++k) {
      const Record& record = trained.records[k];
      const auto index = static_cast<Index>(k);
      EXPECT_LE((record.W - matrix(p, index, 2, 1)).cwiseAbs().maxCoeff(), 1e-5) << record.step;
      EXPECT_LE((record.v - matrix(v, index, 2, 1)).cwiseAbs().maxCoeff(), 1e-5) << record.step;
    }
  }
}

TEST(TrainingReference, Losses) {
  Threads threads(1);
  const NpzFile file(test::fixture("losses.expect.npz"));
  const Array tokens = numbers(file, "tokens"), keys = numbers(file, "keys");
  const auto steps = indices(file, "record_step");
  const Index size = 2 * 2 * 3, row = static_cast<Index>(steps.size()) * 3;
  for (const Loss loss : {Loss::linear, Loss::logistic, Loss::exponential}) {
    const Array expected = numbers(file, "record_p_" + std::string(name_of(loss)));
    for (Index c = 0; c < 11; ++c) {
      SCOPED_TRACE(std::string(name_of(loss)) + " " + std::to_string(c));
      const AttentionTask task({.tokens = Array::view(f64_span(tokens).data() + c * size, {2, 2, 3}),
                                .keys = Array::view(f64_span(keys).data() + c * size, {2, 2, 3}),
                                .head = numbers(file, "head")});
      const Array part = Array::view(f64_span(expected).data() + c * row, {row});
      expect_prompts(task, {.epsilon = 1e-9, .loss = loss, .record = {.at = steps}}, RowMatrix::Zero(1, 3), part, 1e-5);
    }
  }
}

TEST(TrainingReference, SeveralTokens) {
  for (const std::string& name : names_with("multi_d")) {
    SCOPED_TRACE(name);
    const Published run = published(name);
    const TrainedRun trained = follow(run, false);
    expect_records(run, trained, 100, 1e-6);
    Threads threads(1);
    EXPECT_EQ(attention_map(run.task, trained.W, threads).selected, indices(run.expect, "one_token"));
    EXPECT_GE(correlation(trained.W, matrix(run.expect, "trained_W")), 1 - 1e-2);
  }
}

}  // namespace
}  // namespace attsvm
