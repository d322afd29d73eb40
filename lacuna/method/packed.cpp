#include "lacuna/method/packed.hpp"

#include <algorithm>
#include <utility>

namespace lacuna::method {
namespace {

bool by_device(const Endpoint& endpoint) {
  const nic::PathInfo* path = endpoint.limits().path(endpoint.qp().path());
  return path != nullptr && path->mover == nic::Mover::device;
}

// A device tries again after a while if the other end has posted no receive, and that while is longer than many chunks:
// so there are credits. Where CPUs move the data, a message waits and goes on at once.
class Packed : public Operation {
 public:
  Packed(Endpoint& endpoint, const Layout& own, const Memory& memory, Chunking chunking, Staging staging)
      : Operation(endpoint, own, memory),
        chunking_(chunking),
        staging_(std::move(staging)),
        chunks_(std::max<std::int64_t>(1, (own.size() + chunking.bytes - 1) / chunking.bytes)),
        credits_(by_device(endpoint) ? std::max<std::int64_t>(0, chunks_ - chunking.depth) : 0) {}

 protected:
  [[nodiscard]] std::int64_t position(std::int64_t chunk) const { return chunk * chunking_.bytes; }
  [[nodiscard]] std::int64_t length(std::int64_t chunk) const { return std::min(chunking_.bytes, own_.size() - position(chunk)); }
  [[nodiscard]] std::int64_t slot(std::int64_t chunk) const { return chunk % chunking_.depth * chunking_.bytes; }
  [[nodiscard]] bool staged() const { return staging_ != nullptr; }
  [[nodiscard]] nic::Sge entry(std::int64_t chunk) const {
    return staged() ? staging_->sge(slot(chunk), length(chunk)) : sge({own_.true_lower_bound() + position(chunk), length(chunk)});
  }

  Chunking chunking_;
  Staging staging_;  // empty if this side is contiguous
  std::int64_t chunks_;
  // Empty messages by which the receiver says, one by one, that it has posted receives beyond the first
  std::int64_t credits_;
  std::int64_t next_ = 0;  // chunk to pack, or to unpack
};

class Sender final : public Packed {
 public:
  using Packed::Packed;
  Result<void> begin() override {
    next_ = 0;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(credits_, chunking_.depth); ++i) LACUNA_TRY(receive({}));
    return {};
  }
  Result<bool> advance() override {
    while (std::cmp_less(receives_posted(), std::min<std::int64_t>(credits_, chunking_.depth + receives_done()))) LACUNA_TRY(receive({}));
    while (next_ < chunks_ && sends_in_flight() < static_cast<std::uint32_t>(chunking_.depth) && send_room() > 0 && expected(next_)) {
      if (staged()) pack(position(next_), length(next_), staging_->buffer.data() + slot(next_));
      const nic::Sge list = entry(next_++);
      LACUNA_TRY(send({&list, 1}, true));
      endpoint_.poll();
    }
    return next_ == chunks_ && sends_in_flight() == 0;
  }

 private:
  // Has the receiver posted a receive for it, or will it, since its NIC lets messages wait?
  [[nodiscard]] bool expected(std::int64_t chunk) const { return credits_ == 0 || std::cmp_less(chunk - chunking_.depth, receives_done()); }
};

class Receiver final : public Packed {
 public:
  using Packed::Packed;
  Result<void> begin() override {
    next_ = 0;
    for (std::int64_t chunk = 0; chunk < std::min<std::int64_t>(chunks_, chunking_.depth); ++chunk) LACUNA_TRY(post(chunk));
    return {};
  }
  Result<bool> advance() override {
    while (std::cmp_less(next_, receives_done()) && (next_ >= credits_ || send_room() > 0)) {
      if (staged()) unpack(position(next_), length(next_), staging_->buffer.data() + slot(next_));
      if (next_ + chunking_.depth < chunks_) LACUNA_TRY(post(next_ + chunking_.depth));
      if (next_ < credits_) LACUNA_TRY(send({}, next_ + 1 == credits_));
      ++next_;
    }
    return next_ == chunks_;
  }

 private:
  Result<void> post(std::int64_t chunk) {
    const nic::Sge list = entry(chunk);
    return receive({&list, 1});
  }
};

}  // namespace

Made make_packed(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Chunking chunking) {
  const Layout& own = role == Role::sender ? transfer.src : transfer.dst;
  chunking.bytes = std::max<std::int64_t>(1, std::min({chunking.bytes, endpoint.limits().max_message_bytes, own.size()}));
  const int depth = by_device(endpoint) ? chunking.depth_of_devices : chunking.depth;
  chunking.depth = std::min({depth, endpoint.options().max_send_wr, endpoint.options().max_recv_wr});
  // A sender's own bytes can always be sent; a receiver's can be landed in only where the path reaches them.
  const bool in_place = own.contiguous_bytes() && (role == Role::sender || reachable(endpoint, *memory.region));
  const std::int64_t slots = std::min<std::int64_t>(chunking.depth, (own.size() + chunking.bytes - 1) / chunking.bytes);
  Staging staging;
  if (!in_place) staging = LACUNA_TRY(endpoint.staging(slots * chunking.bytes));
  if (role == Role::sender) return std::make_unique<Sender>(endpoint, own, memory, chunking, std::move(staging));
  return std::make_unique<Receiver>(endpoint, own, memory, chunking, std::move(staging));
}

}  // namespace lacuna::method
