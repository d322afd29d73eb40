// Credit between two ranks: a rank sends small messages before their receives are posted, and the other rank has room
// for so many bytes of them.
#pragma once

#include <cstdint>
#include <utility>

#include "lacuna/protocol/channel/head.hpp"

namespace lacuna::protocol {

class Credit {
 public:
  // Of this rank's small messages.
  /// The peer has room for so many bytes.
  void grant(std::int64_t room) { room_ = room; }
  [[nodiscard]] bool allows(std::int64_t bytes) const { return sent_ + bytes + kEagerCost - freed_ <= room_; }
  void sent(std::int64_t bytes) { sent_ += bytes + kEagerCost; }
  /// The peer says how many bytes it has received in all. False: fewer than before, or more than were sent.
  bool freed(std::uint64_t total) {
    if (std::cmp_less(total, freed_) || std::cmp_greater(total, sent_)) return false;
    freed_ = static_cast<std::int64_t>(total);
    return true;
  }

  // Of the peer's small messages, which have `room` here.
  /// False: more than there is room for.
  bool came(std::uint64_t bytes, std::int64_t room) {
    came_ += static_cast<std::int64_t>(bytes) + kEagerCost;
    return came_ - received_ <= room;
  }
  /// A receive has it. True: the peer has to be told of received() now, so that it does not wait.
  bool receive(std::int64_t bytes, std::int64_t room) {
    received_ += bytes + kEagerCost;
    if (received_ - told_ < room / 4) return false;
    told_ = received_;
    return true;
  }
  [[nodiscard]] std::int64_t received() const { return received_; }

 private:
  std::int64_t room_ = 0;
  std::int64_t sent_ = 0, freed_ = 0;
  std::int64_t came_ = 0, received_ = 0, told_ = 0;
};

}  // namespace lacuna::protocol
