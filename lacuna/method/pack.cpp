// pack: the way of every user who does it by hand. Pack all, one send, unpack all; nothing overlaps.
#include <limits>

#include "lacuna/method/methods.hpp"
#include "lacuna/method/packed.hpp"

namespace lacuna::method {
namespace {
constexpr Chunking kWhole{std::numeric_limits<std::int64_t>::max(), 1};  // cut only by the NIC's largest message
}

Made pack_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_packed(Role::sender, endpoint, transfer, memory, kWhole);
}
Made pack_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_packed(Role::receiver, endpoint, transfer, memory, kWhole);
}

}  // namespace lacuna::method
