#include "lacuna/guide/json_fields.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace lacuna::guide::fields {
namespace {

std::unexpected<base::Error> wrong(std::string message) { return base::fail(base::Code::invalid_argument, std::move(message)); }

}  // namespace

Result<std::string> read_text(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return base::fail(base::Code::io, fmt::format("cannot read {}: {}", file, std::strerror(errno)));
  return text.str();
}

Result<const Json*> member(const Json& json, const char* name, Json::value_t type, const char* what, const std::string& where) {
  const auto found = json.find(name);
  if (found == json.end()) return wrong(fmt::format("{} lacks {}", where, name));
  if (found->type() != type) return wrong(fmt::format("{}: {} is not {}", where, name, what));
  return &*found;
}

Result<std::string> text(const Json& json, const char* name, const std::string& where) {
  return LACUNA_TRY(member(json, name, Json::value_t::string, "a text", where))->get<std::string>();
}

Result<double> number(const Json& json, std::string_view name, double least, double most, const std::string& where) {
  if (json.is_number() && json.get<double>() >= least && json.get<double>() <= most) return json.get<double>();
  return wrong(fmt::format("{}: {} is {}, not a number between {:g} and {:g}", where, name, json.dump(), least, most));
}

Result<double> number_in(const Json& json, const char* name, double most, const std::string& where) {
  const auto found = json.find(name);
  if (found == json.end()) return wrong(fmt::format("{} lacks {}", where, name));
  return number(*found, name, 0, most, where);
}

Result<std::vector<double>> numbers_in(const Json& json, double least, double most, const std::string& where) {
  if (!json.is_array()) return wrong(fmt::format("{} is not a list", where));
  std::vector<double> numbers;
  numbers.reserve(json.size());
  for (const Json& each : json) numbers.push_back(LACUNA_TRY(number(each, "a number", least, most, where)));
  return numbers;
}

Result<Sheet> sheet_in(const Json& json, const Axes& axes, const std::string& where) {
  constexpr double least = 1e-3, most = 1e12;  // ns
  const std::vector<double> numbers = LACUNA_TRY(numbers_in(json, 0, most, where));
  if (numbers.size() != axes.size()) return wrong(fmt::format("{} has {} numbers, not {}", where, numbers.size(), axes.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (axes.has_cell(i) ? numbers[i] < least : numbers[i] != 0) return wrong(fmt::format("{}: number {} is {:g}", where, i, numbers[i]));
  }
  return Sheet(numbers);
}

Result<void> same_axes(const Json& json, const Axes& axes, const std::string& where) {
  for (const auto& [name, axis] : {std::pair{"bytes", axes.bytes}, std::pair{"runs", axes.runs}}) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_array() || *found != Json(std::vector(axis.begin(), axis.end())))
      return wrong(fmt::format("{}: {} are not those of this version", where, name));
  }
  return {};
}

Result<layout::PairOutline> pair_in(const Json& json, const std::string& where) {
  const Json& list = *LACUNA_TRY(member(json, "pair", Json::value_t::array, "a list", where));
  Result<layout::PairOutline> pair = pair_from_numbers(LACUNA_TRY(numbers_in(list, -kMostNumber, kMostNumber, where)));
  if (!pair) return wrong(fmt::format("{}: {}", where, pair.error().message));
  return pair;
}

Result<std::optional<Way>> way_in(const Json& json, const std::string& where) {
  if (!json.is_string()) return wrong(fmt::format("{}: ways holds what is no text", where));
  const std::string name = json.get<std::string>();
  const std::size_t first = name.find('/');
  const std::size_t last = name.rfind('/');
  if (first == last) return wrong(fmt::format("{}: \"{}\" is no way", where, name));
  const auto method = method::find(name.substr(0, first));
  const auto path = nic::path_from_name(name.substr(first + 1, last - first - 1));
  const auto notify = method::notify_from_name(name.substr(last + 1));
  if (!method || !path || !notify) return std::nullopt;
  return Way{*method, *path, *notify};
}

std::string way_text(const Way& way) {
  return fmt::format("{}/{}/{}", way.method->name, nic::path_name(way.path), method::notify_name(way.notify));
}

}  // namespace lacuna::guide::fields
