#pragma once

// One small Frobenius SVM: min ‖W‖ subject to δ_kᵀ W ζ_k ≥ 1. A few sweeps of over-relaxation on the dual in single
// precision guess the rows that carry the answer; block pivoting in double precision corrects the guess. The answer is
// not taken at its word: the CPU certifies it from the rows.

#include "device/team.h"

namespace attsvm::internal::device {

struct SvmShape {
  int rows, groups, d, dz;
  int most;  ///< rows that carry an answer, as many as memory is for
};

/// Where a problem lies in the arrays of a batch: its numbers are δ (rows,d) and ζ (groups,dz), its starts the first
/// row of each group and `rows`, its answer W (d,dz), λ (rows), the relative gap, and the number of factorisations.
struct SvmPlace {
  SvmShape shape;
  long long numbers, starts, answer;
};

struct SvmBatch {
  const SvmPlace* places;
  const double* numbers;
  const int* starts;
  double* answers;
  double enough;  ///< the largest gap of an answer; others are kUnsolved
};

constexpr int kMostRows = 4 * kTeam;
constexpr int kTile = 4;  // rows whose products with as many others one thread computes at a time

/// The numbers of an answer after W and λ.
enum SvmFact : int { kGap, kTries, kFacts };

/// What stands for a gap where there is none.
constexpr double kUnsolved = -1, kCramped = -2;  // more rows carry the answer than there is memory for

ATTSVM_LANE long long answer_size(const SvmShape& s) { return static_cast<long long>(s.d) * s.dz + s.rows + kFacts; }

ATTSVM_LANE void load_four(const float* from, float* to) {
#ifdef __CUDA_ARCH__
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
#else
  for (int k = 0; k < 4; ++k) to[k] = from[k];
#endif
}

ATTSVM_LANE int larger(int a, int b) { return a > b ? a : b; }

/// What one problem needs of shared memory, as offsets in doubles.
struct SvmRoom {
  int unit, angles;  // rows, and products of ζ, in single precision
  int gram;          // products of rows in single precision, times the relaxation; before that, the rows
  int delta, W, g, value, factor, inverse;  // after the guess, in the same place
  int zeta, products, rhs, x, ints;         // from beginning to end
  int end;

  ATTSVM_LANE explicit SvmRoom(const SvmShape& s) {
    const int rows = s.rows * delta_stride(s), squares = (s.rows * s.rows + 1) / 2;
    unit = 0;  // read four numbers at a time
    angles = unit + s.d * (unit_stride(s) / 2);
    gram = angles + (s.groups * s.groups + 1) / 2;
    delta = 0;
    W = delta + rows;
    g = W + s.d * s.dz;
    value = g + larger(s.groups * s.d, s.most);
    factor = value + s.rows;
    inverse = factor + (s.most + 1) * (s.most + 2) / 2;
    zeta = larger(gram + larger(s.rows * s.d, squares), inverse + s.most);
    products = zeta + s.groups * s.dz;
    rhs = products + s.groups * s.groups;
    x = rhs + s.rows;
    ints = x + s.rows;  // group of each row, first rows of groups, set
    end = ints + (2 * s.rows + s.groups + 2) / 2;
  }

  ATTSVM_LANE static int unit_stride(const SvmShape& s) { return (s.rows + kTile - 1) / kTile * kTile; }
  ATTSVM_LANE static int delta_stride(const SvmShape& s) { return s.d | 1; }  // odd: rows lie in different banks
};

/// kRounds: a team of 32 takes all rows in this many rounds.
template <class Team, int kRounds>
class SmallSvm {
 public:
  ATTSVM_LANE SmallSvm(const Team& team, const SvmShape& shape, double* memory)
      : team_(team), s_(shape), stride_(SvmRoom::delta_stride(shape)) {
    const SvmRoom room(shape);
    unit_ = reinterpret_cast<float*>(memory + room.unit);
    angles_ = reinterpret_cast<float*>(memory + room.angles);
    gram_ = reinterpret_cast<float*>(memory + room.gram);
    raw_ = memory + room.gram;
    delta_ = memory + room.delta;
    W_ = memory + room.W;
    g_ = u_ = scaled_ = rest_ = memory + room.g;  // which are used one after the other
    value_ = memory + room.value;
    factor_ = memory + room.factor;
    inverse_ = memory + room.inverse;
    zeta_ = memory + room.zeta;
    products_ = memory + room.products;
    rhs_ = memory + room.rhs;
    x_ = memory + room.x;
    group_ = reinterpret_cast<int*>(memory + room.ints);
    first_ = group_ + shape.rows;
    set_ = first_ + shape.groups + 1;
  }

