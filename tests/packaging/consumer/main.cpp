#include <attsvm/attsvm.h>

#include <iostream>

int main() {
  const attsvm::Drawn drawn = attsvm::generate({.n = 3, .T = 4, .d = 5}, 7);
  const attsvm::OptimalTokens optimal = attsvm::optimal_tokens(drawn.task);
  std::cout << "attsvm " << ATTSVM_VERSION << ": " << optimal.selection.queries() << " queries\n";
  return optimal.selection.queries() == 3 ? 0 : 1;
}
