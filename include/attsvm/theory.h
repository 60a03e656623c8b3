#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attsvm/margin.h"
#include "attsvm/task.h"
#include "attsvm/threads.h"
#include "attsvm/train.h"

namespace attsvm {

/// ⟨A,B⟩_F / (‖A‖_F ‖B‖_F); NaN if one of them is zero.
double correlation(const Eigen::Ref<const RowMatrix>& A, const Eigen::Ref<const RowMatrix>& B);

/// ρ: the smallest row of W that asks for more than 0, divided by the norm of W and by the largest such margin that any
/// W has, which is 1/solution.objective. Above 0 if W meets the selection, and 1 if W is a multiple of an optimum. At
/// most 1 up to rounding and the gap of the solution; if the problem has rows = 0, which W need not meet, it may be
/// larger. `solution`: an optimum of the problem, in any norm. NaN if W is zero, no row asks for more than 0, or the
/// solution is not optimal.
double margin_share(const MarginProblem& problem, const MarginSolution& solution, const RowMatrix& W);

/// The norm in which training is known or expected to maximise the margin.
struct ImpliedNorm {
  Norm norm;             ///< W minimises it among the separators, in the limit
  bool proven = false;   ///< shown for softmax attention in the literature; else for linear models, or conjectured
  std::string_view why;  ///< in a few words
};

/// Empty if no norm is named: for products K Qᵀ trained by anything but gradient and spectral descent, where W stays
/// bounded, and for normalized steps on single queries.
std::optional<ImpliedNorm> implied_norm(const TrainSettings& settings);

/// The same for settings in words, as words_of() writes them and files of runs hold them. Also empty if the words are
/// not such settings.
std::optional<ImpliedNorm> implied_norm_of_words(std::string_view words);

/// Where ρ is heading along a run, judged by the last decade of steps: the points from a tenth of the last step on.
struct MarginTrend {
  std::optional<bool> rises{};  ///< ρ is larger at the last of these points than at the first; empty: no two points
  /// a in 1 − ρ ≈ c·step^a: the slope of log(1 − ρ) against log step by least squares; NaN: fewer than three points.
  double exponent = std::numeric_limits<double>::quiet_NaN();
};

/// The trend of `rho`, which has one entry per entry of `steps`; steps ascend. Points with ρ = NaN do not count. Nor
/// does the exponent count those at step 0 and those with 1 − ρ ≤ `resolution`, which is how exactly ρ is known.
MarginTrend margin_trend(std::span<const Index> steps, std::span<const double> rho, double resolution = 0);

/// ρ of the points of a run in one norm.
struct MarginShares {
  Norm norm;                                  ///< of W
  MarginStatus status = MarginStatus::limit;  ///< how the solve in this norm ended; ρ is known only if `optimal`
  double margin = std::numeric_limits<double>::quiet_NaN();  ///< the largest there is; NaN: not known
  std::vector<double> rho;  ///< margin_share() of each point; NaN where it is not defined
  MarginTrend trend{};      ///< empty if the steps of the points are not known
};

/// Slacks from here to kAmbiguousHigh are close to kSupportTolerance, the bound for support rows: whether such a row is
/// one depends on the choice of that bound.
inline constexpr double kAmbiguousLow = 1e-8;
inline constexpr double kAmbiguousHigh = 1e-4;  ///< see kAmbiguousLow

/// A token t whose row against the selected token α of its query is met with equality, or nearly so.
struct SupportToken {
  Index query;       ///< i
  Index token;       ///< t
  double score_gap;  ///< γ_{iα} − γ_it: positive in a locally optimal selection
  double slack;      ///< of the row, δᵀWζ − 1
};

/// What the theory says about a selection of one token per query.
struct SelectionReport {
  MarginSolution solution;              ///< of its SVM in Frobenius norm
  bool separable = false;               ///< the SVM has a solution
  bool optimal = false;                 ///< every selected token has the best score of its query, or shares it
  bool locally_optimal = false;         ///< separable, and every selected token scores higher than its support tokens
  std::vector<SupportToken> support;    ///< slack ≤ kSupportTolerance
  std::vector<SupportToken> ambiguous;  ///< slack between kAmbiguousLow and kAmbiguousHigh
  std::vector<SupportToken> ahead;      ///< support tokens that score as high as the selected one, or higher
};

/// The state of an enumeration, as the progress callback gets it.
struct EnumerationProgress {
  Index done = 0;        ///< selections judged so far
  Index selections = 0;  ///< selections in all
};

/// How to enumerate selections.
struct EnumerationSettings {
  Index limit = 1'000'000;                                     ///< InputError if the task has more selections than this
  double time_limit = 0;                                       ///< seconds; 0: none
  std::function<bool(const EnumerationProgress&)> progress{};  ///< called often; return true to stop
};

/// The result of enumerate_local_optima.
struct LocalOptima {
  Index selections = 0;                    ///< how many were judged: all, if the search is complete
  bool complete = true;                    ///< neither the time limit nor `progress` ended the search
  Index separable = 0;                     ///< how many of the judged selections are separable
  std::vector<Selection> locally_optimal;  ///< in lexicographic order
};

/// Finds every locally optimal selection of one token per query by judging all selections. InputError if there are too
/// many, or the task has no head.
LocalOptima enumerate_local_optima(const AttentionTask& task, const EnumerationSettings& settings, Threads& threads);

/// Training with a nonlinear head can keep several tokens per query. Then W ≈ finite part + R · solution of the
/// Gen-SVM.
struct Equivalence {
  MarginSolution gen;     ///< the Gen-SVM: kept tokens have equal logits, ahead of the others
  MarginSolution finite;  ///< the smallest W that gives the kept tokens the observed log-ratios
  MarginSolution single;  ///< the SVM that keeps only the token of largest attention of each query
  double R = 0;           ///< least-squares factor of gen in W − finite
  RowMatrix W;            ///< finite + R · gen