  /// Solves a problem and writes the answer.
  ATTSVM_LANE void solve(const double* numbers, const int* starts, double enough, double* answer) {
    const double gap = prepare(numbers, starts) ? found_gap(numbers) : kUnsolved;
    double *lambda = answer + s_.d * s_.dz, *facts = lambda + s_.rows;
    team_.each(s_.d * s_.dz, [&](int k) { answer[k] = W_[k] * unscale_; });
    team_.each(s_.rows, [&](int k) { lambda[k] = x_[k] * rhs_[k]; });  // which is to be scaled anyway
    team_.each(kFacts, [&](int k) { facts[k] = k == kTries ? tries_ : gap <= enough ? gap : kUnsolved; });
  }

 private:
  static constexpr double kMeet = 0x1p-48;        // as in margin/rows/tolerances.h
  static constexpr double kLoose = 64;            // factor on it before the multipliers are refined
  static constexpr double kLargestInverse = 1e7;  // of a pivot: that of kFastPivot there
  static constexpr float kRelaxation = 1.3F;
  static constexpr int kFirstSweeps = 3, kSweepLimit = 16;
  static constexpr int kPatience = 4, kTryLimit = 60, kPasses = 3;

  /// Rows of unit length in single precision; x_ is what made them so. False: a row is zero, or too long or short for
  /// the squares.
  ATTSVM_LANE bool prepare(const double* numbers, const int* starts) {
    const int d = s_.d, dz = s_.dz, rows = s_.rows;
    team_.fetch(
        1, rows * d, [&](int, int k) { return numbers[k]; }, [&](int, int k, double number) { raw_[k] = number; });
    team_.fetch(
        1, s_.groups * dz, [&](int, int k) { return numbers[rows * d + k]; },
        [&](int, int k, double number) { zeta_[k] = number; });
    team_.each(s_.groups + 1, [&](int k) { first_[k] = starts[k]; });
    team_.each(s_.groups, [&](int i) {
      double square = 0;
      ATTSVM_PAIRED for (int j = 0; j < dz; ++j) square = fma(zeta_[i * dz + j], zeta_[i * dz + j], square);
      const double norm = sqrt(square), inverse = 1 / norm;
      ATTSVM_PAIRED for (int j = 0; j < dz; ++j) zeta_[i * dz + j] *= inverse;
      ATTSVM_PAIRED for (int k = first_[i]; k < first_[i + 1]; ++k) {
        group_[k] = i;
        rhs_[k] = norm;
      }
    });
    const int unit_stride = SvmRoom::unit_stride(s_);
    team_.each(unit_stride, [&](int k) {
      if (k >= rows) {
        ATTSVM_PAIRED for (int j = 0; j < d; ++j) unit_[j * unit_stride + k] = 0;
        return;
      }
      double square = 0;
      const double* row = raw_ + k * d;
      ATTSVM_PAIRED for (int j = 0; j < d; ++j) square = fma(row[j], row[j], square);
      const double norm = sqrt(square), inverse = 1 / norm;
      ATTSVM_PAIRED for (int j = 0; j < d; ++j) unit_[j * unit_stride + k] = static_cast<float>(row[j] * inverse);
      x_[k] = inverse;
      rhs_[k] = 1 / (rhs_[k] * norm);
    });
    team_.each(s_.groups, s_.groups, [&](int a, int b) {
      double product = 0;
      ATTSVM_PAIRED for (int j = 0; j < dz; ++j) product = fma(zeta_[a * dz + j], zeta_[b * dz + j], product);
      products_[a * s_.groups + b] = product;
      angles_[a * s_.groups + b] = kRelaxation * static_cast<float>(product);
    });
    if (team_.sum(rows, [&](int k) { return rhs_[k] > 1e-120 && rhs_[k] < 1e120 ? 0.0 : 1.0; }) != 0) return false;
    const double top = team_.largest(rows, [&](int k) { return rhs_[k]; });
    const unsigned long long exponent = bits_of(top) >> 52;
    const double scale = number_of((2046 - exponent) << 52);  // a power of two that brings the largest near one
    unscale_ = number_of(exponent << 52);
    team_.each(rows, [&](int k) { rhs_[k] *= scale; });
    return true;
  }

