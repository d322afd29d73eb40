#include "lacuna/nic/verbs/context.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lacuna/nic/checks.hpp"
#include "lacuna/nic/verbs/queue_pair.hpp"
#include "lacuna/nic/verbs/verbs.hpp"

namespace lacuna::nic::verbs {
namespace {

constexpr std::int64_t kLookEvery = 100'000'000;  // ns between two looks at peers that say nothing
constexpr std::uint64_t kPollsPerLook = 1024;
constexpr std::uint64_t kWaitsPerLook = 64;
constexpr std::uint64_t kWaitsBeforeYield = 512;
constexpr std::uint64_t kWaitsBeforeSleep = 8192;
constexpr std::int64_t kSleep = 1'000'000;            // ns at most: memory that a peer writes into raises no event
constexpr std::uint32_t kMostPiece = (1U << 31) - 1;  // bytes of a window: mlx5 takes no 2 GiB
constexpr std::size_t kAtOnce = 16;                   // completions

}  // namespace

Result<std::unique_ptr<nic::Context>> open(std::string_view device, const OpenOptions& options) {
  const Library* library = LACUNA_TRY(Library::load());
  return Context::create(LACUNA_TRY(Device::open(*library, device)), options);
}

// --- completion queues -----------------------------------------------------------------------------------------------

CompletionQueue::CompletionQueue(Context& context, Owned<ibv_cq> queue) : context_(context), queue_(std::move(queue)) {
  context_.enroll(*this);
}

CompletionQueue::~CompletionQueue() { context_.withdraw(*this); }

Result<std::unique_ptr<nic::CompletionQueue>> Context::create_completion_queue(int entries) {
  if (entries < 1 || entries > limits_.max_cqe - CompletionQueue::kReserve)
    return base::fail(base::Code::limit, fmt::format("a completion queue of {} entries; {} takes 1 to {}", entries, name_,
                                                     limits_.max_cqe - CompletionQueue::kReserve));
  const Library& library = device_->library();
  Owned<ibv_cq> queue(library.create_cq(device_->context(), entries + CompletionQueue::kReserve, nullptr, events_.get(), 0),
                      library.destroy_cq);
  if (!queue) return std::unexpected(base::system_error(fmt::format("ibv_create_cq of {} entries on {}", entries, name_), errno));
  return std::make_unique<CompletionQueue>(*this, std::move(queue));
}

// Also for those who want none: what it says of a peer is in them.
void Context::reap(CompletionQueue& queue) {
  std::array<ibv_wc, kAtOnce> done;
  const int found = ibv_poll_cq(queue.get(), static_cast<int>(done.size()), done.data());
  if (found < 0) queue.lost();
  for (const ibv_wc& one : std::span(done).first(static_cast<std::size_t>(std::max(found, 0)))) {
    const auto pair = pairs_.find(one.qp_num);
    if (pair == pairs_.end()) continue;  // it was destroyed
    if (const auto completion = pair->second->take(one)) queue.ready().push_back(*completion);
  }
}

int Context::poll(nic::CompletionQueue& queue, std::span<Completion> completions) {
  auto& own = static_cast<CompletionQueue&>(queue);
  if (++polls_ % kPollsPerLook == 0) look(now());
  if (own.ready().size() < kAtOnce) reap(own);
  std::size_t taken = 0;
  for (; taken < completions.size() && !own.ready().empty(); own.ready().pop_front()) completions[taken++] = own.ready().front();
  if (taken > 0) busy();
  return static_cast<int>(taken);
}

// --- memory ----------------------------------------------------------------------------------------------------------

Result<Buffer> Context::allocate(std::size_t bytes) { return Buffer(*this, LACUNA_TRY(map_pages(bytes))); }

Result<Region> Context::register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind) {
  if (kind != MemoryKind::host)
    return base::fail(base::Code::unsupported, fmt::format("NIC {} moves host memory; copy device memory to the host first", name_));
  if (bytes.empty()) return base::fail(base::Code::invalid_argument, "a region of 0 bytes");
  // A right to write remotely comes with the one to write locally, says ibv_reg_mr(3).
  const unsigned access = bit(rights.local_write || rights.remote_write, IBV_ACCESS_LOCAL_WRITE) |
                          bit(rights.remote_write, IBV_ACCESS_REMOTE_WRITE) | bit(rights.remote_read, IBV_ACCESS_REMOTE_READ) |
                          bit(rights.relaxed && device_->settings().relaxed, IBV_ACCESS_RELAXED_ORDERING) | device_->usual_access();
  const Library& library = device_->library();
  const auto iova = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto make = [&](unsigned wanted) {
    return Owned<ibv_mr>(library.reg_mr_iova2(device_->domain(), bytes.data(), bytes.size(), iova, wanted), library.dereg_mr);
  };
  Owned<ibv_mr> region = make(access);
  // To let windows be bound, the kernel asks for memory that can be written (ib_access_writable()); constants do
  // without.
  if (!region && errno == EFAULT && (access & IBV_ACCESS_LOCAL_WRITE) == 0)
    region = make(access & ~static_cast<unsigned>(IBV_ACCESS_MW_BIND));
  if (!region) {
    const int error = errno;
    rlimit locked{};
    getrlimit(RLIMIT_MEMLOCK, &locked);
    if (error == ENOMEM && locked.rlim_cur != RLIM_INFINITY)
      return base::fail(
          base::Code::out_of_memory,
          fmt::format("{} registers no {} bytes: this process may lock {} (`ulimit -l` shows KiB; /etc/security/limits.conf raises it)",
                      device_->name(), bytes.size(), locked.rlim_cur));
    return std::unexpected(base::system_error(fmt::format("ibv_reg_mr of {} bytes on {}", bytes.size(), device_->name()), error));
  }
  const std::uint32_t lkey = region->lkey;
  const std::uint32_t rkey = region->rkey;
  regions_.insert_or_assign(lkey, std::move(region));
  return Region(*this, bytes, lkey, rkey, kind, false);
}

