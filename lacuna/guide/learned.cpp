// What programs learned, in a file beside the profile. A process that adds to it holds a lock, reads, and puts a new
// file in its place, so a reader never sees half of one, and nothing is lost when many end at once. The lock is a file
// of its own, since the other one is replaced.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "lacuna/guide/json_fields.hpp"

namespace lacuna::guide {

using namespace fields;

namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;
constexpr int kMostSamples = 256;  // that the past counts for
constexpr double kMostRatio = 4;   // logarithm
constexpr std::string_view kEnding = ".json";
constexpr std::chrono::seconds kWait{60};  // each of many processes holds the file for milliseconds

Result<std::optional<Learned>> learned_in(const Json& json, const std::string& where) {
  if (!json.is_object()) return base::fail(base::Code::invalid_argument, fmt::format("{} holds what is no object", where));
  Learned made;
  made.pair = LACUNA_TRY(pair_in(json, where));
  made.cold = json.value("cold", false);
  made.message_us = LACUNA_TRY(number_in(json, "message_us", kMostMessage, where));
  const Json& ways = *LACUNA_TRY(member(json, "ways", Json::value_t::array, "a list", where));
  if (ways.size() != 2) return base::fail(base::Code::invalid_argument, fmt::format("{}: {} ways, not 2", where, ways.size()));
  const std::optional<Way> first = LACUNA_TRY(way_in(ways[0], where));
  const std::optional<Way> second = LACUNA_TRY(way_in(ways[1], where));
  const auto ratio = json.find("log_ratio");
  if (ratio == json.end()) return base::fail(base::Code::invalid_argument, fmt::format("{} lacks log_ratio", where));
  made.log_ratio = LACUNA_TRY(number(*ratio, "log_ratio", -kMostRatio, kMostRatio, where));
  made.samples = static_cast<int>(LACUNA_TRY(number_in(json, "samples", kMostSamples, where)));
  if (!first || !second) return std::nullopt;
  made.first = *first;
  made.second = *second;
  return made;
}

Json json_of(const Learned& one) {
  return {{"pair", numbers_of(one.pair)}, {"cold", one.cold},
          {"message_us", one.message_us}, {"ways", {way_text(one.first), way_text(one.second)}},
          {"log_ratio", one.log_ratio},   {"samples", one.samples}};
}

// The older of two counts for no more than it has samples.
void add(std::vector<Learned>& all, const Learned& one) {
  const auto found = std::ranges::find_if(all, [&](const Learned& old) { return old.same(one); });
  if (found == all.end()) {
    all.push_back(one);
    all.back().samples = std::min(one.samples, kMostSamples);
    return;
  }
  const double ratio = found->first == one.first ? one.log_ratio : -one.log_ratio;
  const int samples = found->samples + one.samples;
  found->log_ratio = (found->log_ratio * found->samples + ratio * one.samples) / std::max(1, samples);
  found->samples = std::min(samples, kMostSamples);
}

base::Error io_error(const char* what, const std::string& file) {
  return {base::Code::io, fmt::format("cannot {} {}: {}", what, file, std::strerror(errno))};
}

Result<base::Fd> lock(const std::string& file) {
  base::Fd held(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!held) return std::unexpected(io_error("open", file));
  const auto deadline = std::chrono::steady_clock::now() + kWait;
  while (flock(held.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return std::unexpected(io_error("lock", file));
    if (std::chrono::steady_clock::now() > deadline)
      return base::fail(base::Code::timeout, fmt::format("others hold {} for {} s", file, kWait.count()));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return held;
}

}  // namespace

std::string learned_file(const std::string& profile) {
  const bool ends = profile.ends_with(kEnding);
  return profile.substr(0, profile.size() - (ends ? kEnding.size() : 0)) + ".learned" + std::string(kEnding);
}

Result<std::vector<Learned>> read_learned(const std::string& file) {
  const std::string content = LACUNA_TRY(read_text(file));
  try {
    const Json json = Json::parse(content);
    const Json& all = *LACUNA_TRY(member(json, "learned", Json::value_t::array, "a list", file));
    if (json.value("schema", 0) != kSchema || all.size() > kMostLearned)
      return base::fail(base::Code::invalid_argument, fmt::format("{}: schema {} with {} pairs; this library reads schema {} with up to {}",
                                                                  file, json.value("schema", 0), all.size(), kSchema, kMostLearned));
    std::vector<Learned> learned;
    if (LACUNA_TRY(text(json, "machine", file)) != machine_name()) return learned;
    for (const Json& each : all) {
      std::optional<Learned> one = LACUNA_TRY(learned_in(each, file));
      if (one) learned.push_back(*std::move(one));
    }
    return learned;
  } catch (const Json::exception& error) {
    return base::fail(base::Code::invalid_argument, fmt::format("{}: {}", file, error.what()));
  }
}

Result<void> merge_learned(const std::string& file, std::span<const Learned> learned) {
  std::error_code failed;
  fs::create_directories(fs::path(file).parent_path(), failed);
  const base::Fd held = LACUNA_TRY(lock(file + ".lock"));
  std::vector<Learned> all;
  if (Result<std::vector<Learned>> there = read_learned(file)) {
    all = *std::move(there);
  } else if (there.error().code != base::Code::io) {  // what cannot be read helps nobody
    base::log(base::Level::warn, there.error().message + "; it is replaced");
  }
  for (const Learned& one : learned) add(all, one);
  if (all.size() > kMostLearned) {
    std::ranges::sort(all, std::greater(), &Learned::samples);
    all.resize(kMostLearned);
  }
  Json json{{"schema", kSchema}, {"lacuna_version", base::version()}, {"machine", machine_name()}, {"learned", Json::array()}};
  for (const Learned& one : all) json["learned"].push_back(json_of(one));
  const std::string fresh = file + ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << json.dump(1) << '\n';
  out.close();
  if (!out) return std::unexpected(io_error("write", fresh));
  if (rename(fresh.c_str(), file.c_str()) != 0) return std::unexpected(io_error("replace", file));
  return {};
}

}  // namespace lacuna::guide
