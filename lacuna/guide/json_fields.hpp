// Members of JSON objects as files of the guide have to have them; what is not so is named in the error. Internal to
// the guide.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/guide/guide.hpp"
#include "lacuna/guide/sheet.hpp"

namespace lacuna::guide::fields {

using Json = nlohmann::json;

inline constexpr double kMostMessage = 1e9;  // us
inline constexpr double kMostNumber = 1e16;  // of a pair's; pair_from_numbers() looks closer

/// Errors: io.
Result<std::string> read_text(const std::string& file);
/// These, errors: invalid_argument.
Result<const Json*> member(const Json& json, const char* name, Json::value_t type, const char* what, const std::string& where);
Result<std::string> text(const Json& json, const char* name, const std::string& where);
Result<double> number(const Json& json, std::string_view name, double least, double most, const std::string& where);
Result<double> number_in(const Json& json, const char* name, double most, const std::string& where);
Result<std::vector<double>> numbers_in(const Json& json, double least, double most, const std::string& where);
/// The names of a way's sheets: of regular runs, of listed ones.
inline constexpr std::array<const char*, 2> kSheetForms{"regular", "listed"};
/// A number for each place of the axes; more than 0 where they have a cell, else 0.
Result<Sheet> sheet_in(const Json& json, const Axes& axes, const std::string& where);
/// Whether the members `bytes` and `runs` are those of the axes.
Result<void> same_axes(const Json& json, const Axes& axes, const std::string& where);
/// The member `messages` of a profile: docs/reference/files.md has it. Nothing: the profile has none.
Result<std::optional<MessagePrices>> messages_in(const Json& profile, const std::string& where);
/// The member `exchanges`, likewise.
Result<std::optional<ExchangePrices>> exchanges_in(const Json& profile, const std::string& where);
/// Of [14 numbers], as numbers_of().
Result<layout::PairOutline> pair_in(const Json& json, const std::string& where);
/// "pack/mapped/none"; nothing for one of another version.
Result<std::optional<Way>> way_in(const Json& json, const std::string& where);
[[nodiscard]] std::string way_text(const Way& way);

}  // namespace lacuna::guide::fields