  ATTSVM_LANE double product(int k, int l) const {
    const double *a = delta_ + k * stride_, *b = delta_ + l * stride_;
    double even = 0, odd = 0;
    int j = 0;
    ATTSVM_PAIRED for (; j + 2 <= s_.d; j += 2) {
      even = fma(a[j], b[j], even);
      odd = fma(a[j + 1], b[j + 1], odd);
    }
    if (j < s_.d) even = fma(a[j], b[j], even);
    return (even + odd) * products_[group_[k] * s_.groups + group_[l]];
  }

  /// The products of all rows, in tiles of four by four.
  ATTSVM_LANE void multiply_rows() {
    const int stride = SvmRoom::unit_stride(s_), rows = s_.rows;
    team_.triangle(stride / kTile, [&](int down, int across) {
      float tile[kTile][kTile] = {};
      ATTSVM_PAIRED for (int j = 0; j < s_.d; ++j) {
        float a[kTile], b[kTile];
        load_four(unit_ + j * stride + kTile * down, a);
        load_four(unit_ + j * stride + kTile * across, b);
        ATTSVM_UNROLL for (int r = 0; r < kTile; ++r) {
          ATTSVM_UNROLL for (int c = 0; c < kTile; ++c) tile[r][c] = fmaf(a[r], b[c], tile[r][c]);
        }
      }
      ATTSVM_UNROLL for (int r = 0; r < kTile; ++r) {
        const int k = kTile * down + r;
        if (k >= rows) break;
        const float* angles = angles_ + group_[k] * s_.groups;
        ATTSVM_UNROLL for (int c = 0; c < kTile; ++c) {
          const int l = kTile * across + c;
          if (l >= rows) break;
          const float product = tile[r][c] * angles[group_[l]];
          gram_[k * rows + l] = product;
          gram_[l * rows + k] = product;
        }
      }
    });
  }

  /// Over-relaxation until the signs of the multipliers stand still. Afterwards x_ > 0 for the rows of the guess, and
  /// there are rows of unit length in double precision.
  ATTSVM_LANE void guess(const double* numbers) {
    multiply_rows();
    const int rows = s_.rows;
    typename Team::template Held<float, kRounds> x, left;
    typename Team::template Held<int, kRounds> at;  // lanes without a row repeat the last one, whom nobody asks
    typename Team::template Held<bool, kRounds> was;
    team_.lanes([&](int lane) {
      ATTSVM_UNROLL for (int r = 0; r < kRounds; ++r) {
        const int k = r * kTeam + lane;
        at.of(r, lane) = k < rows ? k : rows - 1;
        left.of(r, lane) = kRelaxation * static_cast<float>(rhs_[at.of(r, lane)]);
      }
    });
    ATTSVM_ROLLED for (int sweep = 1; sweep <= kSweepLimit; ++sweep) {
      const float* row = gram_;
      ATTSVM_UNROLL for (int r = 0; r < kRounds; ++r) {
        const int count = rows - r * kTeam < kTeam ? rows - r * kTeam : kTeam;
#ifdef __CUDACC__
#pragma unroll 4
#endif
        for (int i = 0; i < count; ++i, row += rows) {
          const float step = team_.from(i, [&](int lane) { return fmaxf(-x.of(r, lane), left.of(r, lane)); });
          team_.lanes([&](int lane) {
            ATTSVM_UNROLL for (int q = 0; q < kRounds; ++q) {
              left.of(q, lane) = fmaf(-step, row[at.of(q, lane)], left.of(q, lane));
            }
            if (lane == i) x.of(r, lane) += step;
          });
        }
      }
      const bool moved = team_.any([&](int lane) {
        bool changed = false;
        ATTSVM_UNROLL for (int r = 0; r < kRounds; ++r) {
          const bool now = x.of(r, lane) > 0;
          changed = changed || now != was.of(r, lane);
          was.of(r, lane) = now;
        }
        return changed;
      });
      if (sweep >= kFirstSweeps && !moved) break;
    }
    team_.meet();
    team_.fetch(
        rows, s_.d, [&](int k, int j) { return numbers[k * s_.d + j]; },
        [&](int k, int j, double number) { delta_[k * stride_ + j] = number * x_[k]; });
    team_.lanes([&](int lane) {
      ATTSVM_UNROLL for (int r = 0; r < kRounds; ++r) {
        const int k = r * kTeam + lane;
        if (k < rows) x_[k] = x.of(r, lane) + left.of(r, lane) > 0 ? 1 : 0;
      }
    });
    team_.meet();
  }

