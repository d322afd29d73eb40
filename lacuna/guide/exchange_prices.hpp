// exchange_prices: what the messages of an exchange among many ranks are expected to cost. Schedules of collectives are
// chosen by these. `lacuna guide` measures them between two ranks; usual_thresholds.hpp has those of other machines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lacuna::guide {

/// In nanoseconds.
enum class ExchangePrice : std::uint8_t {
  latency,  ///< a small message that is waited for, without `message`
  message,  ///< a small one among many that are under way: both ends' CPUs, or the NIC
  large,    ///< one that is not eager, beside its bytes: announcement, windows or registrations
  block,    ///< a block that is gathered, or scattered
  byte,
};
inline constexpr std::size_t kExchangePrices = 5;
[[nodiscard]] std::string_view exchange_price_name(ExchangePrice price);

struct ExchangePrices {
  /// By ExchangePrice. Floats, as ranks tell them one another.
  std::array<float, kExchangePrices> ns{};

  [[nodiscard]] constexpr double operator[](ExchangePrice price) const { return double{ns[static_cast<std::size_t>(price)]}; }
  bool operator==(const ExchangePrices&) const = default;

  /// A price is between these: about a nanosecond for a thousand, and a second.
  static constexpr float kLeast = 0x1p-10F, kMost = 1e9F;
  [[nodiscard]] bool possible() const;
  [[nodiscard]] std::string describe() const;  ///< in words
};

}  // namespace lacuna::guide
