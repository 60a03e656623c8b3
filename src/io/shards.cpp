#include "io/shards.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "attsvm/files.h"
#include "base/refuse.h"
#include "io/file.h"
#include "io/json.h"
#include "io/output.h"
#include "task/parts.h"
#include "task/task_fields.h"

namespace attsvm::internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "shards.json";
constexpr Index kVersion = 1;

using Shard = Manifest::Shard;
struct Count {
  const char* name;
  Index Shard::*member;
};
constexpr std::array kCounts{Count{"bytes", &Shard::bytes},     Count{"crc32", &Shard::crc32},
                             Count{"queries", &Shard::queries}, Count{"sequences", &Shard::sequences},
                             Count{"tokens", &Shard::tokens},   Count{"weights", &Shard::weights},
                             Count{"longest", &Shard::longest}};
struct Size {
  const char* name;
  Index Manifest::*member;
};
constexpr std::array kSizes{Size{"d", &Manifest::key_size}, Size{"dv", &Manifest::value_size},
                            Size{"dz", &Manifest::query_size}, Size{"longest", &Manifest::longest},
                            Size{"fingerprint", &Manifest::fingerprint}};

Index number_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) refuse("{} is missing", name);
  if (!found->is_number_integer() || *found < 0) refuse("{} is {}; must be a count", name, found->dump());
  return found->get<Index>();
}

std::string text_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) refuse("{} is missing", name);
  if (!found->is_string()) refuse("{} is {}; must be a text", name, found->dump());
  return found->get<std::string>();
}

Index crc_of_file(const InputFile& file) { return libdeflate_crc32(0, file.bytes().data(), file.bytes().size()); }

Shard shard_of(const AttentionTask& part, const std::string& folder, const std::string& file) {
  return with_place(folder + "/" + file, [&] {
    const auto bytes = InputFile::open(folder + "/" + file);
    return Shard{.file = file,
                 .bytes = static_cast<Index>(bytes->bytes().size()),
                 .crc32 = crc_of_file(*bytes),
                 .queries = part.queries(),
                 .sequences = part.sequences(),
                 .tokens = part.tokens(),
                 .weights = part.visible().total(),
                 .longest = part.longest()};
  });
}

void save(const Manifest& manifest, bool replace) {
  nlohmann::ordered_json shards = nlohmann::ordered_json::array();
  Index first_query = 0;
  for (const Shard& shard : manifest.shards) {
    nlohmann::ordered_json entry{{"file", shard.file}, {"first_query", first_query}};
    for (const Count& count : kCounts) entry[count.name] = shard.*count.member;
    shards.push_back(std::move(entry));
    first_query += shard.queries;
  }
  nlohmann::ordered_json all{{"attsvm_shards", kVersion}, {"kind", manifest.kind}};
  for (const Size& size : kSizes) all[size.name] = manifest.*size.member;
  all["shards"] = std::move(shards);
  OutputFile out(manifest.folder + "/" + kManifest, replace);
  out.write(all.dump(1) + "\n");
  out.commit();
}

Manifest facts_of(const AttentionTask& task, const std::string& folder) {
  return {.folder = folder,
          .kind = std::string(name_of(task.kind())),
          .key_size = task.key_size(),
          .value_size = task.value_size(),
          .query_size = task.query_size(),
          .longest = task.longest()};
}

/// fingerprint_of() the task of which these are the parts, whose numbers stay where they are.
Index fingerprint_of_parts(std::span<const AttentionTask> parts, std::span<const std::string> names) {
  const TaskArrays all = joined(parts, names, Joining::shapes);
  std::uint32_t sum = 0;
  const auto add = [&](const void* data, std::size_t size) { sum = libdeflate_crc32(sum, data, size); };
  for (const TaskField& field : task_fields()) {
    const Array& array = all.*field.member;
    if (array.shape.empty() && !array.given()) continue;
    if (field.member == &TaskArrays::select) continue;
    add(field.name.data(), field.name.size());
    add(array.shape.data(), array.shape.size() * sizeof(Index));
    if (array.given()) {
      add(array.data, static_cast<std::size_t>(array.bytes()));
      continue;
    }
    for (const AttentionTask& part : parts) {
      const Array& piece = part.arrays().*field.member;
      add(piece.data, static_cast<std::size_t>(piece.bytes()));
    }
  }
  return sum;
}

