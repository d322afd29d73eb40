#include "lacuna/nic/ofi/context.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "lacuna/nic/checks.hpp"
#include "lacuna/nic/ofi/ofi.hpp"
#include "lacuna/nic/ofi/queue_pair.hpp"

namespace lacuna::nic::ofi {
namespace {

constexpr std::int64_t kLookEvery = 100'000'000;  // ns between two looks at peers that say nothing
constexpr std::uint64_t kPollsPerLook = 1024;
constexpr std::uint64_t kWaitsPerLook = 64;
constexpr std::uint64_t kWaitsBeforeYield = 512;
constexpr std::uint64_t kWaitsBeforeSleep = 8192;
constexpr std::int64_t kSleep = 1'000'000;      // ns at most: memory that a peer writes into raises no event
constexpr std::int64_t kLetGo = 1'000'000'000;  // ns that a peer has to let go of a region (memory.hpp)

}  // namespace

Result<std::unique_ptr<nic::Context>> open(std::string_view provider, const OpenOptions& options) {
  const Library* library = LACUNA_TRY(Library::load());
  return Context::create(LACUNA_TRY(Provider::open(*library, provider)), options);
}

Result<std::unique_ptr<nic::Context>> Context::create(std::unique_ptr<Provider> provider, const OpenOptions& options) {
  Limits limits = LACUNA_TRY(limited(provider->limits(), options, provider->name()));
  auto made = std::make_unique<Context>(std::move(provider), std::move(limits));
  if (options.attended) LACUNA_TRY(made->attend());
  return made;
}

Context::Context(std::unique_ptr<Provider> provider, Limits limits)
    : provider_(std::move(provider)), limits_(std::move(limits)), name_("ofi:" + provider_->name()), regions_(*provider_) {}

// What wakes the thread is a file of a completion queue, which not every provider has.
Result<void> Context::attend() {
  PathInfo& path = limits_.paths.front();
  if (static_cast<CompletionQueue&>(*LACUNA_TRY(create_completion_queue(1))).file() < 0) {
    path.note += "; its queues have no file that a thread could sleep on, to answer peers";
    return {};
  }
  attendant_ = LACUNA_TRY(Attendant::create(*this));
  path.passive_target = true;
  path.note += "; a thread of this process answers while the program is elsewhere";
  return {};
}

// --- memory ----------------------------------------------------------------------------------------------------------

Result<Buffer> Context::allocate(std::size_t bytes) { return Buffer(*this, LACUNA_TRY(map_pages(bytes))); }

Result<Region> Context::register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind) {
  if (kind != MemoryKind::host)
    return base::fail(base::Code::unsupported, fmt::format("NIC {} moves host memory; copy device memory to the host first", name_));
  if (bytes.empty()) return base::fail(base::Code::invalid_argument, "a region of 0 bytes");
  const auto lock = used();
  const std::uint32_t key = LACUNA_TRY(regions_.add(bytes, rights));
  return Region(*this, bytes, key, key, kind, false);
}

void Context::deregister(std::uint32_t lkey) {
  const auto lock = used();
  regions_.retire(lkey);
  std::vector<QueuePair*> holders;
  for (QueuePair* pair : pairs_) {
    if (pair->revoke(lkey)) holders.push_back(pair);
  }
  if (holders.empty()) return regions_.remove(lkey);
  const std::int64_t deadline = now() + kLetGo;
  const auto reaches = [&](const QueuePair* pair) { return pair->reaches(lkey); };
  do {  // at least once, for what is on its way
    answer();
    if (now() > deadline) {
      base::log(base::Level::warn, fmt::format("{}: a peer has not let go of a region within a second; what it was writing then may "
                                               "still arrive there",
                                               name_));
      break;
    }
    sched_yield();
  } while (std::ranges::any_of(holders, reaches));
  regions_.remove(lkey);
}

Said Context::describe(std::uint32_t key, fid_ep& endpoint) {
  Said told{.kind = Said::tell, .key = key};
  LocalRegion* region = regions_.find(key);
  fid_mr* memory = region == nullptr ? nullptr : regions_.memory(*region, endpoint);
  if (memory == nullptr) return told;
  told.addr = region->addr;
  told.bytes = region->bytes;
  told.target = provider_->asks_for(FI_MR_VIRT_ADDR) ? region->addr : 0;
  told.provider_key = fi_mr_key(memory);
  told.rights = (region->rights.remote_write ? Said::kMayWrite : 0) | (region->rights.remote_read ? Said::kMayRead : 0);
  return told;
}

