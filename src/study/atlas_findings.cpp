#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "study/atlas.h"
#include "theory/adam_pace.h"

namespace attsvm::internal {
namespace {

/// Half way between the plateau that Adam stays on while its second moments hold early gradients, and 1; and the value
/// of AdamPoint::faded at which runs of seed 0 pass it.
constexpr double kTurned = 0.7, kTurnFaded = 2.5;

std::string share_words(const Sample& share) { return fmt::format("{:.3f} ± {:.3f}", share.mean, share.error()); }

/// One sentence per size: every optimizer's share in its own norm, and the largest in another.
void explain_matrix(const CellRows& rows, std::vector<Finding>& findings) {
  std::vector<std::string> own, behind;
  Index left_out = 0, runs = 0, ahead = 0, named = 0;
  for (const Variant& one : variants_of(rows.cell.settings)) {
    const Measured all = measured(rows, one.name);
    const std::string norm = own_norm(one.training);
    left_out += all.overflowed + all.not_separable + all.not_verified;
    runs += std::ssize(all.runs);
    if (norm.empty() || all.runs.empty()) continue;
    Sample mine;
    double others = 0;
    for (std::size_t c = 0; c < kAtlasNorms.size(); ++c) {
      const Sample share = sample_at(all.runs, "shares", c);
      if (norm == kAtlasNorms[c]) {
        mine = share;
      } else {
        others = std::max(others, share.mean);
      }
    }
    ++named;
    ahead += mine.mean > others ? 1 : 0;
    if (!(mine.mean > others)) behind.push_back(one.name);
    own.push_back(fmt::format("{} {} in {} (others at most {:.3f})", one.name, share_words(mine), norm, others));
  }
  findings.push_back(
      {.paper = "Conjecture: every optimizer has the largest share of the margin in its own norm.",
       .ours = fmt::format("{}: {} of {} do, in the mean (± standard error): {}. {} of {} runs are left out, because "
                           "no W separates the tokens that they select or they overflowed.",
                           rows.cell.name, ahead, named, fmt::join(own, "; "), left_out, runs + left_out),
       .why = behind.empty() ? ""
                             : fmt::format("Not so: {}. Adam with .999 needs far more steps, because its second "
                                           "moments forget too slowly; for (K,Q) the conjecture is open.",
                                           fmt::join(behind, "; "))});
}

/// Where the mean share of a step size crosses kTurned, between neighbours on the list of b2: 1 − b2 on a log scale.
double measured_turn(const std::vector<AdamPoint>& points, double step, Index steps) {
  const AdamPoint* before = nullptr;
  for (const AdamPoint& one : points) {
    if (one.variant.training.step != step || one.steps != steps || one.epsilon > 0) continue;
    if (before != nullptr && before->share.mean > kTurned && one.share.mean <= kTurned) {
      const double part = (before->share.mean - kTurned) / (before->share.mean - one.share.mean);
      const double from = std::log(1 - before->betas[1]), to = std::log(1 - one.betas[1]);
      return -std::expm1(from + part * (to - from));
    }
    before = &one;
  }
  return NAN;
}

void explain_adam(const std::vector<AdamPoint>& points, std::vector<Finding>& findings) {
  std::vector<double> steps;
  double worst = 0;
  Index settled = 0;
  for (const AdamPoint& one : points) {
    if (one.epsilon > 0) continue;
    if (std::find(steps.begin(), steps.end(), one.variant.training.step) == steps.end())
      steps.push_back(one.variant.training.step);
    if (!(one.faded >= 2) || one.steps != points.back().steps) continue;
    ++settled;
    worst = std::max(worst, std::abs(one.growth / one.predicted - 1));
  }
  findings.push_back(
      {.paper = "Predicted: the smallest gap grows by r per step, r = η γ (1−β₁)/(1−β₁ e^r) √((1−β₂ e²ʳ)/(1−β₂)).",
       .ours = fmt::format("Median growth over the second half of {} steps is within {:.1f} % of it in all {} settings "
                           "in which second moments have forgotten the start.",
                           points.back().steps, 100 * worst, settled),
       .why = ""});
  std::vector<std::string> turns;
  for (const double step : steps) {
    for (const Index count : {Index{6000}, points.back().steps}) {
      const double turn = measured_turn(points, step, count);
      const auto one = std::find_if(points.begin(), points.end(), [&](const AdamPoint& point) {
        return point.variant.training.step == step && point.steps == count;
      });
      turns.push_back(fmt::format("step {}, {} steps: predicted {:.4f}, found {}", step, count,
                                  b2_of_fading(step, 0.9, one->margin, static_cast<double>(count), kTurnFaded),
                                  std::isfinite(turn) ? fmt::format("{:.4f}", turn) : "none on the list"));
    }
  }
  findings.push_back({.paper = fmt::format("Predicted: ρ falls to {} at the β₂ for which steps × (1−β₂ e²ʳ) is {}.",
                                           kTurned, kTurnFaded),
                      .ours = fmt::format("{}.", fmt::join(turns, "; ")),
                      .why = ""});
}

}  // namespace

std::vector<Finding> atlas_findings(const std::vector<CellRows>& matrices, const std::vector<AdamPoint>& adam) {
  std::vector<Finding> findings;
  for (const CellRows& rows : matrices) explain_matrix(rows, findings);
  if (!adam.empty()) explain_adam(adam, findings);
  return findings;
}

}  // namespace attsvm::internal
