// nonsense: a channel whose sender, now and then, says something behind a head that no rank would say then: any kind of
// head, with numbers that may be those of messages under way.
#pragma once

#include <functional>
#include <memory>

#include "lacuna/protocol/channel/channel.hpp"
#include "tests/support/random.hpp"

namespace lacuna::simulate {

struct Lies {
  std::function<bool()> wants;  ///< whether nonsense is to follow now, if it can
  std::function<void()> tells;  ///< it follows
};
std::unique_ptr<protocol::Channel> make_lying_channel(std::unique_ptr<protocol::Channel> inside, std::uint64_t seed, Lies lies);

}  // namespace lacuna::simulate
