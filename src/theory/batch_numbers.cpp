#include "theory/batch_numbers.h"

#include <span>

#include "base/refuse.h"

namespace attsvm::internal {
namespace {

[[noreturn]] void refuse_batch() { refuse("the numbers of a batch are not those of this experiment"); }

/// Reads a batch number by number.
class BatchReader {
 public:
  explicit BatchReader(const ClaimBatch& batch) : left_(batch) {}

  double next() { return next(1).front(); }
  std::span<const double> next(std::size_t count) {
    if (count > left_.size()) refuse_batch();
    const std::span<const double> found = left_.first(count);
    left_ = left_.subspan(count);
    return found;
  }
  Index next_whole() {
    constexpr double kMostWhole = 0x1p53;
    const double number = next();
    if (!(number >= 0 && number <= kMostWhole) || number != static_cast<double>(static_cast<Index>(number)))
      refuse_batch();
    return static_cast<Index>(number);
  }
  void end() const {
    if (!left_.empty()) refuse_batch();
  }

 private:
  std::span<const double> left_;
};

}  // namespace

void BatchNumbers::mark() {
  for (Place& place : places_) {
    if (const auto* list = std::get_if<std::vector<double>*>(&place.where)) {
      place.kept = (*list)->size();
    } else if (const auto* whole = std::get_if<Index*>(&place.where)) {
      place.last = static_cast<double>(**whole);
    } else {
      place.last = *std::get<double*>(place.where);
    }
  }
}

void BatchNumbers::undo() {
  for (const Place& place : places_) {
    if (const auto* list = std::get_if<std::vector<double>*>(&place.where)) {
      (*list)->resize(place.kept);
    } else if (const auto* whole = std::get_if<Index*>(&place.where)) {
      **whole = static_cast<Index>(place.last);
    } else {
      *std::get<double*>(place.where) = place.last;
    }
  }
}

ClaimBatch BatchNumbers::take() {
  ClaimBatch batch;
  for (const Place& place : places_) {
    if (const auto* list = std::get_if<std::vector<double>*>(&place.where)) {
      const std::span<const double> added = std::span<const double>(**list).subspan(place.kept);
      batch.push_back(static_cast<double>(added.size()));
      batch.insert(batch.end(), added.begin(), added.end());
    } else if (const auto* whole = std::get_if<Index*>(&place.where)) {
      batch.push_back(static_cast<double>(**whole));
    } else {
      batch.push_back(*std::get<double*>(place.where));
    }
  }
  mark();
  return batch;
}

void BatchNumbers::put(const ClaimBatch& batch) {
  BatchReader reader(batch);
  for (const Place& place : places_) {
    if (const auto* list = std::get_if<std::vector<double>*>(&place.where)) {
      const std::span<const double> added = reader.next(static_cast<std::size_t>(reader.next_whole()));
      (*list)->insert((*list)->end(), added.begin(), added.end());
    } else if (const auto* whole = std::get_if<Index*>(&place.where)) {
      **whole = reader.next_whole();
    } else {
      *std::get<double*>(place.where) = reader.next();
    }
  }
  reader.end();
  mark();
}

}  // namespace attsvm::internal