Result<IndirectKey> Context::create_indirect_key(int entries) {
  const IndirectLimits& most = limits_.indirect;
  if (most.keys == 0 || !keys_) return base::fail(base::Code::unsupported, most.refusal());
  if (entries < 1 || entries > most.entries)
    return base::fail(base::Code::limit, fmt::format("an indirect key of {} entries; {} takes 1 to {}", entries, name_, most.entries));
  if (keys_->count() >= most.keys)
    return base::fail(base::Code::limit, fmt::format("{} indirect keys exist; {} takes no more", most.keys, name_));
  return IndirectKey(*this, LACUNA_TRY(keys_->create(entries)), entries);
}

void Context::destroy_indirect_key(std::uint32_t key) {
  if (keys_) keys_->destroy(key);
}

Result<MemoryWindow> Context::create_window() {
  if (std::cmp_greater_equal(windows_.size(), limits_.windows) && limits_.windows > 0)
    return base::fail(base::Code::limit, fmt::format("{} windows exist; {} takes no more", windows_.size(), name_));
  if (limits_.windows == 0) return base::fail(base::Code::unsupported, fmt::format("{} has no memory windows of type 2", device_->name()));
  Owned<ibv_mw> window(ibv_alloc_mw(device_->domain(), IBV_MW_TYPE_2), ibv_dealloc_mw);
  if (!window) return std::unexpected(base::system_error(fmt::format("ibv_alloc_mw on {}", device_->name()), errno));
  const std::uint32_t key = window->rkey;
  windows_.insert_or_assign(key >> kVariantBits, std::move(window));
  return MemoryWindow(*this, key);
}

Result<void> Context::check_window(const Binding& binding) const {
  if (binding.list.size() != 1 || binding.repeat != 0 || !binding.strided.empty())
    return base::fail(base::Code::invalid_argument,
                      fmt::format("a window of {} pieces; it takes one", binding.list.size() + binding.strided.size()));
  if (!regions_.contains(binding.list.front().lkey))
    return base::fail(base::Code::invalid_argument,
                      fmt::format("a window into lkey {:#x}, which is no region of this context", binding.list.front().lkey));
  const Sge& piece = binding.list.front();
  const ibv_mr& region = *regions_.find(piece.lkey)->second;
  const auto begin = reinterpret_cast<std::uint64_t>(region.addr);
  // One of 0 bytes would unbind it.
  if (piece.length == 0 || piece.addr < begin || piece.length > region.length || piece.addr - begin > region.length - piece.length)
    return base::fail(base::Code::invalid_argument,
                      fmt::format("a window of {} bytes that are not within its region of {}", piece.length, region.length));
  if (piece.length > kMostPiece)
    return base::fail(base::Code::limit, fmt::format("a window of {} bytes; {} takes {}", piece.length, name_, kMostPiece));
  return {};
}

void Context::describe_window(const Binding& binding, ibv_send_wr& request) {
  const Sge& piece = binding.list.front();
  const unsigned access =
      bit(binding.rights.remote_write, IBV_ACCESS_REMOTE_WRITE) | bit(binding.rights.remote_read, IBV_ACCESS_REMOTE_READ);
  request.bind_mw.mw = windows_.find(binding.key >> kVariantBits)->second.get();
  request.bind_mw.rkey = binding.key;
  request.bind_mw.bind_info = {regions_.find(piece.lkey)->second.get(), piece.addr, piece.length, access};
}

// --- a context -------------------------------------------------------------------------------------------------------

