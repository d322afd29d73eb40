// Times of the ways of messages in a profile: what `lacuna guide` wrote. docs/reference/files.md has the format.
#include <fmt/format.h>

#include "lacuna/guide/json_fields.hpp"

namespace lacuna::guide {

using namespace fields;

struct MessageProfile {
  MessagePrices made{};

  Result<void> of_form(const Json& ways, std::size_t form, const std::string& where) {
    for (std::size_t i = 0; i < kMessageWays; ++i) {
      const auto way = static_cast<MessageWay>(i);
      const std::string name(message_way_name(way));
      if (way == MessageWay::direct && !ways.contains(name)) continue;  // a system that has none
      const Json& numbers = *LACUNA_TRY(member(ways, name.c_str(), Json::value_t::array, "a list", where));
      made.sheets_.at(form).at(i) = LACUNA_TRY(sheet_in(numbers, message_axes(way), fmt::format("{}, {}", where, name)));
    }
    return {};
  }

  Result<void> of(const Json& json, const std::string& where) {
    LACUNA_TRY(same_axes(json, {.bytes = kMessageBytes, .runs = kMessageRuns}, where));
    const Json& ns = *LACUNA_TRY(member(json, "ns", Json::value_t::object, "an object", where));
    for (std::size_t form = 0; form < kSheetForms.size(); ++form) {
      const std::string place = fmt::format("{}, {}", where, kSheetForms.at(form));
      LACUNA_TRY(of_form(*LACUNA_TRY(member(ns, kSheetForms.at(form), Json::value_t::object, "an object", where)), form, place));
    }
    made.measured_ = true;
    return {};
  }
};

Result<std::optional<MessagePrices>> fields::messages_in(const Json& profile, const std::string& where) {
  if (!profile.contains("messages")) return std::nullopt;
  MessageProfile read;
  LACUNA_TRY(read.of(*LACUNA_TRY(member(profile, "messages", Json::value_t::object, "an object", where)), where + ", messages"));
  return read.made;
}

}  // namespace lacuna::guide
