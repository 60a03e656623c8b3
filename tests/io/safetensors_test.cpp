#include <cstring>

#include "attsvm/files.h"
#include "support.h"

namespace attsvm {
namespace {

using test::expect_refusal;
using test::Scratch;

std::string file_text(const std::string& header, const std::string& data) {
  std::uint64_t length = header.size();
  std::string text(sizeof(length), '\0');
  std::memcpy(text.data(), &length, sizeof(length));
  return text + header + data;
}

class Safetensors : public ::testing::Test {
 protected:
  SafetensorsFile open(const std::string& header, const std::string& data) {
    test::write_contents(scratch.file("m.safetensors"), file_text(header, data));
    return SafetensorsFile(scratch.file("m.safetensors"));
  }
  void refused(const std::string& header, const std::string& data, const std::vector<std::string>& words) {
    expect_refusal([&] { open(header, data); }, words);
  }
  Scratch scratch;
};

TEST_F(Safetensors, ReadsTensorsByName) {
  const float numbers[2] = {1.5F, -2};
  std::string data(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  data += std::string("\x80\x3f", 2);  // 1 as bfloat16
  const auto file = open(R"({"__metadata__":{"made":"by hand"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                         R"("b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}})",
                         data);
  EXPECT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.metadata().at("made"), "by hand");
  EXPECT_EQ(file.tensor("w").shape, (std::vector<Index>{1, 2}));
  EXPECT_EQ(f64_span(to_f64(file.tensor("w")))[1], -2);
  EXPECT_EQ(f64_span(to_f64(file.tensor("b")))[0], 1);
  expect_refusal([&] { file.tensor("q"); }, {"m.safetensors", "'q'"});
}

TEST_F(Safetensors, EveryBoundIsChecked) {
  const std::string data(16, '\0');
  refused(R"({"w":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}})", data, {"'w'", "reach beyond"});
  refused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", data, {"'w'", "data_offsets"});
  refused(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", data, {"'w'", "needs 12 bytes"});
  refused(R"({"w":{"dtype":"F32","shape":[-3],"data_offsets":[0,8]}})", data, {"'w'", "shape"});
  refused(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", data, {"too large"});
  refused(R"({"w":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", data, {"F99", "not supported"});
  refused(
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      data, {"twice"});
  refused(
      R"({"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      data, {"overlap"});
  refused(R"([1])", data, {"JSON object"});
  refused(std::string(200, '['), data, {"deeper"});
  test::write_contents(scratch.file("s.safetensors"), "abc");
  expect_refusal([&] { SafetensorsFile(scratch.file("s.safetensors")); }, {"s.safetensors", "shorter"});
  test::write_contents(scratch.file("s.safetensors"), std::string(8, '\xff'));
  expect_refusal([&] { SafetensorsFile(scratch.file("s.safetensors")); }, {"cut off"});
}

}  // namespace
}  // namespace attsvm
