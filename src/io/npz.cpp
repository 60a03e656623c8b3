#include <libdeflate.h>
#include <sys/mman.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "attsvm/files.h"
#include "base/finite_mark.h"
#include "base/refuse.h"
#include "base/simd.h"
#include "io/npy.h"
#include "io/npz_writer.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 22;  // bytes per checksum job of a thread
constexpr std::size_t kBlock = std::size_t{1} << 17;  // bytes that stay in cache until summed and checked
constexpr std::string_view kSuffix = ".npy";

std::uint32_t crc_of(Bytes bytes, std::uint32_t before = 0) {
  return bytes.empty() ? before : libdeflate_crc32(before, bytes.data(), bytes.size());
}

/// Memory for an array. Large arrays use huge pages: faulting in small ones costs more than reading the file.
std::shared_ptr<std::byte> allocate(std::size_t size) {
  constexpr std::size_t kHuge = std::size_t{1} << 21;
  const std::size_t alignment = size >= kHuge ? kHuge : 64;
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (memory == nullptr) refuse("not enough memory for its {} bytes", size);
  if (alignment == kHuge) ::madvise(memory, rounded, MADV_HUGEPAGE);
  return {memory, [](std::byte* p) { std::free(p); }};
}

bool all_finite(Bytes bytes, Scalar scalar) {
  const auto whole = [&]<class T>(T) {
    const std::span numbers(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
    return first_nonfinite(numbers) == numbers.size();
  };
  return scalar == Scalar::f64 ? whole(double{}) : scalar == Scalar::f32 && whole(float{});
}

bool aligned(const std::byte* data, Scalar scalar) {
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(size_of(scalar)) == 0;
}

struct Seen {
  std::uint32_t crc = 0;
  bool finite = true;
};

/// Sums and checks `size` bytes, block by block while each is in cache; fetch(offset, size) gives a block.
template <class Fetch>
Seen look_through(std::size_t size, bool check_finite, Scalar scalar, std::uint32_t crc_before, Threads& threads,
                  Fetch&& fetch) {
  const std::size_t chunks = (size + kChunk - 1) / kChunk;
  std::vector<Seen> seen(chunks);
  threads.for_each(static_cast<std::int64_t>(chunks), [&](std::int64_t index) {
    Seen& mine = seen[static_cast<std::size_t>(index)];
    const std::size_t begin = static_cast<std::size_t>(index) * kChunk, end = std::min(size, begin + kChunk);
    for (std::size_t at = begin; at < end; at += kBlock) {
      const Bytes block = fetch(at, std::min(kBlock, end - at));
      mine.crc = crc_of(block, mine.crc);
      mine.finite = mine.finite && check_finite && all_finite(block, scalar);
    }
  });
  Seen total{crc_before, check_finite};
  for (std::size_t index = 0; index < chunks; ++index) {
    const std::size_t length = std::min(kChunk, size - index * kChunk);
    total.crc = static_cast<std::uint32_t>(crc32_combine(total.crc, seen[index].crc, static_cast<z_off_t>(length)));
    total.finite = total.finite && seen[index].finite;
  }
  return total;
}

void require_crc(std::uint32_t found, const ZipEntry& entry) {
  if (found != entry.crc) refuse("CRC-32 is {:08x}, but the file says {:08x}: the data are damaged", found, entry.crc);
}

bool can_check(const Array& array) {
  return is_floating(array.scalar) && size_of(array.scalar) >= 4 && !array.foreign_endian;
}

Array read_stored(const std::shared_ptr<const InputFile>& file, const ZipEntry& entry, Threads& threads) {
  const Bytes stored = entry_bytes(file->bytes(), entry);
  const NpyHeader header = read_npy_header(stored, stored.size());
  const Bytes body = stored.subspan(header.data_offset);
  const std::uint32_t head_crc = crc_of(stored.first(header.data_offset));
  Array array = header.array;
  Seen seen;
  if (aligned(body.data(), array.scalar)) {
    array.data = body.data();
    array.owner = file;
    seen = look_through(body.size(), can_check(array), array.scalar, head_crc, threads,
                        [&](std::size_t at, std::size_t size) { return body.subspan(at, size); });
  } else {
    const auto copy = allocate(body.size());
    array.data = copy.get();
    array.owner = copy;
    const auto begin = static_cast<std::size_t>(body.data() - file->bytes().data());
    seen = look_through(body.size(), can_check(array), array.scalar, head_crc, threads,
                        [&](std::size_t at, std::size_t size) {
                          file->read(begin + at, copy.get() + at, size);
                          return Bytes(copy.get() + at, size);
                        });
  }
  require_crc(seen.crc, entry);
  FiniteMark::set(array, seen.finite);
  return array;
}

/// Refuses deflated bytes whose npy header does not announce `size` bytes, before memory is taken for them all.
void require_header(Bytes stored, std::size_t size) {
  std::vector<std::byte> start(std::min(size, kBlock));
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(stored.data()));
  stream.avail_in = static_cast<uInt>(std::min<std::size_t>(stored.size(), kChunk));
  stream.next_out = reinterpret_cast<Bytef*>(start.data());
  stream.avail_out = static_cast<uInt>(start.size());
  inflate(&stream, Z_SYNC_FLUSH);
  start.resize(stream.total_out);
  inflateEnd(&stream);
  read_npy_header(start, size);
}

