#include "base/blas.h"

#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

// LAPACK is part of OpenBLAS. The last argument is the length of `triangle`, which Fortran passes invisibly.
extern "C" void dpotrf_(const char* triangle, const blasint* n, double* A, const blasint* lda, blasint* info,
                        std::size_t length);
extern "C" void dsyevd_(const char* job, const char* triangle, const blasint* n, double* A, const blasint* lda,
                        double* values, double* work, const blasint* work_size, blasint* whole_work,
                        const blasint* whole_work_size, blasint* info, std::size_t job_length,
                        std::size_t triangle_length);

extern "C" void dgesdd_(const char* job, const blasint* m, const blasint* n, double* A, const blasint* lda,
                        double* sigma, double* U, const blasint* ldu, double* Vt, const blasint* ldvt, double* work,
                        const blasint* work_size, blasint* whole_work, blasint* info, std::size_t job_length);

namespace attsvm::internal {
namespace {

std::mutex guard_mutex;
int guards = 0, threads_before = 1;

/// One call of OpenBLAS. It keeps one buffer of address space per call under way at once, and where the system refuses
/// such a buffer it asks again for ever. So we ask first, whenever there are more calls at once than ever before, and
/// for the buffers of all of them, because those of the others may not be there yet.
class BlasCall {
 public:
  BlasCall() {
    const int now = ++under_way;
    if (now <= most_at_once.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(guard_mutex);
    constexpr std::size_t kBuffer = std::size_t{144} << 20;  // 128 MiB in OpenBLAS 0.3.21, and room to align it
    const std::size_t size = kBuffer * static_cast<std::size_t>(now);
    void* room = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
      --under_way;
      throw std::bad_alloc();
    }
    munmap(room, size);
    most_at_once.store(std::max(now, most_at_once.load()));
  }
  ~BlasCall() { --under_way; }
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;

 private:
  static inline std::atomic<int> under_way = 0, most_at_once = 0;
};

CBLAS_TRANSPOSE op(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }
blasint narrow(Index n) { return static_cast<blasint>(n); }

}  // namespace

void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, double alpha, const double* A, Index lda,
          const double* B, Index ldb, double beta, double* C, Index ldc) {
  const BlasCall call;
  cblas_dgemm(CblasRowMajor, op(transpose_a), op(transpose_b), narrow(m), narrow(n), narrow(k), alpha, A, narrow(lda),
              B, narrow(ldb), beta, C, narrow(ldc));
}

void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, float alpha, const float* A, Index lda,
          const float* B, Index ldb, float beta, float* C, Index ldc) {
  const BlasCall call;
  cblas_sgemm(CblasRowMajor, op(transpose_a), op(transpose_b), narrow(m), narrow(n), narrow(k), alpha, A, narrow(lda),
              B, narrow(ldb), beta, C, narrow(ldc));
}

bool cholesky(Index n, double* A, Index lda) {
  const BlasCall call;
  const blasint size = narrow(n), stride = narrow(lda);
  blasint info = 0;
  dpotrf_("U", &size, A, &stride, &info, 1);  // the upper triangle of a column-major matrix is our lower one
  return info == 0;
}

bool cholesky_of_columns(Index n, double* A, Index lda) {
  const BlasCall call;
  const blasint size = narrow(n), stride = narrow(lda);
  blasint info = 0;
  dpotrf_("L", &size, A, &stride, &info, 1);
  return info == 0;
}

void solve_columns(bool transpose, Index n, const double* L, Index ldl, Index count, double* X, Index ldx) {
  const BlasCall call;
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, transpose ? CblasTrans : CblasNoTrans, CblasNonUnit, narrow(n),
              narrow(count), 1, L, narrow(ldl), X, narrow(ldx));
}

bool symmetric_eigenvalues(bool vectors, Index n, double* A, double* values) {
  const BlasCall call;
  thread_local std::vector<double> work(1);
  thread_local std::vector<blasint> whole_work(1);
  const char* job = vectors ? "V" : "N";
  const blasint size = narrow(n), ask = -1;
  blasint info = 0;
  dsyevd_(job, "U", &size, A, &size, values, work.data(), &ask, whole_work.data(), &ask, &info, 1, 1);
  if (info != 0) return false;
  work.resize(std::max(work.size(), static_cast<std::size_t>(work[0])));
  whole_work.resize(std::max(whole_work.size(), static_cast<std::size_t>(whole_work[0])));
  const auto work_size = static_cast<blasint>(work.size()), whole_work_size = static_cast<blasint>(whole_work.size());
  dsyevd_(job, "U", &size, A, &size, values, work.data(), &work_size, whole_work.data(), &whole_work_size, &info, 1, 1);
  return info == 0;
}

bool singular_values(bool vectors, Index m, Index n, double* A, double* sigma, double* U, double* Vt) {
  const BlasCall call;
  const Index small = std::min(m, n);
  std::vector<double> work(1);
  std::vector<blasint> whole_work(static_cast<std::size_t>(8 * small));
  const char* job = vectors ? "S" : "N";
  const blasint rows = narrow(m), columns = narrow(n), rank = vectors ? narrow(small) : 1, ask = -1;
  blasint info = 0;
  dgesdd_(job, &rows, &columns, A, &rows, sigma, U, &rows, Vt, &rank, work.data(), &ask, whole_work.data(), &info, 1);
  if (info != 0) return false;
  work.resize(static_cast<std::size_t>(work[0]));
  const auto work_size = static_cast<blasint>(work.size());
  dgesdd_(job, &rows, &columns, A, &rows, sigma, U, &rows, Vt, &rank, work.data(), &work_size, whole_work.data(), &info,
          1);
  return info == 0;
}

void divide_by_transposed_lower(Index m, Index n, const double* L, Index ldl, double* B, Index ldb) {
  const BlasCall call;
  cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, narrow(m), narrow(n), 1, L, narrow(ldl),
              B, narrow(ldb));
}

void solve_lower(bool transpose, Index n, const double* L, Index ldl, double* x) {
  const BlasCall call;
  cblas_dtrsv(CblasRowMajor, CblasLower, op(transpose), CblasNonUnit, narrow(n), L, narrow(ldl), x, 1);
}

SingleThreadBlas::SingleThreadBlas() {
  const std::lock_guard lock(guard_mutex);
  if (guards++ == 0) {
    threads_before = openblas_get_num_threads();
    openblas_set_num_threads(1);
  }
}

SingleThreadBlas::~SingleThreadBlas() {
  const std::lock_guard lock(guard_mutex);
  if (--guards == 0) openblas_set_num_threads(threads_before);
}

}  // namespace attsvm::internal
