#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "audit/head_fields.h"
#include "base/refuse.h"
#include "io/file.h"
#include "io/json.h"
#include "task/rotation.h"

namespace attsvm {

using namespace internal;

namespace {

using PlainJson = nlohmann::json;

/// How a kind of model calls the projections of a layer: PREFIX.LAYER.QUERY.weight.
struct Family {
  std::string_view query, key;  ///< key empty: one transposed matrix for queries, keys and values
  std::optional<bool> causal;  ///< nothing: where its positions are rotary; else encoders and decoders have these names
  bool may_rotate;
};

constexpr std::array kFamilies{
    Family{"attention.self.query", "attention.self.key", false, false},            // BERT, RoBERTa
    Family{"attention.attention.query", "attention.attention.key", false, false},  // ViT
    Family{"self_attn.q_proj", "self_attn.k_proj", {}, true},                      // LLaMA, also Whisper, BART, CLIP
    Family{"attn.c_attn", "", true, false},                                        // GPT-2
};

/// Values of model_type whose rotary positions turn coordinate i together with i + d/2.
constexpr std::array<std::string_view, 7> kTurnedByHalves{"llama",     "mistral", "mixtral",   "qwen2",
                                                          "qwen2_moe", "gemma",   "starcoder2"};

/// The weights, and the name of their file.
struct Weights {
  std::string path;
  SafetensorsFile file{path};

  bool has(const std::string& name) const { return file.tensors().contains(name); }
};

/// The layers of a model under one prefix.
struct Layers {
  const Family* family = nullptr;
  std::set<Index> numbers{};
};

std::map<std::string, Layers> find_layers(const Weights& model) {
  std::map<std::string, Layers> found;
  for (const auto& [name, tensor] : model.file.tensors()) {
    for (const Family& family : kFamilies) {
      const std::string end = fmt::format(".{}.weight", family.query);
      if (!name.ends_with(end)) continue;
      const std::string lead = name.substr(0, name.size() - end.size());
      const std::size_t dot = lead.rfind('.') == std::string::npos ? 0 : lead.rfind('.') + 1;
      Index number = 0;
      const auto [rest, error] = std::from_chars(lead.data() + dot, lead.data() + lead.size(), number);
      if (error != std::errc() || rest != lead.data() + lead.size() || number < 0) continue;
      Layers& layers = found[lead.substr(0, dot)];
      layers.family = &family;
      layers.numbers.insert(number);
    }
  }
  return found;
}

/// The layers that are meant: those of `prefix`, or the only ones there are.
std::pair<std::string, Layers> choose_layers(const Weights& model, const std::string& prefix) {
  const auto found = find_layers(model);
  std::string names;
  for (const auto& [name, layers] : found) names += fmt::format(" {}", name);
  if (found.empty())
    refuse(
        "{}: has no attention of a known kind; known are the names of BERT, ViT, LLaMA and GPT-2, such as "
        "layers.0.self_attn.q_proj.weight",
        model.path);
  for (const auto& [name, layers] : found) {
    if ((prefix.empty() && found.size() == 1) || name == prefix || name == prefix + ".") return {name, layers};
  }
  if (prefix.empty()) refuse("{}: has several stacks of layers; choose with --prefix among{}", model.path, names);
  refuse("{}: has no layers under the prefix {}; there are{}", model.path, prefix, names);
}

/// The numbers of a configuration that shape attention; InputError for what keys and queries alone cannot hold.
struct Shape {
  Index heads = 0, groups = 0;
  double rotary = 0;  ///< base; 0: none
  double scale = 0;   ///< 0: 1/√d
  Index window = 0;   ///< how many tokens a query sees at most; 0: all
  bool by_layer = false;

