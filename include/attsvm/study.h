#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attsvm/array.h"
#include "attsvm/threads.h"

namespace attsvm {

/// A published experiment in words.
struct StudyFacts {
  std::string name;     ///< as the command line has it
  std::string title;    ///< one line
  std::string setting;  ///< what is drawn, trained and solved
  std::string paper;    ///< what the paper shows
};

/// What a study found beside what was published, in words.
struct Finding {
  std::string paper, ours;
  std::string why;  ///< where the two differ; else empty
};

/// How far a reproduction has come.
struct StudyProgress {
  std::string study, cell;
  Index done = 0, wanted = 0;            ///< accepted runs of the cell
  Index draws = 0;                       ///< accepted and rejected
  double share = 0;                      ///< of all the work asked for, 0 … 1, estimated
  double seconds = 0, seconds_left = 0;  ///< seconds_left is estimated; NaN: too early to tell
};

struct StudyOptions {
  std::string folder = "reproduction";  ///< made if it is missing; files in it are replaced
  Index runs = 0;                       ///< accepted runs a cell; 0: as published
  std::optional<std::uint64_t> seed{};  ///< left out: 0, or what the sweep file says
  bool replace = false;                 ///< sweeps: the folder's results of another sweep of the same name
  bool resume = true;                   ///< use the runs that the folder's store holds; else they are thrown away first
  double time_limit = 0;                ///< seconds; 0: none. Looked at between batches of runs
  std::string export_as{};              ///< "csv" or "json": also write every run; empty: do not
  std::function<bool(const StudyProgress&)> progress{};  ///< called between batches; true stops
};

enum class StudyStop : std::uint8_t {
  finished,    ///< everything asked for is done
  time_limit,  ///< stopped by the limit; files show what was done
  asked,       ///< the callback said so; files show what was done
};

struct StudyResult {
  std::string name, title;
  bool complete = false;
  Index cells = 0, runs = 0, draws = 0;  ///< runs: accepted; draws: accepted and rejected
  Index reused = 0;                      ///< of the draws, those that the store had already
  double seconds = 0;
  std::vector<Finding> findings;
  std::vector<std::string> files;
};

struct StudyReport {
  StudyStop stop = StudyStop::finished;
  std::uint64_t seed = 0;
  std::string figure_problem;  ///< why figures could not be drawn; empty: they were
  std::string store, page;     ///< files: the runs, and the page over all experiments
  std::vector<StudyResult> studies;
};

/// The published experiments, in the order of the papers.
std::vector<StudyFacts> published_studies();

/// Runs experiments by name and writes folder/NAME/data.csv, data.json and figure.svg, and folder/index.html over all
/// experiments that the folder holds. Finished runs are kept in folder/runs.sqlite3 as they come, so that a run that
/// was killed is taken up again and ends with the same bytes. InputError for an unknown name, a folder or store that
/// cannot be written, a store that another process uses.
StudyReport reproduce(std::span<const std::string> names, const StudyOptions& options, Threads& threads);

/// The same for an experiment of the user's own, described in a JSON file (docs/experiments.md). What the options leave
/// out follows the file. InputError names the file, the field and the rule; results that another sweep of the same
/// name or another seed left in the folder are refused too, unless `replace` is set.
StudyReport sweep(const std::string& file, const StudyOptions& options, Threads& threads);

}  // namespace attsvm
