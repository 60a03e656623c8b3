#pragma once

#include <cstddef>
#include <string>

#include "io/file.h"

namespace attsvm::internal {

/// Is called when a mapped file turns out to be shorter than it was, on the thread that read beyond its new end and
/// inside a signal handler. If it returns, that thread reads zeros.
using CutFileHook = void (*)(const char* path);

/// Sets the hook and returns the one before; null: the system ends the process (SIGBUS), as it does by default. From
/// the next file that is opened on, a handler of SIGBUS looks after the files that attsvm has mapped, and leaves every
/// other fault to the handler before it.
CutFileHook on_cut_file(CutFileHook hook);

/// InputError if a file that is open was cut: arrays that lie in it are not what was read.
void refuse_cut_files();

/// The mapping of an open file, as the handler of SIGBUS sees it.
class MappedRange {
 public:
  MappedRange(const std::string& path, Bytes bytes);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

  struct Entry;

 private:
  Entry* entry_ = nullptr;
};

}  // namespace attsvm::internal