  Shape(const PlainJson& config, const Family& family, const std::optional<double>& given) {
    heads = number(config, config.contains("n_head") ? "n_head" : "num_attention_heads", 0);
    if (heads < 1) refuse("num_attention_heads = {}; must be there, and at least 1", heads);
    groups = family.key.empty() ? heads : number(config, "num_key_value_heads", heads);
    if (groups < 1 || heads % groups != 0) refuse("num_key_value_heads = {}; must divide the {} heads", groups, heads);
    take_rotation(config, family, given);
    if (config.value("use_sliding_window", PlainJson(true)) != false) window = number(config, "sliding_window", 0);
    if (config.value("scale_attn_weights", PlainJson(true)) == false) scale = 1;
    by_layer = config.value("scale_attn_by_inverse_layer_idx", PlainJson(false)) == true;
    if (const Index size = number(config, "query_pre_attn_scalar", 0); size > 0)
      scale = 1 / std::sqrt(static_cast<double>(size));
    for (const char* name : {"attn_logit_softcapping", "alibi"}) {
      const PlainJson value = config.value(name, PlainJson());
      if (!value.is_null() && value != false)
        refuse("{} = {}; its logits are more than products of keys and queries", name, value.dump());
    }
    if (const PlainJson kind = config.value("position_embedding_type", PlainJson("absolute"));
        kind != "absolute" && !kind.is_null())
      refuse("position_embedding_type = {}; its logits are more than products of keys and queries", kind.dump());
  }

 private:
  static Index number(const PlainJson& config, const char* name, Index otherwise) {
    const PlainJson value = config.value(name, PlainJson());
    if (value.is_null()) return otherwise;
    if (!value.is_number_integer()) refuse("{} = {}; must be an integer", name, value.dump());
    return value.get<Index>();
  }

