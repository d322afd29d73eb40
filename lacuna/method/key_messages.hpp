// What umr_send and umr_chunked share: messages whose sg_lists name indirect keys, on both sides. Both ends cut the
// stream alike: into parts that a key of `room` can hold, and into messages of up to `keys` parts.
#pragma once

#include "lacuna/method/key_cache.hpp"
#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {

Made make_key_messages(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory, int keys, const KeyRoom& room);

}  // namespace lacuna::method