  bool holds_together() const {  ///< gen and finite are both solved; else R and W have no meaning
    return gen.status == MarginStatus::optimal && finite.status == MarginStatus::optimal;
  }
};

/// What the theory says about a selection in one word.
enum class Verdict : std::uint8_t {
  global,      ///< the selection is the optimal one
  local,       ///< it is locally optimal but not optimal
  neither,     ///< neither of these; Check::reason says why
  infeasible,  ///< proven (see kInfeasibleFactor): no W separates it, even if it is the optimal one
};

std::string_view name_of(Verdict verdict);  ///< the name that files, JSON and messages use

/// How to judge a selection or a run.
struct CheckSettings {
  double threshold = 1e-3;  ///< with a nonlinear head, tokens with at least this attention count as kept
  double time_limit = 0;    ///< seconds; 0: none
  std::function<bool(const SolveProgress&)> progress{};  ///< called often during solves; return true to stop
  /// check_run: the norms in which ρ is computed, each for the price of a solve; RunTrace::implied joins them.
  std::vector<Norm> norms{Norm::frobenius(), Norm::nuclear(), Norm::spectral(), Norm::largest(), Norm::l1()};

  void add(const Norm& norm);  ///< one more norm, unless it is there
};

/// How far W keeps tokens ahead.
struct WeightMargin {
  /// Where the smallest row is.
  struct Place {
    Index query;  ///< the query
    Index keep;   ///< the token that it keeps
    Index drop;   ///< the one that it drops
  };