  void take_rotation(const PlainJson& config, const Family& family, const std::optional<double>& given) {
    if (!family.may_rotate) return;
    if (given) {
      rotary = *given;
      return;
    }
    PlainJson base = config.value("rope_theta", PlainJson());
    for (const char* name : {"rope_parameters", "rope_scaling"}) {
      const PlainJson more = config.value(name, PlainJson());
      if (!more.is_object()) continue;
      const PlainJson kind = more.value("rope_type", more.value("type", PlainJson("default")));
      if (kind != "default") refuse("{} is of type {}; only plain rotary positions are known", name, kind.dump());
      if (base.is_null()) base = more.value("rope_theta", PlainJson());
    }
    if (const PlainJson part = config.value("partial_rotary_factor", PlainJson(1)); part != 1)
      refuse("partial_rotary_factor = {}; only rotation of all coordinates is known", part.dump());
    if (!base.is_number())
      refuse(
          "there is no rope_theta; give --rotary BASE (LLaMA: 10000), or --rotary 0 if the model has no rotary "
          "positions");
    rotary = base.get<double>();
    const PlainJson type = config.value("model_type", PlainJson());
    if (!type.is_string() || std::find(kTurnedByHalves.begin(), kTurnedByHalves.end(), type.get<std::string_view>()) ==
                                 kTurnedByHalves.end())
      refuse(
          "model_type = {}; how it rotates is not known here: give --rotary {} if it turns coordinate i together "
          "with i + d/2, as LLaMA does; attsvm.torch can read the model otherwise",
          type.dump(), base.dump());
  }
};

/// Whether queries see earlier tokens only.
bool is_causal(const Shape& shape, const Family& family, const std::optional<bool>& given) {
  if (given) return *given;
  if (family.causal) return *family.causal;
  if (shape.rotary == 0)
    refuse(
        "{} is a name in encoders and decoders; give --causal if queries see earlier tokens only, or --no-causal if "
        "they see all",
        family.query);
  return true;
}

/// A projection: outputs × inputs, and what is added.
struct Projection {
  RowMatrix weight;
  Eigen::VectorXd bias;
};

RowMatrix tensor_matrix(const Weights& model, const std::string& name, Index rank) {
  const Array& tensor = model.file.tensor(name);
  if (tensor.rank() != rank || tensor.size() == 0 || !is_floating(tensor.scalar))
    refuse("{}: {} has shape {} and type {}; must be {} of floating numbers", model.path, name,
           shape_text(tensor.shape), name_of(tensor.scalar), rank == 1 ? "a vector" : "a matrix");
  Array numbers = to_f64(tensor, name);
  with_place(model.path, [&] { require_finite(numbers, name); });
  return ConstRows(f64_span(numbers).data(), numbers.shape[0], rank == 1 ? 1 : numbers.shape[1]);
}

Projection projection_of(const Weights& model, const std::string& name) {
  Projection found{tensor_matrix(model, name + ".weight", 2), {}};
  found.bias = Eigen::VectorXd::Zero(found.weight.rows());
  if (!model.has(name + ".bias")) return found;
  const RowMatrix bias = tensor_matrix(model, name + ".bias", 1);
  if (bias.rows() != found.weight.rows())
    refuse("{}: {}.bias has {} numbers; its weight has {} rows", model.path, name, bias.rows(), found.weight.rows());
  found.bias = bias.col(0);
  return found;
}

/// The projections to queries and keys of one layer.
std::pair<Projection, Projection> projections_of(const Weights& model, const std::string& place, const Family& family) {
  if (!family.key.empty()) {
    for (const char* norm : {"q_norm", "k_norm"}) {
      const std::string name =
          fmt::format("{}.{}.{}.weight", place, family.query.substr(0, family.query.find('.')), norm);
      if (model.has(name))
        refuse("{}: has {}: it normalises queries and keys, which is not known here; attsvm.torch can read the model",
               model.path, name);
    }
    return {projection_of(model, fmt::format("{}.{}", place, family.query)),
            projection_of(model, fmt::format("{}.{}", place, family.key))};
  }
  const std::string name = fmt::format("{}.{}", place, family.query);
  const RowMatrix weight = tensor_matrix(model, name + ".weight", 2).transpose();
  if (weight.rows() != 3 * weight.cols())
    refuse("{}: {}.weight has shape ({},{}); must be (w,3w)", model.path, name, weight.cols(), weight.rows());
  const RowMatrix bias = tensor_matrix(model, name + ".bias", 1);
  if (bias.rows() != weight.rows())
    refuse("{}: {}.bias has {} numbers; must have {}", model.path, name, bias.rows(), weight.rows());
  const Index width = weight.cols();
  return {{weight.topRows(width), bias.col(0).head(width)},
          {weight.middleRows(width, width), bias.col(0).segment(width, width)}};
}

/// The heads of a projected layer one after the other: (count·N, d), rotated.
RowMatrix stacked(const RowMatrix& x, const Projection& by, Index count, const std::vector<Index>& position,
                  double rotary) {
  RowMatrix all = x * by.weight.transpose();
  all.rowwise() += by.bias.transpose();
  const Index d = all.cols() / count;
  RowMatrix out(count * x.rows(), d);
  for (Index h = 0; h < count; ++h) {
    auto part = out.middleRows(h * x.rows(), x.rows());
    part = all.middleCols(h * d, d);
    if (rotary > 0) rotate_rows(part, position, rotary);
  }
  return out;
}

void append(std::vector<double>& to, const RowMatrix& rows) {
  to.insert(to.end(), rows.data(), rows.data() + rows.size());
}

/// Self attention: every token asks, from its own place.
void take_places(HeadArrays& arrays, Index tokens, bool causal, Index window, std::vector<Index>& position) {
  std::vector<Index> offsets{0, tokens}, sequence, visible;
  if (arrays.offsets.given()) offsets = to_indices(arrays.offsets, "offsets");
  if (offsets.size() < 2 || offsets.front() != 0 || offsets.back() != tokens ||
      !std::is_sorted(offsets.begin(), offsets.end()))
    refuse("offsets must rise from 0 to {}, the number of tokens", tokens);
  for (std::size_t s = 1; s < offsets.size(); ++s) {
    if (const Index length = offsets[s] - offsets[s - 1]; window > 0 && length > window)
      refuse("sequence {} has {} tokens; the model's sliding_window lets a query see {}: give shorter sequences", s - 1,
             length, window);
    for (Index t = offsets[s - 1]; t < offsets[s]; ++t) {
      sequence.push_back(static_cast<Index>(s) - 1);
      position.push_back(t - offsets[s - 1]);
      visible.push_back(position.back() + 1);
    }
  }
  arrays.sequence = Array::own(std::move(sequence), {tokens});
  arrays.position = Array::own(position, {tokens});
  if (causal) arrays.visible = Array::own(std::move(visible), {tokens});
}

PlainJson load_config(const std::string& path) {
  return with_place(path, [&] {
    const auto file = InputFile::open(path);
    const Bytes bytes = file->bytes();
    PlainJson config = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!config.is_object()) refuse("must be a JSON object");
    return config;
  });
}

/// Arrays that the file may have besides `inputs`: what a file of heads says about its tokens.
bool about_tokens(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"offsets", "visible", "text", "ids", "sink"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Array load_inputs(const std::string& path, HeadArrays& arrays, Threads& threads) {
  const NpzFile file(path);
  Array inputs;
  for (const std::string& name : file.names()) {
    if (name == "inputs") {
      inputs = to_native(file.read(name, threads));
    } else if (about_tokens(name)) {
      for (const HeadField& field : head_fields()) {
        if (field.name == name) arrays.*field.member = file.read(name, threads);
      }
    } else if (!name.starts_with("x_")) {
      refuse(
          "{}: unknown array '{}'; must be inputs, offsets, visible, text, ids or sink; names of your own arrays must "
          "start with x_",
          path, name);
    }
  }
  if (!inputs.given()) refuse("{}: inputs is missing: what the attention of each layer reads, (L,N,w)", path);
  if (inputs.rank() != 3 || inputs.size() == 0 || !is_floating(inputs.scalar))
    refuse("{}: inputs has shape {} and type {}; must be (L,N,w), floating numbers", path, shape_text(inputs.shape),
           name_of(inputs.scalar));
  return inputs;
}

}  // namespace

HeadSet heads_of_model(const std::string& model_path, const std::string& inputs_path, const ModelReading& reading,
                       Threads& threads) {
  const Weights model{model_path};
  const auto [prefix, layers] = choose_layers(model, reading.prefix);
  const Family& family = *layers.family;
  const PlainJson config = load_config(reading.config);
  const Shape shape = with_place(reading.config, [&] { return Shape(config, family, reading.rotary); });
  HeadArrays arrays;
  const Array inputs = load_inputs(inputs_path, arrays, threads);
  const Index count = inputs.shape[0], tokens = inputs.shape[1], width = inputs.shape[2];
  if (count != static_cast<Index>(layers.numbers.size()))
    refuse("{}: inputs has {} layers; {} has {}", inputs_path, count, model_path, layers.numbers.size());
  std::vector<Index> position;
  const bool causal =
      !arrays.visible.given() && with_place(model_path, [&] { return is_causal(shape, family, reading.causal); });
  with_place(inputs_path, [&] { take_places(arrays, tokens, causal, shape.window, position); });

  std::vector<double> keys, queries;
  std::vector<Index> key_head, layer, head;
  Index place = 0, size = 0;
  for (const Index number : layers.numbers) {
    const auto [query, key] = projections_of(model, fmt::format("{}{}", prefix, number), family);
    for (const Projection* one : {&query, &key}) {
      const Index parts = one == &query ? shape.heads : shape.groups;
      if (one->weight.cols() != width)
        refuse("{}: inputs has width {}; layer {} of {} reads {}", inputs_path, width, number, model_path,
               one->weight.cols());
      if (size == 0) size = one->weight.rows() / parts;
      if (one->weight.rows() != parts * size)
        refuse("{}: layer {} has {} {}; not {} heads of size {} (see {})", model_path, number, one->weight.rows(),
               one == &query ? "queries" : "keys", parts, size, reading.config);
    }
    if (shape.rotary > 0 && size % 2 != 0) refuse("{}: heads of size {} cannot be rotated", model_path, size);
    Array slice(inputs.scalar, {tokens, width}, inputs.data + place * tokens * width * size_of(inputs.scalar),
                inputs.owner);
    Array numbers = to_f64(slice, "inputs");
    with_place(inputs_path, [&] { require_finite(numbers, fmt::format("inputs[{}]", place)); });
    const RowMatrix x = ConstRows(f64_span(numbers).data(), tokens, width);
    const double scale = (shape.scale > 0 ? shape.scale : 1 / std::sqrt(static_cast<double>(size))) /
                         (shape.by_layer ? static_cast<double>(number) + 1 : 1);
    append(keys, stacked(x, key, shape.groups, position, shape.rotary));
    append(queries, scale * stacked(x, query, shape.heads, position, shape.rotary));
    for (Index h = 0; h < shape.heads; ++h) {
      key_head.push_back(place * shape.groups + h / (shape.heads / shape.groups));
      layer.push_back(number);
      head.push_back(h);
    }
    ++place;
  }
  const auto heads = static_cast<Index>(head.size());
  arrays.keys = Array::own(std::move(keys), {count * shape.groups, tokens, size});
  arrays.queries = Array::own(std::move(queries), {heads, tokens, size});
  if (shape.groups < shape.heads) arrays.key_head = Array::own(std::move(key_head), {heads});
  arrays.layer = Array::own(std::move(layer), {heads});
  arrays.head = Array::own(std::move(head), {heads});
  return with_place(inputs_path, [&] { return HeadSet(std::move(arrays)); });
}

}  // namespace attsvm
