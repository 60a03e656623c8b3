#pragma once

#include <zlib.h>

#include <random>
#include <span>
#include <vector>

#include "fuzz.h"
#include "io/zip.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace attsvm::fuzz {

struct Entry {
  std::string name, bytes;
  bool deflated;
};

/// `from` through zlib's inflate or deflate, raw, as far as it goes within `most` bytes.
template <class Step>
std::string pass(const std::string& from, std::size_t most, z_stream& stream, Step step) {
  std::string to(most, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(to.data());
  stream.avail_out = static_cast<uInt>(most);
  step(&stream, Z_FINISH);
  to.resize(stream.total_out);
  return to;
}

inline std::string inflated(const std::string& from) {
  constexpr std::size_t kMost = 1 << 16;
  z_stream stream{};
  inflateInit2(&stream, -MAX_WBITS);
  std::string to = pass(from, kMost, stream, inflate);
  inflateEnd(&stream);
  return to;
}

inline std::string deflated(const std::string& from) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string to = pass(from, deflateBound(&stream, from.size()), stream, deflate);
  deflateEnd(&stream);
  return to;
}

inline std::vector<Entry> unpack(const std::uint8_t* data, std::size_t size) {
  const Bytes file = std::as_bytes(std::span(data, size));
  std::vector<Entry> entries;
  for (const ZipEntry& entry : read_zip_directory(file)) {
    const Bytes stored = entry_bytes(file, entry);
    const std::string bytes(reinterpret_cast<const char*>(stored.data()), stored.size());
    entries.push_back({entry.name, entry.deflated ? inflated(bytes) : bytes, entry.deflated});
  }
  return entries;
}

inline void put(std::string& to, std::uint32_t number, int bytes) {
  for (int k = 0; k < bytes; ++k) to.push_back(static_cast<char>(number >> (8 * k)));
}

/// A zip file whose sizes, places and sums are right.
inline std::string pack(const std::vector<Entry>& entries) {
  std::string file, directory;
  for (const Entry& entry : entries) {
    const std::string stored = entry.deflated ? deflated(entry.bytes) : entry.bytes;
    std::string facts;  // what the local header and the directory have in common
    put(facts, 20, 4);
    put(facts, entry.deflated ? 8 : 0, 2);
    put(facts, 33 << 16, 4);
    const auto* bytes = reinterpret_cast<const Bytef*>(entry.bytes.data());
    put(facts, static_cast<std::uint32_t>(crc32(0, bytes, static_cast<uInt>(entry.bytes.size()))), 4);
    put(facts, static_cast<std::uint32_t>(stored.size()), 4);
    put(facts, static_cast<std::uint32_t>(entry.bytes.size()), 4);
    put(facts, static_cast<std::uint32_t>(entry.name.size()), 4);  // the upper half: no extra field
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    directory += facts + std::string(10, '\0');
    put(directory, static_cast<std::uint32_t>(file.size()), 4);
    directory += entry.name;
    put(file, 0x04034b50, 4);
    file += facts + entry.name + stored;
  }
  const std::size_t begin = file.size();
  file += directory;
  put(file, 0x06054b50, 4);
  put(file, 0, 4);
  put(file, static_cast<std::uint32_t>(entries.size() * 0x10001), 4);
  put(file, static_cast<std::uint32_t>(directory.size()), 4);
  put(file, static_cast<std::uint32_t>(begin), 4);
  put(file, 0, 2);
  return file;
}

/// Three times in four: takes the zip file apart, changes an array, and puts it together again. `fields` has the names
/// that arrays may have.
template <class Fields>
std::size_t mutate_npz(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed,
                       const Fields& fields) {
  std::minstd_rand random(seed);
  const auto below = [&](std::size_t count) { return std::size_t{random()} / 64 % count; };
  if (below(4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  try {
    std::vector<Entry> entries = unpack(data, size);
    if (entries.empty()) return LLVMFuzzerMutate(data, size, max_size);
    Entry& entry = entries[below(entries.size())];
    const std::size_t before = entry.bytes.size(), action = below(16);
    if (action == 0) {
      entry.deflated = !entry.deflated;
    } else if (action == 1) {
      entry.name = std::string(fields[below(fields.size())].name) + ".npy";
    } else if (action == 2) {
      entries.erase(entries.begin() + (&entry - entries.data()));
    } else {
      entry.bytes.resize(before + 64);
      entry.bytes.resize(
          LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(entry.bytes.data()), before, entry.bytes.size()));
      if (action > 5) entry.bytes.resize(before);  // then the shape still fits
    }
    const std::string file = pack(entries);
    if (file.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
    std::copy(file.begin(), file.end(), data);
    return file.size();
  } catch (const InputError&) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
}

}  // namespace attsvm::fuzz
