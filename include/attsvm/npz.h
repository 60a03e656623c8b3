#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attsvm/array.h"
#include "attsvm/threads.h"

namespace attsvm {

/// A NumPy .npz file opened for reading. Opening reads the directory at its end and nothing else.
class NpzFile {
 public:
  /// InputError names the file and what is wrong with it.
  explicit NpzFile(const std::string& path);
  ~NpzFile();
  NpzFile(NpzFile&&) noexcept;

  const std::string& path() const;
  std::vector<std::string> names() const;  ///< of the arrays, in the order of the file
  bool has(const std::string& name) const;

  /// The array, its CRC-32 checked. Stored numbers that are aligned for their type stay where they are mapped, all
  /// others are copied once; the array keeps alive what it needs. For f64 and f32 known_finite says whether every
  /// number is.
  Array read(const std::string& name, Threads& threads) const;

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

/// The array of a .npy file, a view of its mapped bytes.
Array read_npy(const std::string& path);

/// Arrays under the names a file gives them, in its order.
using NamedArrays = std::vector<std::pair<std::string, Array>>;

/// Writes arrays (stored, C order, aligned for mapping) as one file that appears complete or not at all.
/// Same arrays, same bytes. InputError if it exists and replace is false, or if it cannot be written.
void write_npz(const std::string& path, const NamedArrays& arrays, bool replace);

}  // namespace attsvm
