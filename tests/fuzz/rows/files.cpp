// Files and lines of JSON: profiles that were measured, learned or written by hand, and requests to the worker.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lacuna/guide/guide.hpp"
#include "lacuna/guide/mpi_ways.hpp"
#include "lacuna/nic/model/profile.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/rows/rows.hpp"
#include "tools/worker/worker_json.hpp"

namespace lacuna::fuzz {
namespace {

using Json = nlohmann::json;

// A file in memory.
class File {
 public:
  explicit File(const Bytes& content) : file_(memfd_create("lacuna_fuzz", 0)) {
    if (write(file_.get(), content.data(), content.size()) != std::ssize(content)) std::abort();
  }
  [[nodiscard]] std::string name() const { return fmt::format("/proc/self/fd/{}", file_.get()); }

 private:
  base::Fd file_;
};

bool refused_well(const base::Error& error) { return error.code == base::Code::invalid_argument || error.code == base::Code::io; }

// An error that says what is wrong, or what `sound` finds in order. A planted fault: `spoil` makes of what was read
// what a reader would give that does not check.
template <class Read, class Spoil, class Sound>
Verdict read(const Bytes& input, bool planted, const Read& read_file, const Spoil& spoil, const Sound& sound) {
  const File file(input);
  auto result = read_file(file.name());
  if (!result) return {.taken = false, .wrong = refused_well(result.error()) ? "" : result.error().text()};
  if (planted) spoil(*result);
  return {.taken = true, .wrong = sound(*result)};
}

std::string sound_prices(const method::Prices& prices) {
  for (const double price : prices) {
    if (!std::isfinite(price) || price < 0) return fmt::format("a price of {}", price);
  }
  return {};
}

Bytes draw_profile(Random& random) {
  static const std::vector<Bytes> seeds{
      R"({"schema": 3, "nic": "local", "peers": "same machine", "machine": "a machine", "lacuna_version": "0.1.0",
    "created": "2026-01-02T03:04:05Z", "classes": [
      {"message_us": 2.5, "paths": {"mapped": {
         "prices": {"post": 12.5, "pack_run": 3}, "biases": {"pack_write/flag": [1, 2, 3, 4, 5, 6, 7, 8], "pack": [0.5, 0, 0, 0, 0, 0, 0, 0]},
         "error_median": 0.08, "error_p90": 0.2, "rows": 300}}},
      {"message_us": 9, "paths": {}}]})",
      R"({"schema": 3, "nic": "local", "peers": "same machine", "machine": "m", "lacuna_version": "0.1.0", "created": "t", "classes": []})"};
  return mutated_text(random, seeds);
}

Verdict judge_profile(const Bytes& input, bool planted) {
  const auto spoil = [](guide::Profile& profile) {
    for (auto& one : profile.classes) {
      for (auto& path : one.paths) path.prices.back() = -1;
    }
  };
  return read(input, planted, guide::read_profile, spoil, [](const guide::Profile& profile) {
    for (const auto& one : profile.classes) {
      for (const auto& path : one.paths) {
        if (std::string wrong = sound_prices(path.prices); !wrong.empty()) return wrong;
      }
    }
    return std::string();
  });
}

std::vector<Bytes> one_learned(const std::function<base::Result<void>(const std::string& file)>& merge) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("lacuna_fuzz_{}", getpid());
  std::filesystem::create_directories(folder);
  const std::string name = (folder / "learned.json").string();
  Bytes text = "{}";
  if (merge(name)) {
    std::ifstream in(name);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::filesystem::remove_all(folder);
  return {text};
}

template <class One>
void spoil_learned(std::vector<One>& all) {
  if (!all.empty()) all.back().log_ratio = std::log(0.0);
}
template <class One>
std::string sound_learned(const std::vector<One>& all) {
  for (const One& one : all) {
    if (!std::isfinite(one.log_ratio) || one.samples < 0) return fmt::format("a ratio of {} of {} samples", one.log_ratio, one.samples);
  }
  return {};
}

Bytes draw_learned(Random& random) {
  static const std::vector<Bytes> seeds = one_learned([](const std::string& file) {
    guide::Learned one;
    one.first.method = &method::methods()[0];
    one.first.path = one.second.path = nic::Path::wire;
    one.second.method = &method::methods()[1];
    one.log_ratio = 0.25;
    one.samples = 3;
    const layout::Layout bytes = *layout::Layout::bytes(1000);
    one.pair = layout::outline(bytes, bytes);
    return guide::merge_learned(file, {&one, 1});
  });
  return mutated_text(random, seeds);
}
Verdict judge_learned(const Bytes& input, bool planted) {
  return read(input, planted, guide::read_learned, spoil_learned<guide::Learned>, sound_learned<guide::Learned>);
}

Bytes draw_mpi_learned(Random& random) {
  static const std::vector<Bytes> seeds = one_learned([](const std::string& file) {
    const guide::MpiLearned one{.version = "MPICH 5",
                                .use = guide::MpiUse::send,
                                .piece = {.bytes = 4096, .run = 64},
                                .first = guide::MpiWay::host,
                                .second = guide::MpiWay::packed,
                                .log_ratio = -0.5,
                                .samples = 4};
    return guide::merge_mpi_learned(file, {&one, 1});
  });
  return mutated_text(random, seeds);
}
Verdict judge_mpi_learned(const Bytes& input, bool planted) {
  return read(input, planted, guide::read_mpi_learned, spoil_learned<guide::MpiLearned>, sound_learned<guide::MpiLearned>);
}

