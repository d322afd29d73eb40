// What a communicator did, and would do, in words.
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "lacuna/protocol/communicator/communicator.hpp"

namespace lacuna::protocol {
namespace {

constexpr std::array<std::string_view, kProtocols> kProtocolNames{"eager", "stream", "rendezvous", "self", "direct"};

}  // namespace

std::string_view protocol_name(Protocol protocol) { return kProtocolNames.at(static_cast<std::size_t>(protocol)); }

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
  if (shared.most > 0)
    fmt::format_to(out, "shared memory: {} B, {} B at most, of {} B; {} offers found no room\n", shared.bytes, shared.most, shared.bound,
                   shared.refused);
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

Statistics Communicator::statistics() const {
  const auto lock = parts_->enter();
  Statistics all = parts_->local.statistics;
  all.memory = parts_->registrations().statistics();
  const RingPool& pool = parts_->local.pool;
  all.shared.bytes = pool.count().bytes;
  all.shared.most = pool.count().most;
  all.shared.bound = pool.bound();
  all.learning = parts_->choices.describe_learning();
  return all;
}

Result<std::string> Communicator::explain(const Layout& src, const Layout& dst, int dest) {
  const auto lock = parts_->enter();
  const Peer& peer = *LACUNA_TRY(parts_->peer_of(dest, 0));
  LACUNA_TRY(layout::check_sizes(src, dst));
  const std::int64_t bytes = src.size();
  const std::int64_t eager_bytes = parts_->local.options.eager_bytes;
  std::string text = fmt::format("{} bytes to rank {}: ", bytes, dest);
  auto out = std::back_inserter(text);
  if (peer.channel == nullptr) {
    text += "self: one copy from layout to layout.\n";
  } else if (peer.channel->shares_memory()) {
    text += parts_->choices.messages().explain(src, StreamTransfers::situation(peer));
    const copy::Caching caching = peer.streams.stores.caching();
    const MessageWay way = parts_->choices.messages().choose(src, StreamTransfers::situation(peer)).way;
    if (guide::is_stream(way))
      fmt::format_to(
          out,
          "A stream begins before the receive is posted: it is packed into shared memory, {} bytes at a time, and unpacked out of "
          "it at the same time. Which one is the fastest is tried now and then. Stores {}.\n",
          chunk_of(bytes, caching),
          caching == copy::Caching::passed ? "pass the caches by, which this peer's CPU does not share" : "leave the bytes in the caches");
    fmt::format_to(out, "While no window is free, what is not eager is announced, and what has up to {} bytes is eager.\n", eager_bytes);
  } else if (bytes <= eager_bytes) {
    fmt::format_to(out, "eager, as all up to {} bytes: packed into the channel, unpacked out of it.\n", eager_bytes);
  } else {
    const Registrations& registrations = parts_->registrations();
    const CutSide sides[2] = {{.fits = true, .registered = false, .register_ns = registrations.cost_ns(src.true_extent())},
                              {.fits = true, .registered = false, .register_ns = registrations.cost_ns(dst.true_extent())}};
    const bool stays = registrations.mode() != Registrations::Mode::each_transfer;
    text += LACUNA_TRY(parts_->choices.explain(src, dst, sides, stays, registrations.why()));
  }
  return text;
}

}  // namespace lacuna::protocol
