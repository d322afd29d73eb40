// The way of a message, or of an offer, to a rank that shares memory: what the user forces, else what the guide
// chooses, remembered by its layout. It hides whether the guide was asked before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "lacuna/guide/message_ways.hpp"
#include "lacuna/layout/layout.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::protocol {

using guide::MessageWay;

class MessageWays {
 public:
  /// What the choice knows of a message beside its layout; as in guide::MessageCase.
  struct Situation {
    bool offered = false;
    bool left_behind = false;
    bool copies = false;
    [[nodiscard]] std::uint8_t bits() const {
      return static_cast<std::uint8_t>((offered ? 1U : 0U) | (left_behind ? 2U : 0U) | (copies ? 4U : 0U));
    }
  };
  struct Chosen {
    MessageWay way = MessageWay::eager;
    MessageWay stream = MessageWay::wide;  ///< the stream that is expected to be quickest, where `way` has to be left
    bool forced = false;                   ///< no other one is tried
  };

  /// Both have to outlive it.
  MessageWays(const guide::MessagePrices& prices, const Options& options) : prices_(prices), options_(options) { forget(); }

  /// Of fewer bytes all messages are eager.
  [[nodiscard]] std::int64_t least() const { return least_; }
  [[nodiscard]] Chosen choose(const Layout& layout, Situation situation) {
    const layout::Digest digest = layout.digest();
    const std::uint8_t bits = situation.bits();
    Kept& kept = kept_[(digest.low + bits) % kKept];
    if (kept.digest != digest || kept.situation != bits) kept = {digest, find(layout, situation), bits};
    return kept.chosen;
  }
  /// What was chosen does not hold any more: the options have changed.
  void forget();
  /// Every way, in words: the chosen one, what is expected of it and of the others, and why some cannot be.
  [[nodiscard]] std::string explain(const Layout& layout, Situation situation) const;
  [[nodiscard]] bool measured() const { return prices_.measured(); }

 private:
  static constexpr std::size_t kKept = 256;       // a power of two; 24 bytes each
  static constexpr std::uint8_t kNothing = 0xff;  // no situation
  struct Kept {
    layout::Digest digest;
    Chosen chosen;
    std::uint8_t situation = kNothing;
  };
  [[nodiscard]] Chosen find(const Layout& layout, Situation situation) const;
  [[nodiscard]] guide::MessageCase case_of(const Layout& layout, Situation situation) const;
  const guide::MessagePrices& prices_;
  const Options& options_;
  std::int64_t least_ = 0;
  std::array<Kept, kKept> kept_;
};

}  // namespace lacuna::protocol