void require_free(const std::string& folder, bool replace) { require_writable(folder + "/" + kManifest, replace); }

}  // namespace

Index Manifest::before(std::size_t shard, Index Shard::*count) const {
  Index sum = 0;
  for (std::size_t k = 0; k < shard; ++k) sum += shards[k].*count;
  return sum;
}

std::string manifest_of(const std::string& task) {
  std::error_code ignored;
  if (fs::is_directory(task, ignored)) return (fs::path(task) / kManifest).string();
  return fs::path(task).filename() == kManifest ? task : "";
}

Manifest read_manifest(const std::string& path) {
  return with_place(path, [&] {
    std::error_code ignored;
    if (!fs::exists(path, ignored) && fs::is_directory(fs::path(path).parent_path(), ignored))
      refuse("cannot open: No such file or directory; a folder is a task if attsvm split has made one of it");
    const auto file = InputFile::open(path);
    const nlohmann::json all = parse_json({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
    if (!all.is_object()) refuse("is not the manifest of a task in shards");
    if (number_at(all, "attsvm_shards") != kVersion)
      refuse("attsvm_shards is {}; this attsvm reads version {}", number_at(all, "attsvm_shards"), kVersion);
    Manifest manifest{.folder = fs::path(path).parent_path().string(), .kind = text_at(all, "kind")};
    if (manifest.folder.empty()) manifest.folder = ".";
    for (const Size& size : kSizes) manifest.*size.member = number_at(all, size.name);
    const auto shards = all.find("shards");
    constexpr Index kMostCrc = std::numeric_limits<std::uint32_t>::max();
    if (manifest.fingerprint > kMostCrc)
      refuse("fingerprint is {}; must be at most {}", manifest.fingerprint, kMostCrc);
    if (shards == all.end() || !shards->is_array() || shards->empty()) refuse("shards must be a list, not empty");
    Index longest = 0;
    for (std::size_t k = 0; k < shards->size(); ++k) {
      with_place(fmt::format("shards[{}]", k), [&] {
        const nlohmann::json& entry = (*shards)[k];
        if (!entry.is_object()) refuse("must be an object");
        Shard shard{.file = text_at(entry, "file")};
        for (const Count& count : kCounts) {
          shard.*count.member = number_at(entry, count.name);
          constexpr Index kMost = Index{1} << 48;
          if (shard.*count.member > kMost)
            refuse("{} is {}; must be at most {}", count.name, shard.*count.member, kMost);
        }
        if (shard.queries < 1 || shard.sequences < 1 || shard.tokens < 1 || shard.weights < 1)
          refuse("a shard has at least one query, sequence and token");
        if (number_at(entry, "first_query") != manifest.all(&Shard::queries))
          refuse("first_query is {}; the shards before have {} queries", number_at(entry, "first_query"),
                 manifest.all(&Shard::queries));
        if (shard.crc32 > kMostCrc) refuse("crc32 is {}; must be at most {}", shard.crc32, kMostCrc);
        const fs::path file_name(shard.file);
        if (file_name.filename() != shard.file || file_name.extension() != ".npz" ||
            shard.file.find('\0') != std::string::npos)
          refuse("file is {}; must be the name of an .npz file, without a folder", nlohmann::json(shard.file).dump());
        longest = std::max(longest, shard.longest);
        manifest.shards.push_back(std::move(shard));
      });
    }
    if (longest != manifest.longest) refuse("longest is {}; of the shards it is {}", manifest.longest, longest);
    return manifest;
  });
}

AttentionTask load_shards(const Manifest& manifest, std::size_t first, std::size_t last, Threads& threads) {
  std::vector<AttentionTask> parts;
  std::vector<std::string> names;
  for (std::size_t k = first; k < last; ++k) {
    const Shard& shard = manifest.shards[k];
    names.push_back((fs::path(manifest.folder) / shard.file).string());
    with_place(names.back(), [&] {
      const auto file = InputFile::open(names.back());
      const Index crc = crc_of_file(*file), bytes = static_cast<Index>(file->bytes().size());
      if (bytes != shard.bytes) refuse("has {} bytes; the manifest says {}", bytes, shard.bytes);
      if (crc != shard.crc32) refuse("its CRC-32 is {}; the manifest says {}", crc, shard.crc32);
    });
    parts.push_back(load_task(names.back(), threads));
    const AttentionTask& part = parts.back();
    with_place(names.back(), [&] {
      const auto agree = [&](std::string_view what, const auto& here, const auto& said) {
        if (here != said) refuse("{} is {}; the manifest says {}", what, here, said);
      };
      agree("the kind of attention", name_of(part.kind()), manifest.kind);
      agree("d", part.key_size(), manifest.key_size);
      agree("dv", part.value_size(), manifest.value_size);
      agree("dz", part.query_size(), manifest.query_size);
      agree("the number of queries", part.queries(), shard.queries);
      agree("the number of sequences", part.sequences(), shard.sequences);
      agree("the number of tokens", part.tokens(), shard.tokens);
      agree("the number of tokens seen", part.visible().total(), shard.weights);
      agree("the number of tokens of the longest sequence", part.longest(), shard.longest);
    });
  }
  if (parts.size() == 1) return parts.front();
  return with_place(manifest.folder, [&] { return AttentionTask(joined(parts, names)); });
}

Manifest write_shards(const AttentionTask& task, const std::string& input, Index count, const std::string& folder,
                      bool replace) {
  const std::vector<Index> cuts = with_place(input, [&] { return even_cuts(task, count); });
  std::vector<std::string> files;
  for (Index k = 0; k < count; ++k)
    files.push_back(fmt::format("shard-{:0{}}.npz", k, std::to_string(count - 1).size()));
  make_folder(folder);
  const fs::path place(folder), list = place / kManifest;
  std::vector<fs::path> old;  // shards of the manifest that is there, if it can be read
  require_free(folder, replace);
  if (std::error_code ignored; fs::exists(list, ignored)) {
    try {
      for (const Shard& shard : read_manifest(list.string()).shards) old.push_back(place / shard.file);
    } catch (const InputError&) {
      old.clear();
    }
  }
  for (const std::string& file : files) require_writable((place / file).string(), replace);
  for (const std::string& file : files) require_other_file((place / file).string(), input);
  for (const fs::path& file : old) require_other_file(file.string(), input);
  require_other_file(list.string(), input);
  std::error_code ignored;
  fs::remove(list, ignored);  // until all shards are there, the folder is no task
  for (const fs::path& file : old) fs::remove(file, ignored);
  Manifest manifest = facts_of(task, folder);
  manifest.fingerprint = fingerprint_of(task);
  for (std::size_t k = 0; k < files.size(); ++k) {
    const AttentionTask part(part_of(task, cuts[k], cuts[k + 1]));
    save_task((place / files[k]).string(), part, {}, replace);
    manifest.shards.push_back(shard_of(part, folder, files[k]));
  }
  save(manifest, replace);
  return manifest;
}

Manifest list_shards(const std::string& folder, bool replace, Threads& threads) {
  if (std::error_code ignored; !fs::is_directory(folder, ignored)) refuse("{}: is not a folder of task files", folder);
  require_free(folder, replace);
  std::vector<std::string> files, names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".npz") files.push_back(entry.path().filename().string());
  }
  if (files.empty()) refuse("{}: has no task files (*.npz)", folder);
  std::sort(files.begin(), files.end());
  std::vector<AttentionTask> parts;
  for (const std::string& file : files) {
    names.push_back((fs::path(folder) / file).string());
    parts.push_back(load_task(names.back(), threads));
    if (parts.back().next_token()) refuse("{}: a next-token task cannot be in parts", names.back());
  }
  const Index fingerprint = fingerprint_of_parts(parts, names);
  Manifest manifest = facts_of(parts.front(), folder);
  manifest.fingerprint = fingerprint;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    manifest.shards.push_back(shard_of(parts[k], folder, files[k]));
    manifest.longest = std::max(manifest.longest, parts[k].longest());
  }
  save(manifest, replace);
  return manifest;
}

}  // namespace attsvm::internal
