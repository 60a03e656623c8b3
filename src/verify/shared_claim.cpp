#include "verify/shared_claim.h"

#include <algorithm>
#include <optional>

#include "base/refuse.h"
#include "verify/rules.h"

namespace attsvm::internal {

using namespace proof;

namespace {

// What ranks are asked for, and what they answer with.
enum class Job : char { question = 'q', rows = 'r', multipliers = 'm', contributions = 'c' };
enum class Answer : char { found = 'f', refused = 'n', undecided = 'u' };

constexpr std::size_t kMessage = std::size_t{1} << 25;  // bytes of contributions that travel at once, about

Packer& put_text(Packer& out, const std::string& text) { return out.put(std::span<const char>(text)); }

std::string text_from(Unpacker& in) {
  const std::vector<char> text = in.list<char>();
  return {text.begin(), text.end()};
}

void put_ball(Packer& out, const Ball& ball) {
  char* text = arb_dump_str(ball.get());
  put_text(out, text);
  flint_free(text);
}

Ball ball_from(Unpacker& in) {
  Ball ball;
  if (arb_load_str(ball.get(), text_from(in).c_str()) != 0)
    throw std::logic_error("a ball from another rank is broken");
  return ball;
}

/// The answer with what `work` writes, or with the exception that it throws.
template <class Work>
std::string guarded(Work&& work) {
  const WorkingBits precision(kFirstBits);
  try {
    Packer out;
    out.put(Answer::found);
    work(out);
    return out.take();
  } catch (const Refusal& refusal) {
    return put_text(Packer().put(Answer::refused), refusal.reason).take();
  } catch (const Undecided& open) {
    return put_text(Packer().put(Answer::undecided), open.what).take();
  }
}

/// Reads what was found; throws what the rank threw. False: it has no queries.
bool opened(Unpacker& in) {
  if (in.done()) return false;
  switch (in.get<Answer>()) {
    case Answer::refused:
      throw Refusal{text_from(in)};
    case Answer::undecided:
      throw Undecided{text_from(in)};
    case Answer::found:
      break;
  }
  return true;
}

}  // namespace

/// One rank's rows.
class OwnRows {
 public:
  OwnRows(const SharedClaim& shared, const VerifySettings& settings) : shared_(shared), settings_(settings) {}

  std::string answer(Unpacker& job) {
    switch (job.get<Job>()) {
      case Job::question:
        return guarded([&](Packer& out) { put_question(out); });
      case Job::rows:
        return guarded([&](Packer& out) {
          const RowFindings found = find_in_rows(own_case());
          out.put(found.violation).put(found.scaling).put(found.homogeneous).put(found.worst_violation);
          put_text(out, found.worst);
        });
      case Job::multipliers:
        return guarded([&](Packer& out) {
          const MultiplierFindings found = find_in_multipliers(own_case());
          out.put(found.weigh_nothing).put(found.impossible);
          put_ball(out, found.need);
        });
      case Job::contributions:
        return guarded([&](Packer& out) { put_contributions(job.get<std::size_t>(), out); });
    }
    throw std::logic_error("an unknown job came from rank 0");
  }

  const Question& question() const { return question_.value(); }
  const Norm& norm() const { return norm_.value(); }

 private:
  void put_question(Packer& out) {
    norm_ = read_norm(shared_.claim);
    question_.emplace(*shared_.part, shared_.claim, shared_.place);
    Difference difference = difference_from_own(*shared_.part, shared_.claim);
    for (auto* queries : {&difference.changed, &difference.relaxed}) {
      for (Index& query : *queries) query = question_->query_number(query);
    }
    out.put(question_->rows().size()).put(question_->groups().size()).put(difference.own);
    out.put(std::span<const Index>(difference.changed)).put(std::span<const Index>(difference.relaxed));
    // Only after the counts, so that a file with too few or too many rows is refused as a whole.
    std::string problem;
    try {
      check_contents(*question_, norm(), shared_.claim);
    } catch (const Refusal& refusal) {
      problem = refusal.reason;
    }
    put_text(out, problem);
  }

  /// The contributions of the groups from `first` on, as many as a message takes; then the group that comes next.
  void put_contributions(std::size_t first, Packer& out) {
    const std::vector<Group>& groups = question().groups();
    const auto size = static_cast<std::size_t>(16 * question().d() + 8 * question().dz() + 64);
    const std::size_t last = std::min(groups.size(), first + std::max<std::size_t>(1, kMessage / size));
    out.put(last < groups.size() ? last : std::size_t{0});
    Contribution one;
    for (std::size_t k = first; k < last; ++k) {
      if (!contribute(question(), shared_.claim, groups[k], one)) continue;
      out.put(std::span<const long double>(one.g)).put(std::span<const double>(one.zeta)).put(one.sizes).put(one.terms);
    }
  }

  Case own_case() {
    if (!arithmetic_) arithmetic_ = bounded_arithmetic(question(), shared_.claim, norm());
    return {question(), shared_.claim, settings_, norm(), *arithmetic_, ignored_, nobody_};
  }

  const SharedClaim& shared_;
  const VerifySettings& settings_;
  std::optional<Norm> norm_;
  std::optional<Question> question_;
  std::unique_ptr<Arithmetic> arithmetic_;
  Verification ignored_;
  TellVerify nobody_;
};

namespace {

/// All ranks' rows, as rank 0 asks for them.
class AllRows final : public SharedRows {
 public:
  AllRows(const SharedClaim& shared, OwnRows& own, const Ask& ask) : shared_(shared), own_(own), ask_(ask) {}

