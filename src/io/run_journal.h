#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attsvm/train.h"
#include "io/file.h"

namespace attsvm::internal {

/// Frames of doubles, all of one size, with the last two states of a run before them:
///
///     header | settings | state | state | frame 0 | frame 1 | …
///
/// States are written alternately, so that one is complete whenever the process ends; every part carries its CRC-32.
/// Frames beyond the number in the state are not used.
class RunJournal {
 public:
  struct Shape {
    std::string settings;                          ///< one line per setting: name, space, value
    std::uint64_t start = 0, task = 0;             ///< fingerprints of the start and of the task
    std::uint64_t state_size = 0, frame_size = 0;  ///< doubles
  };
  struct Saved {
    std::vector<double> state;
    Index frames = 0;
  };

  /// Creates a journal, or opens the existing one (resume). InputError if it cannot be created, is used by another
  /// process, or belongs to another run; the error says what differs.
  RunJournal(std::string path, const Shape& shape, bool resume);
  ~RunJournal();
  RunJournal(const RunJournal&) = delete;
  RunJournal& operator=(const RunJournal&) = delete;

  /// The newest complete state whose frames are complete; nullopt if nothing was saved before the process ended.
  std::optional<Saved> saved();
  /// Continues after the first `count` frames. Later ones stay until overwritten, because a saved state may include
  /// them.
  void rewind(Index count) { frames_ = count; }
  void append(const double* frame);
  void save(const std::vector<double>& state);
  Index frames() const { return frames_; }
  /// The frames so far, mapped; valid until the next append.
  std::shared_ptr<const InputFile> map() const { return InputFile::open(path_); }
  const double* frame(const InputFile& mapped, Index k) const;
  void remove();

 private:
  void require_same_run();
  std::uint64_t slot_bytes() const;
  std::uint64_t frame_bytes() const;
  std::uint64_t frame_offset(Index k) const;
  void write_at(std::uint64_t offset, const void* data, std::size_t size) const;

  std::string path_;
  Shape shape_;
  std::vector<std::byte> lead_;  // header and settings
  int descriptor_ = -1;
  Index frames_ = 0;
  std::uint64_t saves_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace attsvm::internal
