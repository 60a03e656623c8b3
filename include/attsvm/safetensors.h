#pragma once

#include <map>
#include <memory>
#include <string>

#include "attsvm/array.h"

namespace attsvm {

/// A safetensors file opened for reading: the header is parsed and every bound in it checked, the tensors stay mapped.
class SafetensorsFile {
 public:
  /// InputError names the file and what is wrong with it.
  explicit SafetensorsFile(const std::string& path);

  /// Name to tensor. Each is a view of the mapped file (it may be unaligned; to_f64 copes) that keeps it open.
  const std::map<std::string, Array>& tensors() const { return tensors_; }
  /// One tensor. InputError if there is none of that name.
  const Array& tensor(const std::string& name) const;
  /// The free text entries of the header.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::string path_;
  std::map<std::string, Array> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace attsvm
