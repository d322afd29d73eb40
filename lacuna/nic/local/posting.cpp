// Posting: the copy of a work request into the queue.
#include <algorithm>
#include <utility>

#include "lacuna/nic/checks.hpp"
#include "lacuna/nic/local/queue_pair.hpp"

namespace lacuna::nic::local {
namespace {

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

Result<void> QueuePair::post_chain(std::span<const SendRequest> chain) {
  for (const SendRequest& request : chain) {
    const int room = request.binding == nullptr ? 0 : context_.indirect_entries(request.binding->key);
    LACUNA_TRY(check_send(request, limits_, room));
  }
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
  LACUNA_TRY(check_list(request.sg_list, limits_.max_sge, limits_));
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
