#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io/file.h"

namespace attsvm::internal {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t stored_size = 0;    ///< bytes in the file
  std::uint64_t size = 0;           ///< bytes after inflating
  std::uint64_t header_offset = 0;  ///< of the local header
  std::uint64_t limit = 0;          ///< where the next entry or the directory begins
};

/// The entries of a zip file, read from the directory at its end alone. InputError if the directory is damaged, an
/// entry is encrypted, compressed otherwise than by deflate, named twice, reaches beyond the end or into another one,
/// or would inflate to more than deflate can.
std::vector<ZipEntry> read_zip_directory(Bytes file);

/// Where the entry's stored bytes lie. Reads its local header.
Bytes entry_bytes(Bytes file, const ZipEntry& entry);

/// Where a zip file's bytes go, in order.
using WriteBytes = std::function<void(Bytes)>;

/// A zip file of stored entries with the date 1980-01-01, each entry's payload beginning at a multiple of 64 bytes.
class ZipWriter {
 public:
  explicit ZipWriter(WriteBytes write) : write_(std::move(write)) {}
  /// Adds an entry whose bytes are head followed by body; crc is that of both together.
  void add(const std::string& name, Bytes head, Bytes body, std::uint32_t crc);
  /// The same for a body that `write_body` writes to the same place piece by piece: body_size bytes in all.
  void add(const std::string& name, Bytes head, std::uint64_t body_size, std::uint32_t crc,
           const std::function<void()>& write_body);
  void finish();

 private:
  void put(const std::string& bytes);

  WriteBytes write_;
  std::uint64_t offset_ = 0;
  std::string directory_;
  std::uint64_t entries_ = 0;
};

}  // namespace attsvm::internal