Bytes draw_mpi_profile(Random& random) {
  static const std::vector<Bytes> seeds = [] {
    Json ns = Json::object();
    for (std::size_t use = 0; use < guide::kMpiUses; ++use) {
      Json ways = Json::object();
      for (const auto way : {guide::MpiWay::host, guide::MpiWay::packed, guide::MpiWay::offered}) {
        if (!guide::mpi_way_serves(way, static_cast<guide::MpiUse>(use))) continue;
        Json sheet = Json::array();
        for (const std::int64_t bytes : guide::kMpiBytes) {
          for (const std::int64_t run : guide::kMpiRuns) sheet.push_back(2 * run <= bytes ? bytes : 0);
        }
        ways[std::string(guide::mpi_way_name(way))] = sheet;
      }
      ns[std::string(guide::mpi_use_name(static_cast<guide::MpiUse>(use)))] = {{"regular", ways}};
    }
    return std::vector<Bytes>{
        Json{{"schema", "lacuna-mpi-ways/4"},
             {"library", "mpich"},
             {"library_version", "MPICH 9"},
             {"machine", "a machine"},
             {"created", "today"},
             {"bytes", guide::kMpiBytes},
             {"runs", guide::kMpiRuns},
             {"ns", ns},
             {"thresholds", {{"contiguous", {{"from", 65536}}}, {"inter_node", {{"from", 262144}, {"chunk", 131072}}}}}}
            .dump()};
  }();
  return mutated_text(random, seeds);
}
Verdict judge_mpi_profile(const Bytes& input, bool planted) {
  const auto read_it = [](const std::string& file) { return guide::MpiPrices::read(file, guide::MpiLibrary::mpich); };
  // The prices of the use before are taken.
  std::size_t off = 0;
  const auto spoil = [&off](guide::MpiPrices&) { off = guide::kMpiUses - 1; };
  return read(input, planted, read_it, spoil, [&off](const guide::MpiPrices& prices) -> std::string {
    for (std::size_t use = 0; use < guide::kMpiUses; ++use) {
      for (const std::int64_t bytes : {1, 256, 5000, 1 << 20}) {
        const guide::Piece piece{.bytes = bytes, .run = std::max<std::int64_t>(1, bytes / 7)};
        const guide::MpiWay way = prices.choose(static_cast<guide::MpiUse>((use + off) % guide::kMpiUses), piece);
        if (!guide::mpi_way_serves(way, static_cast<guide::MpiUse>(use))) return "it chooses a way that there is not";
      }
    }
    return {};
  });
}

Bytes draw_model(Random& random) {
  static const std::vector<Bytes> seeds = [] {
    std::ifstream in(LACUNA_SOURCE_DIR "/lacuna/nic/model/profiles/connectx5-rocev2.json");
    return std::vector<Bytes>{{std::istreambuf_iterator<char>(in), {}}};
  }();
  return mutated_text(random, seeds);
}
Verdict judge_model(const Bytes& input, bool planted) {
  const auto read_it = [](const std::string& file) { return nic::model::Profile::load(file, ""); };
  const auto spoil = [](nic::model::Profile& profile) { profile.limits.max_sge = 0; };
  return read(input, planted, read_it, spoil, [](const nic::model::Profile& profile) -> std::string {
    const nic::Limits& limits = profile.limits;
    if (limits.max_sge < 1 || limits.max_send_wr < 1 || limits.max_cqe < 1 || limits.max_message_bytes < 1) return "limits below 1";
    return {};
  });
}

Bytes draw_request(Random& random) {
  static const std::vector<Bytes> seeds{
      R"({"measure": {"id": 7, "layout": {"block_bytes": 64, "block_count": 100, "shape": "symmetric"}, "max_samples": 20, "budget_ms": 5,
  "methods": ["pack"], "notifies": ["imm"], "leave_out": [["pack", "mapped"]], "cache": "cold", "cache_bytes": 1048576}})",
      R"({"keys": {"id": 8, "entries": 128, "budget_ms": 5.5}})",
      R"({"measure": {"id": 1, "layout": {"ddtbench": "MILC", "index": 0, "shape": "gather"}}})"};
  return mutated_text(random, seeds);
}
Verdict judge_request(const Bytes& input, bool planted) {
  const auto request = measure::request_of(input);
  if (!request) {
    const bool well = request.error().code == base::Code::invalid_argument || request.error().code == base::Code::limit ||
                      request.error().code == base::Code::overflow;
    return {.taken = false, .wrong = well ? "" : request.error().text()};
  }
  const bool fits = request->what.send.size() == request->what.receive.size() - (planted ? 1 : 0);
  return {.taken = true, .wrong = fits ? "" : "both sides of a case have other bytes"};
}

}  // namespace

#define LACUNA_FILE_ROW(function, text, inputs, least, suffix)                                                                       \
  Fuzzer function() {                                                                                                                \
    return {.name = #function, .what = text, .smoke = inputs, .least_taken = least, .draw = draw_##suffix, .judge = judge_##suffix}; \
  }
LACUNA_FILE_ROW(guide_profile, "profiles that `lacuna guide` or a user wrote", 30'000, 0.01, profile)
LACUNA_FILE_ROW(guide_learned, "what programs learned, in files", 20'000, 0.01, learned)
LACUNA_FILE_ROW(mpi_profile, "profiles of an MPI", 10'000, 0.01, mpi_profile)
LACUNA_FILE_ROW(mpi_learned, "what preloaded programs learned, in files", 20'000, 0.01, mpi_learned)
LACUNA_FILE_ROW(model_profile, "profiles of modelled NICs", 10'000, 0.01, model)
LACUNA_FILE_ROW(worker_request, "requests to lacuna-worker, a line of JSON each", 30'000, 0.01, request)
#undef LACUNA_FILE_ROW

}  // namespace lacuna::fuzz
