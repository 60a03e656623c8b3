#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attsvm/task.h"
#include "attsvm/threads.h"

namespace attsvm {

struct ClaimSettings {
  Index tasks = 0;  ///< how many random tasks; 0: the claim's own number
  std::uint64_t seed = 0;
  std::function<bool(Index done)> progress{};  ///< true stops; what is done counts
};

/// A task on which a claim did not hold, and what happened there.
struct CounterExample {
  AttentionTask task;
  std::map<std::string, Array> extras;  ///< what the experiment used beside the task; names start with x_
  std::string words;
};

/// A number that an experiment found besides held or not.
struct ClaimFigure {
  std::string label;
  double value;
};

struct ClaimResult {
  Index tasks = 0, held = 0;  ///< fewer tasks than asked for where draws that meet the conditions are rare
  double worst = 0;           ///< largest of what Claim::measure names; infinite: not to be had; NaN: no tasks
  bool stopped = false;       ///< the progress callback ended it early
  std::vector<ClaimFigure> figures;
  std::optional<CounterExample> counterexample;  ///< the worst task on which the claim failed
};

/// A statement in our own words, and the experiment behind it. No theorem of a paper is quoted: `source` says what the
/// abstracts have of it.
struct Claim {
  std::string_view name;
  std::string_view statement;
  std::string_view source;
  std::string_view tested;   ///< which tasks, which sizes, what counts as held
  std::string_view measure;  ///< what `worst` is the largest of; larger is worse
  Index tasks;               ///< default number
  ClaimResult (*test)(const Claim& claim, const ClaimSettings& settings, Threads& threads);
};

std::span<const Claim> claims();

/// The claim of that name, or those that begin with it and a dash (path: path-W, path-KQ, path-p). InputError if there
/// is none; the message lists them all.
std::vector<const Claim*> find_claims(std::string_view name);

/// A claim that does not hold everywhere is a finding: it is counted and shown, never an error.
ClaimResult test_claim(const Claim& claim, const ClaimSettings& settings, Threads& threads);

}  // namespace attsvm
