#include "io/zip.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/refuse.h"

namespace attsvm::internal {
namespace {

// Signatures, fixed sizes and markers of the zip format (PKWARE APPNOTE).
constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;
constexpr std::uint16_t kExtra64 = 0x0001, kExtraPadding = 0xd935;
constexpr std::uint32_t kFull32 = 0xFFFFFFFF;
constexpr std::uint16_t kFull16 = 0xFFFF;
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kDeflateRatio = 1032;  // the largest compression ratio of deflate

/// Reads little-endian numbers one after another; InputError past the end.
class Reader {
 public:
  Reader(Bytes bytes, std::uint64_t at) : bytes_(bytes), at_(at) {}

  template <class T>
  T take() {
    const Bytes raw = take_bytes(sizeof(T));
    T value = 0;
    for (std::size_t k = sizeof(T); k-- > 0;)
      value = static_cast<T>((std::uint64_t{value} << 8) | std::to_integer<std::uint8_t>(raw[k]));
    return value;
  }

  Bytes take_bytes(std::uint64_t count) {
    if (at_ > bytes_.size() || count > bytes_.size() - at_)
      refuse("zip directory is damaged: it reaches beyond the end of the file");
    const Bytes taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }

  void skip(std::uint64_t count) { take_bytes(count); }
  std::uint64_t at() const { return at_; }

