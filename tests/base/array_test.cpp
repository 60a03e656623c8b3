#include "attsvm/array.h"

#include <cmath>
#include <limits>

#include "base/finite_mark.h"
#include "support.h"

namespace attsvm {
namespace {

using test::expect_refusal;

template <class T>
Array raw(Scalar scalar, const std::vector<T>& numbers, std::vector<Index> shape) {
  const auto owner = std::make_shared<std::vector<T>>(numbers);
  return {scalar, std::move(shape), reinterpret_cast<const std::byte*>(owner->data()), owner};
}

TEST(Array, F64IsUsedInPlaceWhenAligned) {
  const std::vector<double> numbers{1, 2, 3, 4, 5, 6};
  const Array view = Array::view(numbers.data(), {2, 3});
  EXPECT_EQ(to_f64(view).data, view.data);
  const Array shifted(Scalar::f64, {2}, reinterpret_cast<const std::byte*>(numbers.data()) + 4);
  EXPECT_NE(to_f64(shifted).data, shifted.data) << "unaligned numbers have to be copied";
}

TEST(Array, ConvertsEveryType) {
  const auto expect = [](const Array& array, std::vector<double> wanted) {
    const Array converted = to_f64(array);
    const auto numbers = f64_span(converted);
    EXPECT_EQ(std::vector<double>(numbers.begin(), numbers.end()), wanted) << name_of(array.scalar);
  };
  expect(raw<float>(Scalar::f32, {0.5F, -2}, {2}), {0.5, -2});
  expect(raw<std::uint16_t>(Scalar::f16, {0x3C00, 0xC000, 0x0001}, {3}), {1, -2, 0x1p-24});
  expect(raw<std::uint16_t>(Scalar::bf16, {0x3F80, 0xC000}, {2}), {1, -2});
  expect(raw<std::int64_t>(Scalar::i64, {-3, 9}, {2}), {-3, 9});
  expect(raw<std::int32_t>(Scalar::i32, {-3, 9}, {2}), {-3, 9});
  expect(raw<std::int16_t>(Scalar::i16, {-3, 9}, {2}), {-3, 9});
  expect(raw<std::int8_t>(Scalar::i8, {-3, 9}, {2}), {-3, 9});
  expect(raw<std::uint64_t>(Scalar::u64, {3, 9}, {2}), {3, 9});
  expect(raw<std::uint32_t>(Scalar::u32, {3, 9}, {2}), {3, 9});
  expect(raw<std::uint16_t>(Scalar::u16, {3, 9}, {2}), {3, 9});
  expect(raw<std::uint8_t>(Scalar::u8, {3, 9}, {2}), {3, 9});
  expect(raw<std::uint8_t>(Scalar::boolean, {1, 0}, {2}), {1, 0});
}

TEST(Array, FortranOrderAndForeignBytes) {
  Array fortran = raw<double>(Scalar::f64, {0, 10, 1, 11, 2, 12}, {2, 3});
  fortran.fortran_order = true;
  const Array c_order = to_f64(fortran);
  const std::vector<double> wanted{0, 1, 2, 10, 11, 12};
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), f64_span(c_order).begin()));

  Array foreign = raw<std::uint8_t>(Scalar::i32, {0, 0, 1, 2}, {1});
  foreign.foreign_endian = true;
  EXPECT_EQ(to_indices(foreign, "x"), std::vector<Index>{258});
  EXPECT_EQ(to_native(foreign).scalar, Scalar::i32);
}

TEST(Array, IndicesMustBeIntegersThatFit) {
  expect_refusal([] { to_indices(Array::number(1), "sequence"); }, {"sequence", "float64", "integers"});
  expect_refusal([] { to_indices(raw<std::uint64_t>(Scalar::u64, {1, ~0ULL}, {2}), "visible"); }, {"visible[1]"});
}

TEST(Array, TextsAreUtf8) {
  const std::vector<std::string> texts{"", "the", "bé", "日本", "🙂!", "‽"};
  const Array array = Array::texts(texts);
  EXPECT_EQ(array.shape, (std::vector<Index>{6, 3}));
  EXPECT_EQ(to_texts(array, "text"), texts);
  EXPECT_EQ(to_texts(raw<std::uint32_t>(Scalar::character, {0x10FFFF, 0xFFFD}, {2, 1}), "text"),
            (std::vector<std::string>{"\xF4\x8F\xBF\xBF", "\xEF\xBF\xBD"}));
  for (const std::uint32_t bad : {0xD800U, 0xDFFFU, 0x110000U, 0xFFFFFFFFU}) {
    expect_refusal(
        [&] {
          to_texts(raw<std::uint32_t>(Scalar::character, {65, bad}, {2, 1}), "text");
        },
        {"text[1]", "Unicode"});
  }
  expect_refusal([] { to_texts(Array::text("one"), "text"); }, {"text", "one text each"});
  expect_refusal([] { to_texts(Array::number(1), "text"); }, {"float64"});
}

TEST(Array, NonFiniteNumbersAreNamedByPlace) {
  Array array = Array::own(std::vector<double>{1, 2, 3, 4, 5, std::nan("")}, {1, 3, 2});
  expect_refusal([&] { require_finite(array, "tokens"); }, {"tokens[0,2,1]", "nan", "finite"});
  Array fine = Array::own(std::vector<double>{1, std::numeric_limits<double>::max()}, {2});
  EXPECT_NO_THROW(require_finite(fine, "tokens"));
  EXPECT_TRUE(FiniteMark::of(fine));
}

TEST(Array, IntegersThatDoubleCannotHoldAreRefused) {
  const Index exact = Index{1} << 53;
  EXPECT_EQ(f64_span(to_f64(Array::own(std::vector<Index>{exact, -exact}, {2}))).back(), -0x1p53);
  test::expect_refusal(
      [&] {
        to_f64(Array::own(std::vector<Index>{0, exact + 1}, {2}), "tokens");
      },
      {"tokens[1] = 9007199254740993", "2^53"});
}

}  // namespace
}  // namespace attsvm
