#include "tools/handover/show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace lacuna::handover {
namespace {

using Json = nlohmann::ordered_json;

template <class Range>
std::string joined(const Range& names) {
  std::string text;
  for (const auto& name : names) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const method::Method& method : method::methods()) names.emplace_back(method.name);
  return names;
}

std::string per_block(double ns) { return ns < 0 ? "-" : fmt::format("{:.2f}", ns); }

}  // namespace

Arguments::Arguments(std::vector<Setting> settings) : settings_(std::move(settings)) {
  settings_.push_back({"method", "all", "one method alone", 0, 0, method_names()});
  settings_.back().words.insert(settings_.back().words.begin(), "all");
  settings_.push_back({"path", "all", "one path alone", 0, 0, {"all", "mapped", "slots", "kernel", "wire"}});
  settings_.push_back({"repeats", "5", "transfers that are timed, of which the median counts", 1, 1000});
  for (const Setting& setting : settings_) values_[setting.name] = setting.value;
}

Result<void> Arguments::set(const std::string& name, const std::string& value) {
  const auto setting = std::ranges::find(settings_, name, &Setting::name);
  if (setting == settings_.end()) {
    std::vector<std::string> names;
    for (const Setting& known : settings_) names.push_back("--" + known.name);
    return base::fail(base::Code::invalid_argument, fmt::format("no argument --{}; there are {}, --json, --help", name, joined(names)));
  }
  if (!setting->words.empty()) {
    if (std::ranges::find(setting->words, value) == setting->words.end())
      return base::fail(base::Code::invalid_argument, fmt::format("--{} {}: it may be {}", name, value, joined(setting->words)));
  } else {
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (problem != std::errc() || end != value.data() + value.size() || number < setting->least || number > setting->most) {
      return base::fail(base::Code::invalid_argument,
                        fmt::format("--{} {}: it may be a number from {} to {}", name, value, setting->least, setting->most));
    }
  }
  values_[name] = value;
  return {};
}

Result<void> Arguments::parse(std::span<char* const> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string text = arguments[i];
    if (text == "--help" || text == "-h") {
      help_ = true;
    } else if (text == "--json") {
      json_ = true;
    } else if (!text.starts_with("--")) {
      return base::fail(base::Code::invalid_argument, fmt::format("\"{}\" is no argument; --help lists them", text));
    } else if (const std::size_t equals = text.find('='); equals != std::string::npos) {
      LACUNA_TRY(set(text.substr(2, equals - 2), text.substr(equals + 1)));
    } else if (i + 1 == arguments.size()) {
      return base::fail(base::Code::invalid_argument, fmt::format("{} needs a value; --help lists the arguments", text));
    } else {
      LACUNA_TRY(set(text.substr(2), arguments[++i]));
    }
  }
  return {};
}

Wanted Arguments::wanted() const {
  Wanted wanted{.repeats = static_cast<int>(number("repeats"))};
  if (word("method") != "all") wanted.methods = {word("method")};
  if (word("path") != "all") wanted.paths = {word("path")};
  return wanted;
}

std::string Arguments::usage(const std::string& what) const {
  std::string text = what + "\n\n";
  for (const Setting& setting : settings_) {
    const std::string may = setting.words.empty() ? fmt::format("{} to {}", setting.least, setting.most) : joined(setting.words);
    text += fmt::format("  --{:<14} {}; {} ({})\n", setting.name, setting.help, setting.value, may);
  }
  return text + fmt::format("  --{:<14} results as JSON\n", "json");
}