 private:
  Bytes bytes_;
  std::uint64_t at_;
};

struct Directory {
  std::uint64_t offset = 0, size = 0, entries = 0;
};

std::uint64_t find_end(Bytes file) {
  if (file.size() < kEndSize) refuse("not an npz file (too short for a zip directory)");
  const std::uint64_t last = file.size() - kEndSize, first = last > kFull16 ? last - kFull16 : 0;
  for (std::uint64_t at = last + 1; at-- > first;) {
    Reader reader(file, at);
    if (reader.take<std::uint32_t>() != kEnd) continue;
    reader.skip(16);
    if (reader.take<std::uint16_t>() == last - at) return at;  // its comment ends at the end of the file
  }
  refuse("not an npz file, or cut off (no zip directory at its end)");
}

Directory find_directory(Bytes file) {
  const std::uint64_t end = find_end(file);
  Reader reader(file, end + 4);
  const auto disk = reader.take<std::uint16_t>(), start_disk = reader.take<std::uint16_t>();
  reader.skip(2);
  Directory directory;
  directory.entries = reader.take<std::uint16_t>();
  directory.size = reader.take<std::uint32_t>();
  directory.offset = reader.take<std::uint32_t>();
  std::uint64_t limit = end;
  // Writers may add the ZIP64 record even where the numbers fit the short one.
  if (end >= kLocatorSize && Reader(file, end - kLocatorSize).take<std::uint32_t>() == kLocator64) {
    limit = Reader(file, end - kLocatorSize + 8).take<std::uint64_t>();
    Reader wide_end(file, limit);
    if (wide_end.take<std::uint32_t>() != kEnd64)
      refuse("zip directory is damaged: no ZIP64 record where one is announced");
    wide_end.skip(28);
    directory.entries = wide_end.take<std::uint64_t>();
    directory.size = wide_end.take<std::uint64_t>();
    directory.offset = wide_end.take<std::uint64_t>();
  } else if (disk != 0 || start_disk != 0) {
    refuse("zip files in several parts are not supported");
  }
  if (directory.offset > limit || directory.size != limit - directory.offset) {
    refuse("zip directory is damaged: its place and size do not fit the file");
  }
  if (directory.entries > directory.size / kCentralSize)
    refuse("zip directory is damaged: it cannot hold {} entries", directory.entries);
  return directory;
}

/// Takes the 64-bit sizes from the entry's extra field where the 32-bit ones are the ZIP64 marker.
void take_extra64(Bytes extra, ZipEntry& entry) {
  const auto wide = [](std::uint64_t size) { return size == kFull32; };
  if (!wide(entry.size) && !wide(entry.stored_size) && !wide(entry.header_offset)) return;
  Reader reader(extra, 0);
  while (reader.at() + 4 <= extra.size()) {
    const auto id = reader.take<std::uint16_t>();
    Bytes field = reader.take_bytes(reader.take<std::uint16_t>());
    if (id != kExtra64) continue;
    Reader sizes(field, 0);
    for (auto* size : {&entry.size, &entry.stored_size, &entry.header_offset}) {
      if (wide(*size)) *size = sizes.take<std::uint64_t>();
    }
    return;
  }
}

ZipEntry take_entry(Reader& reader) {
  if (reader.take<std::uint32_t>() != kCentral) refuse("zip directory is damaged: an entry has no signature");
  ZipEntry entry;
  reader.skip(4);
  const auto flags = reader.take<std::uint16_t>(), method = reader.take<std::uint16_t>();
  reader.skip(4);
  entry.crc = reader.take<std::uint32_t>();
  entry.stored_size = reader.take<std::uint32_t>();
  entry.size = reader.take<std::uint32_t>();
  const auto name_size = reader.take<std::uint16_t>(), extra_size = reader.take<std::uint16_t>(),
             comment_size = reader.take<std::uint16_t>();
  reader.skip(8);
  entry.header_offset = reader.take<std::uint32_t>();
  const Bytes name = reader.take_bytes(name_size);
  entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  take_extra64(reader.take_bytes(extra_size), entry);
  reader.skip(comment_size);

  const auto printable = [](unsigned char c) { return c >= 0x20 && c != 0x7F; };
  if (entry.name.empty() || !std::all_of(entry.name.begin(), entry.name.end(), printable)) {
    refuse("zip directory is damaged: an entry has no readable name");
  }
  if ((flags & 1) != 0) refuse("entry '{}' is encrypted", entry.name);
  if (method != 0 && method != 8)
    refuse("entry '{}' uses compression {}; must be stored or deflated", entry.name, method);
  entry.deflated = method == 8;
  if (!entry.deflated && entry.size != entry.stored_size)
    refuse("entry '{}' is stored, but its two sizes differ", entry.name);
  if (entry.deflated && entry.size / kDeflateRatio > entry.stored_size) {
    refuse("entry '{}' claims {} bytes from {} deflated ones; that is impossible", entry.name, entry.size,
           entry.stored_size);
  }
  return entry;
}

/// Checks that every entry ends before the next one (or the directory) begins, and sets its limit.
void set_limits(std::vector<ZipEntry>& entries, std::uint64_t directory_offset) {
  std::vector<ZipEntry*> by_place;
  by_place.reserve(entries.size());
  for (ZipEntry& entry : entries) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->header_offset < b->header_offset; });
  for (std::size_t i = 0; i < by_place.size(); ++i) {
    ZipEntry& entry = *by_place[i];
    entry.limit = i + 1 < by_place.size() ? by_place[i + 1]->header_offset : directory_offset;
    if (entry.header_offset > directory_offset || entry.limit - entry.header_offset < kLocalSize ||
        entry.limit - entry.header_offset - kLocalSize < entry.stored_size || entry.limit > directory_offset) {
      refuse("entry '{}' overlaps another or reaches beyond the end of the file", entry.name);
    }
  }
}

template <class T>
void put_number(std::string& to, T value) {
  for (std::size_t k = 0; k < sizeof(T); ++k) to.push_back(static_cast<char>((value >> (8 * k)) & 0xFF));
}

template <class... T>
void put_numbers(std::string& to, T... values) {
  (put_number(to, values), ...);
}

constexpr std::uint16_t kVersion = 45, kDate = 33;  // ZIP64; 1980-01-01

std::uint32_t narrow32(std::uint64_t size) { return size >= kFull32 ? kFull32 : static_cast<std::uint32_t>(size); }

}  // namespace

