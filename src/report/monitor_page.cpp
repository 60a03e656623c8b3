#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attsvm/report.h"
#include "attsvm/version.h"
#include "base/refuse.h"
#include "io/json.h"

namespace attsvm {

using namespace internal;

namespace {

using MonitorJson = nlohmann::ordered_json;

/// An array of the file, and the names of the numbers that it has per head.
struct Measured {
  const char* array;
  std::vector<const char*> names;
};

const std::vector<Measured>& measured() {
  static const std::vector<Measured> kMeasured{{"gap", {"gap_10", "gap_50", "gap_90"}},
                                               {"weight", {"weight"}},
                                               {"entropy", {"entropy"}},
                                               {"largest_logit", {"largest_logit"}},
                                               {"sink_weight", {"sink_weight"}},
                                               {"sink_share", {"sink_share"}},
                                               {"drift", {"drift"}},
                                               {"norm", {"norm_fro", "norm_spec", "norm_nuc"}},
                                               {"kind", {"offset", "constant", "same word", "induction"}},
                                               {"forecast", {"forecast"}},
                                               {"rho", {"rho", "null_mean", "null_deviation"}}};
  return kMeasured;
}

/// The sizes that all arrays share: measurements, layers, heads.
struct Sizes {
  Index points = 0, layers = 0, heads = 0;
};

Array numbers_of(const NpzFile& file, const Measured& one, const Sizes& sizes, Threads& threads) {
  Array array = to_f64(file.read(one.array, threads), one.array);
  std::vector<Index> shape{sizes.points, sizes.layers, sizes.heads};
  if (one.names.size() > 1) shape.push_back(static_cast<Index>(one.names.size()));
  if (array.shape != shape) {
    refuse("{} has shape {}; must be {}, for measurements, layers and heads", one.array, shape_text(array.shape),
           shape_text(shape));
  }
  return array;
}

std::vector<std::string> texts_of(const NpzFile& file, const char* name, Index count, Threads& threads) {
  std::vector<std::string> texts = to_texts(file.read(name, threads), name);
  if (static_cast<Index>(texts.size()) != count) refuse("{} has {} texts; must have {}", name, texts.size(), count);
  return texts;
}

/// The measurements in which rho was taken: those with a number for any head.
std::vector<Index> points_with(std::span<const double> rho, const Sizes& sizes) {
  std::vector<Index> points;
  const Index each = sizes.layers * sizes.heads * 3;
  for (Index r = 0; r < sizes.points; ++r) {
    const auto part = rho.subspan(static_cast<std::size_t>(r * each), static_cast<std::size_t>(each));
    if (std::any_of(part.begin(), part.end(), [](double one) { return !std::isnan(one); })) points.push_back(r);
  }
  return points;
}

/// [layer][head][point] of number k of an array with `count` numbers per head; null where there is none.
MonitorJson curves_of(std::span<const double> numbers, const Sizes& sizes, Index count, Index k,
                      const std::vector<Index>& points) {
  MonitorJson layers = MonitorJson::array();
  for (Index l = 0; l < sizes.layers; ++l) {
    MonitorJson heads = MonitorJson::array();
    for (Index h = 0; h < sizes.heads; ++h) {
      MonitorJson curve = MonitorJson::array();
      for (const Index r : points) {
        const double value =
            numbers[static_cast<std::size_t>((((r * sizes.layers) + l) * sizes.heads + h) * count + k)];
        curve.push_back(std::isfinite(value) ? MonitorJson(value) : MonitorJson(nullptr));
      }
      heads.push_back(std::move(curve));
    }
    layers.push_back(std::move(heads));
  }
  return layers;
}

}  // namespace

bool is_monitor_file(const std::string& path) {
  const NpzFile file(path);
  return file.has("step") && file.has("layer_name") && !file.has("tokens");
}

std::string monitor_data(const std::string& path, const std::string& command, Threads& threads) {
  const NpzFile file(path);
  return with_place(path, [&] {
    const Array step = to_f64(file.read("step", threads), "step");
    const auto layers = to_texts(file.read("layer_name", threads), "layer_name");
    const Array weight = file.read("weight", threads);
    if (step.rank() != 1 || step.size() < 1 || weight.rank() != 3)
      refuse("step has shape {} and weight {}; must be (r) and (r,layers,heads)", shape_text(step.shape),
             shape_text(weight.shape));
    const Sizes sizes{step.shape[0], static_cast<Index>(layers.size()), weight.shape[2]};
    std::vector<Index> all(static_cast<std::size_t>(sizes.points));
    for (Index r = 0; r < sizes.points; ++r) all[static_cast<std::size_t>(r)] = r;

    MonitorJson measures = MonitorJson::object(), rho;
    for (const Measured& one : measured()) {
      const Array array = numbers_of(file, one, sizes, threads);
      const auto numbers = f64_span(array);
      const bool is_rho = std::string_view(one.array) == "rho";
      const std::vector<Index> points = is_rho ? points_with(numbers, sizes) : all;
      MonitorJson& place = is_rho ? rho : measures;
      for (std::size_t k = 0; k < one.names.size(); ++k) {
        place[one.names[k]] =
            curves_of(numbers, sizes, static_cast<Index>(one.names.size()), static_cast<Index>(k), points);
      }
      if (is_rho) {
        rho["step"] = MonitorJson::array();
        for (const Index r : points) rho["step"].push_back(f64_span(step)[static_cast<std::size_t>(r)]);
        rho["norm"] = to_text(file.read("rho_norm", threads), "rho_norm");
      }
    }
    const std::vector<std::string> words =
        texts_of(file, "kind_words", sizes.points * sizes.layers * sizes.heads, threads);
    MonitorJson kinds = MonitorJson::array();
    const Index last = (sizes.points - 1) * sizes.layers * sizes.heads;
    for (Index l = 0; l < sizes.layers; ++l) {
      MonitorJson row = MonitorJson::array();
      for (Index h = 0; h < sizes.heads; ++h)
        row.push_back(words[static_cast<std::size_t>(last + l * sizes.heads + h)]);
      kinds.push_back(std::move(row));
    }
    MonitorJson data{
        {"kind", "monitor"},
        {"attsvm", ATTSVM_VERSION},
        {"title", path},
        {"command", command},
        {"step", std::vector<double>(f64_span(step).begin(), f64_span(step).end())},
        {"layers", layers},
        {"heads", sizes.heads},
        {"measures", std::move(measures)},
        {"kinds", std::move(kinds)},
        {"rho", rho["step"].empty() ? MonitorJson(nullptr) : std::move(rho)},
        {"warnings", file.has("warnings") ? MonitorJson(to_texts(file.read("warnings", threads), "warnings"))
                                          : MonitorJson(MonitorJson::array())}};
    return json_text(data);
  });
}

}  // namespace attsvm
