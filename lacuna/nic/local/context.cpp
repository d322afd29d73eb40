#include "lacuna/nic/local/context.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <limits>
#include <random>

#include "lacuna/nic/local/inbox.hpp"
#include "lacuna/nic/local/local.hpp"
#include "lacuna/nic/local/movers.hpp"
#include "lacuna/nic/local/queue_pair.hpp"

namespace lacuna::nic::local {
namespace {

constexpr int kDefaultSge = 30;  // what a ConnectX-5 offers (paper_findings), so that results compare
constexpr int kSendDepth = 1024;
constexpr std::int64_t kLookEvery = 5'000'000;  // ns between two looks at whether peers live: one system call each
constexpr std::uint64_t kPollsPerLook = 64;
constexpr std::uint64_t kWaitsPerLook = 64;       // waits between two readings of the clock
constexpr std::uint64_t kWaitsBeforeYield = 512;  // ~40 us of spinning; after that the peer may need this CPU

/// As those of a ConnectX-5 (umr.md).
IndirectLimits usual_keys() {
  return {.keys = 16384, .entries = 65536, .inline_entries = 52, .strided_entries = 51, .stride = 65535, .note = {}};
}

Result<void> check(const OpenOptions& options) {
  const IndirectLimits keys = usual_keys();
  const auto in_range = [](const char* name, std::int64_t value, std::int64_t most) -> Result<void> {
    if (value >= 0 && value <= most) return {};
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{} = {}; NIC local takes 1 to {}, or 0 for its default", name, value, most));
  };
  LACUNA_TRY(in_range("max_sge", options.max_sge, kMaxSge));
  LACUNA_TRY(in_range("max_sge_rd", options.max_sge_rd, kMaxSge));
  LACUNA_TRY(in_range("max_inline", options.max_inline.value_or(0), kMaxInline));
  LACUNA_TRY(in_range("indirect.keys", options.indirect.keys.value_or(0), keys.keys));
  LACUNA_TRY(in_range("indirect.entries", options.indirect.entries.value_or(0), keys.entries));
  LACUNA_TRY(in_range("indirect.inline_entries", options.indirect.inline_entries.value_or(0), keys.entries));
  LACUNA_TRY(in_range("indirect.strided_entries", options.indirect.strided_entries.value_or(0), keys.strided_entries));
  LACUNA_TRY(in_range("indirect.stride", options.indirect.stride.value_or(0), std::int64_t{1} << 31));
  LACUNA_TRY(in_range("max_send_wr", options.max_send_wr, kSendDepth));
  LACUNA_TRY(in_range("max_recv_wr", options.max_recv_wr, kRecvDepth));
  return in_range("max_message_bytes", options.max_message_bytes, std::int64_t{1} << 31);
}

Limits limits_of(const OpenOptions& options) {
  const auto or_default = [](auto wanted, auto usual) { return wanted != 0 ? wanted : usual; };
  Limits limits;
  limits.max_sge = or_default(options.max_sge, kDefaultSge);
  limits.max_sge_rd = or_default(options.max_sge_rd, limits.max_sge);
  limits.max_inline = options.max_inline.value_or(kMaxInline);
  limits.max_send_wr = or_default(options.max_send_wr, kSendDepth);
  limits.max_recv_wr = or_default(options.max_recv_wr, kRecvDepth);
  limits.max_cqe = 1 << 20;
  limits.max_message_bytes = or_default(options.max_message_bytes, std::int64_t{1} << 31);
  if (options.indirect.keys != 0 && options.indirect.entries != 0) {
    const IndirectLimits usual = usual_keys();
    limits.indirect = {options.indirect.keys.value_or(usual.keys),
                       options.indirect.entries.value_or(usual.entries),
                       options.indirect.inline_entries.value_or(usual.inline_entries),
                       options.indirect.strided_entries.value_or(usual.strided_entries),
                       options.indirect.stride.value_or(usual.stride),
                       {}};
    limits.indirect.inline_entries = std::min(limits.indirect.inline_entries, limits.indirect.entries);
  }
  limits.shared_clock = true;
  limits.paths = {
      {Path::mapped, true, true, true, nic::Mover::initiator, 0, "reaches memory of Context::allocate"},
      {Path::slots, true, false, false, nic::Mover::both, kSlotBytes, "moves in the target's poll"},
      {Path::kernel, true, true, false, nic::Mover::initiator, 0,
       "process_vm_writev; whether the peer may be reached is tried at connection"},
  };
  const std::uint64_t word = 0x1ac0'a1ac'0a1a'c0a1;
  if (const Result<void> allowed = probe_kernel(getpid(), reinterpret_cast<std::uint64_t>(&word), word); !allowed) {
    limits.paths[2].available = false;
    limits.paths[2].note = allowed.error().text();
  }
  for (PathInfo& path : limits.paths) {
    if (std::ranges::find(options.forbidden_paths, path.path) == options.forbidden_paths.end()) continue;
    path.available = false;
    path.note = "forbidden by the caller";
  }
  for (const PathInfo& path : limits.paths) {
    if (!path.available) base::log(base::Level::warn, fmt::format("NIC local does without path {}: {}", path_name(path.path), path.note));
  }
  return limits;
}

}  // namespace

Result<std::unique_ptr<nic::Context>> open(const OpenOptions& options) { return Context::create(options); }

void CompletionQueue::push(QueuePair& qp, std::uint64_t sequence, const Completion& completion) {
  if (overrun_) return;
  if (queue_.size() < entries_) {
    queue_.push_back({&qp, sequence, completion});
    return;
  }
  overrun_ = true;
  for (QueuePair* attached : queue_pairs_) {
    attached->fail({base::Code::limit,
                    fmt::format("completion queue overrun (IBV_EVENT_CQ_ERR): its {} entries are taken; poll more often, or make it larger",
                                entries_)});
  }
}

bool CompletionQueue::pop(Completion& completion) {
  if (queue_.empty()) return false;
  const Entry& first = queue_.front();
  completion = first.completion;
  if (first.qp != nullptr) first.qp->retire(completion.opcode, first.sequence);
  queue_.pop_front();
  return true;
}

void CompletionQueue::detach(QueuePair& qp) {
  std::erase(queue_pairs_, &qp);
  for (Entry& entry : queue_) {
    if (entry.qp == &qp) entry.qp = nullptr;
  }
}

Context::Context(Arena arena, KeyTable keys, Limits limits)
    : arena_(std::move(arena)), keys_(std::move(keys)), limits_(std::move(limits)), cookie_(std::random_device()()) {}

Result<std::unique_ptr<nic::Context>> Context::create(const OpenOptions& options) {
  LACUNA_TRY(check(options));
  return std::make_unique<Context>(LACUNA_TRY(Arena::create_largest("lacuna arena", options.shared_bytes)), LACUNA_TRY(KeyTable::create()),
                                   limits_of(options));
}

// Peers keep what they have mapped, and its keys: they shall learn that this end closed, and not find fault with a key.
Context::~Context() {
  ending_ = true;
  kept_.clear();
  for_good_.clear();
}

Result<Buffer> Context::allocate(std::size_t bytes) {
  std::erase_if(kept_, [](const Kept& kept) {
    pollfd dead{kept.wiring.peer->pidfd.get(), POLLIN, 0};
    return inbox(kept.wiring.theirs).gone.value.load(std::memory_order_acquire) != 0 || ::poll(&dead, 1, 0) > 0;
  });
  return Buffer(*this, LACUNA_TRY(arena_.allocate(bytes)));
}

Result<Region> Context::register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind) {
  if (kind != MemoryKind::host)
    return base::fail(base::Code::unsupported, "NIC local moves host memory; copy device memory to the host first");
  if (bytes.empty()) return base::fail(base::Code::invalid_argument, "a region of 0 bytes");
  const std::optional<std::uint64_t> offset = arena_.offset_of(bytes);
  const std::uint32_t key = LACUNA_TRY(keys_.add_region(bytes, rights, offset));
  return Region(*this, bytes, key, key, kind, offset.has_value());
}