  Selection selection;               ///< the tokens that are kept
  double smallest = 0;               ///< the smallest row of a kept and a dropped token; infinite if none is dropped
  std::optional<Place> closest{};    ///< where it is
  std::vector<MarginShares> shares;  ///< its share of the largest margin, one entry, in each of CheckSettings::norms
};

/// The margin of W for a selection, or for the tokens that W selects. The task needs no head. The time limit of the
/// settings is for each norm. InputError if W has another shape.
WeightMargin margin_of(const AttentionTask& task, const RowMatrix& W, std::optional<Selection> selection,
                       const CheckSettings& settings, Threads& threads);

/// What is known about a run that is to be judged; all of it are views. Here r is the number of recorded points.
struct RunTrace {
  const RowMatrix& W;                    ///< (d,dz), where the run ended
  std::span<const ConstRows> record{};   ///< (r) the points on its way
  std::span<const Index> steps{};        ///< (r) steps taken before each of them, ascending; empty: not known
  std::optional<ImpliedNorm> implied{};  ///< the norm that theory names for this training
  std::string_view settings{};           ///< as words_of() writes them; empty: not known
};

/// What the theory says about a task, a selection and, if given, a run.
struct Check {
  OptimalTokens optimal;                     ///< of the task
  Selection selection;                       ///< the selection judged: the run's, else the one given
  std::optional<SelectionReport> report{};   ///< for selections of one token per query
  std::optional<MarginSolution> nuclear{};   ///< the SVM in nuclear norm, if the selection is separable
  std::optional<MarginSolution> gen{};       ///< the Gen-SVM of a selection with sets, if there is no run
  std::optional<Equivalence> equivalence{};  ///< for runs that keep sets
  bool separable = false;                    ///< the SVM of the selection has a solution
  bool decided = true;                       ///< it is known whether the selection is separable
  bool complete = true;                      ///< neither the time limit nor `progress` ended a solve
  bool optimal_selection = false;            ///< every query selects its best token
  Verdict verdict = Verdict::neither;        ///< in one word
  std::string reason;                        ///< why the verdict is what it is
  /// Correlation of each recorded point of the run with the Frobenius solution: one entry per point; NaN if there is no
  /// such solution, or the point is zero. The next four are alike.
  std::vector<double> correlation_fro;
  std::vector<double> correlation_nuc;          ///< with the nuclear solution
  std::vector<double> correlation_gen;          ///< with Equivalence::gen
  std::vector<double> correlation_equivalence;  ///< with Equivalence::W
  std::vector<double> correlation_single;       ///< with Equivalence::single
  std::optional<ImpliedNorm> implied{};         ///< RunTrace::implied
  /// ρ along the run in each of CheckSettings::norms and the implied norm, to the SVM of the selection (with sets, the
  /// Gen-SVM). One entry per recorded point; a run without records has one entry, for its W.
  std::vector<MarginShares> shares{};
  std::optional<MarginSolution> implied_solution{};  ///< the SVM in the implied norm, unless that is fro or nuc
  /// What keeps the run from the SVM in the implied norm and other settings would mend, in words; empty: nothing that
  /// is known, or RunTrace::settings is empty, or the run is close.
  std::string advice{};
};

/// Judges a selection. InputError if the task has no head.
Check check_selection(const AttentionTask& task, Selection selection, const CheckSettings& settings, Threads& threads);

/// Judges a run. InputError if the task has no head, or there are steps but not one per recorded point.
Check check_run(const AttentionTask& task, const RunTrace& run, const CheckSettings& settings, Threads& threads);

/// The same for a run that ended at W, with `record` the points on its way and nothing else known.
Check check_run(const AttentionTask& task, const RowMatrix& W, std::span<const ConstRows> record,
                const CheckSettings& settings, Threads& threads);

/// The state of regularization_path, as the progress callback gets it.
struct PathProgress {
  Index start = 0;      ///< the start that is followed; the last one is the direction that the theory predicts
  double radius = 0;    ///< of the ball in which it minimises
  Index iteration = 0;  ///< how often the callback was called since this radius began: 0 the first time
};

/// How to compute a regularization path.
struct PathSettings {
  Parametrization param = Parametrization::W;  ///< what is minimised over
  bool joint = false;          ///< minimise over the head's v too, in a ball of its own; linear heads only
  Index width = 0;             ///< columns of K and Q; 0: min(d,dz)
  Loss loss = Loss::logistic;  ///< ℓ
  std::vector<double> radii{1, 10, 100, 1000};  ///< of the balls, ascending
  double head_radius = 1;                       ///< joint: ‖v‖ ≤ head_radius · radius
  Index starts = 8;                             ///< random points of norm at most 4 from which the path is followed
  std::uint64_t seed = 0;                       ///< of these points
  double tolerance = 1e-8;                      ///< for PathPoint::stationarity
  double time_limit = 0;                        ///< seconds; 0: none
  std::function<bool(const PathProgress&)> progress{};  ///< called often; return true to stop
};

/// The best minimiser found at one radius.
struct PathPoint {
  double radius = 0;    ///< R
  double loss = 0;      ///< as in Record
  double log_loss = 0;  ///< as in Record
  /// log(L − L*), by which minimisers are compared, because it tells them apart where L is constant to rounding. Equal
  /// to log_loss if L* is not known (the head is trained or not linear).
  double log_excess = 0;
  double norm = 0;       ///< ‖W‖_F; (K,Q): (‖K‖² + ‖Q‖²)/2, which is ‖W‖_* at a minimiser
  double head_norm = 0;  ///< ‖v‖, joint only
  /// Violation of the first-order conditions. On the edge of the ball: the length of the tangential part of g/‖g‖, for
  /// joint training the larger one of the two balls. Inside the ball: ‖g‖. For (K,Q) it is at least σ₁(G)/μ − 1
  /// (inside: σ₁(G)), which is 0 only if no other direction would lower the loss; this does not apply if the width is
  /// below min(d,dz) and all columns are in use.
  double stationarity = 0;
  bool inside = false;          ///< the minimiser lies inside the ball
  std::vector<Index> selected;  ///< (q) argmax_t s_it
  Index minima = 0;             ///< how many different selections the starts ended with
  Index iterations = 0;         ///< of the minimiser
  RowMatrix W;                  ///< (d,dz)
  RowMatrix K;                  ///< (d,r); Parametrization::KQ only
  RowMatrix Q;                  ///< (dz,r); Parametrization::KQ only
  Eigen::VectorXd v;            ///< the head's v, joint only
  /// Correlation of W with the SVM of `selected` (Frobenius norm for W and p, nuclear norm for K and Q). Joint: with
  /// the SVM in which inputs that are no support vectors of v need a smaller margin (docs/claims.md, joint-loose). NaN
  /// if there is no such solution.
  double correlation = 0;
  double head_correlation = 0;  ///< of v with the v-SVM; NaN if there is none
  Index relaxed = 0;            ///< how many inputs need a smaller margin
};

/// The result of regularization_path.
struct RegularizationPath {
  std::vector<PathPoint> points;  ///< one per radius
  /// Neither the time limit nor `progress` ended the search. Else radii at the end may be missing, and the stationarity
  /// of the last point tells how far it got.
  bool complete = true;
};

/// InputError unless there are radii, all above 0 and ascending.
void require_radii(const std::vector<double>& radii);

/// The regularization path: argmin L over ‖W‖_F ≤ R, over ‖K‖² + ‖Q‖² ≤ 2R, or over ‖p‖ ≤ R, for growing R. Every start
/// is followed from radius to radius, and the best minimiser at each radius is returned. InputError names the setting
/// that the task does not allow.
RegularizationPath regularization_path(const AttentionTask& task, const PathSettings& settings, Threads& threads);

/// The state of a test of a claim, as the progress callback gets it.
struct ClaimProgress {
  Index done = 0;   ///< tasks tested so far
  Index tasks = 0;  ///< tasks in all
};

/// What a claim's experiment has counted and measured after a batch of tasks, so that a later test goes on from there.
using ClaimBatch = std::vector<double>;

struct CounterExample;

/// How to test a claim.
struct ClaimSettings {
  Index tasks = 0;                                       ///< how many random tasks to draw; 0: Claim::tasks
  std::uint64_t seed = 0;                                ///< of these draws
  double time_limit = 0;                                 ///< seconds; 0: none
  std::function<bool(const ClaimProgress&)> progress{};  ///< called between batches; return true to stop
  std::function<bool()> stopped{};                       ///< called often, on any thread; return true to stop at once
  Index batch = 0;                                       ///< tasks to draw at once; 0: 32, or fewer of few tasks
  /// Called after every batch: what it left, and the worst task so far on which the claim failed, if it is of this
  /// batch; else null.
  std::function<void(const ClaimBatch&, const CounterExample*)> keep{};
  /// All that `keep` was given by a test of the same claim, number of tasks, seed and batch: the test goes on after it,
  /// and ends with the numbers of one that was never stopped. InputError if they are of another experiment.
  std::span<const ClaimBatch> done{};
};

/// A task on which a claim did not hold.
struct CounterExample {
  AttentionTask task;                   ///< the task
  std::map<std::string, Array> extras;  ///< what the experiment used besides the task; names start with x_
  std::string words;                    ///< what happened on this task
};

/// A further number that the experiment measured.
struct ClaimFigure {
  std::string label;  ///< what was measured
  double value;       ///< the number
};

/// The outcome of testing a claim.
struct ClaimResult {
  Index tasks = 0;       ///< tasks tested: fewer than asked for if few draws qualify
  Index held = 0;        ///< tasks on which the claim held
  double worst = 0;      ///< largest value of Claim::measure; infinite: could not be computed; NaN: no tasks
  bool complete = true;  ///< neither the time limit nor `progress` ended the test
  std::vector<ClaimFigure> figures;              ///< what else was measured
  std::optional<CounterExample> counterexample;  ///< the worst task on which the claim failed, unless `done` knew it
};

/// A statement in our own words, and the experiment that tests it. No theorem of a paper is quoted: `source` tells what
/// the abstracts of the papers say about it.
struct Claim {
  std::string_view name;       ///< as on the command line
  std::string_view statement;  ///< what is claimed
  std::string_view source;     ///< what the abstracts say
  std::string_view tested;     ///< which tasks of which sizes are drawn, and when the claim counts as held
  std::string_view measure;    ///< what `worst` is the largest of; larger is worse
  Index tasks;                 ///< default number of tasks
  /// The experiment; test_claim() runs it.
  ClaimResult (*test)(const Claim& claim, const ClaimSettings& settings, Threads& threads);
};

/// All claims.
std::span<const Claim> claims();

/// The claim of that name, or all claims whose names begin with it and a dash ("path": path-W, path-KQ, path-p).
/// InputError if there is none; its message lists all names.
std::vector<const Claim*> find_claims(std::string_view name);

/// Tests a claim on random tasks. If it fails on some of them, the result says so; this is not an error.
ClaimResult test_claim(const Claim& claim, const ClaimSettings& settings, Threads& threads);

}  // namespace attsvm