std::vector<ZipEntry> read_zip_directory(Bytes file) {
  const Directory directory = find_directory(file);
  Reader reader(file.first(directory.offset + directory.size), directory.offset);
  std::vector<ZipEntry> entries;
  std::unordered_set<std::string_view> names;
  entries.reserve(directory.entries);
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    entries.push_back(take_entry(reader));
    if (!names.insert(entries.back().name).second) refuse("entry '{}' occurs twice", entries.back().name);
  }
  set_limits(entries, directory.offset);
  return entries;
}

Bytes entry_bytes(Bytes file, const ZipEntry& entry) {
  Reader reader(file.first(entry.limit), entry.header_offset);
  if (reader.take<std::uint32_t>() != kLocal) refuse("zip file is damaged: no header where the directory says");
  reader.skip(22);
  const auto name_size = reader.take<std::uint16_t>(), extra_size = reader.take<std::uint16_t>();
  const Bytes name = reader.take_bytes(name_size);
  if (std::string_view(reinterpret_cast<const char*>(name.data()), name.size()) != entry.name) {
    refuse("zip file is damaged: its header and the directory name it differently");
  }
  reader.skip(extra_size);
  return reader.take_bytes(entry.stored_size);
}

void ZipWriter::put(const std::string& bytes) {
  write_(std::as_bytes(std::span(bytes)));
  offset_ += bytes.size();
}

void ZipWriter::add(const std::string& name, Bytes head, Bytes body, std::uint32_t crc) {
  add(name, head, body.size(), crc, [&] { write_(body); });
}

void ZipWriter::add(const std::string& name, Bytes head, std::uint64_t body_size, std::uint32_t crc,
                    const std::function<void()>& write_body) {
  const std::uint64_t size = head.size() + body_size;
  const bool wide = size >= kFull32;
  std::string extra;
  if (wide) put_numbers(extra, kExtra64, std::uint16_t{16}, size, size);
  const std::uint64_t payload = offset_ + kLocalSize + name.size() + extra.size() + 4;
  const auto padding = static_cast<std::uint16_t>((kAlignment - payload % kAlignment) % kAlignment);
  put_numbers(extra, kExtraPadding, padding);
  extra.append(padding, '\0');

  const auto name_size = static_cast<std::uint16_t>(name.size());
  std::string local;
  put_numbers(local, kLocal, kVersion, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, kDate, crc,
              narrow32(wide ? kFull32 : size), narrow32(wide ? kFull32 : size), name_size,
              static_cast<std::uint16_t>(extra.size()));

  std::string extra_central;
  const bool far = offset_ >= kFull32;
  if (wide || far) {
    put_numbers(extra_central, kExtra64, static_cast<std::uint16_t>((wide ? 16 : 0) + (far ? 8 : 0)));
    if (wide) put_numbers(extra_central, size, size);
    if (far) put_number(extra_central, offset_);
  }
  put_numbers(directory_, kCentral, kVersion, kVersion, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, kDate,
              crc, narrow32(size), narrow32(size), name_size, static_cast<std::uint16_t>(extra_central.size()),
              std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, std::uint32_t{0}, narrow32(offset_));
  directory_ += name + extra_central;
  ++entries_;

  put(local + name + extra);
  write_(head);
  write_body();
  offset_ += size;
}

void ZipWriter::finish() {
  const std::uint64_t begin = offset_, size = directory_.size();
  put(directory_);
  std::string end;
  if (entries_ >= kFull16 || size >= kFull32 || begin >= kFull32) {
    const std::uint64_t wide_end = offset_;
    put_numbers(end, kEnd64, kEnd64Size - 12, kVersion, kVersion, std::uint32_t{0}, std::uint32_t{0}, entries_,
                entries_, size, begin);
    put_numbers(end, kLocator64, std::uint32_t{0}, wide_end, std::uint32_t{1});
  }
  const auto count = entries_ >= kFull16 ? kFull16 : static_cast<std::uint16_t>(entries_);
  put_numbers(end, kEnd, std::uint16_t{0}, std::uint16_t{0}, count, count, narrow32(size), narrow32(begin),
              std::uint16_t{0});
  put(end);
}

}  // namespace attsvm::internal
