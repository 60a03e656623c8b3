#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "study/atlas.h"
#include "theory/adam_pace.h"

namespace attsvm::internal {
namespace {

/// Half way between the plateau that Adam stays on while its second moments hold early gradients, and 1: runs of seed 0
/// pass it where AdamPoint::faded is kAdamForgotten.
constexpr double kTurned = 0.7;

std::string share_words(const Sample& share) { return fmt::format("{:.3f} ± {:.3f}", share.mean, share.error()); }

/// A row of the matrix: the share in the optimizer's own norm, and the largest in another one.
struct OwnShare {
  std::string name, norm, next;  ///< next: the norm of the largest other share
  Sample mine;
  double others = 0;
  std::string reason;  ///< why it may be behind

  bool ahead() const { return mine.mean > others; }
  std::string words() const { return fmt::format("{} {} in {}", name, share_words(mine), norm); }
};

/// Why an optimizer may be far from the SVM of its norm.
std::string reason_of(const TrainSettings& training) {
  if (training.newton_schulz > 0) return "Newton–Schulz steps are not quite spectral";
  if (training.optimizer == Optimizer::adam) return "its second moments forget too slowly";
  if (training.optimizer == Optimizer::lion) return "its average forgets too slowly for such steps";
  return "not explained";
}

/// The rows for which a norm is named. Counts what is left out on the way.
std::vector<OwnShare> own_shares(const CellRows& rows, Index& runs, Index& left_out) {
  std::vector<OwnShare> list;
  for (const Variant& one : variants_of(rows.cell.settings)) {
    const Measured all = measured(rows, one.name);
    left_out += all.overflowed + all.not_separable + all.not_verified;
    runs += std::ssize(all.runs);
    OwnShare row{.name = one.name, .norm = own_norm(one.training)};
    if (row.norm.empty() || all.runs.empty()) continue;
    for (std::size_t c = 0; c < kAtlasNorms.size(); ++c) {
      const Sample share = sample_at(all.runs, "shares", c);
      if (row.norm == kAtlasNorms[c]) {
        row.mine = share;
      } else if (share.mean > row.others) {
        row.others = share.mean;
        row.next = kAtlasNorms[c];
      }
    }
    row.reason = reason_of(one.training);
    list.push_back(std::move(row));
  }
  return list;
}

/// One sentence per size: for how many optimizers the conjecture holds, and how clearly; and which it fails for.
void explain_matrix(const CellRows& rows, std::vector<Finding>& findings) {
  Index runs = 0, left_out = 0;
  std::vector<OwnShare> shares = own_shares(rows, runs, left_out);
  const auto behind =
      std::stable_partition(shares.begin(), shares.end(), [](const OwnShare& one) { return one.ahead(); });
  const std::span ahead(shares.begin(), behind);
  std::string range;
  if (!ahead.empty()) {
    const auto [least, most] = std::minmax_element(
        ahead.begin(), ahead.end(), [](const OwnShare& a, const OwnShare& b) { return a.mine.mean < b.mine.mean; });
    range = fmt::format(", with mean shares from {:.3f} ({}) to {:.3f} ({})", least->mine.mean, least->name,
                        most->mine.mean, most->name);
  }
  std::vector<std::string> others;
  for (const OwnShare& one : std::span(behind, shares.end()))
    others.push_back(fmt::format("{} ({:.3f} in {}; {})", one.words(), one.others, one.next, one.reason));
  const std::string rest = left_out == 0 ? ""
                                         : fmt::format(
                                               " {} of {} runs are left out, because no W separates the tokens "
                                               "that they select or they overflowed.",
                                               left_out, runs + left_out);
  findings.push_back({.paper = "Conjecture: every optimizer has the largest share of the margin in its own norm.",
                      .ours = fmt::format("{}: {} of the {} that have one do{}.{}", rows.cell.name, ahead.size(),
                                          shares.size(), range, rest),
                      .why = others.empty() ? "" : fmt::format("Not so: {}.", fmt::join(others, "; "))});
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
                                  b2_of_fading(step, 0.9, one->margin, static_cast<double>(count), kAdamForgotten),
                                  std::isfinite(turn) ? fmt::format("{:.4f}", turn) : "none on the list"));
    }
  }
  findings.push_back({.paper = fmt::format("Predicted: ρ falls to {} at the β₂ for which steps × (1−β₂ e²ʳ) is {}.",
                                           kTurned, kAdamForgotten),
                      .ours = fmt::format("{}.", fmt::join(turns, "; ")),
                      .why = ""});
}

}  // namespace

std::vector<std::vector<std::string>> matrix_overview(const CellRows& rows) {
  std::vector<std::vector<std::string>> lines{{rows.cell.name + ", mean ρ", "step", "steps"}};
  lines[0].insert(lines[0].end(), kAtlasNorms.begin(), kAtlasNorms.end());
  for (const Variant& one : variants_of(rows.cell.settings)) {
    const std::vector<const Json*> runs = measured(rows, one.name).runs;
    lines.push_back({one.name, fmt::format("{}", one.training.step), fmt::format("{}", one.training.steps)});
    for (std::size_t c = 0; c < kAtlasNorms.size(); ++c) {
      const Sample share = sample_at(runs, "shares", c);
      lines.back().push_back(
          share.count == 0 ? "-"
                           : fmt::format("{:.3f}{}", share.mean, own_norm(one.training) == kAtlasNorms[c] ? "*" : ""));
    }
  }
  return lines;
}

std::vector<Finding> atlas_findings(const std::vector<CellRows>& matrices, const std::vector<AdamPoint>& adam) {
  std::vector<Finding> findings;
  for (const CellRows& rows : matrices) explain_matrix(rows, findings);
  const bool ran = std::any_of(adam.begin(), adam.end(), [](const AdamPoint& one) { return one.share.count > 0; });
  if (ran) explain_adam(adam, findings);
  return findings;
}

}  // namespace attsvm::internal
