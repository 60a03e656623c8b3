#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "study/atlas.h"
#include "train/optimizers.h"

namespace attsvm::internal {
namespace {

Variant atlas_variant(std::string name, std::string_view optimizer, double step, TrainSettings rest = {}) {
  set_optimizer(optimizer, rest);
  rest.step = step;
  // K and Q cannot start at zero: no step would move them.
  rest.init = rest.param == Parametrization::KQ ? Init::random : Init::zero;
  return {std::move(name), std::move(rest)};
}

constexpr Index kMatrixSteps = 3000, kMatrixAdamSteps = 6000, kCurveSteps = 100'000, kAdamSteps = 24'000;
constexpr std::array kAdamSizes{0.003, 0.01, 0.03};
constexpr std::array kAdamForgetting{0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999};
constexpr std::array kAdamEpsilons{1e-4, 1e-8, 1e-12, 1e-16, 1e-32};

/// Smallest row of W, the smallest gap between the logits of a selected and another token.
double smallest_gap(const MarginProblem& problem, const RowMatrix& W) { return problem.values(W).minCoeff(); }

}  // namespace

std::vector<Variant> atlas_rows() {
  const Index most = kMatrixSteps, more = kMatrixAdamSteps;
  const auto KQ = Parametrization::KQ;
  return {
      atlas_variant("steepest:fro", "steepest:fro", 0.1, {.steps = most}),
      atlas_variant("steepest:max", "steepest:max", 0.02, {.steps = most}),
      atlas_variant("steepest:spec", "steepest:spec", 0.05, {.steps = most}),
      atlas_variant("steepest:l1", "steepest:l1", 0.3, {.steps = most}),
      atlas_variant("steepest:nuc", "steepest:nuc", 0.15, {.steps = most}),
      atlas_variant("ngd, momentum .9", "ngd", 0.1, {.momentum = 0.9, .steps = most}),
      atlas_variant("signum", "signum", 0.02, {.steps = most}),
      atlas_variant("lion, step .02", "lion", 0.02, {.steps = most}),
      atlas_variant("lion, step .003", "lion", 0.003, {.steps = more}),
      atlas_variant("muon", "muon", 0.05, {.steps = most}),
      atlas_variant("muon, Newton–Schulz", "muon", 0.05, {.newton_schulz = 5, .steps = most}),
      atlas_variant("adam .9/.95, ε = 0", "adam", 0.01, {.betas = {{0.9, 0.95}}, .steps = more, .epsilon = 0}),
      atlas_variant("adam .9/.999, ε = 0", "adam", 0.01, {.betas = {{0.9, 0.999}}, .steps = more, .epsilon = 0}),
      atlas_variant("adam .9/.999, ε = 1e-8", "adam", 0.01, {.betas = {{0.9, 0.999}}, .steps = more}),
      atlas_variant("(K,Q) ngd", "ngd", 0.1, {.param = KQ, .steps = most}),
      // W = K Qᵀ grows with the square of the steps taken: large ones soon raise gaps faster than directions turn.
      atlas_variant("(K,Q) steepest:max", "steepest:max", 0.005, {.param = KQ, .steps = more}),
      atlas_variant("(K,Q) steepest:spec", "steepest:spec", 0.01, {.param = KQ, .steps = more}),
  };
}

std::vector<Variant> atlas_curves(bool decomposed) {
  std::vector<Variant> curves;
  for (Variant& one : atlas_rows()) {
    const TrainSettings whole = completed(one.training);
    const bool steepest = whole.optimizer == Optimizer::steepest, signum = whole.optimizer == Optimizer::signum,
               adam = whole.optimizer == Optimizer::adam && *whole.epsilon == 0;
    if (whole.param == Parametrization::KQ || !(steepest || signum || adam)) continue;
    if ((steepest && !whole.norm.is_entrywise()) != decomposed) continue;
    one.training.steps = kCurveSteps;
    curves.push_back(std::move(one));
  }
  return curves;
}

std::vector<Variant> atlas_adam() {
  std::vector<Variant> grid;
  const auto add = [&](double step, double b2, double epsilon) {
    grid.push_back(atlas_variant(fmt::format("step {}, b2 {}, ε = {}", step, b2, epsilon), "adam", step,
                                 {.betas = {{0.9, b2}}, .steps = kAdamSteps, .epsilon = epsilon}));
  };
  for (const double step : kAdamSizes) {
    for (const double b2 : kAdamForgetting) add(step, b2, 0);
  }
  for (const double epsilon : kAdamEpsilons) add(0.01, 0.95, epsilon);
  return grid;
}

std::string own_norm(const TrainSettings& training) {
  const std::optional<ImpliedNorm> implied = implied_norm(training);
  return implied ? implied->norm.name() : "";
}

std::vector<Index> adam_steps(Index steps) {
  std::vector<Index> list;
  for (Index at = steps; at >= 375 && list.size() < 7; at /= 2) list.push_back(at);
  std::reverse(list.begin(), list.end());
  return list;
}

Json measure_matrix(const Variant&, const TrainedRun& run, TaskSvms& svms, TaskSvms::Selected& selected) {
  std::vector<double> shares;
  for (const char* name : kAtlasNorms)
    shares.push_back(margin_share(selected.problem, svms.solve(selected, Norm::parse(name)), run.W));
  return {{"shares", json_list(shares)}, {"norm", run.norm}};
}

Json measure_curve(const Variant& one, const TrainedRun& run, TaskSvms& svms, TaskSvms::Selected& selected) {
  const MarginSolution& svm = svms.solve(selected, Norm::parse(own_norm(one.training)));
  return {{"step", json_list(steps_of(run))},
          {"share",
           json_list(along(run, [&](const Record& record) { return margin_share(selected.problem, svm, record.W); }))}};
}

Json measure_adam(const Variant&, const TrainedRun& run, TaskSvms& svms, TaskSvms::Selected&) {
  std::vector<double> margin, share, gap;
  for (const Record& record : run.records) {  // tokens change on the way: each point is judged by those it selects
    TaskSvms::Selected& selected = svms.selected_by(record.W);
    const MarginSolution& svm = svms.solve(selected, Norm::largest());
    const bool known = selected.verified && svm.status == MarginStatus::optimal;
    margin.push_back(known ? 1 / svm.objective : kNaN);
    share.push_back(known ? margin_share(selected.problem, svm, record.W) : kNaN);
    gap.push_back(smallest_gap(selected.problem, record.W));
  }
  return {{"margin", json_list(margin)}, {"share", json_list(share)}, {"gap", json_list(gap)}};
}

}  // namespace attsvm::internal
