#include "margin/streaming/face_blocks.h"

#include "support.h"

namespace attsvm {
namespace {

TEST(FaceBlocks, DependentRowsHaveABoundedInverse) {
  const Index size = 40, d = 6;
  const RowMatrix rows = RowMatrix::Random(size, d);
  const RowMatrix gram = (rows * rows.transpose()).cast<float>().cast<double>();
  const std::vector<std::uint8_t> all(static_cast<std::size_t>(size), 1);
  BlockScratch scratch;
  RowMatrix inverse(size, size);
  invert_face_block(gram.data(), size, all.data(), scratch, inverse.data());
  EXPECT_LE(inverse.cwiseAbs().maxCoeff(), 1e7);
}

}  // namespace
}  // namespace attsvm
