#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attsvm/generate.h"
#include "attsvm/threads.h"

namespace attsvm {

/// A share that was counted, and Wilson's interval for the chance behind it, at 95 %.
struct Share {
  Index count = 0;       ///< how many did
  Index of = 0;          ///< of how many
  double low = 0;        ///< end of the interval
  double high = 1;       ///< the other end
  double value() const;  ///< count/of; NaN for none
  void add(bool did);    ///< one more
};

/// Mean and spread of what was measured.
struct Spread {
  Index count = 0;       ///< numbers
  double mean = 0;       ///< NaN if there are none
  double deviation = 0;  ///< standard deviation, with count − 1; NaN below two
  double least = 0;      ///< smallest number; NaN if there are none
  double most = 0;       ///< largest number; NaN if there are none
};

/// The sizes of attention, and what is asked about them. Tasks are drawn as Law::random does, unit Gaussian tokens and
/// queries. Every token has a normal score of its own, independent of its key: the best tokens are a random selection.
struct CapacitySettings {
  Index n = 0;                                 ///< queries, one per sequence
  Index T = 0;                                 ///< tokens per sequence, at least 2
  Index d = 0;                                 ///< size of keys
  Index dz = 0;                                ///< size of queries, cross attention only; 0: d
  QueryPattern pattern = QueryPattern::cross;  ///< cross, self or prompt
  Index width = 0;                             ///< r: is there a W = K Qᵀ with r columns? 0: not asked
  Index heads = 1;         ///< H: can H heads meet H random selections of the same tokens, one each?
  Index draws = 100;       ///< tasks that are solved
  Index runs = -1;         ///< tasks of these that are trained; −1: as many as take a few seconds, 0: none
  double wanted = 0.9;     ///< look for the smallest d at which this share of selections is separable; 0: do not
  std::uint64_t seed = 0;  ///< of the draws
  bool chances = false;    ///< also predict the chance at sizes around d and the smallest that suffices
  double time_limit = 0;   ///< seconds; 0: none
  /// Called often, by the thread that called capacity(), with a name of the work and the estimated share of all work
  /// that is done; return true to stop. Draws that are under way then do not count.
  std::function<bool(const std::string& work, double share)> progress{};
};

/// How many random selections are separable at one size d.
struct CapacityPoint {
  Index d = 0;          ///< size of keys, and of queries if they follow it
  Share separable;      ///< counted; of = 0 where theory decides
  bool always = false;  ///< theory: every selection is separable, with probability 1
};

/// Where the smallest sufficient d lies, on the assumption that the chance grows with d.
struct CapacitySearch {
  double wanted = 0;    ///< the chance asked for
  Index low = 0;        ///< every smaller d has a smaller chance: the interval of low − 1 ends below `wanted`
  Index high = 0;       ///< this d suffices: by theory, or its interval begins at `wanted` or above; 0: none was found
  Index predicted = 0;  ///< what the prediction says; 0: above all d that were looked at
  std::vector<CapacityPoint> points;  ///< the sizes that were drawn, ascending
  bool complete = false;              ///< low and high are as close as these draws allow
};

/// The chance that theory predicts at one size d.
struct PredictedChance {
  Index d = 0;        ///< size of keys, and of queries if they follow it
  double chance = 0;  ///< as Capacity::predicted
};

/// What sizes can separate.
struct Capacity {
  Index rows = 0;        ///< n(T−1): what a selection asks for
  Index unknowns = 0;    ///< d·dz: entries of W
  bool always = false;   ///< theory: every selection is separable, with probability 1
  std::string why;       ///< the condition with its numbers
  double cover = 0;      ///< n(T−1)/(2·d·dz): above 1, Cover's count expects that no W separates
  double dimension = 0;  ///< the statistical dimension δ of a query's rows, from random projections; T = 2: 1/2
  double load = 0;       ///< n·δ/(d·dz): about half of the selections are separable where it is 1
  double predicted = 0;  ///< the chance that follows from δ; exact for T = 2, d ≥ 2 (Cover), else measured to be close
  Share separable;       ///< selections with a certified W; the others have a certificate that there is none
  Index undecided = 0;  ///< draws that the solver left open; they are in no share
  Share all_heads;      ///< draws in which the selections of all heads are separable
  Share fits_width;     ///< draws whose nuclear solution has at most `width` columns: such a W exists
  /// Of separable draws: an upper bound, from norms, on the share of the largest margin that a W of rank `width` keeps.
  Spread width_margin;
  Spread margin;  ///< 1/‖W‖_F of the Frobenius solution: the largest margin
  Spread rank;    ///< columns of the nuclear solution: an upper bound on the least rank that separates
  /// (‖W^mm_*‖_*/‖W^mm‖_F)²: any W with a share c of the largest Frobenius margin has at least c² times this rank.
  Spread rank_floor;
  Spread support;                              ///< share of the rows that the Frobenius solution meets with equality
  Share global;                                ///< trained runs that end at the best token of every query
  std::optional<CapacitySearch> smallest_d{};  ///< if it was asked for
  std::vector<PredictedChance> chances;        ///< ascending d, if they were asked for; empty after a stop
  bool complete = true;                        ///< neither the time limit nor `progress` ended it
};

/// Draws tasks of these sizes, solves their SVMs, trains some of them, and looks for the smallest sufficient d. The
/// same settings and seed give the same numbers for any number of threads. InputError names the size that cannot be
/// used.
Capacity capacity(const CapacitySettings& settings, Threads& threads);

}  // namespace attsvm
