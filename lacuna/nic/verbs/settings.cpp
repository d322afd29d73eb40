#include "lacuna/nic/verbs/settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace lacuna::nic::verbs {
namespace {

base::Result<std::optional<int>> number(const char* name, int least, int most) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text(value);
  int parsed = 0;
  const auto [end, wrong] = std::from_chars(text.begin(), text.end(), parsed);
  if (wrong != std::errc() || end != text.end() || parsed < least || parsed > most)
    return base::fail(base::Code::invalid_argument, fmt::format("{}={}; it takes {} to {}", name, text, least, most));
  return parsed;
}

}  // namespace

base::Result<Settings> Settings::from_environment() {
  Settings settings;
  settings.port = LACUNA_TRY(number("LACUNA_VERBS_PORT", 1, 255));
  settings.gid = LACUNA_TRY(number("LACUNA_VERBS_GID", 0, 255));
  settings.mtu = LACUNA_TRY(number("LACUNA_VERBS_MTU", 256, 4096));
  settings.timeout = LACUNA_TRY(number("LACUNA_VERBS_TIMEOUT", 1, 31)).value_or(settings.timeout);
  settings.retries = LACUNA_TRY(number("LACUNA_VERBS_RETRIES", 0, 7)).value_or(settings.retries);
  settings.rnr_retries = LACUNA_TRY(number("LACUNA_VERBS_RNR_RETRIES", 0, 7)).value_or(settings.rnr_retries);
  settings.on_demand = LACUNA_TRY(number("LACUNA_VERBS_ODP", 0, 1)).value_or(0) == 1;
  settings.relaxed = LACUNA_TRY(number("LACUNA_VERBS_RELAXED", 0, 1)).value_or(1) == 1;
  return settings;
}

}  // namespace lacuna::nic::verbs
