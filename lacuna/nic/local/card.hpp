// Cards: what a process says of itself once, so that others of its machine and user reach its memory without its help.
//
//   card() ── by any means ──▶ attach(): opens the files that the card names, in the other process's /proc/PID/fd
#pragma once

#include "lacuna/nic/local/context.hpp"

namespace lacuna::nic::local {

/// What a card says.
struct CardText {
  struct File {
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t number = -1;  ///< of the file within its process
  };
  static constexpr std::uint64_t kMagic = 0x3130'6472'6163'6c6e;
  std::uint64_t magic = kMagic;  ///< changes with the key table's and the card's layout
  std::int64_t process = 0;
  File arena;
  File key_table;
  std::uint64_t cookie_addr = 0;
  std::uint64_t cookie = 0;
};
static_assert(sizeof(CardText) <= sizeof(Card) && std::has_unique_object_representations_v<CardText>);

}  // namespace lacuna::nic::local
