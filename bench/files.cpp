// Reading, CRC-checking and validating a large task against plain read() of the same file from the page cache.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "bench.h"
#include "measure.h"

namespace attsvm::bench {
namespace {

/// The same arrays as numpy.savez lays them out: numbers begin wherever the header happens to end.
void write_unaligned(const std::string& aligned, const std::string& path) {
  // A one-byte entry name longer than ours moves everything by an odd number of bytes; the padding field is cut off.
  std::ifstream in(aligned, std::ios::binary);
  std::ofstream out(path, std::ios::binary);
  char head[30];
  in.read(head, sizeof(head));
  std::uint16_t name = 0, extra = 0;
  std::memcpy(&name, head + 26, 2);
  std::memcpy(&extra, head + 28, 2);
  const std::uint16_t kept = 5;  // an extra field of one byte
  std::memcpy(head + 28, &kept, 2);
  out.write(head, sizeof(head));
  std::string text(name, '\0');
  in.read(text.data(), name);
  out.write(text.data(), name);
  in.ignore(extra);
  out.write("\x35\xd9\x01\x00\x00", kept);
  std::vector<char> block(1 << 22);
  const std::uint64_t shift = extra - kept;
  std::uint64_t left = std::filesystem::file_size(aligned) - sizeof(head) - name - extra - 22;
  while (left > 0) {
    const auto size = static_cast<std::streamsize>(std::min<std::uint64_t>(left, block.size()));
    in.read(block.data(), size);
    out.write(block.data(), size);
    left -= static_cast<std::uint64_t>(size);
  }
  char end[22];
  in.read(end, sizeof(end));
  std::uint32_t offset = 0;
  std::memcpy(&offset, end + 16, 4);
  offset -= static_cast<std::uint32_t>(shift);
  std::memcpy(end + 16, &offset, 4);
  out.write(end, sizeof(end));
}

void plain_read(const std::string& path, std::vector<char>& buffer) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (::read(file, buffer.data(), buffer.size()) > 0) {
  }
  ::close(file);
}

/// The lower limit of loading by copy: reads the file's bytes into fresh memory.
void read_into_fresh_memory(const std::string& path) {
  const std::size_t size = std::filesystem::file_size(path);
  const std::unique_ptr<char[]> memory(new char[size]);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  for (std::size_t at = 0; at < size;) {
    const ssize_t got = ::read(file, memory.get() + at, size - at);
    if (got <= 0) break;
    at += static_cast<std::size_t>(got);
  }
  ::close(file);
}

/// Peak resident memory of a separate process that loads the task.
double peak_bytes(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    Threads threads(2);
    const AttentionTask task = load_task(path, threads);
    std::_Exit(task.queries() > 0 ? 0 : 1);
  }
  rusage usage{};
  int status = 0;
  ::wait4(child, &status, 0, &usage);
  return 1024 * static_cast<double>(usage.ru_maxrss);
}

void run_files(const std::string& folder, Index mib) {
  const std::string aligned = folder + "/bench_aligned.npz", unaligned = folder + "/bench_unaligned.npz";
  {
    const Index T = 128, d = 256, n = mib * (1 << 20) / (T * d * 8);
    std::vector<double> tokens(static_cast<std::size_t>(n * T * d));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<double>(i % 1024) * 0.25;
    write_npz(aligned, {{"tokens", Array::view(tokens.data(), {n, T, d})}}, true);
  }
  write_unaligned(aligned, unaligned);

  std::vector<char> buffer(1 << 20);
  Threads one(1), two(2);
  std::vector<Contender> contenders{{"read(), 1 MiB buffer", [&] { plain_read(aligned, buffer); }},
                                    {"mapped, 1 thread", [&] { load_task(aligned, one); }},
                                    {"mapped, 2 threads", [&] { load_task(aligned, two); }},
                                    {"read() into fresh memory", [&] { read_into_fresh_memory(unaligned); }},
                                    {"copied, 1 thread", [&] { load_task(unaligned, one); }},
                                    {"copied, 2 threads", [&] { load_task(unaligned, two); }}};
  interleave(contenders, 7);
  const double mapped = peak_bytes(aligned), copied = peak_bytes(unaligned);
  for (const Contender& contender : contenders) {
    Json line{{"name", contender.name}, {"bytes", std::filesystem::file_size(aligned)}, {"seconds", contender.seconds}};
    if (contender.name.starts_with("mapped")) line["peak_memory"] = mapped;
    if (contender.name.starts_with("copied")) line["peak_memory"] = copied;
    emit(line);
  }
  std::filesystem::remove(aligned);
  std::filesystem::remove(unaligned);
}

}  // namespace

void add_files(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("files", "Loading a task against read() of the same file");
  auto folder = std::make_shared<std::string>(".");
  auto mib = std::make_shared<Index>(2048);
  verb->add_option("folder", *folder, "Folder for the task file")->required();
  verb->add_option("--mib", *mib, "Size of the task file in MiB");
  verb->callback([folder, mib] { run_files(*folder, *mib); });
}

}  // namespace attsvm::bench
