#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/refuse.h"
#include "io/output.h"
#include "options.h"

namespace attsvm::internal {
namespace {

struct PathOptions {
  std::string task, out, radii = "1,10,100,1000";
  PathSettings settings;
};

template <class Value>
Json each(const std::vector<PathPoint>& points, Value value) {
  Json list = Json::array();
  for (const PathPoint& point : points) list.push_back(value(point));
  return list;
}

Json to_json(const std::vector<PathPoint>& points, const PathOptions& options, bool complete, int threads) {
  const PathSettings& settings = options.settings;
  const auto number = [&](auto member) { return each(points, [&](const PathPoint& p) { return Json(p.*member); }); };
  Json fields{{"radius", number(&PathPoint::radius)},
              {"loss", number(&PathPoint::loss)},
              {"log_loss", number(&PathPoint::log_loss)},
              {"norm", number(&PathPoint::norm)},
              {"selected", number(&PathPoint::selected)},
              {"stationarity", number(&PathPoint::stationarity)},
              {"inside", number(&PathPoint::inside)},
              {"minima", number(&PathPoint::minima)},
              {"correlation", number(&PathPoint::correlation)},
              {"complete", complete},
              {"param", name_of(settings.param)},
              {"joint", settings.joint},
              {"width", settings.width},
              {"loss_function", name_of(settings.loss)},
              {"starts", settings.starts},
              {"tolerance", settings.tolerance},
              {"time_limit", options.settings.time_limit},
              {"seed", settings.seed},
              {"threads", threads},
              {"file", options.out}};
  if (settings.joint) {
    fields["head_radius"] = settings.head_radius;
    fields["head_norm"] = number(&PathPoint::head_norm);
    fields["head_correlation"] = number(&PathPoint::head_correlation);
    fields["relaxed"] = number(&PathPoint::relaxed);
  }
  return fields;
}

void print_table(const std::vector<PathPoint>& points, const PathOptions& options, double seconds) {
  const bool joint = options.settings.joint;
  fmt::print("{}: {} radii, {:.3g} s\n", printable(options.out), points.size(), seconds);
  fmt::print("  {:>10} {:>14} {:>12} {:>13} {:>7} {:>15}{}\n", "radius", "loss", "norm", "stationarity", "minima",
             "1 - correlation", joint ? "  head 1 - corr.  relaxed" : "");
  for (const PathPoint& point : points) {
    fmt::print("  {:>10.4g} {:>14.9g} {:>12.6g} {:>13.2g} {:>7} {:>15.3g}{}{}\n", point.radius, point.loss, point.norm,
               point.stationarity, point.minima, 1 - point.correlation,
               joint ? fmt::format("  {:>13.3g} {:>9}", 1 - point.head_correlation, point.relaxed) : "",
               point.inside ? "  inside the ball" : "");
  }
}

ExitCode run_path(Session& session, PathOptions& options) {
  PathSettings& settings = options.settings;
  settings.radii = parse_list<double>(options.radii, "--radius", "numbers separated by commas, such as 1,10,100");
  with_place("--radius", [&] { require_radii(settings.radii); });
  require_writable(options.out, session.force);
  require_other_file(options.out, options.task);
  Threads threads(session.threads);
  const AttentionTask task = load_task(options.task, threads);
  ProgressLine line(session);
  const Stopwatch watch;
  settings.progress = [&](const PathProgress& now) {
    const auto radius = std::find(settings.radii.begin(), settings.radii.end(), now.radius) - settings.radii.begin();
    const auto done =
        static_cast<double>(now.start) * static_cast<double>(settings.radii.size()) + static_cast<double>(radius);
    line.show(done / (static_cast<double>(settings.starts + 1) * static_cast<double>(settings.radii.size())), [&] {
      return fmt::format("start {} of {}, radius {:g}", now.start + 1, settings.starts + 1, now.radius);
    });
    return Session::interrupted();
  };
  Session::watch_interrupts();
  const auto [points, complete] =
      with_place(options.task, [&] { return regularization_path(task, settings, threads); });
  const double seconds = watch.seconds();
  line.clear();
  bool met = complete;
  for (const PathPoint& point : points) met = met && point.stationarity <= settings.tolerance;
  if (!points.empty()) save_path(options.out, points, session.force);
  if (session.json) {
    Session::print_json("path", seconds, to_json(points, options, complete, threads.count()));
  } else {
    print_table(points, options, seconds);
    if (!complete) session.warn("stopped before all radii were done; the last one shown may not be converged");
    if (!met && complete) session.warn("the stationarity of some radii is above the tolerance");
  }
  if (Session::interrupted()) return kInterrupted;
  return met ? kDone : kLimit;
}

}  // namespace

void add_path(CLI::App& program, Session& session) {
  auto options = std::make_shared<PathOptions>();
  CLI::App* verb = session.add_verb(program, "path", "Follow the minimiser of the loss over growing balls", R"(Examples:
  attsvm path task.npz -o path.npz                            argmin of the loss over |W|_F <= R
  attsvm path task.npz --param KQ -o kq.npz                   over |K|^2 + |Q|^2 <= 2R
  attsvm path prompt.npz --param p --joint -o joint.npz       with the head in a ball of its own
  attsvm path task.npz --radius 1,10,100,1000,10000 -o p.npz  larger radii
For every radius it gives the stationarity (0: first-order conditions hold exactly), the number of different local
minima that the starts ended in, and the correlation with the SVM solution that the path should tend to.
Exit codes: 0 all radii within the tolerance, 4 some are not, or time limit, 130 interrupted)",
                                    [&session, options] { return run_path(session, *options); });
  PathSettings& settings = options->settings;
  verb->add_option("TASK", options->task, "Task file")->required();
  Session::add_output(verb, options->out, session.force)->required();
  add_param(verb, settings.param);
  verb->add_flag("--joint", settings.joint, "Also minimise over the head");
  verb->add_option("--width", settings.width, "Columns of K and Q (default: min(d,dz))")->check(CLI::PositiveNumber);
  add_loss(verb, settings.loss);
  verb->add_option("--radius", options->radii, "Radii, ascending (default: 1,10,100,1000)");
  verb->add_option("--head-radius", settings.head_radius, "Radius of the head's ball, as a multiple of R (default: 1)")
      ->check(positive_number());
  verb->add_option("--starts", settings.starts, "Number of random starts (default: 8)")->check(CLI::PositiveNumber);
  verb->add_option("--seed", settings.seed, "Seed of the starts (default: 0)");
  verb->add_option("--tolerance", settings.tolerance, "Stationarity to reach (default: 1e-8)")
      ->check(positive_number());
  verb->add_option("--time-limit", options->settings.time_limit,
                   "Seconds after which to stop with the points found so far")
      ->check(positive_number());
}

}  // namespace attsvm::internal
