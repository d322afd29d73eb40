#include "lacuna/guide/learned_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace lacuna::guide {

using namespace fields;

namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;
constexpr double kMostRatio = 4;  // logarithm
constexpr std::string_view kEnding = ".json";
constexpr std::chrono::seconds kWait{60};  // each of many processes holds the file for milliseconds

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

Result<LearnedRatio> ratio_in(const Json& json, const std::string& where) {
  const auto ratio = json.find("log_ratio");
  if (ratio == json.end()) return base::fail(base::Code::invalid_argument, fmt::format("{} lacks log_ratio", where));
  return LearnedRatio{.log_ratio = LACUNA_TRY(number(*ratio, "log_ratio", -kMostRatio, kMostRatio, where)),
                      .samples = static_cast<int>(LACUNA_TRY(number_in(json, "samples", kMostSamples, where)))};
}

Result<std::vector<Json>> read_entries(const std::string& file) {
  const std::string content = LACUNA_TRY(read_text(file));
  try {
    const Json json = Json::parse(content);
    const Json& all = *LACUNA_TRY(member(json, "learned", Json::value_t::array, "a list", file));
    if (json.value("schema", 0) != kSchema || all.size() > kMostLearned)
      return base::fail(base::Code::invalid_argument, fmt::format("{}: schema {} with {} pairs; this library reads schema {} with up to {}",
                                                                  file, json.value("schema", 0), all.size(), kSchema, kMostLearned));
    if (LACUNA_TRY(text(json, "machine", file)) != machine_name()) return std::vector<Json>();
    return all.get<std::vector<Json>>();
  } catch (const Json::exception& error) {
    return base::fail(base::Code::invalid_argument, fmt::format("{}: {}", file, error.what()));
  }
}

Result<void> replace_entries(const std::string& file, const std::function<Result<std::vector<Json>>(std::span<const Json>)>& change) {
  std::error_code failed;
  fs::create_directories(fs::path(file).parent_path(), failed);
  const base::Fd held = LACUNA_TRY(lock(file + ".lock"));
  const Result<std::vector<Json>> there = read_entries(file);
  Result<std::vector<Json>> made = there ? change(*there) : base::fail(there.error().code, there.error().message);
  if (!made) {  // what cannot be read helps nobody
    if (made.error().code != base::Code::io) base::log(base::Level::warn, made.error().message + "; it is replaced");
    made = change({});
  }
  if (!made) return std::unexpected(made.error());
  Json json{{"schema", kSchema}, {"lacuna_version", base::version()}, {"machine", machine_name()}, {"learned", Json::array()}};
  for (Json& one : *made) json["learned"].push_back(std::move(one));
  const std::string fresh = file + ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << json.dump(1) << '\n';
  out.close();
  if (!out) return std::unexpected(io_error("write", fresh));
  if (rename(fresh.c_str(), file.c_str()) != 0) return std::unexpected(io_error("replace", file));
  return {};
}

}  // namespace lacuna::guide
