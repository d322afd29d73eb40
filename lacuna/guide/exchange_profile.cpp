// Prices of exchanges in a profile: what `lacuna guide` wrote. docs/reference/files.md has the format.
#include "lacuna/guide/json_fields.hpp"

namespace lacuna::guide {

Result<std::optional<ExchangePrices>> fields::exchanges_in(const Json& profile, const std::string& where) {
  if (!profile.contains("exchanges")) return std::nullopt;
  const Json& exchanges = *LACUNA_TRY(member(profile, "exchanges", Json::value_t::object, "an object", where));
  constexpr auto least = double{ExchangePrices::kLeast}, most = double{ExchangePrices::kMost};
  ExchangePrices read;
  for (std::size_t i = 0; i < kExchangePrices; ++i) {
    const std::string name(exchange_price_name(static_cast<ExchangePrice>(i)));
    const Json found = exchanges.value(name, Json());
    read.ns.at(i) = static_cast<float>(LACUNA_TRY(number(found, name, least, most, where + ", exchanges")));
  }
  return read;
}

}  // namespace lacuna::guide
