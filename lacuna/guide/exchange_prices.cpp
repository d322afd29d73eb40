#include "lacuna/guide/exchange_prices.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::guide {

std::string_view exchange_price_name(ExchangePrice price) {
  constexpr std::array<std::string_view, kExchangePrices> kNames{"latency", "message", "large", "block", "byte"};
  return kNames.at(static_cast<std::size_t>(price));
}

// No number is false of either comparison.
bool ExchangePrices::possible() const {
  return std::ranges::all_of(ns, [](float price) { return price >= kLeast && price <= kMost; });
}

std::string ExchangePrices::describe() const {
  std::string text;
  for (std::size_t i = 0; i < ns.size(); ++i)
    text += fmt::format("{}{} {:.3g} ns", i == 0 ? "" : ", ", exchange_price_name(static_cast<ExchangePrice>(i)), ns.at(i));
  return text;
}

}  // namespace lacuna::guide
