// lacuna_fuzz: runs the fuzzers of the table (fuzzer.hpp), some or all.
#include <fmt/format.h>
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/fuzz/run.hpp"

namespace lacuna::fuzz {
namespace {

constexpr const char* kHelp = R"(Usage: lacuna_fuzz [OPTIONS]

  Give the library what comes from outside, nearly valid: wire forms, messages of peers, handshakes, files, requests.
  Each fuzzer runs its corpus, then a canary (a planted fault that it has to see), then inputs drawn from seeds.

  Examples:
    lacuna_fuzz                                        smoke runs of all fuzzers, as CI runs them
    lacuna_fuzz --list
    lacuna_fuzz --only layout_wire --inputs 10000000 --seed 7
    lacuna_fuzz --only layout_wire --file input.bin    one input

  Exit status: 0; 1 if a fuzzer found something or missed its canary; 2 for wrong usage

Options:
  --list      Print the fuzzers and what each is for.
  --only NAME This fuzzer alone; several times for several.
  --inputs N  So many inputs, without corpus and canary. [default: a smoke run]
  --seed S    Of the first input; each input has the next one. [default: 1]
  --times X   So many times the inputs of a smoke run; below 1 for builds that are slow. [LACUNA_FUZZ_TIMES]
  --file FILE This input alone, of one fuzzer.
  --save FILE Write the input of --seed there, for a corpus, and run nothing.
  --json      Print one JSON object.
  --help      Show this message and exit.
)";

struct Options {
  std::vector<const Fuzzer*> chosen;
  Wanted wanted{.inputs = -1};
  std::string save;
  bool list = false, json = false;
};

const Fuzzer* find(std::string_view name) {
  const auto found = std::ranges::find(fuzzers(), name, &Fuzzer::name);
  return found == fuzzers().end() ? nullptr : &*found;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  return error == std::errc() && end == text.end() ? std::optional(value) : std::nullopt;
}

void list(bool json) {
  if (json) {
    auto all = nlohmann::json::array();
    for (const Fuzzer& one : fuzzers()) all.push_back({{"name", one.name}, {"what", one.what}, {"smoke", one.smoke}});
    fmt::print("{}\n", all.dump());
    return;
  }
  for (const Fuzzer& one : fuzzers()) fmt::print("{:<20} {:>8} inputs  {}\n", one.name, one.smoke, one.what);
}

nlohmann::json json_of(const Fuzzer& fuzzer, const Outcome& outcome) {
  auto found = nlohmann::json::array();
  constexpr auto replace = nlohmann::json::error_handler_t::replace;
  for (const Found& one : outcome.found)
    found.push_back({{"input", one.input}, {"wrong", nlohmann::json::parse(nlohmann::json(one.wrong).dump(-1, ' ', true, replace))}});
  return {{"name", fuzzer.name},    {"corpus", outcome.corpus}, {"canary", outcome.canary},   {"inputs", outcome.inputs},
          {"taken", outcome.taken}, {"cpu_s", outcome.cpu_s},   {"skipped", outcome.skipped}, {"found", found}};
}

int run_all(const Options& options) {
  bool good = true;
  auto results = nlohmann::json::array();
  for (const Fuzzer* fuzzer : options.chosen) {
    const Outcome outcome = run(*fuzzer, options.wanted, [&](std::int64_t inputs) {
      if (isatty(2) != 0) fmt::print(stderr, "\r{:<20} {:>9} inputs ", fuzzer->name, inputs);
    });
    if (isatty(2) != 0) fmt::print(stderr, "\r\033[K");
    good = good && outcome.found.empty();
    if (options.json) results.push_back(json_of(*fuzzer, outcome));
    if (options.json) continue;
    if (!outcome.skipped.empty() && outcome.found.empty()) {
      fmt::print("SKIP: {}: {}\n", fuzzer->name, outcome.skipped);
      continue;
    }
    fmt::print("{:<20} {} of the corpus, canary {}, {} inputs, {} taken, {:.1f} s of CPU{}\n", fuzzer->name, outcome.corpus, outcome.canary,
               outcome.inputs, outcome.taken, outcome.cpu_s, outcome.found.empty() ? "" : ": FAILED");
    for (const Found& one : outcome.found) fmt::print("  {}: {}\n{}\n", one.input, one.wrong, outcome.said);
    std::fflush(stdout);
  }
  if (options.json) fmt::print("{}\n", nlohmann::json{{"seed", options.wanted.seed}, {"fuzzers", results}}.dump());
  return good ? 0 : 1;
}

bool set_times(Options& options, const char* text) {
  char* end = nullptr;
  options.wanted.times = std::strtod(text, &end);
  return end != text && *end == '\0' && options.wanted.times > 0 && options.wanted.times < 1e6;
}

int save(const Options& options) {
  Random random(options.wanted.seed);
  std::ofstream out(options.save, std::ios::binary);
  out << options.chosen.front()->draw(random);
  out.close();
  if (!out) fmt::print(stderr, "lacuna_fuzz: {} cannot be written\n", options.save);
  return out ? 0 : 1;
}

int wrong_usage(const std::string& what) {
  fmt::print(stderr, "lacuna_fuzz: {}; --help says what there is\n", what);
  return 2;
}

int main_of(int argc, char** argv) {
  Options options;
  if (const char* const times = std::getenv("LACUNA_FUZZ_TIMES"); times != nullptr && !set_times(options, times))
    return wrong_usage(fmt::format("LACUNA_FUZZ_TIMES is '{}', which is no such number", times));
  const std::array<option, 10> known{option{"list", no_argument, nullptr, 'l'},         option{"only", required_argument, nullptr, 'o'},
                                     option{"inputs", required_argument, nullptr, 'n'}, option{"seed", required_argument, nullptr, 's'},
                                     option{"times", required_argument, nullptr, 't'},  option{"file", required_argument, nullptr, 'f'},
                                     option{"save", required_argument, nullptr, 'w'},   option{"json", no_argument, nullptr, 'j'},
                                     option{"help", no_argument, nullptr, 'h'},         option{}};
  for (int one = 0; (one = getopt_long(argc, argv, "", known.data(), nullptr)) >= 0;) {
    if (one == '?') return wrong_usage("wrong usage");
    if (one == 'h') return std::fputs(kHelp, stdout), 0;
    if (one == 'l') options.list = true;
    if (one == 'j') options.json = true;
    if (one == 'f') options.wanted.file = optarg;
    if (one == 'w') options.save = optarg;
    if (one == 't' && !set_times(options, optarg)) return wrong_usage(fmt::format("'{}' is no such number", optarg));
    if (one == 'o') {
      const Fuzzer* const chosen = find(optarg);
      if (chosen == nullptr) return wrong_usage(fmt::format("there is no fuzzer '{}'", optarg));
      options.chosen.push_back(chosen);
    }
    if (one != 'n' && one != 's') continue;
    const auto value = number(optarg);
    if (!value || (one != 's' && *value > INT32_MAX)) return wrong_usage(fmt::format("'{}' is no such number", optarg));
    if (one == 'n') options.wanted.inputs = static_cast<std::int64_t>(*value);
    if (one == 's') options.wanted.seed = *value;
  }
  if (optind < argc) return wrong_usage(fmt::format("what is '{}'?", argv[optind]));
  if ((!options.wanted.file.empty() || !options.save.empty()) && options.chosen.size() != 1)
    return wrong_usage("--file and --save need one fuzzer, --only NAME");
  if (!options.wanted.file.empty() && access(options.wanted.file.c_str(), R_OK) != 0)
    return wrong_usage(fmt::format("{} cannot be read", options.wanted.file));
  if (options.list) return list(options.json), 0;
  if (!options.save.empty()) return save(options);
  if (options.chosen.empty()) {
    for (const Fuzzer& one : fuzzers()) options.chosen.push_back(&one);
  }
  // What this machine's user has measured or set decides nothing here.
  std::vector<std::string> set;
  for (char** one = environ; *one != nullptr; ++one) set.emplace_back(*one, std::strcspn(*one, "="));
  for (const std::string& name : set)
    if (name.starts_with("LACUNA_") && !name.starts_with("LACUNA_FUZZ_")) unsetenv(name.c_str());
  setenv("LACUNA_PROFILE", "/nonexistent/profile.json", 1);
  return run_all(options);
}

}  // namespace
}  // namespace lacuna::fuzz

int main(int argc, char** argv) { return lacuna::fuzz::main_of(argc, argv); }
