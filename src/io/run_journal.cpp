#include "io/run_journal.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/refuse.h"
#include "io/file.h"

namespace attsvm::internal {
namespace {

// Numbers of 8 bytes throughout, so that mapped frames are aligned for doubles.
constexpr std::uint64_t kJournalMagic = 0x344C'4E52'4A54'5441;  // "ATTJRNL4"
constexpr std::size_t kWord = 8, kSlotExtra = 3, kFrameExtra = 1;

struct Header {
  std::uint64_t magic, start, task, state_size, frame_size, settings_size, settings_crc, crc;
};
static_assert(sizeof(Header) % kWord == 0);

std::uint64_t crc_of(const void* data, std::size_t size) { return libdeflate_crc32(0, data, size); }

/// Header and settings, padded to a multiple of 8 bytes.
std::vector<std::byte> lead_of(const RunJournal::Shape& shape) {
  const std::string& text = shape.settings;
  Header header{kJournalMagic,
                shape.start,
                shape.task,
                shape.state_size,
                shape.frame_size,
                text.size(),
                crc_of(text.data(), text.size()),
                0};
  header.crc = crc_of(&header, sizeof header - kWord);
  std::vector<std::byte> lead(sizeof header + (text.size() + kWord - 1) / kWord * kWord);
  std::memcpy(lead.data(), &header, sizeof header);
  std::memcpy(lead.data() + sizeof header, text.data(), text.size());
  return lead;
}

/// How two lists of settings differ: "steps is 2000 there and 3000 here". Empty if they are equal.
std::string differences(std::string_view there, std::string_view here) {
  const auto next_line = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line;
  };
  std::string words;
  while (!there.empty() || !here.empty()) {
    const std::string_view theirs = next_line(there), ours = next_line(here);
    if (theirs == ours) continue;
    const std::string_view name = ours.substr(0, ours.find(' '));
    if (!theirs.starts_with(name)) return "the settings differ";  // the lists of two versions
    const auto value = [&](std::string_view line) { return line.substr(std::min(name.size() + 1, line.size())); };
    words += fmt::format("{}{} is {} there and {} here", words.empty() ? "" : ", ", name, value(theirs), value(ours));
  }
  return words;
}

std::uint64_t word(const std::byte* at) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, kWord);
  return value;
}

}  // namespace

RunJournal::RunJournal(std::string path, const Shape& shape, bool resume)
    : path_(std::move(path)), shape_(shape), lead_(lead_of(shape)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | (resume ? 0 : O_CREAT | O_EXCL), 0666);
  if (descriptor_ < 0) refuse("{}: cannot {}: {}", path_, resume ? "open" : "write", system_reason());
  try {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) refuse("{}: another process is writing this run", path_);
    if (resume) {
      require_same_run();
    } else {
      write_at(0, lead_.data(), lead_.size());
    }
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

void RunJournal::require_same_run() {
  const auto file = map();
  const Bytes bytes = file->bytes();
  Header header{};
  if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kJournalMagic || header.crc != crc_of(&header, sizeof header - kWord) ||
      header.settings_size > bytes.size() - sizeof header) {
    refuse("{}: is not the journal of a run", path_);
  }
  if (header.settings_crc != crc_of(bytes.data() + sizeof header, header.settings_size)) {
    refuse("{}: its settings are damaged; start the run over", path_);
  }
  if (bytes.size() >= lead_.size() && std::memcmp(bytes.data(), lead_.data(), lead_.size()) == 0) return;
  std::string what =
      differences({reinterpret_cast<const char*>(bytes.data() + sizeof header), header.settings_size}, shape_.settings);
  if (what.empty()) what = header.task != shape_.task ? "the task differs" : "the start differs";
  refuse("{}: belongs to another run: {}", path_, what);
}

RunJournal::~RunJournal() { ::close(descriptor_); }

std::uint64_t RunJournal::slot_bytes() const { return (shape_.state_size + kSlotExtra) * kWord; }
std::uint64_t RunJournal::frame_bytes() const { return (shape_.frame_size + kFrameExtra) * kWord; }
std::uint64_t RunJournal::frame_offset(Index k) const {
  return lead_.size() + 2 * slot_bytes() + static_cast<std::uint64_t>(k) * frame_bytes();
}

void RunJournal::write_at(std::uint64_t offset, const void* data, std::size_t size) const {
  const auto* from = static_cast<const std::byte*>(data);
  while (size > 0) {
    const ssize_t put = ::pwrite(descriptor_, from, size, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse("{}: cannot write: {}", path_, system_reason());
    from += put;
    offset += static_cast<std::uint64_t>(put);
    size -= static_cast<std::size_t>(put);
  }
}

void RunJournal::append(const double* frame) {
  const std::size_t size = shape_.frame_size * kWord;
  buffer_.resize(frame_bytes());
  std::memcpy(buffer_.data(), frame, size);
  const std::uint64_t crc = crc_of(frame, size);
  std::memcpy(buffer_.data() + size, &crc, kWord);
  write_at(frame_offset(frames_), buffer_.data(), buffer_.size());
  ++frames_;
}

/// Slot: number of the save, number of frames, state, CRC-32 of all three.
void RunJournal::save(const std::vector<double>& state) {
  ++saves_;
  buffer_.resize(slot_bytes());
  const std::array<std::uint64_t, 2> lead{saves_, static_cast<std::uint64_t>(frames_)};
  std::memcpy(buffer_.data(), lead.data(), 2 * kWord);
  std::memcpy(buffer_.data() + 2 * kWord, state.data(), state.size() * kWord);
  const std::uint64_t crc = crc_of(buffer_.data(), buffer_.size() - kWord);
  std::memcpy(buffer_.data() + buffer_.size() - kWord, &crc, kWord);
  write_at(lead_.size() + (saves_ % 2) * slot_bytes(), buffer_.data(), buffer_.size());
}

std::optional<RunJournal::Saved> RunJournal::saved() {
  const auto file = map();
  const Bytes bytes = file->bytes();
  std::optional<Saved> best;
  for (std::uint64_t slot = 0; slot < 2; ++slot) {
    const std::uint64_t offset = lead_.size() + slot * slot_bytes();
    if (bytes.size() < offset + slot_bytes()) continue;
    const std::byte* at = bytes.data() + offset;
    if (word(at + slot_bytes() - kWord) != crc_of(at, slot_bytes() - kWord) || word(at) <= saves_) continue;
    const std::uint64_t frames = word(at + kWord);
    if (frames > (bytes.size() - std::min<std::uint64_t>(bytes.size(), frame_offset(0))) / frame_bytes()) continue;
    saves_ = word(at);
    best = Saved{std::vector<double>(shape_.state_size), static_cast<Index>(frames)};
    std::memcpy(best->state.data(), at + 2 * kWord, shape_.state_size * kWord);
  }
  for (Index k = 0; best && k < best->frames; ++k) {
    const std::byte* at = bytes.data() + frame_offset(k);
    if (word(at + shape_.frame_size * kWord) != crc_of(at, shape_.frame_size * kWord)) {
      refuse("{}: record {} is damaged; start the run over", path_, k);
    }
  }
  return best;
}

const double* RunJournal::frame(const InputFile& mapped, Index k) const {
  return reinterpret_cast<const double*>(mapped.bytes().data() + frame_offset(k));
}

void RunJournal::remove() { ::unlink(path_.c_str()); }

}  // namespace attsvm::internal
