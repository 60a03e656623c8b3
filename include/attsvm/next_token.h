#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attsvm/graph.h"
#include "attsvm/theory.h"

namespace attsvm {

/// What training a next-token task can learn about tokens that no W orders: the minimiser of the loss over S_fin, the
/// span of all (e_i − e_j) e_kᵀ with i and j in one component of the graph of k, when every sequence is cut down to the
/// component of its label. Gradient descent is expected to bring the part of W in S_fin there, while the rest of W
/// grows.
class FinitePart {
 public:
  /// Minimises by Newton's method. InputError if more than kMostRows tokens are tied, because it works on dense
  /// matrices. `graphs` are the priority_graphs() of the task.
  FinitePart(const AttentionTask& task, std::span<const PriorityGraph> graphs);
  ~FinitePart();
  FinitePart(FinitePart&&) noexcept;             ///< the other one may only be destroyed then
  FinitePart& operator=(FinitePart&&) noexcept;  ///< the same

  static constexpr Index kMostRows = 1000;  ///< tokens that share a component with a smaller one

  Index dimension() const;                      ///< of S_fin; 0 if all components are single tokens
  const RowMatrix& W() const;                   ///< the minimiser, (d,dz)
  double loss() const;                          ///< there: the mean over all sequences of −log p within the component
  double gradient() const;                      ///< there: ‖∂/∂W‖_F within S_fin, 0 up to rounding
  RowMatrix project(const RowMatrix& W) const;  ///< the part of W in S_fin

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What the theory says about a next-token task and, if given, a run. r is the number of recorded points.
struct NextTokenCheck {
  std::vector<PriorityGraph> graphs;        ///< of the task
  MarginSolution smallest;                  ///< the graph SVM in Frobenius norm
  std::optional<MarginSolution> nuclear{};  ///< in nuclear norm, if there is a W
  std::optional<FinitePart> finite{};       ///< empty if there are too many tied tokens
  bool separable = false;                   ///< the graph SVM has a solution
  bool decided = true;                      ///< it is known whether it has one
  bool complete = true;                     ///< neither the time limit nor `progress` ended a solve
  std::vector<double> correlation_fro;      ///< (r) of W with `smallest`; NaN if there is no such direction
  std::vector<double> correlation_nuc;      ///< (r) with `nuclear`
  std::vector<double> finite_distance;      ///< (r) ‖part of W in S_fin − finite->W()‖_F; empty if S_fin is zero
  std::optional<ImpliedNorm> implied{};     ///< RunTrace::implied
  std::vector<MarginShares> shares{};       ///< as Check::shares, to the graph SVM
};

/// Judges a next-token task and, unless it is null, a run on it. InputError for other tasks.
NextTokenCheck check_next_token(const AttentionTask& task, const RunTrace* run, const CheckSettings& settings,
                                Threads& threads);

}  // namespace attsvm
