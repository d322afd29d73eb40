#include "lacuna/nic/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace lacuna::nic {
namespace {

constexpr std::uint64_t kMostBound = std::uint64_t{1} << 60;

Result<void> check_binding(const Binding* binding, const IndirectLimits& most, int room) {
  if (binding == nullptr) return base::fail(base::Code::invalid_argument, "a bind request without a binding");
  const auto entries = std::max(binding->list.size(), binding->strided.size());
  const int strided_most = std::min(most.strided_entries, room == 0 ? most.strided_entries : room);
  const int list_most = room == 0 ? most.entries : room;
  if (std::cmp_greater(entries, binding->repeat == 0 ? list_most : strided_most)) {
    return base::fail(base::Code::limit, fmt::format("a binding of {} entries; this key takes {} in a list, {} with strides", entries,
                                                     list_most, strided_most));
  }
  if ((binding->repeat == 0) != binding->strided.empty() || (binding->repeat != 0 && !binding->list.empty()))
    return base::fail(base::Code::invalid_argument, "a binding is either a list, or strided entries with a repeat count");
  std::uint64_t round = bytes_of(binding->list);
  for (const Strided& strided : binding->strided) {
    round += strided.bytes;
    if (strided.stride < strided.bytes)
      return base::fail(
          base::Code::invalid_argument,
          fmt::format("a stride of {} bytes between pieces of {}; pieces of a key do not overlap", strided.stride, strided.bytes));
    if (std::cmp_greater(strided.stride, most.stride))
      return base::fail(base::Code::limit, fmt::format("a stride of {} bytes; an indirect key takes {}", strided.stride, most.stride));
  }
  std::uint64_t whole = 0;
  if (__builtin_mul_overflow(round, std::max<std::uint32_t>(1, binding->repeat), &whole) || whole > kMostBound)
    return base::fail(base::Code::overflow, fmt::format("a binding of {} rounds of {} bytes", binding->repeat, round));
  return {};
}

}  // namespace

std::uint64_t bytes_of(std::span<const Sge> list) {
  std::uint64_t total = 0;
  for (const Sge& sge : list) total += sge.length;
  return total;
}

Result<void> check_list(std::span<const Sge> list, int most, const Limits& limits) {
  if (std::cmp_greater(list.size(), most))
    return base::fail(base::Code::limit, fmt::format("an sg_list of {} entries; this queue pair takes {}", list.size(), most));
  if (const std::uint64_t total = bytes_of(list); std::cmp_greater(total, limits.max_message_bytes))
    return base::fail(base::Code::limit, fmt::format("a message of {} bytes; this queue pair takes {}", total, limits.max_message_bytes));
  return {};
}

Result<void> check_send(const SendRequest& request, const Limits& limits, int room) {
  switch (request.opcode) {
    case Opcode::send:
    case Opcode::write:
    case Opcode::write_imm: break;
    case Opcode::read:
      if (request.inline_data) return base::fail(base::Code::invalid_argument, "a read has no data of its own that could go inline");
      return check_list(request.sg_list, limits.max_sge_rd, limits);
    case Opcode::bind: return check_binding(request.binding, limits.indirect, room);
    case Opcode::invalidate: return {};
    default: return base::fail(base::Code::invalid_argument, fmt::format("a send queue does not take {}", opcode_name(request.opcode)));
  }
  LACUNA_TRY(check_list(request.sg_list, limits.max_sge, limits));
  if (const std::uint64_t total = bytes_of(request.sg_list); request.inline_data && std::cmp_greater(total, limits.max_inline))
    return base::fail(base::Code::limit, fmt::format("{} bytes inline; this queue pair takes {}", total, limits.max_inline));
  return {};
}

Result<void> check_room(std::uint64_t outstanding, std::size_t more, int depth, const char* queue) {
  if (outstanding + more <= static_cast<std::uint64_t>(depth)) return {};
  return base::fail(base::Code::limit,
                    fmt::format("{} requests are outstanding in the {} queue, {} more are posted; it takes {}. A place is free once its "
                                "completion, or a later one, was polled",
                                outstanding, queue, more, depth));
}

Result<void> check_depths(const QueuePairOptions& options, const Limits& limits, std::string_view nic) {
  const auto fits = [](int depth, int most) { return depth >= 1 && depth <= most; };
  if (fits(options.max_send_wr, limits.max_send_wr) && fits(options.max_recv_wr, limits.max_recv_wr)) return {};
  return base::fail(base::Code::limit, fmt::format("queues of {} sends and {} receives; NIC {} takes 1 to {} and 1 to {}",
                                                   options.max_send_wr, options.max_recv_wr, nic, limits.max_send_wr, limits.max_recv_wr));
}

