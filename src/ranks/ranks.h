#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ranks/patience.h"
#include "ranks/wire.h"

namespace attsvm::internal {

struct Letter;

/// Thrown on all ranks but the first where they wait for work that will not come, because rank 0 has ended the job.
struct JobOver {};

/// The processes that a launcher such as mpirun started together, as one of them sees them. Rank 0 reads the command,
/// owns stores and files, and prints; the others help. A process without a launcher is rank 0 of 1, and then nothing
/// here waits or sends.
///
/// What a portion gives does not depend on who computes it, and rank 0 puts results into the order of portions, so that
/// they are the same bytes for any number of ranks on processors of one kind.
class Ranks {
 public:
  /// What a rank and those below it have, with what those have that come next in the order of ranks.
  using Merge = std::function<std::string(std::string own, std::string_view next)>;

  explicit Ranks(std::unique_ptr<Wire> wire = nullptr);
  ~Ranks();

  int rank() const { return wire_ ? wire_->rank() : 0; }
  int count() const { return wire_ ? wire_->count() : 1; }
  bool first() const { return rank() == 0; }
  /// From now on, what is asked, done together and collected is among ranks 0 … members−1; the others have no part in
  /// it. To be called by all.
  void share_among(int members) { members_ = members; }

  /// Computes what rank 0 hands out, and returns when it hands out no more (leave). An exception of `work` ends the
  /// job: it is thrown again on rank 0. `merge`, if given, makes one answer of several to what rank 0 asks.
  void help(const std::function<std::string(const std::string& portion)>& work, const Merge& merge = {});
  /// Rank 0: gives all others, which are in help(), this portion, runs `own` meanwhile, and returns their answers in
  /// the order of ranks; those that they have merged are one. Letters go along a tree.
  std::vector<std::string> ask(const std::string& portion, const std::function<void()>& own);
  /// Called by all ranks, each with what it has: merges it in the order of ranks, lets rank 0 finish it, and returns
  /// that on all of them. Letters go along a tree.
  std::string together(std::string own, const Merge& merge,
                       const std::function<std::string(std::string all)>& finish = {});
  /// Called by all ranks: hands what each has to use(rank, bytes) on rank 0, one after another.
  void collect(const std::string& own, const std::function<void(int rank, std::string_view bytes)>& use);
  /// What this rank has carried so far for ask(), together() and collect().
  struct Traffic {
    std::int64_t rounds = 0, sent = 0, received = 0;  ///< calls, bytes
  };
  const Traffic& traffic() const { return traffic_; }
  /// Tells rank 0 why this rank cannot help; it throws this as an InputError when it next waits for us.
  void fail(std::string_view why);
  /// Every rank's last call. Rank 0 hands the others the exit code, which all return.
  int leave(int code);

 private:
  friend class Portions;
  void send(int to, const Letter& letter);
  Message take(int from);
  std::string take_answers(int child, std::uint64_t number);
  std::vector<std::string> answers_below(std::uint64_t number);
  void pass_on(const Letter& letter, int members);
  void answer(const Letter& letter, const std::function<std::string(const std::string&)>& work, const Merge& merge);

  std::unique_ptr<Wire> wire_;
  std::deque<Message> early_;  // arrived while another was awaited
  int members_;
  bool told_ = false;  // rank 0 has ended the job
  int code_ = 0;
  Traffic traffic_;
};

/// The ranks of this process: alone, unless the program joined others.
Ranks& ranks();
/// Joins the ranks that a launcher started together with this one; called once, by the program. `command` as in
/// join_launched().
void join_ranks(std::string_view command);
/// leave() of those ranks, after which the process is alone.
int leave_ranks(int code);

/// InputError on every rank unless all give the same mark: "rank 3 WHAT".
void require_same_on_all(Wire& wire, std::string_view mark, std::string_view what);

}  // namespace attsvm::internal
