// What a communicator did, and would do, in words.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lacuna/protocol/communicator/communicator.hpp"

namespace lacuna::protocol {

std::string Statistics::describe() const {
  std::string text = "protocol     sent                       received\n";
  auto out = std::back_inserter(text);
  for (std::size_t i = 0; i < kProtocols; ++i) {
    if (sent[i].messages + received[i].messages == 0) continue;
    fmt::format_to(out, "{:<12} {:>8} of {:>12} B   {:>8} of {:>12} B\n", protocol_name(static_cast<Protocol>(i)), sent[i].messages,
                   sent[i].bytes, received[i].messages, received[i].bytes);
  }
  for (const Way& one : ways) {
    fmt::format_to(out, "  by {} on {}, notification {}: {} of {} B\n", one.way.method->name, nic::path_name(one.way.path),
                   method::notify_name(one.way.notify), one.count.messages, one.count.bytes);
  }
  fmt::format_to(out, "{} came before their receive; they hold {} B, {} B at most\n", unexpected, unexpected_bytes, unexpected_most);
  if (without_credit > 0) fmt::format_to(out, "{} small sends were announced because the peer's room was used up\n", without_credit);
  if (layouts_told > 0) fmt::format_to(out, "{} layouts were told to peers\n", layouts_told);
  if (parts > 0) fmt::format_to(out, "{} parts of messages by rendezvous\n", parts);
  if (copied_bytes > 0) fmt::format_to(out, "{} B were copied here for a rendezvous\n", copied_bytes);
  if (memory.registered + memory.found > 0) {
    fmt::format_to(out, "memory: registered {} times, {} times found registered; {} B are left so ({} stretches)\n", memory.registered,
                   memory.found, memory.bytes, memory.entries);
    if (memory.changed + memory.evicted + memory.unwatched > 0)
      fmt::format_to(out, "  {} ended because their pages changed, {} to make room; {} could not be watched\n", memory.changed,
                     memory.evicted, memory.unwatched);
    fmt::format_to(out, "  {}\n", memory.mode);
  }
  return text + learning;
}

Result<std::string> Ranks::explain(const Layout& src, const Layout& dst, int dest) {
  const auto lock = enter();
  const Peer& peer = *LACUNA_TRY(peer_of(dest, 0));
  LACUNA_TRY(layout::check_sizes(src, dst));
  const std::int64_t bytes = src.size();
  std::string text = fmt::format("{} bytes to rank {}: ", bytes, dest);
  auto out = std::back_inserter(text);
  if (peer.channel == nullptr) {
    text += "self: one copy from layout to layout.\n";
  } else if (streams_first(peer, bytes)) {
    fmt::format_to(
        out,
        "stream: packed into a window of shared memory, {} bytes at a time, and unpacked out of it side by side; it begins before "
        "the receiver asks. Stores {}.\n",
        chunk_of(bytes, peer.stores.caching()),
        peer.stores.caching() == copy::Caching::passed ? "pass the caches by, which this peer's CPU does not share"
                                                       : "leave the bytes in the caches");
    if (bytes <= options_.eager_bytes)
      fmt::format_to(out, "While no window is free: eager, as all up to {} bytes.\n", options_.eager_bytes);
  } else if (bytes <= options_.eager_bytes) {
    fmt::format_to(out, "eager, as all up to {} bytes: packed into the channel, unpacked out of it.\n", options_.eager_bytes);
  } else {
    const guide::Placement placement{.src_shared = false, .dst_shared = false, .uses = 1};
    const auto why = LACUNA_TRY(guide_.explain(src, dst, *kind_, placement));
    const Side sides[2] = {{.fits = true, .registered = false, .register_ns = registrations_.cost_ns(src.true_extent())},
                           {.fits = true, .registered = false, .register_ns = registrations_.cost_ns(dst.true_extent())}};
    const Cut cut = choose_cut(registering(), src, dst, sides, options_.part_bytes, guide_, *kind_, placement);
    const bool pays =
        registering() == Registering::automatic && cut.saves_ns > 0 && registrations_.mode() != Registrations::Mode::each_transfer;
    fmt::format_to(out, "rendezvous: the receiver chooses the way. Memory that is not registered goes {} ({}{}). Here {}.\n", describe(cut),
                   registering_name(registering()), pays ? "; used again, it is registered once that has paid" : "", registrations_.why());
    text += guide::describe(why);
  }
  return text;
}

}  // namespace lacuna::protocol
