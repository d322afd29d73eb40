#include "lacuna/nic/model/device.hpp"

#include <algorithm>

namespace lacuna::nic::model {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kListUnit = 1024;  // entries that indirect.restart_ns is told for

}  // namespace

bool Translations::touch(std::uint32_t region, std::int64_t page) {
  if (capacity_ == 0) return false;
  const std::uint64_t id = static_cast<std::uint64_t>(region) << 40 | static_cast<std::uint64_t>(page);
  if (!order_.empty() && order_.front() == id) return true;
  if (const auto found = pages_.find(id); found != pages_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    return true;
  }
  if (pages_.size() == capacity_) {
    pages_.erase(order_.back());
    order_.pop_back();
  }
  order_.push_front(id);
  pages_[id] = order_.begin();
  return false;
}

Time Device::translate(const Piece& piece, std::int64_t from, std::int64_t bytes) {
  const std::int64_t page = profile_.registration.page_bytes;
  Time time = 0;
  for (std::int64_t p = (piece.offset + from) / page; p <= (piece.offset + from + bytes - 1) / page; ++p) {
    if (!translations_.touch(piece.region, p)) time += profile_.nic.translation_miss;
  }
  return time;
}

// The two causes of which Table 4 shows only the effect. A packet's first entry is looked for while packets before it
// are still on their way, so that only the engine's own work counts. Its second and later ones wait for one another,
// and for whatever they miss.
Time Device::find(const Piece& piece, bool first_of_packet) const {
  if (piece.entry < 0) return 0;
  const Indirect& how = profile_.indirect;
  if (how.variant == IndirectVariant::search) {
    const std::int64_t passed = piece.entry + 1;
    const Time again = first_of_packet ? 0 : static_cast<Time>(static_cast<Wide>(how.restart) * passed * piece.entries / kListUnit);
    return how.scan * passed + again;
  }
  // Of a cache with random replacement, what is missing on average: as many as there are entries beyond those that
  // survive.
  const std::int64_t entries = keys_.bound;
  const auto missed = [&](Wide time) { return time * entries / (how.capacity + entries); };
  return static_cast<Time>(missed(how.miss) + (first_of_packet ? 0 : missed(missed(how.dependent))));
}

Time Device::Walk::next(std::int64_t bytes) {
  Time time = device_.profile_.nic.packet;
  bool first = true;
  for (std::int64_t done = 0; done < bytes;) {
    const Piece& piece = pieces_[at_];
    const std::int64_t part = std::min(bytes - done, piece.length - used_);
    const Time fetched = used_ == 0 ? entry_ : 0;
    const Time found = device_.find(piece, first);
    time += (first ? std::max(fetched, found) : fetched + found) + device_.translate(piece, used_, part);
    first = false;
    done += part;
    used_ += part;
    if (used_ == piece.length) ++at_, used_ = 0;
  }
  return time;
}

Time Device::onto_wire(Time ready, std::int64_t bytes, const Device& to) {
  if (&to == this) return turned_ = std::max(ready, turned_);
  port_out_ = std::max(ready, port_out_) + profile_.nic.wire.time(bytes + profile_.nic.header);
  return port_out_ + profile_.nic.flight;
}

Flight Device::send(Time ready, const Pieces& pieces, bool inlined, const Device& to) {
  Flight flight;
  flight.turned = &to == this;
  for (const Piece& piece : pieces) flight.bytes += piece.length;
  const Nic& nic = profile_.nic;
  Walk walk(*this, pieces, nic.entry);
  send_engine_ = std::max(ready, send_engine_) + nic.request;
  const std::int64_t count = packets(flight.bytes);
  flight.arrivals.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t bytes = std::min(nic.mtu, flight.bytes - i * nic.mtu);
    Time there = send_engine_ += inlined ? nic.packet : walk.next(bytes);
    if (!inlined && bytes > 0) {
      pcie_read_ = std::max(send_engine_, pcie_read_) + nic.pcie.time(bytes);
      there = pcie_read_ + nic.dma_read;
    }
    flight.arrivals.push_back(onto_wire(there, bytes, to));
  }
  return flight;
}

Time Device::ask(Time ready, const Device& to) {
  send_engine_ = std::max(ready, send_engine_) + profile_.nic.request + profile_.nic.packet;
  return onto_wire(send_engine_, 0, to);
}

Time Device::handle(Time ready, Time work) { return send_engine_ = std::max(ready, send_engine_) + profile_.nic.request + work; }

Device::Landed Device::land(const Flight& flight, const Pieces& pieces, Time first_packet) {
  const Nic& nic = profile_.nic;
  Walk walk(*this, pieces, nic.scatter);
  Landed landed{};
  for (std::size_t i = 0; i < flight.arrivals.size(); ++i) {
    const std::int64_t bytes = std::min(nic.mtu, flight.bytes - static_cast<std::int64_t>(i) * nic.mtu);
    Time here = flight.arrivals[i];
    if (!flight.turned) here = port_in_ = std::max(here, port_in_ + nic.wire.time(bytes + nic.header));
    receive_engine_ = std::max(here, receive_engine_) + walk.next(bytes) + (i == 0 ? first_packet : 0);
    landed.handled = receive_engine_;
    if (bytes > 0) {
      pcie_write_ = std::max(receive_engine_, pcie_write_) + nic.pcie.time(bytes);
      written_ = pcie_write_ + nic.dma_write;
    } else {
      written_ = std::max(written_, receive_engine_);
    }
    landed.written = written_;
  }
  return landed;
}

}  // namespace lacuna::nic::model
