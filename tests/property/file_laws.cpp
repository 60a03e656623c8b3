#include "io/json.h"
#include "property/draw.h"

namespace attsvm {
namespace {

using test::any_bool;
using test::any_bytes;
using test::any_index;
using test::any_indices;
using test::any_of;
using test::any_seed;
using test::any_text;

Array any_array() {
  const auto scalar = any_of({Scalar::f64, Scalar::f32, Scalar::f16, Scalar::i64, Scalar::i32, Scalar::i16, Scalar::i8,
                              Scalar::u64, Scalar::u32, Scalar::u16, Scalar::u8, Scalar::boolean});
  Array array(scalar, any_indices(0, 5), nullptr);
  if (array.shape.size() > 4) array.shape.resize(4);
  const auto bytes =
      std::make_shared<const std::vector<std::uint8_t>>(any_bytes(static_cast<std::size_t>(array.bytes()) + 1));
  array.data = reinterpret_cast<const std::byte*>(bytes->data());
  array.owner = bytes;
  array.fortran_order = any_bool();
  array.foreign_endian = any_bool();
  return array;
}

RC_GTEST_PROP(FileLaws, ArraysSurviveAFile, ()) {
  const test::Scratch scratch;
  Threads threads(1);
  const Array array = any_array();
  write_npz(scratch.file("x.npz"), {{"a", array}, {"b", Array::number(1)}}, false);
  const NpzFile file(scratch.file("x.npz"));
  const Array read = file.read("a", threads);
  RC_ASSERT(read.shape == array.shape);
  RC_ASSERT(read.scalar == array.scalar);
  RC_ASSERT(test::bytes_of(read) == test::bytes_of(array));
  RC_ASSERT(f64_span(file.read("b", threads))[0] == 1);
}

RC_GTEST_PROP(FileLaws, TasksSurviveAFile, ()) {
  const test::Scratch scratch;
  Threads threads(1);
  const auto kinds = recipe_kinds();
  const RecipeKind& kind = kinds[static_cast<std::size_t>(any_index(0, std::ssize(kinds)))];
  const Drawn drawn = generate(kind.recipe, any_seed());
  save_task(scratch.file("t.npz"), drawn.task, drawn.extras, false);
  test::expect_same_task(drawn.task, load_task(scratch.file("t.npz"), threads));
}

RC_GTEST_PROP(FileLaws, ATruncatedFileIsRefusedNotReadWrongly, ()) {
  const test::Scratch scratch;
  Threads threads(1);
  save_task(scratch.file("t.npz"), generate({.n = 2, .T = 2, .d = 2}, 1).task, {}, false);
  const std::string whole = test::contents_of(scratch.file("t.npz"));
  test::write_contents(scratch.file("cut.npz"),
                       whole.substr(0, static_cast<std::size_t>(any_index(0, std::ssize(whole)))));
  RC_ASSERT_THROWS_AS(load_task(scratch.file("cut.npz"), threads), InputError);
}

RC_GTEST_PROP(FileLaws, JsonIsParsedOrRefused, ()) {
  const std::string text = any_text();
  try {
    const auto parsed = parse_json(text);
    RC_ASSERT(parse_json(parsed.dump()) == parsed);
  } catch (const InputError&) {
    RC_SUCCEED("refused");
  }
}

}  // namespace
}  // namespace attsvm
