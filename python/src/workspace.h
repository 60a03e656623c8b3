#pragma once

#include <exception>
#include <memory>

#include "attsvm/margin.h"

namespace attsvm::python {

/// A file turned out to be cut: to be raised in the main thread unless a call raises it before. For signal handlers.
void note_cut_file() noexcept;
/// Whether a cut file is still to be raised; it is not any more.
bool take_cut_file() noexcept;
/// InputError if a file that is open was cut, which is then raised.
void refuse_cut_files();

/// Threads and a solver, borrowed from a pool per call: starting threads would cost more than a small solve. Every call
/// has its own, so that Python threads may call concurrently.
class Workspace {
 public:
  /// A workspace with that many threads, 0: all cores. InputError if they cannot be started.
  explicit Workspace(int threads);
  /// InputError if a file that is open was cut meanwhile, as what was computed may be that of zeros; not while another
  /// exception is on its way.
  ~Workspace() noexcept(false);
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
  int asked_, exceptions_ = std::uncaught_exceptions();
  std::unique_ptr<Kept> kept_;
};

}  // namespace attsvm::python
