#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "attsvm/attsvm.h"
#include "task/task_fields.h"

namespace attsvm::internal {}
namespace attsvm {
using namespace internal;  // tests use internal functions
}

namespace attsvm::test {

/// Expects an InputError whose message contains all of the words.
void expect_refusal(const std::function<void()>& work, const std::vector<std::string>& words);

/// A temporary folder, removed at the end of the test.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::filesystem::path folder() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<std::byte> bytes_of(const Array& array);
std::string contents_of(const std::string& path);
void write_contents(const std::string& path, const std::string& text);

/// Expects two tasks to have the same arrays, number for number.
void expect_same_task(const AttentionTask& a, const AttentionTask& b);

std::string fixture(const std::string& name);
std::vector<std::string> fixture_tasks();  ///< paths of all task files among the fixtures, sorted

}  // namespace attsvm::test
