#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace attsvm::internal {

/// What ranks write to each other.
struct Letter {
  enum Kind : char {
    kPortion = 'p',  ///< from rank 0 to a helper: compute this
    kResult = 'r',   ///< to rank 0: computed
    kAsked = 'a',    ///< down the tree: compute this
    kAnswers = 's',  ///< up the tree: what a rank and those below it have
    kTotal = 't',    ///< down the tree: what all have together
    kRefusal = 'i',  ///< to rank 0: an InputError of rank `number`, in words
    kBug = 'b',      ///< to rank 0: any other exception
    kLeave = 'l',    ///< down the tree: the job ends with exit code `number`
    kGone = 'g',     ///< to rank 0: a helper's last letter
  };
  Kind kind;
  std::uint64_t number;  ///< of the portion
  std::string_view text;

  bool is_problem() const { return kind == kRefusal || kind == kBug; }
};

inline std::string sealed(const Letter& letter) {
  std::string bytes;
  bytes.reserve(1 + sizeof letter.number + letter.text.size());
  bytes.assign(1 + sizeof letter.number, letter.kind);
  std::memcpy(bytes.data() + 1, &letter.number, sizeof letter.number);
  return bytes.append(letter.text);
}

/// `bytes` must outlive the letter.
inline Letter opened(std::string_view bytes) {
  Letter letter{static_cast<Letter::Kind>(bytes[0]), 0, bytes.substr(1 + sizeof letter.number)};
  std::memcpy(&letter.number, bytes.data() + 1, sizeof letter.number);
  return letter;
}

/// A number for a portion; never reused, so that results that come too late are known as such.
std::uint64_t new_number();

/// Throws what a rank reports instead of a result.
void throw_if_problem(const Letter& letter);

}  // namespace attsvm::internal
