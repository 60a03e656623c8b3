#include "ranks/ranks.h"

#include <atomic>
#include <exception>
#include <new>
#include <stdexcept>

#include "base/out_of_memory.h"
#include "base/refuse.h"
#include "ranks/launcher.h"
#include "ranks/letters.h"

namespace attsvm::internal {
namespace {

std::unique_ptr<Ranks>& joined() {
  static std::unique_ptr<Ranks> ranks = std::make_unique<Ranks>();
  return ranks;
}

}  // namespace

std::uint64_t new_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void throw_if_problem(int rank, const Letter& letter) {
  if (letter.kind == Letter::kRefusal) refuse("rank {}: {}", rank, letter.text);
  if (letter.kind == Letter::kBug) throw std::runtime_error(fmt::format("rank {}: {}", rank, letter.text));
}

Message await(Wire& wire, int from) {
  Message message;
  Patience patience;
  while (!wire.receive(from, message)) patience.wait();
  return message;
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

Ranks::Ranks(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}
Ranks::~Ranks() = default;

void Ranks::help(const std::function<std::string(const std::string&)>& work) {
  while (!told_) {
    const Message message = await(*wire_, 0);
    const Letter letter = opened(message.bytes);
    if (letter.kind == Letter::kLeave) {
      told_ = true;
      code_ = static_cast<int>(letter.number);
    } else {
      std::string result;
      Letter::Kind kind = Letter::kResult;
      try {
        result = work(std::string(letter.text));
      } catch (const InputError& error) {
        kind = Letter::kRefusal;
        result = error.what();
      } catch (const std::bad_alloc&) {
        kind = Letter::kRefusal;
        result = kOutOfMemory;
      } catch (const std::exception& error) {
        kind = Letter::kBug;
        result = error.what();
      }
      wire_->send(0, sealed({kind, letter.number, result}));
    }
  }
}

std::vector<std::string> Ranks::ask(const std::string& portion, const std::function<void()>& own) {
  const std::uint64_t number = new_number();
  const std::string letter = sealed({Letter::kPortion, number, portion});
  ++traffic_.asked;
  for (int other = 1; other < count(); ++other) {
    wire_->send(other, letter);
    traffic_.sent += static_cast<std::int64_t>(letter.size());
  }
  own();
  std::vector<std::string> results;
  for (int other = 1; other < count(); ++other) {
    for (;;) {
      const Message message = await(*wire_, other);
      traffic_.received += static_cast<std::int64_t>(message.bytes.size());
      const Letter answer = opened(message.bytes);
      throw_if_problem(other, answer);
      if (answer.number != number) continue;  // of work that was given up
      results.emplace_back(answer.text);
      break;
    }
  }
  return results;
}

void Ranks::fail(std::string_view why) { wire_->send(0, sealed({Letter::kRefusal, 0, why})); }

int Ranks::leave(int code) {
  if (!wire_) return code;
  if (!first()) {
    help([](const std::string&) { return std::string(); });  // what was handed to a rank that had failed
    wire_->send(0, sealed({Letter::kGone, 0, {}}));
    return code_;
  }
  for (int other = 1; other < count(); ++other)
    wire_->send(other, sealed({Letter::kLeave, static_cast<std::uint64_t>(code), {}}));
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
