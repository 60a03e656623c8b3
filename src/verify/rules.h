// The rules of docs/formats.md that an answer has to keep, with their names there. A function that finds a rule broken
// throws Refusal with the reason, or Undecided if the arithmetic is too coarse.
#pragma once

#include "verify/arithmetic.h"
#include "verify/progress.h"

namespace attsvm::internal::proof {

/// What the rows of some queries say about W.
struct RowFindings {
  double violation = 0, scaling = 0, homogeneous = 0;  ///< as in Verification
  std::string worst{};                                 ///< the row that W violates most; empty: W meets all
  double worst_violation = 0;

  void add(const RowFindings& later);
};

/// What rows say about their multipliers.
struct MultiplierFindings {
  bool weigh_nothing = true;  ///< all are zero, except on rows that are zero for every W: they prove only the bound 0
  bool impossible = false;    ///< a row with a multiplier asks 0 ≥ b > 0
  Ball need{};                ///< ω of kInfeasibleFactor

  void add(const MultiplierFindings& other);
};

/// Where the facts about rows come from if ranks share them; of the question of a Case there is only a part then.
class SharedRows {
 public:
  virtual ~SharedRows() = default;
  virtual RowFindings findings() = 0;
  virtual MultiplierFindings multipliers() = 0;
  virtual Ball weighted_rhs() = 0;  ///< bᵀ dual
};

/// A claim, and what it is judged with.
struct Case {
  const Question& question;
  const StoredSolution& claim;
  const VerifySettings& settings;
  const Norm& norm;
  Arithmetic& arithmetic;
  Verification& result;
  const TellVerify& teller;
  SharedRows* shared = nullptr;

  void tell(double share, std::string_view part) const {
    if (teller) teller({share, part});
  }
};

/// How far a stated number may be off, relative to the terms of its sum.
inline constexpr double kAgree = 1e-9;
/// How far the objective may lie below the bound, relative; a smaller bound holds too.
inline constexpr double kRoundedSize = 0x1p-48;

/// Whether left ≤ right; throws Undecided if the arithmetic cannot tell.
bool is_at_most(const Ball& left, const Ball& right, std::string_view what);
/// Refusal unless the number in the file agrees with the enclosed one.
void require_stated(const Ball& found, double stated, const Ball& size, std::string_view name);
/// bᵀ dual
Ball weighted_rhs(const Case& on);
Ball weighted_rhs(std::span<const double> rhs, std::span<const double> dual);

/// Rule "numbers stated" for slacks; what there is to find in the rows of this question.
RowFindings find_in_rows(const Case& on);
MultiplierFindings find_in_multipliers(const Case& on);

inline constexpr slong kFirstBits = 128;
inline constexpr double kLongWork = 1e8;  ///< multiplications from which doubles with error bounds are tried first

inline constexpr double kRowShare = 0.5;  ///< of the work that reading the rows is; weighing them costs as much

Norm read_norm(const StoredSolution& claim);
/// All rules, those apart that need no arithmetic.
void judge(const Case& on);
/// Makes all numbers NaN.
void forget(Verification& result);

// Rules that need no arithmetic.
void check_contents(const Question& question, const Norm& norm, const StoredSolution& claim);  // all of them
void require_tolerance(const VerifySettings& settings);                                        // InputError
void require_tolerance(const StoredSolution& claim);                              // gap: tolerance in range
void require_multipliers(const Question& question, const StoredSolution& claim);  // multipliers: finite, signs
void require_matrix(const Question& question, const StoredSolution& claim);       // W: finite, of the right shape
void require_factors(const Question& question, const StoredSolution& claim);      // rank: K, Q finite, right shape
void require_nothing(const Question& question, const Norm& norm, const StoredSolution& claim);  // infeasible: no W

/// W, numbers stated: every row is met, slacks are as stated. Of a soft margin it returns by how much W misses the rows
/// ≥ 1 of each query.
std::vector<Ball> judge_rows(const Case& on);
/// Rows that ask for 0: a W that meets them is near an optimum. Returns how much more it costs, if the margin is soft.
Ball judge_nearby(const Case& on);
void judge_objective(const Case& on);  // numbers stated: ‖W‖
void judge_factors(const Case& on);    // rank: W = K Qᵀ, KᵀK = QᵀQ, every column is needed
void judge_bound(const Case& on);      // numbers stated, contradiction, gap, scaling: the bound of the multipliers
void judge_gap(const Case& on, const Ball& objective, const Ball& distance);  // contradiction, gap
void judge_certificate(const Case& on);  // infeasible: what the multipliers prove without a W

// Soft margin.
void require_penalties(const Question& question, const Norm& norm, const StoredSolution& claim);  // penalties
/// Numbers stated, multipliers, contradiction, gap. `moving`: what judge_nearby() returned.
void judge_price(const Case& on, const std::vector<Ball>& missed, const Ball& moving);
/// How much more any W costs that is at most result.distance away.
Ball price_of_moving(const Case& on);

}  // namespace attsvm::internal::proof
