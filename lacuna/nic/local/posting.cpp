// Posting: what a work request may be, and its copy into the queue.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lacuna/nic/local/queue_pair.hpp"

namespace lacuna::nic::local {
namespace {

constexpr std::uint64_t kMostBound = std::uint64_t{1} << 60;

std::uint64_t bytes_of(std::span<const Sge> list) {
  std::uint64_t total = 0;
  for (const Sge& sge : list) total += sge.length;
  return total;
}

Result<void> check_room(std::uint64_t outstanding, std::size_t more, int depth, const char* queue) {
  if (outstanding + more <= static_cast<std::uint64_t>(depth)) return {};
  return base::fail(base::Code::limit,
                    fmt::format("{} requests are outstanding in the {} queue, {} more are posted; it takes {}. A place is free once its "
                                "completion, or a later one, was polled",
                                outstanding, queue, more, depth));
}

PreparedBinding prepare(const Binding& binding) {
  PreparedBinding prepared{.key = binding.key, .rights = right_bits(binding.rights), .repeat = binding.repeat, .translations = {}};
  std::uint64_t at = 0;
  const auto add = [&](std::uint64_t addr, std::uint32_t length, std::uint32_t stride, std::uint32_t key) {
    if (length > 0) prepared.translations.push_back({at, addr, length, stride, key, 0});
    at += length;
  };
  prepared.translations.reserve(binding.list.size() + binding.strided.size());
  for (const Sge& sge : binding.list) add(sge.addr, sge.length, 0, sge.lkey);
  for (const Strided& strided : binding.strided) add(strided.addr, strided.bytes, strided.stride, strided.lkey);
  prepared.length = at * std::max<std::uint32_t>(1, binding.repeat);
  return prepared;
}

}  // namespace

Result<void> QueuePair::check_list(std::span<const Sge> list, int most) const {
  if (std::cmp_greater(list.size(), most))
    return base::fail(base::Code::limit, fmt::format("an sg_list of {} entries; this queue pair takes {}", list.size(), most));
  if (const std::uint64_t total = bytes_of(list); std::cmp_greater(total, limits_.max_message_bytes))
    return base::fail(base::Code::limit, fmt::format("a message of {} bytes; this queue pair takes {}", total, limits_.max_message_bytes));
  return {};
}

Result<void> QueuePair::check_binding(const Binding* binding) const {
  if (binding == nullptr) return base::fail(base::Code::invalid_argument, "a bind request without a binding");
  const IndirectLimits& most = limits_.indirect;
  const int room = context_.indirect_entries(binding->key);  // 0: not a key; the request completes with mw_bind_err
  const auto entries = std::max(binding->list.size(), binding->strided.size());
  const int strided_most = std::min(most.strided_entries, room == 0 ? most.strided_entries : room);
  const int list_most = room == 0 ? most.entries : room;
  if (std::cmp_greater(entries, binding->repeat == 0 ? list_most : strided_most)) {
    return base::fail(base::Code::limit, fmt::format("a binding of {} entries; this key takes {} in a list, {} with strides", entries,
                                                     list_most, strided_most));
  }
  if ((binding->repeat == 0) != binding->strided.empty() || (binding->repeat != 0 && !binding->list.empty()))
    return base::fail(base::Code::invalid_argument, "a binding is either a list, or strided entries with a repeat count");
  for (const Strided& strided : binding->strided) {
    if (strided.stride < strided.bytes)
      return base::fail(
          base::Code::invalid_argument,
          fmt::format("a stride of {} bytes between pieces of {}; pieces of a key do not overlap", strided.stride, strided.bytes));
    if (std::cmp_greater(strided.stride, most.stride))
      return base::fail(base::Code::limit, fmt::format("a stride of {} bytes; an indirect key takes {}", strided.stride, most.stride));
  }
  const std::uint64_t round = bytes_of(binding->list) + [&] {
    std::uint64_t sum = 0;
    for (const Strided& strided : binding->strided) sum += strided.bytes;
    return sum;
  }();
  std::uint64_t whole = 0;
  if (__builtin_mul_overflow(round, std::max<std::uint32_t>(1, binding->repeat), &whole) || whole > kMostBound)
    return base::fail(base::Code::overflow, fmt::format("a binding of {} rounds of {} bytes", binding->repeat, round));
  return {};
}

Result<void> QueuePair::check(const SendRequest& request) const {
  switch (request.opcode) {
    case Opcode::send:
    case Opcode::write:
    case Opcode::write_imm: break;
    case Opcode::read:
      if (request.inline_data) return base::fail(base::Code::invalid_argument, "a read has no data of its own that could go inline");
      return check_list(request.sg_list, limits_.max_sge_rd);
    case Opcode::bind: return check_binding(request.binding);
    case Opcode::invalidate: return {};
    default: return base::fail(base::Code::invalid_argument, fmt::format("a send queue does not take {}", opcode_name(request.opcode)));
  }
  LACUNA_TRY(check_list(request.sg_list, limits_.max_sge));
  if (const std::uint64_t total = bytes_of(request.sg_list); request.inline_data && std::cmp_greater(total, limits_.max_inline))
    return base::fail(base::Code::limit, fmt::format("{} bytes inline; this queue pair takes {}", total, limits_.max_inline));
  return {};
}

Result<void> QueuePair::post_chain(std::span<const SendRequest> chain) {
  for (const SendRequest& request : chain) LACUNA_TRY(check(request));
  LACUNA_TRY(check_room(sends_posted_ - sends_retired_, chain.size(), options_.max_send_wr, "send"));
  context_.busy();
  for (const SendRequest& request : chain) {
    Work& work = sends_.push();
    work.wr_id = request.wr_id;
    work.opcode = request.opcode;
    work.signaled = request.signaled;
    work.fence = request.fence;
    work.inlined = request.inline_data;
    work.rkey = request.rkey;
    work.imm_data = request.imm_data;
    work.remote_addr = request.remote_addr;
    work.sequence = ++sends_posted_;
    work.moved = work.end = 0;
    work.sges = static_cast<std::uint32_t>(request.sg_list.size());
    work.total = bytes_of(request.sg_list);
    std::ranges::copy(request.sg_list, work.sg_list.begin());
    work.binding = request.opcode == Opcode::bind ? std::make_unique<PreparedBinding>(prepare(*request.binding)) : nullptr;
    std::byte* inlined = work.inline_bytes.data();
    for (const Sge& sge : request.inline_data ? work.list() : std::span<const Sge>())
      inlined = std::copy_n(reinterpret_cast<const std::byte*>(sge.addr), sge.length, inlined);
    if (failed()) complete_send(Status::wr_flush_err);
  }
  if (!failed()) progress();
  return {};
}

Result<void> QueuePair::post_recv(const RecvRequest& request) {
  LACUNA_TRY(check_list(request.sg_list, limits_.max_sge));
  LACUNA_TRY(check_room(recvs_posted_ - recvs_retired_, 1, options_.max_recv_wr, "receive"));
  context_.busy();
  Work& work = recvs_.push();
  work.wr_id = request.wr_id;
  work.opcode = Opcode::recv;
  work.sequence = ++recvs_posted_;
  work.moved = 0;
  work.sges = static_cast<std::uint32_t>(request.sg_list.size());
  work.total = bytes_of(request.sg_list);
  std::ranges::copy(request.sg_list, work.sg_list.begin());
  if (failed()) {
    complete_recv(Status::wr_flush_err);
  } else {
    announce(work);
  }
  return {};
}

}  // namespace lacuna::nic::local
