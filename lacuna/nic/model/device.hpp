// device: one NIC's engines, PCIe and port. What a message costs, packet by packet and stage by stage. Processes of one
// node share it: their messages queue behind one another at each stage.
//
//   send engine     request + for each packet: packet + its entries, keys and page translations
//   PCIe read       each packet's bytes at PCIe's rate, behind one another; each takes dma_read
//   wire            bytes and header at the wire's rate, behind one another; then the flight
//   the peer's port the same rate: packets of several senders queue
//   receive engine  for each packet: packet + its entries, keys and translations; a send's first one fetches the
//                   receive
//   PCIe write      as reading
//
// A message between two processes of one NIC is turned back in there: it takes the engines and PCIe, but no port, and
// does not fly.
#pragma once

#include <list>
#include <unordered_map>

#include "lacuna/nic/model/memory.hpp"
#include "lacuna/nic/model/profile.hpp"

namespace lacuna::nic::model {

/// The pages whose addresses a device has at hand; the one that was not used for the longest time makes room.
class Translations {
 public:
  explicit Translations(std::int64_t capacity) : capacity_(static_cast<std::size_t>(capacity)) {}
  /// Whether the page was there; it is afterwards.
  bool touch(std::uint32_t region, std::int64_t page);

 private:
  std::size_t capacity_;
  std::list<std::uint64_t> order_;  // the latest first
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> pages_;
};

/// When the packets of a message are where.
struct Flight {
  std::int64_t bytes = 0;
  std::vector<Time> arrivals;  ///< the last byte of each at the peer's port, if that is free
  bool turned = false;         ///< back in this NIC: it meets no port
};

class Device {
 public:
  explicit Device(const Profile& profile) : profile_(profile), translations_(profile.nic.translations) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() = default;

  /// The keys of all processes of this NIC.
  [[nodiscard]] Keys& keys() { return keys_; }
  /// How long what needs no port takes to a NIC.
  [[nodiscard]] Time flight(const Device& to) const { return &to == this ? 0 : profile_.nic.flight; }
  /// Sends `pieces` with one request that is there at `ready`. `inlined`: they came with the request.
  Flight send(Time ready, const Pieces& pieces, bool inlined, const Device& to);
  /// A request without data: a read's. When it is at the peer's port.
  Time ask(Time ready, const Device& to);
  /// A request that only the engine handles, for `work`: its end.
  Time handle(Time ready, Time work);
  struct Landed {
    Time handled;  ///< by the engine: an acknowledgement leaves
    Time written;  ///< the last byte is in memory
  };
  /// Lands a flight in `pieces`, which have as many bytes.
  Landed land(const Flight& flight, const Pieces& pieces, Time first_packet);

 private:
  // Goes through the pieces of a message, packet by packet.
  class Walk {
   public:
    /// `entry`: the engine's time for one.
    Walk(Device& device, const Pieces& pieces, Time entry) : device_(device), pieces_(pieces), entry_(entry) {}
    /// The engine's time for the next `bytes`.
    Time next(std::int64_t bytes);

   private:
    Device& device_;
    const Pieces& pieces_;
    Time entry_;
    std::size_t at_ = 0;
    std::int64_t used_ = 0;
  };
  [[nodiscard]] Time translate(const Piece& piece, std::int64_t from, std::int64_t bytes);
  [[nodiscard]] Time find(const Piece& piece, bool first_of_packet) const;
  [[nodiscard]] std::int64_t packets(std::int64_t bytes) const {
    return std::max<std::int64_t>(1, (bytes + profile_.nic.mtu - 1) / profile_.nic.mtu);
  }
  [[nodiscard]] Time onto_wire(Time ready, std::int64_t bytes, const Device& to);

  const Profile& profile_;
  Keys keys_;
  Translations translations_;
  // When each is free.
  Time send_engine_ = 0, receive_engine_ = 0, pcie_read_ = 0, pcie_write_ = 0, port_out_ = 0, port_in_ = 0;
  Time turned_ = 0;   // of all that was turned back the last packet: what comes with its request overtakes nothing
  Time written_ = 0;  // of all that landed the last byte: writes keep their order
};

}  // namespace lacuna::nic::model