Context::Context(std::unique_ptr<Device> device, Owned<ibv_comp_channel> events, Limits limits)
    : device_(std::move(device)), events_(std::move(events)), limits_(std::move(limits)), name_("verbs:" + device_->name()) {
  if (device_->mlx5() != nullptr) keys_.emplace(*device_->mlx5(), device_->domain());
}

Context::~Context() = default;

Result<std::unique_ptr<nic::Context>> Context::create(std::unique_ptr<Device> device, const OpenOptions& options) {
  const Library& library = device->library();
  Owned<ibv_comp_channel> events(library.create_comp_channel(device->context()), library.destroy_comp_channel);
  if (!events) return std::unexpected(base::system_error(fmt::format("ibv_create_comp_channel of {}", device->name()), errno));
  for (const int file : {events->fd, device->context()->async_fd}) {
    if (fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK) != 0) return std::unexpected(base::system_error("fcntl", errno));
  }
  Limits limits = LACUNA_TRY(limited(device->limits(), options, device->name()));
  return std::make_unique<Context>(std::move(device), std::move(events), std::move(limits));
}

void Context::enroll(QueuePair& pair) { pairs_[pair.number()] = &pair; }
void Context::withdraw(QueuePair& pair) {
  pairs_.erase(pair.number());
  std::erase_if(pair.queue().ready(), [&](const Completion& completion) { return completion.qp_num == pair.number(); });
}

// Spins, then lets others have the CPU, then sleeps: after the queues were told to raise events, and were looked into
// once more.
Result<void> Context::wait(std::int64_t deadline) {
  const std::uint64_t waits = idle();
  base::cpu_relax();
  if (waits % kWaitsPerLook != 0) return {};
  const std::int64_t time = now();
  look(time);
  if (time > deadline) return base::fail(base::Code::timeout, "the deadline passed");
  if (waits > kWaitsBeforeSleep) {
    if (std::exchange(armed_, true)) {
      sleep(std::min(deadline, time + kSleep));
    } else {
      for (const CompletionQueue* queue : queues_) ibv_req_notify_cq(queue->get(), 0);
    }
  } else if (waits > kWaitsBeforeYield) {
    sched_yield();
  }
  return {};
}

void Context::sleep(std::int64_t until) {
  std::array<pollfd, 2> files{{{events_->fd, POLLIN, 0}, {device_->context()->async_fd, POLLIN, 0}}};
  const std::int64_t left = until - now();
  const timespec timeout{0, std::clamp<std::int64_t>(left, 0, kSleep)};
  if (ppoll(files.data(), files.size(), &timeout, nullptr) <= 0) return;
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  while (device_->library().get_cq_event(events_.get(), &queue, &unused) == 0) {
    device_->library().ack_cq_events(queue, 1);
    armed_ = false;
  }
}

void Context::look(std::int64_t time) {
  if (time < next_look_) return;
  next_look_ = time + kLookEvery;
  take_events();
  for (const auto& [number, pair] : pairs_) pair->beat();
}

// What the device says of itself (ibv_get_async_event(3)).
void Context::take_events() {
  const Library& library = device_->library();
  for (ibv_async_event event{}; library.get_async_event(device_->context(), &event) == 0; library.ack_async_event(&event)) {
    const auto fail_all = [&](base::Code code, const std::string& why, const auto& whom) {
      for (const auto& [number, pair] : pairs_) {
        if (whom(*pair)) pair->fail({code, why});
      }
    };
    const std::string& name = device_->name();
    switch (event.event_type) {
      case IBV_EVENT_CQ_ERR:
        fail_all(base::Code::limit, "completion queue overrun (IBV_EVENT_CQ_ERR): poll more often, or make it larger",
                 [&](const QueuePair& pair) { return pair.queue().get() == event.element.cq; });
        for (CompletionQueue* queue : queues_) {
          if (queue->get() == event.element.cq) queue->lost();
        }
        break;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        fail_all(base::Code::transfer,
                 event.event_type == IBV_EVENT_QP_ACCESS_ERR
                     ? "the peer asked for memory that it may not reach, or for an operation that this end does not take"
                     : fmt::format("{} gave the queue pair up", name),
                 [&](const QueuePair& pair) { return pair.get() == event.element.qp; });
        break;
      case IBV_EVENT_DEVICE_FATAL:
        fail_all(base::Code::io, fmt::format("{} failed, or was removed", name), [](const QueuePair&) { return true; });
        break;
      case IBV_EVENT_PORT_ERR:
        base::log(base::Level::warn,
                  fmt::format("port {} of {} went down; transfers fail unless it comes back in time", event.element.port_num, name));
        break;
      default: break;
    }
  }
}

}  // namespace lacuna::nic::verbs
