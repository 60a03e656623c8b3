#pragma once

#include <string>
#include <string_view>

namespace attsvm::internal {

struct Message {
  int from = 0;
  std::string bytes;
};

/// What carries messages between ranks: MPI in the program, memory in tests. Messages between two ranks arrive in the
/// order in which they were sent. One thread makes all calls of a rank.
class Wire {
 public:
  static constexpr int kAnyone = -1;

  Wire() = default;
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  virtual int rank() const = 0;
  virtual int count() const = 0;
  /// May wait until the receiver takes the message.
  virtual void send(int to, std::string_view bytes) = 0;
  /// Takes a message if one has arrived, without waiting.
  virtual bool receive(int from, Message& message) = 0;
};

/// The one function of the plug-in. Null, with the reason, where MPI does not start.
using OpenWire = Wire* (*)(std::string& problem);
inline constexpr const char* kOpenWire = "attsvm_open_wire";

}  // namespace attsvm::internal
