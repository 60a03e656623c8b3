#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/refuse.h"
#include "io/cut_files.h"
#include "io/output.h"
#include "io/shards.h"

namespace attsvm::internal {

std::string system_reason() { return std::generic_category().message(errno); }

std::shared_ptr<const InputFile> InputFile::open(const std::string& path) {
  return std::shared_ptr<const InputFile>(new InputFile(path));
}

InputFile::InputFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe, which is refused below, must not wait for a writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) refuse("cannot open: {}", system_reason());
  struct stat facts {};
  const bool regular = ::fstat(descriptor_, &facts) == 0 && S_ISREG(facts.st_mode);
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* memory = nullptr;
  if (regular && size > 0) memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (!regular || memory == MAP_FAILED) {
    const std::string why = regular ? "cannot map: " + system_reason() : "is not a regular file";
    ::close(descriptor_);
    refuse("{}", why);
  }
  bytes_ = {static_cast<const std::byte*>(memory), size};
  try {
    range_ = std::make_unique<const MappedRange>(path, bytes_);
  } catch (...) {
    close();
    throw;
  }
}

InputFile::~InputFile() { close(); }

void InputFile::close() {
  range_.reset();
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  ::close(descriptor_);
}

void InputFile::read(std::size_t offset, std::byte* to, std::size_t size) const {
  while (size > 0) {
    const ssize_t got = ::pread(descriptor_, to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) refuse("cannot read at byte {}: {}", offset, got == 0 ? "file became shorter" : system_reason());
    offset += static_cast<std::size_t>(got);
    to += got;
    size -= static_cast<std::size_t>(got);
  }
}

void require_writable(const std::string& path, bool replace) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path file(path);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (path.empty() || !file.has_filename()) refuse("'{}' is not a file name", path);
  if (!fs::is_directory(folder, ignored)) refuse("{}: cannot write: folder {} does not exist", path, folder.string());
  const fs::file_status there = fs::status(file, ignored);
  if (fs::exists(there) && !fs::is_regular_file(there)) refuse("{}: cannot write: it is not a regular file", path);
  if (!replace && fs::exists(fs::symlink_status(file, ignored))) {
    refuse("{}: already exists; give --force to replace it", path);
  }
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path))
    refuse("{}: cannot create the folder: {}", path, error ? error.message() : "a file of that name exists");
}

void require_other_file(const std::string& output, const std::string& input) {
  std::error_code ignored;
  const auto require_other = [&](const std::filesystem::path& file) {
    if (std::filesystem::equivalent(output, file, ignored))
      refuse("{}: cannot write: it is an input of this command", output);
  };
  require_other(input);
  const std::string manifest = manifest_of(input);
  if (manifest.empty()) return;
  require_other(manifest);
  const Manifest shards = read_manifest(manifest);
  for (const Manifest::Shard& shard : shards.shards) require_other(std::filesystem::path(shards.folder) / shard.file);
}

OutputFile::OutputFile(std::string path, bool replace)
    : path_(std::move(path)), temporary_(fmt::format("{}.{}.partial", path_, ::getpid())), replace_(replace) {
  require_writable(path_, replace_);
  const auto folder = std::filesystem::path(path_).parent_path();
  // The kernel deletes an unnamed file when the process ends, however it ends.
  descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {  // the file system does not support O_TMPFILE
    descriptor_ = ::open(temporary_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("write");
    named_ = true;
  }
}

OutputFile::~OutputFile() {
  ::close(descriptor_);
  if (named_) ::unlink(temporary_.c_str());
}

void OutputFile::fail(const char* what) const { refuse("{}: cannot {}: {}", path_, what, system_reason()); }

void OutputFile::write(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

bool OutputFile::link_as(const std::string& name) const {
  const std::string source = named_ ? temporary_ : fmt::format("/proc/self/fd/{}", descriptor_);
  return ::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

void OutputFile::commit() {
  if (::fsync(descriptor_) != 0) fail("write");
  if (!replace_) {  // unlike rename, link never replaces a file that appeared meanwhile
    if (link_as(path_)) return;
    if (errno == EEXIST || !named_) fail("write");
    require_writable(path_, replace_);  // the file system does not support links
  }
  if (!named_) {
    ::unlink(temporary_.c_str());
    if (!link_as(temporary_)) fail("write");
    named_ = true;
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the finished file");
  named_ = false;
}

}  // namespace attsvm::internal
