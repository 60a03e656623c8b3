#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace attsvm::internal {

class MappedRange;

using Bytes = std::span<const std::byte>;

/// Why the last system call failed, by errno.
std::string system_reason();

/// A file opened for reading: its bytes are mapped, and read() copies. Its errors do not name the file; the caller adds
/// the name. What happens if somebody truncates the file while it is mapped: io/cut_files.h.
class InputFile {
 public:
  /// InputError if the file cannot be opened or is not a regular file.
  static std::shared_ptr<const InputFile> open(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  Bytes bytes() const { return bytes_; }
  /// Copies bytes_[offset … offset+size) to `to` without touching the mapping.
  void read(std::size_t offset, std::byte* to, std::size_t size) const;

 private:
  explicit InputFile(const std::string& path);
  void close();

  int descriptor_ = -1;
  Bytes bytes_;
  std::unique_ptr<const MappedRange> range_;
};

/// A file that appears under its name complete or not at all: bytes go to a temporary file, which commit() renames.
class OutputFile {
 public:
  /// InputError if the file exists and replace is false, or if nothing can be written there.
  OutputFile(std::string path, bool replace);
  ~OutputFile();  // without commit(), removes what was written
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(Bytes bytes);
  void write(const std::string& text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  bool link_as(const std::string& name) const;

  std::string path_, temporary_;
  bool replace_;
  bool named_ = false;  // the bytes written so far are in the file temporary_
  int descriptor_ = -1;
};

}  // namespace attsvm::internal
