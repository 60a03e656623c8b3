#pragma once

#include <memory>

#include "attsvm/margin.h"

namespace attsvm::python {

/// Threads and a solver, borrowed from a pool per call: starting threads would cost more than a small solve. Every call
/// has its own, so that Python threads may call concurrently.
class Workspace {
 public:
  /// A workspace with that many threads, 0: all cores. InputError if they cannot be started.
  explicit Workspace(int threads);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  Threads& threads() { return kept_->threads; }
  /// As attsvm::solve; the memory of small problems is reused.
  MarginSolution solve(const MarginProblem& problem, const SolveSettings& settings, const MarginSolution* warm_start);

  struct Kept {
    explicit Kept(int count) : threads(count) {}
    Threads threads;
    MarginSolver solver{threads};
  };

 private:
  int asked_;
  std::unique_ptr<Kept> kept_;
};

}  // namespace attsvm::python