Array read_deflated(const std::shared_ptr<const InputFile>& file, const ZipEntry& entry, Threads& threads) {
  const Bytes stored = entry_bytes(file->bytes(), entry);
  require_header(stored, entry.size);
  const auto inflated = allocate(entry.size);
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (!inflater) throw std::bad_alloc();
  std::size_t used = 0, size = 0;
  const auto result = libdeflate_deflate_decompress_ex(inflater.get(), stored.data(), stored.size(), inflated.get(),
                                                       entry.size, &used, &size);
  if (result != LIBDEFLATE_SUCCESS || used != stored.size() || size != entry.size)
    refuse("the deflated data are damaged");
  const Bytes bytes(inflated.get(), entry.size);
  const NpyHeader header = read_npy_header(bytes, bytes.size());
  const Bytes body = bytes.subspan(header.data_offset);
  Array array = header.array;
  array.data = body.data();
  array.owner = inflated;
  const bool check = can_check(array) && aligned(body.data(), array.scalar);
  const Seen seen = look_through(body.size(), check, array.scalar, crc_of(bytes.first(header.data_offset)), threads,
                                 [&](std::size_t at, std::size_t length) { return body.subspan(at, length); });
  require_crc(seen.crc, entry);
  FiniteMark::set(array, seen.finite);
  return array;
}

void add_entry(ZipWriter& zip, const std::string& name, const Array& given) {
  const Array array = to_native(given);
  const std::string header = npy_header(array);
  const Bytes head = std::as_bytes(std::span(header)), body(array.data, static_cast<std::size_t>(array.bytes()));
  zip.add(name + std::string(kSuffix), head, body, crc_of(body, crc_of(head)));
}

}  // namespace

struct NpzFile::Contents {
  std::string path;
  std::shared_ptr<const InputFile> file;
  std::vector<ZipEntry> entries;  // names without .npy
};

NpzFile::NpzFile(const std::string& path) : contents_(std::make_unique<Contents>()) {
  with_place(path, [&] {
    contents_->path = path;
    contents_->file = InputFile::open(path);
    contents_->entries = read_zip_directory(contents_->file->bytes());
    for (ZipEntry& entry : contents_->entries) {
      std::string name = entry.name;
      if (!name.ends_with(kSuffix) || name.size() == kSuffix.size())
        refuse("entry '{}' is not an array (its name must end in .npy)", name);
    }
  });
}

NpzFile::~NpzFile() = default;
NpzFile::NpzFile(NpzFile&&) noexcept = default;

const std::string& NpzFile::path() const { return contents_->path; }

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (const ZipEntry& entry : contents_->entries)
    names.push_back(entry.name.substr(0, entry.name.size() - kSuffix.size()));
  return names;
}

bool NpzFile::has(const std::string& name) const {
  return std::any_of(contents_->entries.begin(), contents_->entries.end(),
                     [&](const ZipEntry& entry) { return entry.name == name + std::string(kSuffix); });
}

Array NpzFile::read(const std::string& name, Threads& threads) const {
  return with_place(contents_->path + ": " + name, [&] {
    for (const ZipEntry& entry : contents_->entries) {
      if (entry.name != name + std::string(kSuffix)) continue;
      return entry.deflated ? read_deflated(contents_->file, entry, threads)
                            : read_stored(contents_->file, entry, threads);
    }
    refuse("there is no such array");
  });
}

NpzWriter::NpzWriter(const std::string& path, bool replace)
    : out_(path, replace), zip_([this](Bytes bytes) { out_.write(bytes); }) {}

void NpzWriter::add(const std::string& name, const Array& array) { add_entry(zip_, name, array); }

void NpzWriter::add(const std::string& name, const std::vector<Index>& shape, Index pieces,
                    const std::function<Bytes(Index)>& piece) {
  const std::string header = npy_header(Array(Scalar::f64, shape, nullptr));
  const Bytes head = std::as_bytes(std::span(header));
  std::uint32_t crc = crc_of(head);
  std::uint64_t size = 0;
  for (Index k = 0; k < pieces; ++k) {
    crc = crc_of(piece(k), crc);
    size += piece(k).size();
  }
  zip_.add(name + std::string(kSuffix), head, size, crc, [&] {
    for (Index k = 0; k < pieces; ++k) out_.write(piece(k));
  });
}

void NpzWriter::commit() {
  zip_.finish();
  out_.commit();
}

void write_npz(const std::string& path, const NamedArrays& arrays, bool replace) {
  NpzWriter writer(path, replace);
  for (const auto& [name, array] : arrays) writer.add(name, array);
  writer.commit();
}

std::string internal::npz_bytes(const NamedArrays& arrays) {
  std::string file;
  ZipWriter zip([&](Bytes bytes) { file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
  for (const auto& [name, array] : arrays) add_entry(zip, name, array);
  zip.finish();
  return file;
}

}  // namespace attsvm