Result<IndirectKey> Context::create_indirect_key(int entries) {
  const IndirectLimits& most = limits_.indirect;
  if (most.keys == 0) return base::fail(base::Code::unsupported, most.refusal());
  if (entries < 1 || entries > most.entries)
    return base::fail(base::Code::limit, fmt::format("an indirect key of {} entries; this NIC takes 1 to {}", entries, most.entries));
  if (keys_.indirect_keys() >= most.keys)
    return base::fail(base::Code::limit, fmt::format("{} indirect keys exist; this NIC takes no more", most.keys));
  return IndirectKey(*this, LACUNA_TRY(keys_.add_indirect(entries)), entries);
}

bool Context::revoke(std::uint32_t key, std::int64_t wait_ns) {
  keys_.revoke(key);
  bool outside = true;
  for (const QueuePair* qp : queue_pairs_) outside = qp->drain(wait_ns) && outside;
  return outside;
}

void Context::take_away(std::uint32_t key) {
  if (revoke(key, kDrain)) keys_.release(key);  // else its entry is never used again
}

Status Context::bind(const PreparedBinding& binding) {
  if (std::cmp_less(keys_.indirect_entries(binding.key), std::max<std::size_t>(1, binding.translations.size())) ||
      !revoke(binding.key, kDrain))
    return Status::mw_bind_err;
  keys_.bind(binding);
  return Status::success;
}

Status Context::invalidate(std::uint32_t key) {
  return keys_.indirect_entries(key) > 0 && revoke(key, kDrain) ? Status::success : Status::mw_bind_err;
}

Result<std::unique_ptr<nic::CompletionQueue>> Context::create_completion_queue(int entries) {
  if (entries < 1 || entries > limits_.max_cqe) {
    return base::fail(base::Code::limit,
                      fmt::format("a completion queue of {} entries; NIC local takes 1 to {}", entries, limits_.max_cqe));
  }
  return std::make_unique<CompletionQueue>(entries);
}

int Context::poll(nic::CompletionQueue& queue, std::span<Completion> completions) {
  auto& own = static_cast<CompletionQueue&>(queue);
  for (QueuePair* qp : own.queue_pairs()) {
    if (qp->progress()) busy();
  }
  // Here too, not only in wait(): an initiator whose writes complete at once never waits.
  if (++polls_ % kPollsPerLook == 0) look_for_dead_peers(now());
  std::size_t taken = 0;
  while (taken < completions.size() && own.pop(completions[taken])) ++taken;
  if (taken > 0) busy();
  return static_cast<int>(taken);
}

Result<void> Context::wait(std::int64_t deadline) {
  const std::uint64_t waits = idle();
  base::cpu_relax();
  if (waits % kWaitsPerLook != 0) return {};
  if (waits > kWaitsBeforeYield) sched_yield();
  const std::int64_t time = now();
  look_for_dead_peers(time);
  if (time > deadline) return base::fail(base::Code::timeout, "the deadline passed");
  return {};
}

void Context::look_for_dead_peers(std::int64_t time) {
  if (time < next_look_) return;
  next_look_ = time + kLookEvery;
  for (QueuePair* qp : queue_pairs_) {
    pollfd dead{qp->peer().pidfd.get(), POLLIN, 0};
    if (qp->peer_closed()) {
      qp->lose_peer("closed the connection");
    } else if (::poll(&dead, 1, 0) > 0) {
      qp->lose_peer("died");
    }
  }
}

}  // namespace lacuna::nic::local