Result<IndirectKey> Context::create_indirect_key(int /*entries*/) {
  return base::fail(base::Code::unsupported, limits_.indirect.refusal());
}

// --- queues ----------------------------------------------------------------------------------------------------------

void Context::enroll(CompletionQueue& queue) {
  queues_.push_back(&queue);
  if (attendant_ != nullptr) attendant_->ring();
}

void Context::withdraw(CompletionQueue& queue) {
  std::erase(queues_, &queue);
  if (attendant_ != nullptr) attendant_->ring();
}

Result<std::unique_ptr<nic::CompletionQueue>> Context::create_completion_queue(int entries) {
  if (entries < 1 || entries > limits_.max_cqe)
    return base::fail(base::Code::limit,
                      fmt::format("a completion queue of {} entries; {} takes 1 to {}", entries, name_, limits_.max_cqe));
  const auto lock = used();
  // A request may be two operations, and each queue pair has some of its own.
  fi_cq_attr wanted{};
  wanted.size = 2 * static_cast<std::size_t>(entries) + CompletionQueue::kReserve;
  wanted.format = FI_CQ_FORMAT_DATA;
  fid_cq* queue = nullptr;
  int error = -FI_ENOSYS;
  for (const fi_wait_obj kind : {FI_WAIT_FD, FI_WAIT_NONE}) {
    if (kind == FI_WAIT_FD && !provider_->wakes()) continue;
    wanted.wait_obj = kind;
    error = fi_cq_open(provider_->domain(), &wanted, &queue, nullptr);
    if (error == 0) break;
  }
  if (error != 0)
    return std::unexpected(failure(provider_->library(), fmt::format("fi_cq_open of {} entries on {}", entries, name_), error));
  int file = -1;
  if (wanted.wait_obj == FI_WAIT_FD && fi_control(&queue->fid, FI_GETWAIT, &file) != 0) file = -1;
  return std::make_unique<CompletionQueue>(*this, Owned<fid_cq>(queue), file);
}

int Context::poll(nic::CompletionQueue& queue, std::span<Completion> completions) {
  auto& own = static_cast<CompletionQueue&>(queue);
  const auto lock = used();
  if (++polls_ % kPollsPerLook == 0) look(now());
  if (!own.enough()) own.progress();
  const std::size_t taken = own.pop(completions);
  if (taken > 0) busy();
  return static_cast<int>(taken);
}

// Spins, then lets others have the CPU, then sleeps until a queue has something.
Result<void> Context::wait(std::int64_t deadline) {
  const std::uint64_t waits = idle();
  base::cpu_relax();
  if (waits % kWaitsPerLook != 0) return {};
  const std::int64_t time = now();
  {
    const auto lock = used();
    look(time);
  }
  if (time > deadline) return base::fail(base::Code::timeout, "the deadline passed");
  if (waits > kWaitsBeforeSleep) {
    sleep(std::min(deadline, time + kSleep));
  } else if (waits > kWaitsBeforeYield) {
    sched_yield();
  }
  return {};
}

void Context::look(std::int64_t time) {
  if (time < next_look_) return;
  next_look_ = time + kLookEvery;
  for (QueuePair* pair : pairs_) pair->look();
}

bool Context::watch(std::vector<pollfd>& files) const {
  std::vector<fid_t> objects;
  for (const CompletionQueue* queue : queues_) {
    if (queue->file() < 0) continue;
    objects.push_back(&queue->get()->fid);
    files.push_back({queue->file(), POLLIN, 0});
  }
  return objects.empty() || fi_trywait(provider_->fabric(), objects.data(), static_cast<int>(objects.size())) == 0;
}

void Context::sleep(std::int64_t until) {
  std::vector<pollfd> files;
  {
    const auto lock = used();
    if (!watch(files)) return;
  }
  const timespec timeout{0, std::clamp<std::int64_t>(until - now(), 0, kSleep)};
  ppoll(files.data(), files.size(), &timeout, nullptr);
}

}  // namespace lacuna::nic::ofi
