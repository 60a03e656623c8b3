#include "answer_of_ranks.h"

#include "ranks/ranks.h"
#include "task/parts.h"

namespace attsvm::internal {
namespace {

template <class Visit>
void for_each_list(Visit&& visit) {
  using S = StoredSolution;
  visit(&S::row_query);
  visit(&S::row_keep);
  visit(&S::row_drop);
  visit(&S::row_equal);
  visit(&S::rhs);
  visit(&S::slack);
  visit(&S::dual);
  visit(&S::relax);
}

template <class Item>
void put_list(Packer& out, const std::vector<Item>& list) {
  if constexpr (std::is_same_v<Item, bool>) {
    out.put(std::span<const char>(std::vector<char>(list.begin(), list.end())));
  } else {
    out.put(std::span(list));
  }
}

template <class Item>
void append_list(Unpacker& in, std::vector<Item>& list) {
  const auto more = in.list<std::conditional_t<std::is_same_v<Item, bool>, char, Item>>();
  list.insert(list.end(), more.begin(), more.end());
}

std::string packed(const StoredSolution& solution) {
  Packer out;
  for_each_list([&](auto member) { put_list(out, solution.*member); });
  const Array& select = solution.select;
  return out.put(select.shape[1])
      .put(std::span(reinterpret_cast<const char*>(select.data), static_cast<std::size_t>(select.bytes())))
      .take();
}

}  // namespace

void gather(StoredSolution& solution, const SharedTask& task) {
  for (Index& query : solution.row_query) query += task.first;
  std::vector<char> select;
  ranks().collect(packed(solution), [&](int rank, std::string_view bytes) {
    Unpacker in(bytes);
    for_each_list([&](auto member) {
      if (rank == 0) (solution.*member).clear();
      append_list(in, solution.*member);
    });
    const Index columns = in.get<Index>();
    const std::vector<char> mask = in.list<char>();
    const std::size_t wide = static_cast<std::size_t>(task.longest), narrow = static_cast<std::size_t>(columns);
    for (std::size_t row = 0; row < mask.size() / narrow; ++row) {
      select.resize(select.size() + wide);
      std::copy_n(mask.data() + row * narrow, narrow, select.data() + select.size() - wide);
    }
  });
  if (!ranks().first()) return;
  solution.select = Array::own(std::vector<bool>(select.begin(), select.end()), {task.queries, task.longest});
}

void gather(std::vector<Tie>& ties, const SharedTask& task) {
  Packer own;
  for (const Tie& tie : ties) own.put(task.first + tie.query).put(std::span(tie.tokens));
  ties.clear();
  ranks().collect(own.take(), [&](int /*rank*/, std::string_view bytes) {
    for (Unpacker in(bytes); !in.done();) {
      const Index query = in.get<Index>();
      ties.push_back({query, in.list<Index>()});
    }
  });
}

}  // namespace attsvm::internal
