#include "lacuna/nic/model/context.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "lacuna/nic/checks.hpp"
#include "lacuna/nic/model/copies.hpp"
#include "lacuna/nic/model/hub.hpp"
#include "lacuna/nic/model/queue_pair.hpp"

namespace lacuna::nic::model {
namespace {

constexpr std::int64_t kConnectTimeout = 10'000'000'000;  // virtual ns

// A time of the seam, in nanoseconds; deadlines may be as far as there are numbers.
Time picoseconds(std::int64_t ns) {
  Time time = 0;
  return __builtin_mul_overflow(ns, 1000, &time) ? kNever : std::min(time, kNever);
}

}  // namespace

void CompletionQueue::push(const std::shared_ptr<Connection>& owner, std::uint64_t sequence, const Completion& completion, Time now) {
  if (overrun_) return;
  if (queue_.size() < entries_) {
    queue_.push_back({owner, sequence, completion});
    return;
  }
  overrun_ = true;
  for (const std::weak_ptr<Connection>& attached : connections_) {
    if (const auto connection = attached.lock()) {
      connection->fail(
          {base::Code::limit,
           fmt::format("completion queue overrun (IBV_EVENT_CQ_ERR): its {} entries are taken; poll more often, or make it larger",
                       entries_)},
          now);
    }
  }
}

bool CompletionQueue::pop(Completion& completion) {
  if (queue_.empty()) return false;
  const Entry& first = queue_.front();
  completion = first.completion;
  if (const auto owner = first.owner.lock()) owner->retire(completion.opcode, first.sequence);
  queue_.pop_front();
  return true;
}

// --- memory ---------------------------------------------------------------------------------------------------------

Result<Buffer> Context::allocate(std::size_t bytes) {
  if (bytes == 0) return base::fail(base::Code::invalid_argument, "a buffer of 0 bytes");
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return base::fail(base::Code::out_of_memory, fmt::format("no memory for a buffer of {} bytes", bytes));
  usage_.allocated += static_cast<std::int64_t>(bytes);
  return Buffer(*this, {static_cast<std::byte*>(memory), bytes});
}

void Context::free(std::span<std::byte> bytes) {
  const auto* first = reinterpret_cast<const std::uint64_t*>(bytes.data());
  const auto* last = reinterpret_cast<const std::uint64_t*>(bytes.data() + bytes.size());
  // Others may get the same addresses
  std::erase_if(flags_, [&](const auto& flag) { return flag.first >= first && flag.first < last; });
  munmap(bytes.data(), bytes.size());
  usage_.allocated -= static_cast<std::int64_t>(bytes.size());
}

std::int64_t Context::pages(std::size_t bytes) const {
  const auto page = static_cast<std::size_t>(profile().registration.page_bytes);
  return static_cast<std::int64_t>((bytes + page - 1) / page);
}

Result<Region> Context::register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind) {
  if (kind != MemoryKind::host) return base::fail(base::Code::unsupported, "NIC model moves host memory");
  if (bytes.empty()) return base::fail(base::Code::invalid_argument, "a region of 0 bytes");
  const Registration& costs = profile().registration;
  charge(costs.call + pages(bytes.size()) * costs.page);
  const std::uint32_t key = memory_.add_region(bytes, rights);
  registered_[key] = bytes.size();
  usage_.registered += static_cast<std::int64_t>(bytes.size());
  return Region(*this, bytes, key, key, kind, false);
}

void Context::deregister(std::uint32_t key) {
  const auto found = registered_.find(key);
  charge(profile().registration.undo + pages(found->second) * profile().registration.undo_page);
  usage_.registered -= static_cast<std::int64_t>(found->second);
  registered_.erase(found);
  settle();
  memory_.remove(key);
}

Result<IndirectKey> Context::create_indirect_key(int entries) {
  const IndirectLimits& most = limits().indirect;
  if (most.keys == 0) return base::fail(base::Code::unsupported, most.refusal());
  if (entries < 1 || entries > most.entries)
    return base::fail(base::Code::limit, fmt::format("an indirect key of {} entries; this NIC takes 1 to {}", entries, most.entries));
  if (memory_.indirect_keys() >= most.keys)
    return base::fail(base::Code::limit, fmt::format("{} indirect keys exist; this NIC takes no more", most.keys));
  const Registration& costs = profile().registration;
  charge(costs.key + std::max<std::int64_t>(0, entries - costs.key_free_entries) * costs.key_entry);
  return IndirectKey(*this, memory_.add_indirect(entries), entries);
}

