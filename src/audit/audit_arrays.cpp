#include <algorithm>
#include <cmath>
#include <iterator>

#include "attsvm/audit.h"

namespace attsvm {

namespace {

/// The one NaN of files for what is not finite, as JSON has one null.
double finite_or_nan(double number) { return std::isfinite(number) ? number : std::nan(""); }

/// Arrays with one entry per view and head, or several; NaN where a head has no such view.
class Grid {
 public:
  explicit Grid(const Audit& audit) : audit_(audit), heads_(static_cast<Index>(audit.heads.size())) {
    for (const HeadAudit& head : audit.heads) views_ = std::max(views_, static_cast<Index>(head.views.size()));
  }

  /// (v,h), or (v,h,count): numbers(view) returns `count` of them, or fewer.
  template <class Numbers>
  Array of(Index count, Numbers numbers) const {
    std::vector<double> list;
    for (Index v = 0; v < views_; ++v) {
      for (const HeadAudit& head : audit_.heads) {
        std::vector<double> some;
        if (v < static_cast<Index>(head.views.size())) some = numbers(head.views[static_cast<std::size_t>(v)]);
        some.resize(static_cast<std::size_t>(count), std::nan(""));
        std::transform(some.begin(), some.end(), std::back_inserter(list), finite_or_nan);
      }
    }
    std::vector<Index> shape{views_, heads_};
    if (count != 1) shape.push_back(count);
    return Array::own(std::move(list), std::move(shape));
  }

  template <class Number>
  Array number(Number number) const {
    return of(1, [&](const ViewAudit& view) { return std::vector<double>{static_cast<double>(number(view))}; });
  }

 private:
  const Audit& audit_;
  Index heads_, views_ = 1;
};

}  // namespace

NamedArrays audit_arrays(const Audit& audit) {
  const Grid grid(audit);
  const auto count = static_cast<Index>(audit.heads.size());
  std::vector<Index> layer, head;
  std::vector<double> difference, sink_weight;
  std::vector<bool> complete;
  Index ranks = 1;
  for (const HeadAudit& one : audit.heads) {
    layer.push_back(one.layer);
    head.push_back(one.head);
    difference.push_back(finite_or_nan(one.difference));
    sink_weight.push_back(finite_or_nan(one.sink_weight));
    complete.push_back(one.complete);
    for (const ViewAudit& view : one.views) ranks = std::max(ranks, static_cast<Index>(view.singular_values.size()));
  }
  const auto three = [](const Quantiles& of) { return std::vector<double>{of.low, of.middle, of.high}; };
  const auto null = [](const NullFacts& of) { return std::vector<double>{of.value, of.mean, of.deviation}; };
  const auto margin = [](const MarginFacts& of) {
    return of.status == "not run" ? std::vector<double>{}
                                  : std::vector<double>{of.objective, of.dual_objective, of.rho};
  };
  return {{"layer", Array::own(std::move(layer), {count})},
          {"head", Array::own(std::move(head), {count})},
          {"difference", Array::own(std::move(difference), {count})},
          {"sink_weight", Array::own(std::move(sink_weight), {count})},
          {"complete", Array::own(complete, {count})},
          {"queries", grid.number([](const ViewAudit& view) { return view.queries; })},
          {"held_out", grid.number([](const ViewAudit& view) { return view.held_out; })},
          {"rows", grid.number([](const ViewAudit& view) { return view.rows; })},
          {"kind", grid.of(4,
                           [](const ViewAudit& view) {
                             std::vector<double> shares(4, std::nan(""));
                             for (const KindShare& one : view.kinds)
                               shares[static_cast<std::size_t>(one.kind)] = one.share;
                             return shares;
                           })},
          {"gap", grid.of(3, [&](const ViewAudit& view) { return three(view.gap); })},
          {"weight", grid.of(3, [&](const ViewAudit& view) { return three(view.weight); })},
          {"radius", grid.of(3, [&](const ViewAudit& view) { return three(view.radius); })},
          {"r90", grid.number([](const ViewAudit& view) { return view.r90; })},
          {"r95", grid.number([](const ViewAudit& view) { return view.r95; })},
          {"agreement", grid.of(ranks, [](const ViewAudit& view) { return view.agreement; })},
          {"singular_values", grid.of(ranks, [](const ViewAudit& view) { return view.singular_values; })},
          {"frobenius", grid.of(3, [&](const ViewAudit& view) { return margin(view.frobenius); })},
          {"nuclear", grid.of(3, [&](const ViewAudit& view) { return margin(view.nuclear); })},
          {"nuclear_rank", grid.number([](const ViewAudit& view) { return view.nuclear.rank; })},
          {"rank_bound", grid.number([](const ViewAudit& view) { return view.rank_bound; })},
          {"gap_over_norm", grid.of(3, [&](const ViewAudit& view) { return null(view.gap_over_norm); })},
          {"rho", grid.of(3, [&](const ViewAudit& view) { return null(view.rho); })}};
}

}  // namespace attsvm