Result<Limits> limited(Limits limits, const OpenOptions& options, std::string_view name) {
  const auto take = [&](const char* what, auto& limit, std::int64_t wanted, bool zero_is_default) -> Result<void> {
    if (wanted == 0 && zero_is_default) return {};
    if (wanted < 0 || wanted > static_cast<std::int64_t>(limit))
      return base::fail(base::Code::invalid_argument, fmt::format("{} = {}; {} takes up to {}", what, wanted, name, limit));
    limit = static_cast<std::remove_reference_t<decltype(limit)>>(wanted);
    return {};
  };
  LACUNA_TRY(take("max_sge", limits.max_sge, options.max_sge, true));
  limits.max_sge_rd = std::min(limits.max_sge_rd, limits.max_sge);
  LACUNA_TRY(take("max_sge_rd", limits.max_sge_rd, options.max_sge_rd, true));
  if (options.max_inline) LACUNA_TRY(take("max_inline", limits.max_inline, *options.max_inline, false));
  LACUNA_TRY(take("max_send_wr", limits.max_send_wr, options.max_send_wr, true));
  LACUNA_TRY(take("max_recv_wr", limits.max_recv_wr, options.max_recv_wr, true));
  LACUNA_TRY(take("max_message_bytes", limits.max_message_bytes, options.max_message_bytes, true));
  if (IndirectLimits& keys = limits.indirect; keys.keys > 0) {
    const IndirectOptions& wanted = options.indirect;
    LACUNA_TRY(take("indirect.keys", keys.keys, wanted.keys.value_or(keys.keys), false));
    LACUNA_TRY(take("indirect.entries", keys.entries, wanted.entries.value_or(keys.entries), false));
    LACUNA_TRY(take("indirect.inline_entries", keys.inline_entries, wanted.inline_entries.value_or(keys.inline_entries), false));
    LACUNA_TRY(take("indirect.strided_entries", keys.strided_entries, wanted.strided_entries.value_or(keys.strided_entries), false));
    LACUNA_TRY(take("indirect.stride", keys.stride, wanted.stride.value_or(keys.stride), false));
    keys.inline_entries = std::min(keys.inline_entries, keys.entries);
    if (keys.keys == 0 || keys.entries == 0) keys = {.note = fmt::format("{}: the caller forbids them", name)};
  }
  for (PathInfo& path : limits.paths) {
    if (std::ranges::find(options.forbidden_paths, path.path) == options.forbidden_paths.end()) continue;
    path.available = false;
    path.note = "forbidden by the caller";
  }
  return limits;
}

Limits common(const Limits& mine, const Limits& theirs) {
  Limits both = mine;
  both.max_sge = std::min(mine.max_sge, theirs.max_sge);
  both.max_sge_rd = std::min(mine.max_sge_rd, theirs.max_sge_rd);
  both.max_inline = std::min(mine.max_inline, theirs.max_inline);
  both.indirect = {std::min(mine.indirect.keys, theirs.indirect.keys),
                   std::min(mine.indirect.entries, theirs.indirect.entries),
                   std::min(mine.indirect.inline_entries, theirs.indirect.inline_entries),
                   std::min(mine.indirect.strided_entries, theirs.indirect.strided_entries),
                   std::min(mine.indirect.stride, theirs.indirect.stride),
                   mine.indirect.note};
  if (both.indirect.keys == 0) both.indirect = {.note = mine.indirect.keys == 0 ? mine.indirect.note : "the peer's; this one's would do"};
  both.max_send_wr = std::min(mine.max_send_wr, theirs.max_send_wr);
  both.max_recv_wr = std::min(mine.max_recv_wr, theirs.max_recv_wr);
  both.max_message_bytes = std::min(mine.max_message_bytes, theirs.max_message_bytes);
  both.emulated = mine.emulated || theirs.emulated;
  return both;
}

LimitsOnWire LimitsOnWire::of(const Limits& limits) {
  return {.max_message_bytes = limits.max_message_bytes,
          .indirect_stride = limits.indirect.stride,
          .max_sge = limits.max_sge,
          .max_sge_rd = limits.max_sge_rd,
          .max_inline = limits.max_inline,
          .max_send_wr = limits.max_send_wr,
          .max_recv_wr = limits.max_recv_wr,
          .indirect_keys = limits.indirect.keys,
          .indirect_entries = limits.indirect.entries,
          .indirect_inline = limits.indirect.inline_entries,
          .indirect_strided = limits.indirect.strided_entries,
          .emulated = limits.emulated ? 1 : 0};
}

Result<Limits> LimitsOnWire::read() const {
  if (max_sge < 1 || max_sge_rd < 1 || max_inline < 0 || max_send_wr < 1 || max_recv_wr < 1 || max_message_bytes < 1 || indirect_keys < 0 ||
      indirect_entries < 0 || indirect_inline < 0 || indirect_strided < 0 || indirect_stride < 0)
    return base::fail(base::Code::malformed, "the peer's limits are not positive");
  Limits limits;
  limits.max_sge = max_sge;
  limits.max_sge_rd = max_sge_rd;
  limits.max_inline = max_inline;
  limits.max_send_wr = max_send_wr;
  limits.max_recv_wr = max_recv_wr;
  limits.max_message_bytes = max_message_bytes;
  limits.emulated = emulated != 0;
  limits.indirect = {indirect_keys, indirect_entries, indirect_inline, indirect_strided, indirect_stride};
  return limits;
}

Result<void> agree(Bootstrap& bootstrap, const Result<void>& mine, Path path, std::int64_t timeout_ns) {
  constexpr std::size_t kMostWords = 500;
  Hello verdict;  // empty if this end is content, else why not
  if (!mine) {
    const std::string reason = mine.error().text();
    verdict.bytes.assign(reinterpret_cast<const std::byte*>(reason.data()),
                         reinterpret_cast<const std::byte*>(reason.data() + reason.size()));
  }
  const Result<Hello> answer = bootstrap.exchange(verdict, timeout_ns);
  if (!mine) return mine;
  if (!answer) return std::unexpected(answer.error());
  if (answer->bytes.empty()) return {};
  const std::string_view reason(reinterpret_cast<const char*>(answer->bytes.data()), std::min(answer->bytes.size(), kMostWords));
  return base::fail(base::Code::unsupported, fmt::format("the peer refuses path {}: {}", path_name(path), reason));
}

}  // namespace lacuna::nic
