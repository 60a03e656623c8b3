#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attsvm/array.h"
#include "attsvm/files.h"
#include "io/zip.h"

namespace attsvm::internal {

/// Writes an .npz file array by array; it appears with commit(), complete, or not at all.
class NpzWriter {
 public:
  NpzWriter(const std::string& path, bool replace);
  void add(const std::string& name, const Array& array);
  /// An f64 array whose bytes come in pieces 0 … pieces−1; each piece is requested more than once and must not change.
  void add(const std::string& name, const std::vector<Index>& shape, Index pieces,
           const std::function<Bytes(Index)>& piece);
  void commit();
  NpzWriter(const NpzWriter&) = delete;
  NpzWriter& operator=(const NpzWriter&) = delete;

 private:
  OutputFile out_;
  ZipWriter zip_;  // writes to out_
};

/// The bytes of the file that write_npz would write.
std::string npz_bytes(const NamedArrays& arrays);

}  // namespace attsvm::internal
