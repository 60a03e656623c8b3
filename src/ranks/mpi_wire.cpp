// The only file that calls MPI.

#include <mpi.h>

#include <limits>

#include "attsvm/error.h"
#include "ranks/patience.h"
#include "ranks/wire.h"

namespace attsvm::internal {
namespace {

constexpr int kTag = 0;

class MpiWire final : public Wire {
 public:
  MpiWire() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
  }
  ~MpiWire() override { MPI_Finalize(); }
  MpiWire(const MpiWire&) = delete;
  MpiWire& operator=(const MpiWire&) = delete;

  int rank() const override { return rank_; }
  int count() const override { return count_; }

  // Errors need no check: MPI ends the whole job at the first one.
  void send(int to, std::string_view bytes) override {
    static_assert(sizeof(int) == 4);  // MPI counts bytes in an int
    if (bytes.size() > std::numeric_limits<int>::max())
      throw InputError(
          "what one rank has to send to another is more than 2 GiB, which MPI does not carry in one piece");
    MPI_Request request{};
    MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, kTag, MPI_COMM_WORLD, &request);
    complete(request);
    // MPI_Test has completed the request, as MPI_Wait would; NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
  }

  bool receive(int from, Message& message) override {
    int arrived = 0, size = 0;
    MPI_Message handle{};
    MPI_Status status;
    MPI_Improbe(from == kAnyone ? MPI_ANY_SOURCE : from, kTag, MPI_COMM_WORLD, &arrived, &handle, &status);
    if (arrived == 0) return false;
    MPI_Get_count(&status, MPI_BYTE, &size);
    message.from = status.MPI_SOURCE;
    message.bytes.resize(static_cast<std::size_t>(size));
    MPI_Request request{};
    MPI_Imrecv(message.bytes.data(), size, MPI_BYTE, &handle, &request);
    complete(request);
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
    return true;
  }

 private:
  /// MPI's own waiting would keep a core busy until the other rank has done its part of a large message, for which it
  /// may need that core.
  static void complete(MPI_Request& request) {
    int done = 0;
    for (Patience patience; MPI_Test(&request, &done, MPI_STATUS_IGNORE), done == 0;) patience.wait();
  }

  int rank_ = 0, count_ = 1;
};

}  // namespace
}  // namespace attsvm::internal

extern "C" attsvm::internal::Wire* attsvm_open_wire(std::string& problem) {
  int level = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) {
    problem = "MPI does not start";
    return nullptr;
  }
  if (level < MPI_THREAD_FUNNELED) {
    MPI_Finalize();
    problem = "this MPI library does not allow threads";
    return nullptr;
  }
  return new attsvm::internal::MpiWire;
}
