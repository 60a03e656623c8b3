#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "base/refuse.h"
#include "base/simd.h"
#include "io/shards.h"
#include "session.h"

namespace attsvm::internal {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void see(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  Json json() const { return Json::array({low, high}); }
  std::string text() const {
    return low == high ? fmt::format("{:.6g}", low) : fmt::format("{:.6g} to {:.6g}", low, high);
  }
};

void line(const std::string& label, const std::string& text) { fmt::print("  {:<14} {}\n", label, text); }

std::string list_text(const std::vector<Index>& items, std::size_t most) {
  const std::size_t shown = std::min(items.size(), most);
  const std::string head =
      fmt::format("{}", fmt::join(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(shown), " "));
  return shown < items.size() ? fmt::format("{} ... ({} in all)", head, items.size()) : head;
}

ExitCode show_program(const Session& session) {
  const Stopwatch watch;
  const Threads threads(session.threads);
  const std::string compiler = fmt::format(
#ifdef __clang__
      "clang {}", __clang_version__
#else
      "gcc {}", __VERSION__
#endif
  );
#ifdef NDEBUG
  const std::string build = "release";
#else
  const std::string build = "with assertions";
#endif
  if (session.json) {
    Session::print_json("info", watch.seconds(),
                        {{"compiler", compiler},
                         {"build", build},
                         {"instructions", chosen_instructions()},
                         {"instructions_available", available_instructions()},
                         {"threads", threads.count()},
                         {"gpu", device_report().found ? Json(device_report().name) : Json(nullptr)}});
    return kDone;
  }
  fmt::print("attsvm {}\n", ATTSVM_VERSION);
  line("build", fmt::format("{}, {}", compiler, build));
  line("vectors",
       fmt::format("{} (this machine runs {})", chosen_instructions(), fmt::join(available_instructions(), ", ")));
  line("threads", fmt::format("{}", threads.count()));
  line("GPU", device_report().words);
  return kDone;
}

/// The arrays of a file: name, type, shape, and the value where it is a single number or text.
struct Listing {
  std::vector<std::string> names;
  std::vector<Array> arrays;

