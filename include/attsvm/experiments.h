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

/// An experiment, described for readers.
struct StudyFacts {
  std::string name;       ///< as on the command line
  std::string title;      ///< one line
  std::string setting;    ///< what is drawn, trained and solved
  std::string paper;      ///< what the paper shows, or why the experiment is ours
  bool published = true;  ///< a paper has it; else it is our own, and "all" leaves it out
};

/// One result of a study in words, next to the published one, or to what was expected where the study is our own.
struct Finding {
  std::string paper;  ///< what the paper shows, or what was expected
  std::string ours;   ///< what these runs show
  std::string why;    ///< why `ours` differs from `paper`; empty if it does not
};

/// The progress of reproduce() or sweep(). A cell is one setting of a study, which is run on many random tasks.
struct StudyProgress {
  std::string study;        ///< name of the study that is running
  std::string cell;         ///< name of its cell
  Index done = 0;           ///< accepted runs of the cell so far
  Index wanted = 0;         ///< accepted runs of the cell in all
  Index draws = 0;          ///< accepted and rejected runs of the cell so far
  double share = 0;         ///< estimated share of all the work that is done, 0 … 1
  double seconds = 0;       ///< since the start
  double seconds_left = 0;  ///< estimate of the rest; NaN: too early
};

/// How figures are drawn.
struct FigureOptions {
  std::string format = "svg";  ///< "pdf" or "png": written beside the SVG, which is always there
  double width = 0;  ///< in millimetres, more where a panel needs it; 0: what looks well. Narrow: fewer panels in a row
  double font_size = 9;  ///< in points, of the numbers on axes; other text goes with it
  bool titles = true;    ///< false: no title and no caption, for papers that have their own
  bool panels = false;   ///< also draw every panel alone: figure-a, figure-b, …
};

/// What reproduce() and sweep() are to do.
struct StudyOptions {
  std::string folder = "reproduction";  ///< for results; created if missing; its files are replaced
  Index runs = 0;                       ///< accepted runs per cell; 0: as published
  std::optional<std::uint64_t> seed{};  ///< left out: 0, or the seed in the sweep file
  bool replace = false;                 ///< sweep(): overwrite results of a different sweep of the same name
  bool resume = true;                   ///< reuse the runs in the folder's store; false: delete them first
  double time_limit = 0;                ///< seconds; 0: none. Checked between batches of runs
  std::string export_as{};              ///< "csv" or "json": also write every run; empty: do not
  FigureOptions figure{};               ///< how figures are drawn
  std::function<bool(const StudyProgress&)> progress{};  ///< called between batches of runs; return true to stop
};

/// Why reproduce() or sweep() returned.
enum class StudyStop : std::uint8_t {
  finished,    ///< all runs are done
  time_limit,  ///< StudyOptions::time_limit was reached; the files hold the runs done so far
  asked,       ///< the progress callback returned true; the files hold the runs done so far
};

std::string_view name_of(StudyStop stop);  ///< the name that files, JSON and messages use

/// The outcome of one study.
struct StudyResult {
  std::string name;                                ///< as on the command line
  std::string title;                               ///< one line
  bool published = true;                           ///< StudyFacts::published
  bool complete = false;                           ///< every cell has all its runs
  Index cells = 0;                                 ///< settings that the study runs
  Index runs = 0;                                  ///< accepted ones
  Index draws = 0;                                 ///< accepted and rejected ones
  Index reused = 0;                                ///< draws whose results the store already had
  double seconds = 0;                              ///< wall time of this call
  std::vector<Finding> findings;                   ///< what the study shows, next to what the paper shows
  std::vector<std::string> files;                  ///< paths of the files written
  std::vector<std::vector<std::string>> overview;  ///< its table in words, header first; empty: it has none
};

/// The outcome of reproduce() or sweep().
struct StudyReport {
  StudyStop stop = StudyStop::finished;  ///< why it returned
  std::uint64_t seed = 0;                ///< the seed that was used
  std::string figure_problem;            ///< why no figures were drawn; empty if they were
  std::string store;                     ///< path of runs.sqlite3
  std::string page;                      ///< path of index.html
  std::vector<StudyResult> studies;      ///< one per name asked for
};

/// The experiments that reproduce() knows: the published ones, in the order of the papers, then our own.
std::vector<StudyFacts> named_studies();

/// Runs experiments by name; "all": those that are published. Writes folder/NAME/data.csv, data.json and figure.svg for
/// each, and folder/index.html, a page on all experiments in the folder. Stores each run in folder/runs.sqlite3 when it
/// finishes, so that a reproduction that was killed can be resumed and ends with the same bytes. InputError for an
/// unknown name, for a folder or store that cannot be written, and for a store that another process uses.
StudyReport reproduce(std::span<const std::string> names, const StudyOptions& options, Threads& threads);

/// The same for an experiment that the user describes in a JSON file (docs/experiments.md). Options that are left out
/// follow the file. InputError names the file, the field and the rule. Also InputError if the folder holds results of a
/// different sweep of the same name or of another seed, unless `replace` is set.
StudyReport sweep(const std::string& file, const StudyOptions& options, Threads& threads);

}  // namespace attsvm
