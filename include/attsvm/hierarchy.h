#pragma once

#include <functional>
#include <span>
#include <vector>

#include "attsvm/margin.h"
#include "attsvm/stack.h"

namespace attsvm {

/// The state of hierarchy(), as the progress callback gets it.
struct HierarchyProgress {
  Index done = 0;    ///< SVMs solved so far
  Index solves = 0;  ///< SVMs in all: one per head and matrix of its null
};

/// How to judge the heads of a stack.
struct HierarchySettings {
  Askers askers = Askers::live;  ///< whose selections each head's SVM has to meet
  Index null_draws = 10;         ///< matrices of the null per head
  std::uint64_t seed = 0;        ///< of the null
  double time_limit = 0;         ///< seconds; 0: none
  /// Called often, from one thread at a time; return true to stop.
  std::function<bool(const HierarchyProgress&)> progress{};
};

/// A number beside the same number of random matrices.
struct BesideNull {
  double value = std::numeric_limits<double>::quiet_NaN();  ///< of the head
  std::vector<double> null;                                 ///< of each matrix of the null

  double mean() const;   ///< of the null; NaN if it is empty
  double share() const;  ///< share of the null below the value; NaN if it is empty
};

/// One head of a stack beside the SVM of its own selection: that of its last W, on what it reads in the end.
///
/// The null is W with random signs: E_x S (E_xᵀ W E_z) T E_zᵀ, where E_x and E_z are the axes of the tokens that the
/// head reads and of the queries that ask, S and T random signs. Such a matrix is as large as W in the same directions;
/// it is judged beside the SVM of its own selection, as W is.
struct HeadMargin {
  Index layer = 0;                  ///< from 0
  Index head = 0;                   ///< of the layer, from 0
  Index queries = 0;                ///< positions that ask, over all sequences
  double attention = 0;             ///< smallest weight of a selected token at the end
  std::vector<Index> selected;      ///< (queries) as the queries of layer_tasks()
  MarginSolution solution;          ///< of the SVM, in Frobenius norm; without rows its W is zero
  std::vector<double> correlation;  ///< (r) of W at each record with the solution; NaN where W or the solution is zero
  std::vector<double> rho;          ///< (r) margin_share() of W at each record
  BesideNull last_correlation;      ///< at the last record; the null has the matrices whose SVM was solved
  BesideNull last_rho;              ///< the same of rho
  bool complete = true;  ///< neither the time limit nor `progress` ended a solve; else the SVM's status may be `limit`
};

/// Judges every head of the last of these records, layer by layer; after a stop all heads are there, with what is
/// known. InputError as for require_stackable(); also if `records` is empty or a setting is out of range.
std::vector<HeadMargin> hierarchy(const AttentionTask& task, std::span<const StackRecord> records,
                                  const HierarchySettings& settings, Threads& threads);

}  // namespace attsvm