  /// Calls use(answer) for what every rank that has queries found, in their order.
  template <class Use>
  void each(Job job, Use&& use) {
    const std::string asked = Packer().put(job).take();
    std::string own;
    const std::vector<std::string> others = ask_(asked, [&] {
      Unpacker in(asked);
      own = own_.answer(in);
    });
    const auto read = [&](const std::string& answer) {
      Unpacker in(answer);
      if (opened(in)) use(in);
    };
    read(own);
    for (const std::string& other : others) read(other);
  }

  RowFindings findings() override {
    RowFindings all;
    each(Job::rows, [&](Unpacker& in) {
      RowFindings found;
      found.violation = in.get<double>();
      found.scaling = in.get<double>();
      found.homogeneous = in.get<double>();
      found.worst_violation = in.get<double>();
      found.worst = text_from(in);
      all.add(found);
    });
    if (all.homogeneous > 0) throw Undecided{"rows that ask for 0 need all rows"};
    return all;
  }

  MultiplierFindings multipliers() override {
    MultiplierFindings all;
    each(Job::multipliers, [&](Unpacker& in) {
      MultiplierFindings found;
      found.weigh_nothing = in.get<bool>();
      found.impossible = in.get<bool>();
      found.need = ball_from(in);
      all.add(found);
    });
    return all;
  }

  Ball weighted_rhs() override { return proof::weighted_rhs(f64_span(shared_.rhs), f64_span(shared_.dual)); }

  /// Rank by rank, so that A(dual) is added up in the order of queries.
  void contributions(const std::function<void(const Contribution&)>& use) {
    std::size_t next = 0;
    const auto take = [&](const std::string& answer) {
      Unpacker in(answer);
      next = 0;
      if (!opened(in)) return false;
      next = in.get<std::size_t>();
      while (!in.done()) {
        Contribution one{.g = in.list<long double>(), .zeta = in.list<double>()};
        one.sizes = in.get<long double>();
        one.terms = in.get<Index>();
        use(one);
      }
      return true;
    };
    const auto job = [&](std::size_t rank) { return Packer().put(Job::contributions).put(next).put(rank).take(); };
    do {
      const std::string own = job(0);
      Unpacker in(own);
      take(own_.answer(in));
    } while (next > 0);
    for (std::size_t rank = 1, count = 2; rank < count; ++rank) {
      do {
        const std::vector<std::string> answers = ask_(job(rank), [] {});
        count = answers.size() + 1;
        if (rank < count) take(answers[rank - 1]);
      } while (next > 0);
    }
  }

 private:
  const SharedClaim& shared_;
  OwnRows& own_;
  const Ask& ask_;
};

/// The rules that need no arithmetic, for all rows. False: the question is too small to be shared.
bool ask_question(AllRows& all, const OwnRows& own, const SharedClaim& shared, Verification& result) {
  std::size_t rows = 0, groups = 0;
  Difference difference;
  std::string problem;
  all.each(Job::question, [&](Unpacker& in) {
    rows += in.get<std::size_t>();
    groups += in.get<std::size_t>();
    difference.own = in.get<bool>() && difference.own;
    for (auto* queries : {&difference.changed, &difference.relaxed}) {
      const auto more = in.list<Index>();
      queries->insert(queries->end(), more.begin(), more.end());
    }
    const std::string other = text_from(in);
    if (problem.empty()) problem = other;
  });
  name_question(*shared.part, shared.claim, difference, result);
  for (const auto& [name, size] : shared.stated) {
    if (size != rows) reject(fmt::format("{} has {} rows; the task and selection give {}", name, size, rows));
  }
  if (!problem.empty()) reject(problem);
  return own.question().work(rows, groups) > kLongWork;
}

}  // namespace

std::optional<Verification> verify(const SharedClaim& shared, const VerifySettings& settings, const TellVerify& tell,
                                   const Ask& ask) {
  require_tolerance(settings);
  if (shared.claim.is_soft()) return std::nullopt;
  Verification result{.status = shared.claim.status};
  forget(result);
  try {
    const WorkingBits precision(kFirstBits);
    OwnRows own(shared, settings);
    AllRows all(shared, own, ask);
    if (!ask_question(all, own, shared, result)) return std::nullopt;
    const auto arithmetic =
        bounded_arithmetic(own.question(), shared.claim, own.norm(), [&](const auto& use) { all.contributions(use); });
    judge({own.question(), shared.claim, settings, own.norm(), *arithmetic, result, tell, &all});
    result.valid = true;
  } catch (const Refusal& refusal) {
    result.reason = printable(refusal.reason);
  } catch (const Undecided&) {
    return std::nullopt;
  }
  return result;
}

struct ClaimMember::State {
  std::optional<OwnRows> rows;
  VerifySettings settings{};
  Index rank;
};

ClaimMember::ClaimMember(const SharedClaim* shared, Index rank) : state_(new State{{}, {}, rank}) {
  if (shared != nullptr) state_->rows.emplace(*shared, state_->settings);
}

ClaimMember::~ClaimMember() = default;

std::string ClaimMember::answer(const std::string& job) {
  Unpacker in(job);
  if (!state_->rows || job.empty()) return {};
  if (in.get<Job>() == Job::contributions) {
    in.get<std::size_t>();
    if (in.get<std::size_t>() != static_cast<std::size_t>(state_->rank)) return {};
  }
  Unpacker again(job);
  return state_->rows->answer(again);
}

}  // namespace attsvm::internal