void print_table(const std::string& title, const Outcome& outcome) {
  fmt::print("{}\n\n", title);
  fmt::print("  source       {}\n  destination  {}\n", outcome.src, outcome.dst);
  fmt::print("  {} blocks of {:.0f} B that are contiguous on both sides, {:.1f} MiB in all\n", outcome.blocks,
             static_cast<double>(outcome.bytes) / static_cast<double>(std::max<std::int64_t>(1, outcome.blocks)),
             static_cast<double>(outcome.bytes) / (1 << 20));
  fmt::print("  for each block: both layouts from their tables {:.2f} ns, told to one another in {} bytes {:.2f} ns\n\n", outcome.layout_ns,
             outcome.wire_bytes, outcome.wire_ns);
  fmt::print("  {:<15} {:<7} {:>14} {:>14} {:>14} {:>8}   {}\n", "method", "path", "plan ns/block", "post ns/block", "transfer us", "GB/s",
             "data");
  for (const Row& row : outcome.rows) {
    if (!row.refusal.empty()) {
      fmt::print("  {:<15} {:<7} {}\n", row.method, row.path, row.refusal);
      continue;
    }
    fmt::print("  {:<15} {:<7} {:>14} {:>14} {:>14.1f} {:>8.2f}   {}\n", row.method, row.path, per_block(row.plan_ns),
               per_block(row.post_ns), row.transfer_us, row.gigabytes, row.wrong.empty() ? "verified" : row.wrong);
  }
  fmt::print("\n  plan: overlap, cuts, keys and copy plans of both ends. post: the sender's requests, on a NIC that moves nothing.\n");
}

void print_json(const std::string& example, const Arguments& arguments, const Outcome& outcome) {
  Json rows = Json::array();
  for (const Row& row : outcome.rows) {
    Json json{{"method", row.method}, {"path", row.path}};
    if (!row.refusal.empty()) {
      json["refusal"] = row.refusal;
    } else {
      json["verified"] = row.wrong.empty();
      if (!row.wrong.empty()) json["wrong"] = row.wrong;
      json["plan_ns_per_block"] = row.plan_ns;
      json["post_ns_per_block"] = row.post_ns < 0 ? Json(nullptr) : Json(row.post_ns);
      json["transfer_us"] = row.transfer_us;
      json["GB_per_s"] = row.gigabytes;
    }
    rows.push_back(std::move(json));
  }
  const Json json{{"example", example},
                  {"version", base::version()},
                  {"repeats", arguments.number("repeats")},
                  {"blocks", outcome.blocks},
                  {"bytes", outcome.bytes},
                  {"source", outcome.src},
                  {"destination", outcome.dst},
                  {"layouts_ns_per_block", outcome.layout_ns},
                  {"wire_ns_per_block", outcome.wire_ns},
                  {"wire_bytes", outcome.wire_bytes},
                  {"verified", outcome.sound()},
                  {"rows", rows}};
  fmt::print("{}\n", json.dump(2));
}

int run_program(const Program& program, int argc, char** argv) {
  Arguments arguments(program.settings);
  const auto complain = [&](const base::Error& error, int code) {
    fmt::print(stderr, "{}: {}\n", program.name, error.text());
    return code;
  };
  if (const Result<void> parsed = arguments.parse(std::span(argv, static_cast<std::size_t>(argc)).subspan(1)); !parsed)
    return complain(parsed.error(), 2);
  if (arguments.help()) {
    fmt::print("{}", arguments.usage(program.what));
    return 0;
  }
  const Result<std::vector<Stream>> streams = program.streams(arguments);
  if (!streams) return complain(streams.error(), 2);
  const char* fault = std::getenv("LACUNA_TEST_FAULT");
  const bool corrupt = fault != nullptr && std::string_view(fault) == "corrupt";
  return run_crew(program.ranks, [&](Crew& crew) {
    Result<std::unique_ptr<nic::Context>> context = nic::open_usual(false);  // LACUNA_NIC names another one than local
    if (!context) return complain(context.error(), 1);
    const Result<Outcome> outcome = hand_over(crew, **context, *streams, arguments.wanted(), corrupt);
    if (!outcome) return complain(outcome.error(), 1);
    if (crew.rank() != 0) return 0;
    if (arguments.json()) {
      print_json(program.name, arguments, *outcome);
    } else {
      print_table(program.title(arguments), *outcome);
    }
    return outcome->sound() ? 0 : 1;
  });
}

}  // namespace lacuna::handover
