#include "lacuna/method/one_sided.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lacuna/base/rarely.hpp"

namespace lacuna::method {

std::int64_t largest_message(const nic::Limits& limits) {
  return std::min<std::int64_t>(limits.max_message_bytes, std::numeric_limits<std::int32_t>::max());
}

double messages_of(std::int64_t bytes, const nic::Limits& limits, std::int64_t most) {
  most = std::max<std::int64_t>(1, std::min(most, largest_message(limits)));
  return static_cast<double>(std::max<std::int64_t>(1, (bytes + most - 1) / most));
}

double lists_of(double entries, int list, std::int64_t bytes, const nic::Limits& limits) {
  return std::max(std::ceil(entries / std::max(1, list)), messages_of(bytes, limits));
}

Chain::Chain(int requests, int sges) {
  requests_.reserve(static_cast<std::size_t>(requests) + 1);  // and a flag
  sges_.reserve(static_cast<std::size_t>(requests) * static_cast<std::size_t>(sges));
}

void Chain::clear() {
  requests_.clear();
  sges_.clear();
  taken_ = 0;
}

nic::SendRequest& Chain::add(nic::Opcode opcode, std::uint64_t addr, std::uint32_t rkey) {
  const std::span<const nic::Sge> list = std::span(sges_).subspan(taken_);
  taken_ = sges_.size();
  return requests_.emplace_back(nic::SendRequest{.opcode = opcode, .sg_list = list, .remote_addr = addr, .rkey = rkey, .signaled = false});
}

Result<Notice> Notice::create(Endpoint& endpoint, Notify notify) {
  Notice notice(notify);
  if (notify == Notify::flag) notice.flag_.emplace(LACUNA_TRY(Flag::create(endpoint)));
  return notice;
}

namespace {

// Whether the peer named the word that is to be written.
Result<void> check_flag(const Target& peer) {
  if (peer.flag.rkey != 0) return {};
  return base::fail(base::Code::malformed, "the peer's target names no flag, and this transfer has to write it");
}

}  // namespace

nic::SendRequest Notice::request(const Endpoint& endpoint, const Target::Part& peers) {
  nic::SendRequest request{.opcode = nic::Opcode::write_imm};
  if (flag_) request = flag_->raise(endpoint, peers);
  request.fence = true;  // behind reads it says that the source is free
  return request;
}

// --- the active end -------------------------------------------------------------------------------------------------

Initiator::Initiator(Endpoint& endpoint, Layout own, const Memory& memory, Notice notice, int chain)
    : Operation(endpoint, std::move(own), memory),
      notice_(std::move(notice)),
      // A chain of several is one of single pieces; a request alone may have a whole list.
      chain_(std::max(1, chain), chain > 1 ? 1 : std::max(endpoint.limits().max_sge, endpoint.limits().max_sge_rd)),
      most_(std::max(1, chain)) {}

Result<void> Initiator::check_peer() const {
  if (notice_.how() == Notify::flag) LACUNA_TRY(check_flag(peer_));
  if (peer_.parts.size() >= remote_parts()) return {};
  return base::fail(base::Code::malformed,
                    fmt::format("the peer's target has {} parts, this transfer needs {}", peer_.parts.size(), remote_parts()));
}

Result<void> Initiator::begin() {
  notified_ = notice_.how() == Notify::none;
  notice_.count();
  chain_.clear();
  return {};
}

Result<bool> Initiator::advance() {
  if (!may_begin()) return false;
  while (!exhausted() || !notified_ || !chain_.empty()) {
    // A chain is built while the one before is under way. A request alone may need a place in the queue for what it
    // builds on.
    if (most_ == 1 && send_room() < 1) {
      LACUNA_RARELY("one-sided: no place in the queue");
      return false;
    }
    while (!exhausted() && chain_.size() < most_) {
      if (!LACUNA_TRY(add_next(chain_, most_ - chain_.size()))) break;
    }
    if (exhausted() && !notified_) notify(std::min(chain_room(), endpoint_.options().max_send_wr));
    if (chain_.empty()) return false;
    // Whole or not at all: how many doorbells there are does not depend on how fast the peer is.
    if (send_room() < chain_.size()) {
      LACUNA_RARELY("one-sided: no places for a whole chain");
      return false;
    }
    // Nothing else would say that the places of a whole queue are free again.
    if (most_ > 1 || (exhausted() && notified_)) chain_.requests().back().signaled = true;
    LACUNA_TRY(post(chain_.requests()));
    chain_.clear();
  }
  if (sends_in_flight() > 0) return false;
  notice_.went();
  finished();
  return true;
}

void Initiator::notify(int room) {
  if (notice_.how() == Notify::imm && !chain_.empty() && chain_.requests().back().opcode == nic::Opcode::write) {
    chain_.requests().back().opcode = nic::Opcode::write_imm;
  } else if (chain_.size() < room) {
    chain_.add(notice_.request(endpoint_, peer_.flag));
  } else {
    return;
  }
  notified_ = true;
}

// --- the passive end of writes --------------------------------------------------------------------------------------

Made Landing::make_contiguous(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  const bool in_place = transfer.dst.contiguous_bytes() && reachable(endpoint, *memory.region);
  if (!in_place && transfer.notify == Notify::none) {
    return base::fail(base::Code::unsupported,
                      "without a notification the destination must be contiguous and reachable, since nobody would unpack");
  }
  Staging staging;
  if (!in_place) staging = LACUNA_TRY(endpoint.staging(transfer.dst.size()));
  Notice notice = LACUNA_TRY(Notice::create(endpoint, transfer.notify));
  return std::make_unique<Landing>(endpoint, transfer, memory, std::move(notice), std::move(staging), transfer.dst.true_lower_bound());
}

Made Landing::make_in_place(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  Notice notice = LACUNA_TRY(Notice::create(endpoint, transfer.notify));
  return std::make_unique<Landing>(endpoint, transfer, memory, std::move(notice), Staging(), 0);
}

Target Landing::offer() const {
  if (staged()) return {{{staging_->region.addr(), staging_->region.rkey()}}, notice_.part()};
  return {{{reinterpret_cast<std::uint64_t>(base_ + offset_), region_->rkey()}}, notice_.part()};
}

Result<void> Landing::begin() {
  notice_.count();
  if (notice_.how() == Notify::imm) return receive({});
  return {};
}

Result<bool> Landing::advance() {
  if (!notice_.arrived(endpoint_.context(), receives_done())) return false;
  if (staged()) unpack(0, own_.size(), staging_->buffer.data());
  return true;
}

// --- reads ----------------------------------------------------------------------------------------------------------

Result<void> Reader::begin() {
  ready_.count();
  return Initiator::begin();
}

Made Source::make_contiguous(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  Staging staging;
  if (!transfer.src.contiguous_bytes() || !reachable(endpoint, *memory.region)) staging = LACUNA_TRY(endpoint.staging(transfer.src.size()));
  Notice notice = LACUNA_TRY(Notice::create(endpoint, transfer.notify));
  return std::make_unique<Source>(endpoint, transfer, memory, std::move(notice), LACUNA_TRY(Flag::create(endpoint)), std::move(staging));
}

Target Source::offer() const {
  if (staged()) return {{{staging_->region.addr(), staging_->region.rkey()}}, notice_.part()};
  return {{{reinterpret_cast<std::uint64_t>(base_ + own_.true_lower_bound()), region_->rkey()}}, notice_.part()};
}

Result<void> Source::check_peer() const { return check_flag(peer_); }

Result<void> Source::begin() {
  notice_.count();
  ready_.count();
  told_ = false;
  if (notice_.how() == Notify::imm) LACUNA_TRY(receive({}));
  if (staged()) pack(0, own_.size(), staging_->buffer.data());
  return {};
}

Result<bool> Source::advance() {
  if (!told_) {
    if (send_room() < 1) return false;
    nic::SendRequest ready = ready_.raise(endpoint_, peer_.flag);
    LACUNA_TRY(post({&ready, 1}));
    told_ = true;
  }
  if (sends_in_flight() > 0) return false;
  ready_.went();
  return notice_.arrived(endpoint_.context(), receives_done());
}

}  // namespace lacuna::method
