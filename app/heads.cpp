#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "base/refuse.h"
#include "io/output.h"
#include "options.h"

namespace attsvm::internal {
namespace {

struct HeadsOptions {
  std::string model, inputs, out;
  ModelReading reading;
};

ExitCode run_heads(Session& session, HeadsOptions& options) {
  require_writable(options.out, session.force);
  require_other_file(options.out, options.model);
  require_other_file(options.out, options.inputs);
  if (options.reading.config.empty())
    options.reading.config = (std::filesystem::path(options.model).parent_path() / "config.json").string();
  Threads threads(session.threads);
  const Stopwatch watch;
  const HeadSet heads = heads_of_model(options.model, options.inputs, options.reading, threads);
  const double seconds = watch.seconds();
  write_npz(options.out, head_arrays(heads), session.force);
  if (session.json) {
    Session::print_json("heads", seconds,
                        {{"file", options.out},
                         {"heads", heads.heads()},
                         {"tokens", heads.tokens()},
                         {"size", heads.size()},
                         {"layer", to_indices(heads.arrays().layer, "layer")},
                         {"head", to_indices(heads.arrays().head, "head")},
                         {"threads", threads.count()}});
  } else {
    fmt::print("{}: {} of size {} on {}\n", printable(options.out), counted(heads.heads(), "head"), heads.size(),
               counted(heads.tokens(), "token"));
  }
  return kDone;
}

}  // namespace

void add_heads(CLI::App& program, Session& session) {
  auto options = std::make_shared<HeadsOptions>();
  CLI::App* verb = session.add_verb(program, "heads",
                                    "Make heads for audit from a model's weights and what its layers read", R"(Examples:
  attsvm heads model.safetensors inputs.npz -o heads.npz                  config.json is read from the model's folder
  attsvm heads model.safetensors inputs.npz --prefix model.decoder.layers --rotary 0 --causal -o heads.npz
  attsvm audit heads.npz
MODEL has Hugging Face's names, as BERT, ViT, GPT-2 or LLaMA have them. INPUTS has what the attention of each layer
reads, (layers,tokens,width), and may have offsets, visible, text, ids and sink (docs/formats.md). In models that
normalise first, as GPT-2 and LLaMA do, that is what the norm returns.
Where PyTorch can run the model, attsvm.torch needs no inputs and knows every architecture.)",
                                    [&session, options] { return run_heads(session, *options); });
  ModelReading& reading = options->reading;
  verb->add_option("MODEL", options->model, "Weights (.safetensors)")->required();
  verb->add_option("INPUTS", options->inputs, "What layers read (.npz)")->required();
  Session::add_output(verb, options->out, session.force)->required();
  verb->add_option("--config", reading.config, "Numbers of heads (default: config.json in the model's folder)");
  verb->add_option("--prefix", reading.prefix, "Names before the layers' numbers, where the model has several stacks");
  verb->add_option(
          "--rotary", reading.rotary,
          "Base of rotary positions that turn coordinate i together with i + d/2, 0 for none (default: rope_theta of "
          "the config, where its model_type is known to turn so)")
      ->check(CLI::NonNegativeNumber);
  verb->add_flag_callback(
      "--causal", [&reading] { reading.causal = true; },
      "Queries see earlier tokens only (default: GPT-2 and models with rotary positions do so, BERT and ViT do not; "
      "others must be told)");
  verb->add_flag_callback(
      "--no-causal", [&reading] { reading.causal = false; }, "Queries see all tokens");
}

}  // namespace attsvm::internal
