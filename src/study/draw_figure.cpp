#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/refuse.h"
#include "study/figure.h"

namespace attsvm::internal {
namespace {

/// A file in memory: it is read after the child that writes it has ended, and unlike a pipe it cannot fill up.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("attsvm", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::string contents() const {
    std::string text;
    std::array<char, 1 << 16> block{};
    ssize_t got = 0;
    while ((got = ::pread(descriptor_, block.data(), block.size(), static_cast<off_t>(text.size()))) > 0) {
      text.append(block.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  int descriptor_;
};

/// Runs gnuplot in a process group of its own, so that Ctrl-C does not interrupt it in the middle of a figure, and with
/// a fixed environment, so that the user's settings do not change it. Returns 0 and the exit status, or an errno.
int spawn_and_wait(const std::string& script_file, const std::string& format, int out, int err, int& status) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);

  const char* path = std::getenv("PATH");
  std::array<std::string, 5> arguments{"gnuplot", "--default-settings", "-e", fmt::format("format='{}'", format),
                                       script_file};
  std::array<std::string, 2> variables{std::string("PATH=") + (path == nullptr ? "/usr/bin:/bin" : path),
                                       "LC_ALL=C.UTF-8"};
  std::array<char*, 6> argv{};
  for (std::size_t k = 0; k < arguments.size(); ++k) argv[k] = arguments[k].data();
  std::array<char*, 3> environment{variables[0].data(), variables[1].data(), nullptr};
  pid_t child = 0;
  int error = ::posix_spawnp(&child, "gnuplot", &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return error;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// How a complete file of a format ends.
std::string_view ending_of(const std::string& format) {
  if (format == "pdf") return "%%EOF\n";
  return format == "png" ? std::string_view("IEND\xAE\x42\x60\x82") : "</svg>\n\n";
}

/// Cairo writes the time of day into PDF files; the same figure must give the same bytes.
void set_date_aside(std::string& pdf) {
  constexpr std::string_view kDate = "/CreationDate (D:";
  const std::size_t at = pdf.find(kDate);
  if (at == std::string::npos) return;
  for (std::size_t k = at + kDate.size(); k < pdf.size() && pdf[k] != ')'; ++k) {
    if (pdf[k] >= '0' && pdf[k] <= '9') pdf[k] = '0';
  }
  pdf.replace(at + kDate.size(), 8, "19800101");
}

}  // namespace

std::string draw_figure(const std::string& script_file, const std::string& format, std::string& problem) {
  const MemoryFile out, err;
  int status = 0;
  const int error = spawn_and_wait(script_file, format, out.descriptor(), err.descriptor(), status);
  if (error == ENOENT) {
    problem = "gnuplot is not installed (Debian: gnuplot-nox); the data and the scripts of the figures are written";
    return {};
  }
  if (error != 0) {
    problem = "gnuplot cannot be started: " + std::generic_category().message(error);
    return {};
  }
  std::string drawn = out.contents();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !drawn.ends_with(ending_of(format))) {
    std::string words = err.contents();  // the error is the last line, after the command and a caret
    while (words.ends_with('\n')) words.pop_back();
    words.erase(0, words.rfind('\n') + 1);
    problem = printable(fmt::format("gnuplot could not draw {}: {}", script_file, words));
    return {};
  }
  if (format == "pdf") set_date_aside(drawn);
  return drawn;
}

}  // namespace attsvm::internal