  ATTSVM_LANE double* factor_row(int i) const { return factor_ + i * (i + 1) / 2; }

  /// Factorises the products of the rows of the set, with the right-hand sides as a last row. False: they depend on
  /// each other.
  ATTSVM_LANE bool factorise(int size) {
    team_.triangle(size, [&](int a, int b) { factor_row(a)[b] = product(set_[a], set_[b]); });
    team_.each(size, [&](int b) { factor_row(size)[b] = rhs_[set_[b]]; });
    ATTSVM_ROLLED for (int j = 0; j < size; ++j) {
      const double* own = factor_row(j);
      team_.each(j, [&](int k) {
        if (k == j - 1) inverse_[k] = 1 / factor_row(k)[k];
        scaled_[k] = own[k] * inverse_[k];
      });
      team_.each(size + 1 - j, [&](int t) {
        double* row = factor_row(j + t);
        double even = row[j], odd = 0;
        int k = 0;
        ATTSVM_PAIRED for (; k + 2 <= j; k += 2) {
          even = fma(-row[k], scaled_[k], even);
          odd = fma(-row[k + 1], scaled_[k + 1], odd);
        }
        if (k < j) even = fma(-row[k], scaled_[k], even);
        row[j] = even + odd;
      });
    }
    team_.each(1, [&](int) { inverse_[size - 1] = 1 / factor_row(size - 1)[size - 1]; });
    return team_.sum(size, [&](int k) { return inverse_[k] > 0 && inverse_[k] < kLargestInverse ? 0.0 : 1.0; }) == 0;
  }

  /// rest_ ← L⁻¹ rest_.
  ATTSVM_LANE void substitute(int size) {
    ATTSVM_ROLLED for (int j = 0; j + 1 < size; ++j) {
      const double share = rest_[j] * inverse_[j];
      team_.each(size - 1 - j,
                 [&](int t) { rest_[j + 1 + t] = fma(-factor_row(j + 1 + t)[j], share, rest_[j + 1 + t]); });
    }
  }

  /// rest_ ← L⁻ᵀ D⁻¹ rest_.
  ATTSVM_LANE void substitute_back(int size) {
    ATTSVM_ROLLED for (int j = size - 1; j >= 0; --j) {
      const double x = rest_[j] * inverse_[j];
      const double* row = factor_row(j);
      team_.each(j, [&](int k) { rest_[k] = fma(-row[k], x, rest_[k]); });
    }
    team_.each(size, [&](int j) { rest_[j] *= inverse_[j]; });
  }

  /// W and the values of all rows from the multipliers; returns ‖W‖.
  ATTSVM_LANE double evaluate() {
    const int d = s_.d, dz = s_.dz;
    team_.each(s_.groups, d, [&](int i, int j) {
      double sum = 0;
      ATTSVM_PAIRED for (int k = first_[i]; k < first_[i + 1]; ++k) sum = fma(x_[k], delta_[k * stride_ + j], sum);
      g_[i * d + j] = sum;
    });
    team_.each(d, dz, [&](int j, int c) {
      double sum = 0;
      ATTSVM_PAIRED for (int i = 0; i < s_.groups; ++i) sum = fma(g_[i * d + j], zeta_[i * dz + c], sum);
      W_[j * dz + c] = sum;
    });
    team_.each(s_.groups, d, [&](int i, int j) {
      double sum = 0;
      ATTSVM_PAIRED for (int c = 0; c < dz; ++c) sum = fma(W_[j * dz + c], zeta_[i * dz + c], sum);
      u_[i * d + j] = sum;
    });
    team_.each(s_.rows, [&](int k) {
      const double *row = delta_ + k * stride_, *u = u_ + group_[k] * d;
      double sum = 0;
      ATTSVM_PAIRED for (int j = 0; j < d; ++j) sum = fma(row[j], u[j], sum);
      value_[k] = sum;
    });
    return sqrt(team_.sum(d * dz, [&](int at) { return W_[at] * W_[at]; }));
  }

