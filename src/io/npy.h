#pragma once

#include <string>

#include "attsvm/array.h"
#include "io/file.h"

namespace attsvm::internal {

/// The header of a .npy file: type and shape of the numbers, and where they begin.
struct NpyHeader {
  Array array;  ///< type, shape and order; no data
  std::size_t data_offset = 0;
};

/// Reads the header of `total` bytes of .npy, of which `start` holds at least the header. InputError if it is not one,
/// if the type is not supported, or if the numbers would not end exactly at `total`.
NpyHeader read_npy_header(Bytes start, std::size_t total);

/// The header to write before the array's numbers (C order, little endian), padded to a multiple of 64 bytes.
std::string npy_header(const Array& array);

}  // namespace attsvm::internal
