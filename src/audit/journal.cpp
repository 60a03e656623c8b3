#include <filesystem>
#include <set>

#include "attsvm/version.h"
#include "audit/audit_data.h"
#include "base/refuse.h"
#include "io/fingerprint.h"
#include "io/run_store.h"

namespace attsvm {

using namespace internal;

namespace {

/// Raise by one with every change that gives an audit other numbers from the same heads, settings and seed: heads
/// stored before are then not reused.
constexpr int kNumbersOfAudits = 2;

RunKey key_of(const HeadSet& heads, const AuditSettings& settings) {
  Json words = settings_json(settings);
  words["heads"] = internal::fingerprint_of(head_arrays(heads));
  return {.experiment = "audit",
          .settings = words.dump(),
          .version = fmt::format("{}, numbers {}", ATTSVM_VERSION, kNumbersOfAudits),
          .seed = settings.seed};
}

/// What tells another audit from this one.
std::string difference_of(const RunKey& other, const RunKey& own) {
  if (other.experiment != own.experiment) return "it holds runs of something else";
  if (other.version != own.version) return "another version of attsvm wrote it";
  const Json there = Json::parse(other.settings, nullptr, false), here = Json::parse(own.settings);
  if (there.is_discarded() || !there.is_object() || there.value("heads", Json()) != here.at("heads"))
    return "it holds other heads";
  for (const auto& [name, value] : here.items()) {
    const Json before = there.value(name, Json());
    if (before != value) return fmt::format("its {} is {}, not {}", name, before.dump(), value.dump());
  }
  return "its settings differ";
}

}  // namespace

struct AuditJournal::State {
  std::string path;
  std::unique_ptr<RunStore> store;
  std::int64_t set = 0;
  std::map<Index, HeadAudit> found{};
};

AuditJournal::AuditJournal(const std::string& path, const HeadSet& heads, const AuditSettings& settings, bool replace)
    : state_(new State{path, std::make_unique<RunStore>(path, "give another output")}) {
  const RunKey own = key_of(heads, settings);
  for (const RunKey& other : state_->store->keys()) {
    if (other == own) continue;
    const std::int64_t set = state_->store->find(other);
    if (!replace && !state_->store->instances(set).empty())
      refuse("{}: left by an interrupted audit, and {}; give its settings to go on with it, or delete it to start over",
             path, difference_of(other, own));
    state_->store->forget(set);
  }
  state_->set = state_->store->find(own);
  for (const auto& [instance, row] : state_->store->instances(state_->set)) {
    try {
      HeadAudit head = head_from(row.result);
      if (instance < 0 || instance >= heads.heads() || head.layer != heads.layer(instance) ||
          head.head != heads.number(instance))
        refuse("it is of another head");
      state_->found.emplace(instance, std::move(head));
    } catch (const std::exception& error) {  // of JSON, or a kind that does not exist
      refuse("{}: is damaged: head {}: {}; delete the file to start over", path, instance, error.what());
    }
  }
}

AuditJournal::~AuditJournal() = default;

const HeadAudit* AuditJournal::find(Index head) const {
  const auto found = state_->found.find(head);
  return found == state_->found.end() ? nullptr : &found->second;
}

Index AuditJournal::found() const { return static_cast<Index>(state_->found.size()); }

void AuditJournal::keep(Index head, const HeadAudit& finished) {
  const std::vector<RunRow> row{{"", head_json(finished)}};
  state_->store->commit(state_->set, static_cast<std::uint32_t>(head), row);
}

void AuditJournal::remove() {
  state_->store.reset();
  std::error_code ignored;
  std::filesystem::remove(state_->path, ignored);
}

Index internal::reused_heads(const AuditJournal& journal, const HeadSet& heads, const AuditSettings& settings) {
  std::set<Index> reused;
  for (const Index head : wanted_heads(heads, settings)) {
    if (journal.find(head) != nullptr) reused.insert(head);
  }
  return static_cast<Index>(reused.size());
}

}  // namespace attsvm