  ATTSVM_LANE bool in_set(int k) const { return x_[k] != 0; }

  /// Whether a row is wrongly in the set or outside.
  ATTSVM_LANE bool is_wrong(int k, double tolerance) const {
    return in_set(k) ? x_[k] < 0 : rhs_[k] - value_[k] > tolerance;
  }

  /// Solves; the relative gap, kUnsolved or kCramped.
  ATTSVM_LANE double found_gap(const double* numbers) {
    guess(numbers);
    const int rows = s_.rows;
    int best = rows + 1, patience = kPatience, size = 0, pass = 0;
    while (true) {
      if (pass == 0) {  // a new set
        if (++tries_ > kTryLimit) return kUnsolved;
        size = team_.list(rows, set_, [&](int k) { return x_[k] > 0; });
        if (size > s_.most && s_.most < s_.rows && s_.most < s_.d * s_.dz) return kCramped;
        if (size == 0 || size > s_.most || !factorise(size)) return kUnsolved;
        team_.each(size, [&](int j) { rest_[j] = factor_row(size)[j]; });
        team_.each(rows, [&](int k) { x_[k] = 0; });
      } else {  // the same set, refined
        substitute(size);
      }
      substitute_back(size);
      team_.each(size, [&](int j) { x_[set_[j]] += rest_[j]; });
      const double norm = evaluate();
      const double worst = team_.largest(size, [&](int j) { return fabs(rhs_[set_[j]] - value_[set_[j]]); });
      const bool met = worst <= kMeet * norm || pass == kPasses;
      const double tolerance = met ? kMeet * norm : kLoose * kMeet * norm;
      const double wrong = team_.sum(rows, [&](int k) { return is_wrong(k, tolerance) ? 1.0 : 0.0; });
      if (wrong == 0) {
        if (met) return gap(norm);
        team_.each(size, [&](int j) { rest_[j] = rhs_[set_[j]] - value_[set_[j]]; });
        ++pass;
        continue;
      }
      pass = 0;
      if (wrong < best) {
        best = static_cast<int>(wrong);
        patience = kPatience;
      } else {
        --patience;
      }
      // Out of patience, only the last wrong row moves: that ends, where moving all might go round in circles.
      const double last = patience > 0 ? 0 : team_.largest(rows, [&](int k) {
        return is_wrong(k, tolerance) ? static_cast<double>(k) : 0;
      });
      team_.each(rows, [&](int k) {
        const bool moves = is_wrong(k, tolerance) && (patience > 0 || k == last);
        x_[k] = in_set(k) != moves ? 1 : 0;
      });
    }
  }

  ATTSVM_LANE double gap(double norm) const {
    const double stretch = team_.largest(s_.rows, [&](int k) { return value_[k] > 0 ? rhs_[k] / value_[k] : 1e300; });
    const double bound = team_.sum(s_.rows, [&](int k) { return x_[k] * rhs_[k]; }) / norm;
    const double objective = (stretch > 1 ? stretch : 1) * norm;
    const double gap = (objective - bound) / objective;
    return gap > 0 ? gap : gap <= 0 ? 0 : kUnsolved;
  }

  Team team_;
  SvmShape s_;
  int stride_;
  int tries_ = 0;
  double unscale_ = 1;
  double *raw_, *delta_, *zeta_, *products_, *rhs_, *x_, *W_, *g_, *u_, *value_, *factor_, *inverse_, *scaled_, *rest_;
  float *unit_, *angles_, *gram_;
  int *group_, *first_, *set_;
};

/// Solves problem k of a batch. `memory` holds as many doubles as SvmRoom says.
template <int kRounds, class Team>
ATTSVM_LANE void solve_one(const Team& team, const SvmBatch& batch, long long k, double* memory) {
  const SvmPlace& place = batch.places[k];
  SmallSvm<Team, kRounds>(team, place.shape, memory)
      .solve(batch.numbers + place.numbers, batch.starts + place.starts, batch.enough, batch.answers + place.answer);
}

}  // namespace attsvm::internal::device
