#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "attsvm/files.h"
#include "io/npz_writer.h"
#include "support.h"

namespace attsvm {
namespace {

using test::expect_refusal;
using test::Scratch;

TEST(Npz, RoundTripsEveryTypeAndShape) {
  const Scratch scratch;
  Threads threads(1);
  Array fortran = Array::own(std::vector<double>{0, 10, 1, 11, 2, 12}, {2, 3});
  fortran.fortran_order = true;
  const std::vector<std::pair<std::string, Array>> arrays{{"a", Array::own(std::vector<double>{1, -2.5, 1e300}, {3})},
                                                          {"b", Array::own(std::vector<Index>{1, -2}, {2, 1})},
                                                          {"c", Array::own(std::vector<bool>{true, false}, {1, 2})},
                                                          {"d", Array::number(3.25)},
                                                          {"e", fortran},
                                                          {"empty", Array::own(std::vector<double>{}, {0, 4})}};
  write_npz(scratch.file("x.npz"), arrays, false);
  const NpzFile file(scratch.file("x.npz"));
  ASSERT_EQ(file.names().size(), arrays.size());
  for (const auto& [name, array] : arrays) {
    EXPECT_TRUE(file.has(name));
    const Array read = file.read(name, threads);
    EXPECT_EQ(read.shape, array.shape);
    EXPECT_EQ(read.scalar, array.scalar);
    EXPECT_EQ(test::bytes_of(read), test::bytes_of(array));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(read.data) % 64, 0U) << "our files can be mapped";
  }
  expect_refusal([&] { file.read("nothing", threads); }, {"x.npz: nothing", "no such array"});
}

TEST(Npz, SameArraysSameBytes) {
  const Scratch scratch;
  const std::vector<std::pair<std::string, Array>> arrays{{"a", Array::own(std::vector<double>{1, 2}, {2})}};
  write_npz(scratch.file("1.npz"), arrays, false);
  write_npz(scratch.file("2.npz"), arrays, false);
  EXPECT_EQ(test::contents_of(scratch.file("1.npz")), test::contents_of(scratch.file("2.npz")));
}

TEST(Npz, BytesInMemoryAreThoseOfTheFile) {
  const Scratch scratch;
  const std::vector<double> numbers{1, 2, 3};
  const NamedArrays arrays{{"a", Array::view(numbers.data(), {3})}, {"b", Array::view(numbers.data(), {1, 2})}};
  write_npz(scratch.file("x.npz"), arrays, false);
  EXPECT_EQ(internal::npz_bytes(arrays), test::contents_of(scratch.file("x.npz")));
}

TEST(Npz, ReadingKeepsAliveWhatItNeeds) {
  const Scratch scratch;
  Threads threads(1);
  write_npz(scratch.file("x.npz"), {{"a", Array::own(std::vector<double>{1, 2}, {2})}}, false);
  Array array;
  {
    const NpzFile file(scratch.file("x.npz"));
    array = file.read("a", threads);
  }
  std::filesystem::remove(scratch.file("x.npz"));
  EXPECT_EQ(f64_span(array)[1], 2);
}

TEST(Npz, ADamagedByteIsNoticed) {
  const Scratch scratch;
  Threads threads(1);
  write_npz(scratch.file("x.npz"), {{"a", Array::own(std::vector<double>(100, 1.0), {100})}}, false);
  std::string bytes = test::contents_of(scratch.file("x.npz"));
  bytes[400] = static_cast<char>(bytes[400] ^ 1);
  test::write_contents(scratch.file("y.npz"), bytes);
  expect_refusal([&] { NpzFile(scratch.file("y.npz")).read("a", threads); }, {"y.npz: a", "CRC-32"});
}

TEST(Npz, AnExistingFileIsReplacedOnlyWhenAsked) {
  const Scratch scratch;
  const std::vector<std::pair<std::string, Array>> one{{"a", Array::number(1)}}, two{{"a", Array::number(2)}};
  write_npz(scratch.file("x.npz"), one, false);
  const std::string before = test::contents_of(scratch.file("x.npz"));
  expect_refusal([&] { write_npz(scratch.file("x.npz"), two, false); }, {"x.npz", "--force"});
  EXPECT_EQ(test::contents_of(scratch.file("x.npz")), before);
  write_npz(scratch.file("x.npz"), two, true);
  EXPECT_NE(test::contents_of(scratch.file("x.npz")), before);
  expect_refusal([&] { write_npz(scratch.file("no/such/folder.npz"), one, false); }, {"does not exist"});
  expect_refusal([&] { write_npz(scratch.folder().string(), one, true); }, {"not a regular file"});
}

TEST(Npz, AWriteThatFailsLeavesNothingBehind) {
  const Scratch scratch;
  write_npz(scratch.file("x.npz"), {{"a", Array::number(1)}}, false);
  const std::string before = test::contents_of(scratch.file("x.npz"));
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);  // as if the disk were full
  const std::vector<double> many(10'000, 1.0);
  expect_refusal(
      [&] {
        write_npz(scratch.file("x.npz"), {{"a", Array::view(many.data(), {10'000})}}, true);
      },
      {"x.npz", "cannot write"});
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(test::contents_of(scratch.file("x.npz")), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.folder()), {}), 1) << "no temporary file is left";
}

TEST(Npz, ListingALargeFileReadsItsDirectoryOnly) {
  // A sparse file of 5 GiB with ZIP64 sizes; listing it must read only the directory.
  const Scratch scratch;
  const std::string path = scratch.file("large.npz");
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int k = 0; k < bytes; ++k) text.push_back(static_cast<char>(k < 8 ? value >> (8 * k) : 0));
    return text;
  };
  const std::uint64_t size = 5ULL << 30;
  const std::string name = "tokens.npy", wide = number(1, 2) + number(16, 2) + number(size, 8) + number(size, 8);
  const std::string local = number(0x04034b50, 4) + number(45, 2) + number(0, 12) + number(0xFFFFFFFF, 4) +
                            number(0xFFFFFFFF, 4) + number(name.size(), 2) + number(wide.size(), 2) + name + wide;
  const std::string central = number(0x02014b50, 4) + number(45, 2) + number(45, 2) + number(0, 12) +
                              number(0xFFFFFFFF, 4) + number(0xFFFFFFFF, 4) + number(name.size(), 2) +
                              number(wide.size(), 2) + number(0, 10) + number(0, 4) + name + wide;
  const std::uint64_t begin = local.size() + size, wide_end = begin + central.size();
  const std::string end = number(0x06064b50, 4) + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8) +
                          number(1, 8) + number(1, 8) + number(central.size(), 8) + number(begin, 8) +
                          number(0x07064b50, 4) + number(0, 4) + number(wide_end, 8) + number(1, 4) +
                          number(0x06054b50, 4) + number(0, 4) + number(1, 2) + number(1, 2) +
                          number(central.size(), 4) + number(0xFFFFFFFF, 4) + number(0, 2);
  std::ofstream out(path, std::ios::binary);
  out << local;
  out.seekp(static_cast<std::streamoff>(begin));
  out << central << end;
  out.close();
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const NpzFile file(path);
  EXPECT_EQ(file.names(), std::vector<std::string>{"tokens"});
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt, 5000)
      << "all of it would be 80,000";
  Threads threads(1);
  expect_refusal([&] { file.read("tokens", threads); }, {"tokens", "npy"});
}

}  // namespace
}  // namespace attsvm
