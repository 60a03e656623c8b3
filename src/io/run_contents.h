#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "attsvm/files.h"
#include "attsvm/train.h"
#include "io/file.h"
#include "train/shared_task.h"

namespace attsvm::internal {

// A recorded point as a list of doubles: these five, then W, then v where the head is trained.
enum Field : std::size_t { kStep, kLoss, kLogLoss, kNorm, kLogGradient, kNumbers };

inline void append_frame(const Record& record, std::vector<double>& to) {
  to.insert(to.end(),
            {static_cast<double>(record.step), record.loss, record.log_loss, record.norm, record.log_gradient});
  to.insert(to.end(), record.W.data(), record.W.data() + record.W.size());
  to.insert(to.end(), record.v.data(), record.v.data() + record.v.size());
}

inline Index fingerprint_of(const SharedTask& task) {
  return task.fingerprint ? *task.fingerprint : attsvm::fingerprint_of(*task.part);
}

struct RunContents {
  const SharedTask& task;
  const TrainSettings& settings;
  const TrainedRun& run;
  const AttentionMap& map;  ///< at run.W, as attention_map() returned it last
  Threads& threads;
};

/// Hands every array of a run's file to `out`, in the order of the file: out.add(name, array), and
/// out.add(name, shape, pieces, piece) for what comes in pieces. kept_frame(k) is recorded point k of `kept`.
template <class KeptFrame, class Out>
void write_run(const RunContents& contents, Index kept, KeptFrame&& kept_frame, Out& out) {
  const auto& [task, settings, run, map, threads] = contents;
  std::vector<double> last;  // the last point of a run that stopped early, unless the records were chosen one by one
  const RecordPlan& plan = settings.record;
  if ((plan.ending || (plan.at.empty() && plan.every == 0)) &&
      (kept == 0 || kept_frame(kept - 1)[kStep] < static_cast<double>(run.steps))) {
    append_frame({run.steps, run.loss, run.log_loss, run.norm, run.log_gradient, run.W,
                  settings.joint ? run.head.v : Eigen::VectorXd()},
                 last);
  }
  const Index r = kept + (last.empty() ? 0 : 1);
  const auto frame = [&](Index k) -> const double* { return k == kept ? last.data() : kept_frame(k); };

  const Index heads = settings.heads;
  // What stands one under the other for many heads is (H,…) in the file.
  const auto per_head = [heads](Index rows, Index cols) {
    return heads > 1 ? std::vector<Index>{heads, rows / heads, cols} : std::vector<Index>{rows, cols};
  };
  const auto stacked = [&](const RowMatrix& all) {
    return Array::own(std::vector<double>(all.data(), all.data() + all.size()), per_head(all.rows(), all.cols()));
  };
  const std::vector<Index> v_shape =
      heads > 1 ? std::vector<Index>{heads, run.head.v.size() / heads} : std::vector<Index>{run.head.v.size()};
  out.add("W", stacked(run.W));
  if (settings.param == Parametrization::KQ) {
    out.add("K", stacked(run.K));
    out.add("Q", stacked(run.Q));
  }
  if (settings.joint || heads > 1)
    out.add("v", Array::own(std::vector<double>(run.head.v.begin(), run.head.v.end()), v_shape));
  std::vector<Index> steps;
  std::vector<double> attention;
  for (Index k = 0; k < r; ++k) {
    steps.push_back(static_cast<Index>(frame(k)[kStep]));
    const RowMatrix W = ConstRows(frame(k) + kNumbers, run.W.rows(), run.W.cols());
    attention.push_back(mean_weight(task, W, map, threads));
  }
  const auto numbers = [&](Field field) {
    std::vector<double> list;
    for (Index k = 0; k < r; ++k) list.push_back(frame(k)[field]);
    return Array::own(std::move(list), {r});
  };
  const auto pieces = [&](const std::string& name, std::vector<Index> shape, std::size_t first) {
    Index size = 1;
    for (const Index extent : shape) size *= extent;
    shape.insert(shape.begin(), r);
    out.add(name, shape, r, [&, size](Index k) {
      return Bytes(reinterpret_cast<const std::byte*>(frame(k) + first),
                   static_cast<std::size_t>(size) * sizeof(double));
    });
  };
  out.add("record_step", Array::own(steps, {r}));
  pieces("record_W", per_head(run.W.rows(), run.W.cols()), kNumbers);
  if (settings.joint) pieces("record_v", v_shape, kNumbers + static_cast<std::size_t>(run.W.size()));
  out.add("record_loss", numbers(kLoss));
  out.add("record_log_loss", numbers(kLogLoss));
  out.add("record_norm", numbers(kNorm));
  out.add("record_log_gradient", numbers(kLogGradient));
  out.add("record_attention", Array::own(std::move(attention), {r}));
  if (task.part->next_token()) {
    out.add("label_attention", Array::own(map.label_weights, {task.queries}));
  } else {
    out.add("attention", stacked(map.log_weights.unaryExpr([](double x) { return std::exp(x); })));
    out.add("log_attention", stacked(map.log_weights));
  }
  out.add("selected", Array::own(map.selected, heads > 1 ? std::vector<Index>{heads, task.queries}
                                                         : std::vector<Index>{task.queries}));
  out.add("settings", Array::text(words_of(settings)));
  out.add("task_fingerprint", Array::own(std::vector<Index>{fingerprint_of(task)}, {}));
}

}  // namespace attsvm::internal
