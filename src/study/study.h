#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attsvm/experiments.h"
#include "io/run_store.h"
#include "study/figure.h"
#include "theory/instances.h"

namespace attsvm::internal {

/// One setting of a study, for which many instances are run.
struct StudyCell {
  std::string name;
  Json settings;  ///< everything that the rows depend on besides seed and instance: part of the store's key
  Json labels = Json::object();  ///< of a sweep: its settings by name, columns of runs.csv
  Index runs = 1;                ///< accepted runs, as published
  Index draws_per_run = 1000;    ///< give up after this many draws times the runs asked for
  Index most_runs = 0;           ///< number of different instances, accepted or not; 0: no limit
  double cost = 1;               ///< of one draw, in any unit that the cells of all studies share
  double acceptance = 1;         ///< share of draws expected to be accepted
};

using StudyRow = RunRow;

inline constexpr const char* kNotVerified = "SVM not verified";

/// The rows of a cell that count: all instances up to the last accepted one that was asked for.
struct CellRows {
  StudyCell cell;
  std::vector<StudyRow> rows;  ///< row k is instance k
  bool complete = false;

  Index accepted() const;
  std::vector<const Json*> results() const;  ///< of the accepted rows, by instance
};

struct Column {
  std::string name, meaning;
};

/// The contents of data.csv.
struct Table {
  std::vector<Column> columns;
  std::vector<Json> rows;  ///< arrays of numbers and text, one entry per column
};

struct Summary {
  Table table;
  Figure figure;
  std::vector<Finding> findings;
  std::vector<std::vector<std::string>> overview;  ///< the table as it is printed, header first; may be empty
};

/// A named experiment: how instances are drawn and run, and how their rows are summarized.
class Study {
 public:
  virtual ~Study() = default;

  virtual StudyFacts facts() const = 0;
  virtual std::vector<StudyCell> cells() const = 0;
  /// Some instances of the cell. A row is a function of (settings, seed, instance) alone, so rows may be computed in
  /// batches of any size and by any number of threads.
  virtual std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const = 0;
  /// The cells are those of cells(), in their order, with as many rows as there are; possibly none.
  virtual Summary summarise(const std::vector<CellRows>& cells) const = 0;
  /// Most instances to run at once, so that a batch takes about a second at most.
  virtual Index batch() const { return 64; }
};

const std::vector<std::unique_ptr<Study>>& all_studies();

/// The study that a sweep file describes, and the runs and seed that the file gives.
struct SweepFile {
  std::unique_ptr<Study> study;
  std::uint64_t seed = 0;
};
SweepFile load_sweep(const std::string& path);

// The published experiments, one per file.
std::unique_ptr<Study> single_input_study();
std::unique_ptr<Study> multi_input_study();
std::unique_ptr<Study> joint_training_study();
std::unique_ptr<Study> losses_study();
std::unique_ptr<Study> gd_paths_study();
std::unique_ptr<Study> local_convergence_study();
std::unique_ptr<Study> convergence_types_study();
std::unique_ptr<Study> multi_token_study();
std::unique_ptr<Study> quadratic_head_study();
std::unique_ptr<Study> svm_rank_study();

// Experiments of our own.
std::unique_ptr<Study> atlas_study();
std::unique_ptr<Study> rates_study();
std::unique_ptr<Study> positions_study();
std::unique_ptr<Study> decay_study();
std::unique_ptr<Study> layers_study();
std::unique_ptr<Study> capacity_study();
std::unique_ptr<Study> next_token_study();
std::unique_ptr<Study> router_study();
std::unique_ptr<Study> heads_study();

}  // namespace attsvm::internal
