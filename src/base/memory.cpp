#include "base/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/limits.h"
#include "base/refuse.h"

namespace attsvm::internal {
namespace {

constexpr double kAsk = 64 << 20;  // less than this is not worth looking for

/// The number after a word at the start of a line, or in a file that holds nothing else (word ""). `otherwise` if it is
/// not there, or is "max".
double number_in(const std::string& path, const std::string& word, double otherwise) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream items(line);
    std::string name;
    if (!word.empty() && !(items >> name && name == word)) continue;
    double number = 0;
    return items >> number ? number : otherwise;
  }
  return otherwise;
}

/// What one control group has left. File pages count as used, but the system takes them back before it lets work fail:
/// first those that nobody has read for long (inactive), then the others (active).
double left_in_group(const std::string& folder, const char* limit, const char* used, const std::string& total) {
  const double most = number_in(folder + limit, "", kInfinity);
  if (most == kInfinity) return kInfinity;
  const std::string facts = folder + "/memory.stat";
  return most - number_in(folder + used, "", 0) + number_in(facts, total + "inactive_file", 0) +
         number_in(facts, total + "active_file", 0);
}

/// What the control groups of this process, and those around them, have left.
double left_in_groups(const std::string& root) {
  double left = kInfinity;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    const std::string base = root + "/sys/fs/cgroup" + (unified ? "" : "/memory");
    // Inside a container, the path may be that of the machine; the container's own group is then at the top.
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      if (path == "/") path.clear();
      left = std::min(
          left, unified ? left_in_group(base + path, "/memory.max", "/memory.current", "")
                        : left_in_group(base + path, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"));
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return left;
}

double left_of_own_limit(const std::string& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kInfinity;
  const double pages = number_in(root + "/proc/self/statm", "", 0);
  return static_cast<double>(limit.rlim_cur) - pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

double free_memory(const std::string& root) {
  constexpr double kKilo = 1024;
  const std::string machine = root + "/proc/meminfo";
  const double available =
      kKilo * (number_in(machine, "MemAvailable:", kInfinity) + number_in(machine, "SwapFree:", 0));
  return std::max(0.0, std::min({available, left_in_groups(root), left_of_own_limit(root)}));
}

void require_memory(double bytes, const std::string& what) {
  if (bytes < kAsk) return;
  constexpr double kGigabyte = 1e9;
  const double left = free_memory();
  if (bytes > left)
    refuse("{} needs about {:.3g} GB of memory, and {:.3g} GB are free", what, bytes / kGigabyte, left / kGigabyte);
}

}  // namespace attsvm::internal
