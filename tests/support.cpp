#include "support.h"

#include <algorithm>
#include <cstdio>

namespace attsvm::test {

void expect_refusal(const std::function<void()>& work, const std::vector<std::string>& words) {
  try {
    work();
    FAIL() << "accepted; expected a refusal with '" << (words.empty() ? "" : words.front()) << "'";
  } catch (const InputError& error) {
    for (const auto& word : words) EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "one line, please";
  }
}

Scratch::Scratch() {
  std::string name = (std::filesystem::temp_directory_path() / ("attsvm_test_" + std::string(6, 'X')))
                         .string();  // mkdtemp replaces the letters
  path_ = ::mkdtemp(name.data());
}

Scratch::~Scratch() { std::filesystem::remove_all(path_); }

std::vector<std::byte> bytes_of(const Array& array) {
  const Array plain = to_native(array);
  return {plain.data, plain.data + plain.bytes()};
}

std::string contents_of(const std::string& path) {
  std::string text(std::filesystem::file_size(path), '\0');
  std::FILE* file = std::fopen(path.c_str(), "rb");
  const std::size_t got = std::fread(text.data(), 1, text.size(), file);
  std::fclose(file);
  EXPECT_EQ(got, text.size());
  return text;
}

void write_contents(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

void expect_same_task(const AttentionTask& a, const AttentionTask& b) {
  for (const TaskField& field : task_fields()) {
    const Array &left = a.arrays().*field.member, &right = b.arrays().*field.member;
    ASSERT_EQ(left.given(), right.given()) << field.name;
    if (!left.given()) continue;
    EXPECT_EQ(left.shape, right.shape) << field.name;
    EXPECT_EQ(left.scalar, right.scalar) << field.name;
    EXPECT_EQ(bytes_of(left), bytes_of(right)) << field.name;
  }
}

std::string fixture(const std::string& name) { return (std::filesystem::path(ATTSVM_FIXTURES) / name).string(); }

std::vector<std::string> fixture_tasks() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ATTSVM_FIXTURES)) {
    if (entry.path().string().ends_with(".task.npz")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace attsvm::test