  void add(const std::string& name, const Array& array) {
    names.push_back(name);
    arrays.push_back(array);
  }
  Json value(std::size_t k) const {
    const Array& array = arrays[k];
    if (array.scalar == Scalar::character) return array.rank() == 1 ? Json(to_text(array, names[k])) : Json(nullptr);
    if (array.rank() != 0) return nullptr;
    // As doubles, integers would be printed with ".0" and lose digits above 2^53.
    if (array.scalar == Scalar::u64) {
      std::uint64_t number = 0;
      std::memcpy(&number, to_native(array).data, sizeof(number));
      return number;
    }
    if (array.scalar >= Scalar::i64 && array.scalar <= Scalar::u8) return to_indices(array, names[k]).front();
    return f64_span(to_f64(array)).front();
  }
  ExitCode show(const std::string& path, const std::string& noun, double seconds, const Session& session) const {
    if (!session.json) fmt::print("{}: {}\n", printable(path), counted(static_cast<Index>(names.size()), noun));
    Json list = Json::array();
    for (std::size_t k = 0; k < names.size(); ++k) {
      const Json held = value(k);
      const std::string words =
          held.is_null() ? "" : " = " + (held.is_string() ? held.get<std::string>() : held.dump());
      list.push_back({{"name", names[k]}, {"type", name_of(arrays[k].scalar)}, {"shape", arrays[k].shape}});
      if (!held.is_null()) list.back()["value"] = held;
      if (!session.json) {
        fmt::print("  {:<10} {:<16} {}{}\n", name_of(arrays[k].scalar), shape_text(arrays[k].shape),
                   printable(names[k]), words);
      }
    }
    if (session.json) Session::print_json("info", seconds, {{"file", path}, {noun + "s", list}});
    return kDone;
  }
};

ExitCode show_tensors(const std::string& path, const Session& session) {
  const Stopwatch watch;
  const SafetensorsFile file(path);
  Listing listing;
  for (const auto& [name, tensor] : file.tensors()) listing.add(name, tensor);
  return listing.show(path, "tensor", watch.seconds(), session);
}

/// Lists the arrays of a file that is not a task.
ExitCode show_arrays(const NpzFile& file, const Session& session) {
  const Stopwatch watch;
  Threads threads(session.threads);
  Listing listing;
  for (const std::string& name : file.names()) listing.add(name, file.read(name, threads));
  return with_place(file.path(), [&] { return listing.show(file.path(), "array", watch.seconds(), session); });
}

/// What attsvm info says about a task, whether as JSON or as a table.
struct TaskFacts {
  Range lengths, key_norms, query_norms, biases;
  Index positive = 0, rows = 0;
  std::optional<OptimalTokens> optimal;
  SeparabilityCondition separability;
};

TaskFacts gather(const AttentionTask& task) {
  TaskFacts facts;
  const auto see_keys = [&](const ConstRows& keys) {
    const Eigen::VectorXd norms = keys.rowwise().norm();
    facts.key_norms.see(norms.minCoeff());
    facts.key_norms.see(norms.maxCoeff());
  };
  for (Index s = 0; s < task.sequences(); ++s) {
    facts.lengths.see(static_cast<double>(task.length(s)));
    if (!task.next_token()) see_keys(task.keys(s));
  }
  if (task.next_token()) see_keys(task.embeddings());
  for (Index i = 0; i < task.queries(); ++i) {
    facts.query_norms.see(task.query(i).norm());
    facts.positive += task.label(i) > 0 ? 1 : 0;
    for (Index k = 0; task.biased() && k < task.visible(i); ++k) facts.biases.see(task.bias(i)[k]);
  }
  if (task.head().kind != HeadKind::none) facts.optimal = optimal_tokens(task);
  facts.separability = separability_condition(task);
  return facts;
}

void print_json(const std::string& path, const AttentionTask& task, const TaskFacts& facts, double seconds,
                int threads) {
  Json fields{{"file", path}};
  fields.update(Json::parse(task_facts(task)));
  fields.update({{"key_norms", facts.key_norms.json()},
                 {"query_norms", facts.query_norms.json()},
                 {"optimal", facts.optimal ? Json(facts.optimal->selection.firsts()) : Json(nullptr)},
                 {"ties", facts.optimal ? ties_json(facts.optimal->ties) : Json::array()},
                 {"tie_tolerance", kTieTolerance},
                 {"select", !task.select()               ? Json(nullptr)
                            : task.select()->is_single() ? Json(task.select()->firsts())
                                                         : sets_json(*task.select())},
                 {"threads", threads}});
  Session::print_json("info", seconds, fields);
}

void print_table(const std::string& path, const AttentionTask& task, const TaskFacts& facts) {
  constexpr std::size_t kShown = 16;
  fmt::print("{}: valid\n", printable(path));
  line("attention", fmt::format("{}{}", name_of(task.kind()),
                                task.masked()   ? ", some tokens hidden (masked)"
                                : task.causal() ? ", some tokens hidden (causal)"
                                                : ""));
  if (task.biased()) line("bias", fmt::format("{} is added to the logits", facts.biases.text()));
  if (!task.copied().empty()) {
    const auto bytes = static_cast<double>(task.copied().size() * sizeof(double)) *
                       static_cast<double>(task.key_size() + (task.keys_differ() ? task.value_size() : 0));
    line("masks", fmt::format("with gaps: {} copied next to each other, {:.3g} MB",
                              counted(static_cast<Index>(task.copied().size()), "token"), bytes / 1e6));
  }
  line("sequences",
       fmt::format("{} of {} tokens, {} tokens in all", task.sequences(), facts.lengths.text(), task.tokens()));
  if (task.next_token()) {
    line("vocabulary",
         fmt::format("{} tokens; each sequence's last one is its query, next its label", task.vocabulary_size()));
  } else {
    line("queries", fmt::format("{}, labels {} positive and {} negative", task.queries(), facts.positive,
                                task.queries() - facts.positive));
  }
  line("sizes", fmt::format("d = {} (keys{}), dz = {} (queries), dv = {} (values)", task.key_size(),
                            task.keys_differ() ? ", given apart" : "", task.query_size(), task.value_size()));
  line("norms", fmt::format("keys {}, queries {}", facts.key_norms.text(), facts.query_norms.text()));
  const Array& values = task.arrays().head;
  const bool many = task.head().kind == HeadKind::none && values.given();
  if (many) line("head", fmt::format("linear, one v for each of {} heads of attention", values.shape[0]));
  if (!many && !task.next_token()) line("head", fmt::format("{}", name_of(task.head().kind)));
  if (facts.optimal) {
    line("optimal", list_text(facts.optimal->selection.firsts(), kShown));
    for (std::size_t k = 0; k < facts.optimal->ties.size() && k < kShown; ++k) {
      const Tie& tie = facts.optimal->ties[k];
      line("tie", fmt::format("query {}: tokens {} share the best score (to {:g})", tie.query,
                              list_text(tie.tokens, kShown), kTieTolerance));
    }
    if (facts.optimal->ties.size() > kShown)
      line("", fmt::format("... {} queries tie in all", facts.optimal->ties.size()));
  }
  if (task.select()) {
    line("selection", task.select()->is_single() ? list_text(task.select()->firsts(), kShown) : "sets of tokens");
  }
  line("separable", fmt::format("{}: {}",
                                !facts.separability.holds ? "not guaranteed"
                                : task.next_token()       ? "for all labels"
                                                          : "for every selection, if generic",
                                facts.separability.reason));
}

/// Whether the file is one of arrays that are no task.
bool has_other_arrays(const NpzFile& file, Threads& threads) {
  if (file.has("W") && !file.has("tokens")) return true;
  if (!file.has("keys") || !file.has("queries") || file.has("tokens")) return false;
  load_heads(file.path(), threads);  // refuses what audit would refuse
  return true;
}

ExitCode show_npz(const std::string& path, const Session& session) {
  Threads threads(session.threads);
  if (manifest_of(path).empty()) {
    const NpzFile file(path);
    if (has_other_arrays(file, threads)) return show_arrays(file, session);
  }
  const AttentionTask task = load_task(path, threads);
  const Stopwatch watch;
  const TaskFacts facts = with_place(path, [&] { return gather(task); });
  if (session.json) {
    print_json(path, task, facts, watch.seconds(), threads.count());
  } else {
    print_table(path, task, facts);
  }
  return kDone;
}

}  // namespace

void add_info(CLI::App& program, Session& session) {
  auto path = std::make_shared<std::string>();
  CLI::App* verb = session.add_verb(program, "info", "Describe a file, or this program", R"(Examples:
  attsvm info task.npz            sizes, kinds, ranges, optimal tokens, ties, the separability condition
  attsvm info solution.npz        arrays of a solution, a run or heads
  attsvm info model.safetensors   names, types and shapes of its tensors
  attsvm info                     version, compiler, vector instructions, threads)",
                                    [&session, path] {
                                      if (path->empty()) return show_program(session);
                                      return path->ends_with(".safetensors") ? show_tensors(*path, session)
                                                                             : show_npz(*path, session);
                                    });
  verb->add_option("FILE", *path,
                   "A task (.npz, or a folder of shards), a solution, a run, heads (.npz) or tensors (.safetensors)");
}

}  // namespace attsvm::internal
