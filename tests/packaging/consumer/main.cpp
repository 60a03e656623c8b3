// Another project's program: it runs the C++ code of docs/howto/cpp.md, which install_test puts into from_docs.inc.
#include <attsvm/attsvm.h>

#include <iostream>
#include <vector>

static double used = 0;
static void use(const attsvm::RowMatrix& W) { used += W.norm(); }

int main() {
  const attsvm::Drawn drawn = attsvm::generate({.n = 3, .T = 4, .d = 5}, 7);
  attsvm::save_task("task.npz", drawn.task, {}, true);
  const std::vector<attsvm::MarginProblem> problems{
      attsvm::MarginProblem::attention(drawn.task, attsvm::optimal_tokens(drawn.task).selection)};
#include "from_docs.inc"
  std::cout << "attsvm " << ATTSVM_VERSION << ": " << answer.status << ", training ended with " << run.stop << '\n';
  return answer.status == attsvm::MarginStatus::optimal && run.steps == 1000 && used > 0 ? 0 : 1;
}
