#include "attsvm/attsvm.h"
#include "npz_mutator.h"
#include "task/task_fields.h"

namespace {

using namespace attsvm;

/// Looks at everything a task says, as attsvm info does.
void visit(const AttentionTask& task) {
  double sum = 0;
  for (Index s = 0; s < task.sequences(); ++s) sum += task.keys(s).sum() + task.values(s).sum();
  for (Index i = 0; i < task.queries(); ++i) {
    fuzz::require(task.visible(i) >= 1 && task.visible(i) <= task.length(task.sequence(i)), "visible out of range");
    sum += task.query(i).sum() + task.label(i);
    sum += task.seen_keys(i).sum() + task.seen_values(i).sum();
    for (const Index t : task.seen(i)) fuzz::require(task.visible().sees(i, t), "does not see what it sees");
    if (!task.select()) continue;
    for (const Index t : task.select()->kept(i))
      fuzz::require(task.visible().sees(i, t), "selects what is not visible");
  }
  [[maybe_unused]] volatile double kept = sum;
  separability_condition(task);
  if (task.head().kind != HeadKind::none) optimal_tokens(task);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate_npz(data, size, max_size, seed, task_fields());
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Threads threads(1);
  const fuzz::MemoryFile input(data, size);
  fuzz::refuse_or([&] { visit(load_task(input.path(), threads)); });
  fuzz::refuse_or([&] {  // a solution of somebody's, judged against a task that its arrays need not fit
    static const AttentionTask task = generate({.n = 2, .T = 2, .d = 2}, 1).task;
    verify(task, load_solution(input.path(), threads));
  });
  fuzz::refuse_or([&] {
    const NpzFile file(input.path());
    for (const std::string& name : file.names()) fuzz::refuse_or([&] { to_native(to_f64(file.read(name, threads))); });
  });
  return 0;
}