// --- queues ---------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<nic::CompletionQueue>> Context::create_completion_queue(int entries) {
  if (entries < 1 || entries > limits().max_cqe)
    return base::fail(base::Code::limit,
                      fmt::format("a completion queue of {} entries; NIC model takes 1 to {}", entries, limits().max_cqe));
  return std::make_unique<CompletionQueue>(entries);
}

Result<void> Context::check_queues(const QueuePairOptions& options) const {
  if (options.path != Path::wire)
    return base::fail(base::Code::unsupported, fmt::format("NIC model has no path {}; it has: wire", path_name(options.path)));
  if (const PathInfo& wire = *limits().path(Path::wire); !wire.available)
    return base::fail(base::Code::unsupported, fmt::format("path wire is not available: {}", wire.note));
  return check_depths(options, limits(), "model");
}

Result<std::unique_ptr<nic::QueuePair>> Context::connect(Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                         const QueuePairOptions& options) {
  LACUNA_TRY(check_queues(options));
  auto connection = std::make_shared<Connection>(*this, static_cast<CompletionQueue&>(queue), options, next_number());
  const std::uint64_t mine = ++shared_.connections;
  shared_.connecting[mine] = connection;
  Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  const Result<Hello> theirs = bootstrap.exchange(hello, kConnectTimeout);
  std::uint64_t id = 0;
  if (theirs && theirs->bytes.size() == sizeof id) std::memcpy(&id, theirs->bytes.data(), sizeof id);
  const auto found = shared_.connecting.find(id);
  const std::shared_ptr<Connection> peer = found == shared_.connecting.end() ? nullptr : found->second.lock();
  if (!theirs) return std::unexpected(theirs.error());
  if (peer == nullptr || peer == connection) return base::fail(base::Code::malformed, "the peer is no simulated process of this world");
  shared_.connecting.erase(id);  // each end takes the other's, once
  connection->join(peer);
  return std::make_unique<QueuePair>(std::move(connection));
}

Result<std::unique_ptr<nic::Hub>> Context::create_hub(nic::CompletionQueue& queue, const QueuePairOptions& options) {
  LACUNA_TRY(check_queues(options));
  auto made = std::make_unique<Hub>(*this, static_cast<CompletionQueue&>(queue), options);
  LACUNA_TRY(made->meet(kConnectTimeout));
  return made;
}

int Context::poll(nic::CompletionQueue& queue, std::span<Completion> completions) {
  settle();
  auto& own = static_cast<CompletionQueue&>(queue);
  std::size_t taken = 0;
  while (taken < completions.size() && own.pop(completions[taken])) ++taken;
  if (taken > 0) {
    charge(static_cast<std::int64_t>(taken) * profile().cpu.poll_found);
  } else {
    schedule().charge_idle(rank_, profile().cpu.poll_empty);
  }
  return static_cast<int>(taken);
}

// --- copies and time ------------------------------------------------------------------------------------------------

void Context::pack(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out,
                   copy::Caching caching) {
  charge(copy_time(profile(), copy_of(layout, length)));
  if (shared_.moves_bytes) copy::pack(layout, base, position, length, out, caching);
}

void Context::unpack(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in,
                     copy::Caching caching) {
  charge(copy_time(profile(), copy_of(layout, length)));
  if (shared_.moves_bytes) copy::unpack(layout, base, position, length, in, caching);
}

Result<void> Context::transpack(const layout::Layout& src, const std::byte* src_base, const layout::Layout& dst, std::byte* dst_base) {
  LACUNA_TRY(layout::check_sizes(src, dst));
  // One pass: as many blocks as the side with more of them has.
  charge(copy_time(profile(), copy_of(src.run_count() > dst.run_count() ? src : dst, src.size())));
  return shared_.moves_bytes ? copy::transpack(src, src_base, dst, dst_base) : Result<void>();
}

std::uint64_t Context::load_flag(const std::uint64_t* flag) {
  settle();
  std::uint64_t& seen = flags_[flag];
  if (*flag != seen) charge(profile().cpu.poll_found);  // the device has written the line: a miss, as a completion's
  return seen = *flag;
}

Result<void> Context::wait(std::int64_t deadline) {
  settle();
  const Time until = picoseconds(deadline);
  if (clock() <= until && (schedule().sleep(rank_, until, profile().cpu.poll_empty) || clock() < until)) return {};
  return base::fail(base::Code::timeout, "the deadline passed");
}

}  // namespace lacuna::nic::model
