// What travels through the host MPI in a message's place.
#pragma once

#include <array>
#include <cstring>
#include <optional>

#include "lacuna/protocol/protocol.hpp"

namespace lacuna::mpi {

/// 128 random bits that all ranks of a job share.
using Nonce = std::array<std::byte, 16>;

struct Descriptor {
  /// Bytes of the message that has a descriptor. No array of numbers is that long, so that hardly any message has to be
  /// looked at. Whatever is offered is longer. A shorter receive, whose program gave it too little room, gets the
  /// host's error; so receives of fewer bytes are the host's alone.
  static constexpr int kBytes = 253;
  using Wire = std::array<std::byte, kBytes>;
  /// Of these, those that mean something. The others are 0.
  static constexpr int kSaid = 61;
  using Said = std::array<std::byte, kSaid>;

  protocol::Ticket ticket;
  std::uint64_t bytes = 0;  ///< of the message
  /// The sender, in the communicator of this node; of another node: its rank in the world, with all bits turned
  std::int32_t source = 0;

  /// Of a message that comes from another node, in the ticket's place: in chunks (transport.hpp), or to be read by a
  /// device (rget.hpp).
  struct InterNode {
    std::int32_t by_device = 0;
    std::int32_t number = 0;  ///< of chunks, their tag
    std::int32_t chunk = 0;   ///< bytes of each but the last
    std::uint32_t rkey = 0;
    std::uint64_t addr = 0;
  };
  static Descriptor of(const InterNode& head, std::int64_t bytes, int world_rank) {
    Descriptor made;
    made.bytes = static_cast<std::uint64_t>(bytes);
    made.source = ~world_rank;
    std::memcpy(made.ticket.bytes.data(), &head, sizeof head);
    return made;
  }
  [[nodiscard]] bool is_inter_node() const { return source < 0; }
  [[nodiscard]] int world_rank() const { return ~source; }
  [[nodiscard]] InterNode inter_node() const {
    InterNode made;
    std::memcpy(&made, ticket.bytes.data(), sizeof made);
    return made;
  }

  [[nodiscard]] Wire encode(const Nonce& nonce) const { return encode_in<Wire>(nonce); }
  [[nodiscard]] Said say(const Nonce& nonce) const { return encode_in<Said>(nonce); }
  /// Of at least kSaid bytes. Nothing, if it is a message of the program's.
  static std::optional<Descriptor> decode(const std::byte* wire, const Nonce& nonce) {
    if (std::memcmp(wire, nonce.data(), nonce.size()) != 0) return std::nullopt;
    Descriptor made;
    wire += nonce.size();
    std::memcpy(&made.ticket, wire, sizeof made.ticket);
    std::memcpy(&made.bytes, wire + sizeof made.ticket, sizeof made.bytes);
    std::memcpy(&made.source, wire + sizeof made.ticket + sizeof made.bytes, sizeof made.source);
    return made;
  }

 private:
  template <class Array>
  [[nodiscard]] Array encode_in(const Nonce& nonce) const {
    Array wire{};
    std::byte* at = wire.data();
    for (const auto& [from, size] : {std::pair<const void*, std::size_t>{nonce.data(), nonce.size()},
                                     {&ticket, sizeof ticket},
                                     {&bytes, sizeof bytes},
                                     {&source, sizeof source}}) {
      std::memcpy(at, from, size);
      at += size;
    }
    return wire;
  }
};
static_assert(sizeof(Descriptor::InterNode) <= sizeof(protocol::Ticket));
static_assert(sizeof(Nonce) + sizeof(protocol::Ticket) + 8 + 4 < Descriptor::kSaid && Descriptor::kSaid <= Descriptor::kBytes);

}  // namespace lacuna::mpi
