#include "ranks/ranks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/out_of_memory.h"
#include "base/refuse.h"
#include "ranks/launcher.h"
#include "ranks/letters.h"
#include "ranks/tree.h"

namespace attsvm::internal {
namespace {

std::unique_ptr<Ranks>& joined() {
  static std::unique_ptr<Ranks> ranks = std::make_unique<Ranks>();
  return ranks;
}

Message await(Wire& wire, int from) {
  Message message;
  Patience patience;
  while (!wire.receive(from, message)) patience.wait();
  return message;
}

// Several texts as one: each behind its size.

void append(std::string& list, std::string_view text) {
  const std::uint64_t size = text.size();
  list.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}

std::vector<std::string> texts_in(std::string_view list) {
  std::vector<std::string> texts;
  while (!list.empty()) {
    std::uint64_t size = 0;
    std::memcpy(&size, list.data(), sizeof size);
    texts.emplace_back(list.substr(sizeof size, size));
    list.remove_prefix(sizeof size + size);
  }
  return texts;
}

}  // namespace

std::uint64_t new_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void throw_if_problem(const Letter& letter) {
  if (letter.kind == Letter::kRefusal) refuse("rank {}: {}", letter.number, letter.text);
  if (letter.kind == Letter::kBug) throw std::runtime_error(fmt::format("rank {}: {}", letter.number, letter.text));
}

void require_same_on_all(Wire& wire, std::string_view mark, std::string_view what) {
  std::string problem;
  if (wire.rank() == 0) {
    for (int other = 1; other < wire.count(); ++other) {
      if (await(wire, other).bytes != mark && problem.empty()) problem = fmt::format("rank {} {}", other, what);
    }
    for (int other = 1; other < wire.count(); ++other) wire.send(other, problem);
  } else {
    wire.send(0, mark);
    problem = await(wire, 0).bytes;
  }
  if (!problem.empty()) refuse("{}", problem);
}

Ranks::Ranks(std::unique_ptr<Wire> wire) : wire_(std::move(wire)), members_(count()) {}
Ranks::~Ranks() = default;

void Ranks::send(int to, const Letter& letter) {
  const std::string bytes = sealed(letter);
  traffic_.sent += static_cast<std::int64_t>(bytes.size());
  wire_->send(to, bytes);
}

/// The next letter of a rank, or of anyone. Letters of others that come meanwhile are kept, but two are heeded at once:
/// rank 0 throws what another rank reports, and the others notice the end of the job.
Message Ranks::take(int from) {
  for (auto message = early_.begin(); message != early_.end(); ++message) {
    if (from != Wire::kAnyone && message->from != from) continue;
    Message found = std::move(*message);
    early_.erase(message);
    return found;
  }
  for (;;) {
    Message message = await(*wire_, Wire::kAnyone);
    traffic_.received += static_cast<std::int64_t>(message.bytes.size());
    const Letter letter = opened(message.bytes);
    throw_if_problem(letter);
    if (letter.kind == Letter::kLeave) {
      told_ = true;
      code_ = static_cast<int>(letter.number);
      pass_on(letter, count());  // along the tree, so that it overtakes no letter
      throw JobOver{};
    }
    if (from == Wire::kAnyone || message.from == from) return message;
    early_.push_back(std::move(message));
  }
}

/// What came up the tree under this number; older letters are of work that was given up.
std::string Ranks::take_answers(int child, std::uint64_t number) {
  for (;;) {
    const Message message = take(child);
    const Letter letter = opened(message.bytes);
    if (letter.kind == Letter::kAnswers && letter.number == number) return std::string(letter.text);
  }
}

std::vector<std::string> Ranks::answers_below(std::uint64_t number) {
  std::vector<std::string> all;
  for (const int child : children_of(rank(), members_)) {
    for (std::string& text : texts_in(take_answers(child, number))) all.push_back(std::move(text));
  }
  return all;
}

/// To those below; first to the one that has most below it.
void Ranks::pass_on(const Letter& letter, int members) {
  const std::vector<int> children = children_of(rank(), members);
  for (auto child = children.rbegin(); child != children.rend(); ++child) send(*child, letter);
}

void Ranks::answer(const Letter& letter, const std::function<std::string(const std::string&)>& work,
                   const Merge& merge) {
  const bool asked = letter.kind == Letter::kAsked;
  if (asked) pass_on(letter, members_);
  Letter::Kind problem = Letter::kBug;
  std::string words;
  try {
    std::string own = work(std::string(letter.text));
    if (!asked) return send(0, {Letter::kResult, letter.number, own});
    std::string list;
    std::vector<std::string> below = answers_below(letter.number);
    if (merge) {
      for (const std::string& text : below) own = merge(std::move(own), text);
      below.clear();
    }
    append(list, own);
    for (const std::string& text : below) append(list, text);
    return send(parent_of(rank()), {Letter::kAnswers, letter.number, list});
  } catch (const InputError& error) {
    problem = Letter::kRefusal;
    words = error.what();
  } catch (const std::bad_alloc&) {
    problem = Letter::kRefusal;
    words = kOutOfMemory;
  } catch (const std::exception& error) {
    words = error.what();
  }
  send(0, {problem, static_cast<std::uint64_t>(rank()), words});
}

void Ranks::help(const std::function<std::string(const std::string&)>& work, const Merge& merge) {
  while (!told_) {
    try {
      const Message message = take(Wire::kAnyone);
      const Letter letter = opened(message.bytes);
      // All else is for work that this rank has given up.
      if (letter.kind == Letter::kPortion || letter.kind == Letter::kAsked) answer(letter, work, merge);
    } catch (const JobOver&) {
      return;
    }
  }
}

std::vector<std::string> Ranks::ask(const std::string& portion, const std::function<void()>& own) {
  const std::uint64_t number = new_number();
  ++traffic_.rounds;
  if (wire_) pass_on({Letter::kAsked, number, portion}, members_);
  own();
  return wire_ ? answers_below(number) : std::vector<std::string>();
}

std::string Ranks::together(std::string own, const Merge& merge,
                            const std::function<std::string(std::string all)>& finish) {
  const auto number = static_cast<std::uint64_t>(++traffic_.rounds);
  if (wire_) {
    for (const int child : children_of(rank(), members_)) own = merge(std::move(own), take_answers(child, number));
  }
  if (first()) {
    if (finish) own = finish(std::move(own));
  } else {
    send(parent_of(rank()), {Letter::kAnswers, number, own});
    own = opened(take(parent_of(rank())).bytes).text;
  }
  if (wire_) pass_on({Letter::kTotal, number, own}, members_);
  return own;
}

void Ranks::collect(const std::string& own, const std::function<void(int rank, std::string_view bytes)>& use) {
  ++traffic_.rounds;
  const auto number = static_cast<std::uint64_t>(traffic_.rounds);
  if (!first()) {
    opened(take(0).bytes);  // rank 0 has room for it now
    return send(0, {Letter::kAnswers, number, own});
  }
  use(0, own);
  for (int other = 1; other < members_; ++other) {
    send(other, {Letter::kTotal, number, {}});
    use(other, take_answers(other, number));
  }
}

void Ranks::fail(std::string_view why) { send(0, {Letter::kRefusal, static_cast<std::uint64_t>(rank()), why}); }

int Ranks::leave(int code) {
  if (!wire_) return code;
  if (!first()) {
    help([](const std::string&) { return std::string(); });  // what was handed to a rank that had failed
    wire_->send(0, sealed({Letter::kGone, 0, {}}));
    return code_;
  }
  pass_on({Letter::kLeave, static_cast<std::uint64_t>(code), {}}, count());
  for (int here = count() - 1; here > 0;) {
    const Message message = await(*wire_, Wire::kAnyone);
    if (opened(message.bytes).kind == Letter::kGone) --here;  // all else comes too late to be of use
  }
  return code;
}

Ranks& ranks() { return *joined(); }

void join_ranks(std::string_view command) { joined() = std::make_unique<Ranks>(join_launched(command)); }

int leave_ranks(int code) {
  const int agreed = ranks().leave(code);
  joined() = std::make_unique<Ranks>();
  return agreed;
}

}  // namespace attsvm::internal
