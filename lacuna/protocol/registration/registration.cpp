#include "lacuna/protocol/registration/registration.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lacuna/base/rarely.hpp"

namespace lacuna::protocol {
namespace {

constexpr std::size_t kSomePages = 64;
constexpr int kTrials = 5;
constexpr std::uint64_t kShareOfLockable = 8;  // others in this process have memory registered as well

std::int64_t page_bytes() {
  static const std::int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

bool covers(nic::Rights has, nic::Rights wanted) {
  return has.local_write >= wanted.local_write && has.remote_write >= wanted.remote_write && has.remote_read >= wanted.remote_read &&
         has.relaxed <= wanted.relaxed;
}

// Linux answers this flag alone from the list of mappings, and does nothing else (mm/msync.c): 0.3 us.
bool mapped(const std::byte* at, std::int64_t bytes) {
  const auto begin =
      reinterpret_cast<std::uint64_t>(at) / static_cast<std::uint64_t>(page_bytes()) * static_cast<std::uint64_t>(page_bytes());
  const std::uint64_t end = reinterpret_cast<std::uint64_t>(at) + static_cast<std::uint64_t>(bytes);
  return msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) == 0;
}

std::uint64_t first_of(std::span<const std::byte> bytes) { return reinterpret_cast<std::uint64_t>(bytes.data()); }

}  // namespace

struct Registrations::Entry {
  nic::Region region;
  nic::Rights rights;
  std::optional<MemoryWatch::Range> watched;
  int leases = 0;
  bool bound = false;
  bool kept = false;                                // in entries_
  Entries::iterator place;                          // there
  std::optional<std::list<Entry*>::iterator> idle;  // in idle_
  [[nodiscard]] std::uint64_t begin() const { return region.addr(); }
  [[nodiscard]] std::uint64_t end() const { return region.addr() + region.bytes().size(); }
};

const nic::Region& Registrations::Lease::region() const { return entry_->region; }
void Registrations::Lease::bound() { entry_->bound = true; }

Registrations::Registrations(nic::Context& context, Options options) : context_(context), options_(std::move(options)) {
  measure();
  rlimit lockable{};
  lockable_ = getrlimit(RLIMIT_MEMLOCK, &lockable) == 0 ? lockable.rlim_cur : 0;
  if (!options_.keep) {
    statistics_.mode = "registrations end with their transfer: as was asked for";
  } else if (cost_ns(page_bytes()) < options_.worth_ns) {
    statistics_.mode = fmt::format("registrations end with their transfer: they cost {:.1f} us here", cost_ns(page_bytes()) / 1e3);
  } else if (!context_.limits().pins) {
    mode_ = Mode::by_address;
    statistics_.mode = fmt::format("registrations are kept: NIC {} pins no pages", context_.nic_name());
  } else if (auto watch = MemoryWatch::shared(); watch) {
    watch_ = std::move(*watch);
    mode_ = Mode::watched;
    statistics_.mode = "registrations are kept, and the kernel tells of freed memory (userfaultfd)";
  } else {
    statistics_.mode = fmt::format("registrations end with their transfer, or with a handle: the system does not tell of freed memory ({})",
                                   watch.error().message);
  }
}

Registrations::~Registrations() { clear(); }

// What registering costs on this NIC is not known before; the measurement takes 12 registrations.
void Registrations::measure() {
  const auto of = [this](std::size_t pages) {
    double best = 0;
    auto memory = nic::RegisteredBuffer::create(context_, static_cast<std::int64_t>(pages) * page_bytes());
    for (int trial = 0; memory && trial < kTrials; ++trial) {
      const std::int64_t began = context_.now();
      if (!context_.register_memory(memory->buffer.bytes(), {})) break;
      const auto ns = static_cast<double>(context_.now() - began);
      best = trial == 0 ? ns : std::min(best, ns);
    }
    return best;
  };
  const double one = of(1);
  page_ns_ = std::max(0.0, (of(kSomePages) - one) / static_cast<double>(kSomePages - 1));
  base_ns_ = std::max(0.0, one - page_ns_);
}

double Registrations::cost_ns(std::int64_t bytes) const {
  const std::int64_t pages = (bytes + page_bytes() - 1) / page_bytes();
  return base_ns_ + page_ns_ * static_cast<double>(pages);
}

bool Registrations::intact(const Entry& entry) const { return !options_.look || !entry.watched || watch_->intact(*entry.watched); }

Registrations::Entry* Registrations::find(std::span<const std::byte> bytes, nic::Rights rights) {
  const std::uint64_t begin = first_of(bytes);
  const std::uint64_t end = begin + bytes.size();
  for (auto at = entries_.upper_bound(begin); at != entries_.begin();) {
    --at;
    Entry& entry = *at->second;
    if (entry.begin() + longest_ < end) return nullptr;
    if (entry.end() < end || !covers(entry.rights, rights)) continue;
    if (intact(entry)) return &entry;
    ++statistics_.changed;
    const auto next = std::next(at);
    retire(entry);
    at = next;
  }
  return nullptr;
}

bool Registrations::doubtful(const Layout& layout, const std::byte* base) const {
  if (!context_.limits().pins) return false;
  if (lockable_ != RLIM_INFINITY && static_cast<std::uint64_t>(layout.true_extent()) > lockable_ / kShareOfLockable) return true;
  if (layout.true_extent() - layout.size() < page_bytes()) return false;
  // What strides through memory lies in one array; a list may name several, with anything between them.
  const layout::Node* node = layout.form();
  while (node->kind == layout::NodeKind::loop) node = node->children.front().get();
  return node->kind != layout::NodeKind::run || !mapped(base + layout.true_lower_bound(), layout.true_extent());
}

bool Registrations::has(std::span<const std::byte> bytes, nic::Rights rights) { return find(bytes, rights) != nullptr; }

Result<Registrations::Lease> Registrations::lease(std::span<std::byte> bytes, nic::Rights rights, bool keep) {
  Entry* entry = find(bytes, rights);
  if (entry != nullptr) {
    ++statistics_.found;
  } else {
    entry = LACUNA_TRY(make(bytes, rights, keep && mode_ != Mode::each_transfer));
  }
  if (entry->idle) {
    idle_.erase(*entry->idle);
    entry->idle.reset();
    idle_bytes_ -= static_cast<std::int64_t>(entry->region.bytes().size());
  }
  ++entry->leases;
  return Lease(*this, *entry);
}

Result<Registrations::Entry*> Registrations::make(std::span<std::byte> bytes, nic::Rights rights, bool keep) {
  auto entry = std::make_unique<Entry>();
  if (keep && mode_ == Mode::watched) {  // first: what happens while it is being registered counts
    if (auto range = watch_->begin(bytes)) {
      entry->watched = *range;
    } else {
      keep = false;
      ++statistics_.unwatched;
    }
  }
  entry->rights = keep ? nic::Rights{.local_write = true, .remote_write = true, .remote_read = true, .relaxed = rights.relaxed} : rights;
  Result<nic::Region> region = register_memory(bytes, entry->rights);
  if (!region && keep && !rights.local_write) {  // constants
    LACUNA_RARELY("registrations: fewer rights are tried");
    entry->rights = rights;
    region = register_memory(bytes, entry->rights);
  }
  if (!region) {
    if (entry->watched) watch_->release(*entry->watched);
    return std::unexpected(std::move(region).error());
  }
  ++statistics_.registered;
  entry->region = std::move(*region);
  entry->kept = keep;
  if (!keep) return entry.release();  // its lease has it
  Entry* const made = entry.get();
  longest_ = std::max<std::uint64_t>(longest_, bytes.size());
  made->place = entries_.emplace(made->begin(), std::move(entry));
  ++statistics_.entries;
  statistics_.bytes += static_cast<std::int64_t>(bytes.size());
  return made;
}

// The system has limits (RLIMIT_MEMLOCK, the device's keys) that others' memory counts against as well: what no
// transfer uses goes first.
Result<nic::Region> Registrations::register_memory(std::span<std::byte> bytes, nic::Rights& rights) {
  for (;;) {
    Result<nic::Region> region = context_.register_memory(bytes, rights);
    if (region) return region;
    const base::Code code = region.error().code;
    if ((code != base::Code::limit && code != base::Code::out_of_memory) || !evict()) return region;
  }
}

void Registrations::give_back(Entry& entry) {
  if (--entry.leases > 0) return;
  if (!entry.kept) {
    finish(std::unique_ptr<Entry>(&entry));
    return;
  }
  entry.idle = idle_.insert(idle_.end(), &entry);
  idle_bytes_ += static_cast<std::int64_t>(entry.region.bytes().size());
  while ((idle_bytes_ > options_.most_bytes || idle_.size() > options_.most) && evict()) {
  }
}

bool Registrations::evict() {
  if (idle_.empty()) return false;
  LACUNA_RARELY("registrations: one goes for another");
  ++statistics_.evicted;
  retire(*idle_.front());
  return true;
}

// It is found no more; it goes at once, or with the last lease.
void Registrations::retire(Entry& entry) {
  const auto bytes = static_cast<std::int64_t>(entry.region.bytes().size());
  std::unique_ptr<Entry> gone = std::move(entry.place->second);
  entries_.erase(entry.place);
  entry.kept = false;
  --statistics_.entries;
  statistics_.bytes -= bytes;
  if (!entry.idle) {
    [[maybe_unused]] const Entry* leased = gone.release();
    return;
  }
  idle_.erase(*entry.idle);
  idle_bytes_ -= bytes;
  finish(std::move(gone));
}

// What stands for it goes first; the watch last, which has nothing more to say of it.
void Registrations::finish(std::unique_ptr<Entry> entry) {
  if (entry->bound && options_.forget) {
    LACUNA_RARELY("registrations: keys may stand for one that goes");
    // A peer that closed first uses no key any more, and its connection's keys end with this end's endpoint.
    if (Result<void> forgotten = options_.forget(entry->region); !forgotten)
      base::log(forgotten.error().code == base::Code::peer_lost ? base::Level::debug : base::Level::warn,
                fmt::format("memory is deregistered while a key may stand for it: {}", forgotten.error().text()));
  }
  entry->region = {};
  if (entry->watched) watch_->release(*entry->watched);
}

Result<std::uint32_t> Registrations::hold(std::span<std::byte> bytes) {
  auto entry = LACUNA_TRY(make(bytes, {.relaxed = true}, false));
  entry->leases = 1;
  entry->kept = true;
  longest_ = std::max<std::uint64_t>(longest_, bytes.size());
  entry->place = entries_.emplace(entry->begin(), entry);
  ++statistics_.entries;
  statistics_.bytes += static_cast<std::int64_t>(bytes.size());
  held_.emplace(++holds_, Lease(*this, *entry));
  return holds_;
}

Result<void> Registrations::release(std::uint32_t held) {
  const auto found = held_.find(held);
  if (found == held_.end()) return base::fail(base::Code::invalid_argument, fmt::format("no memory is held as number {}", held));
  retire(*found->second.entry_);
  held_.erase(found);
  return {};
}

void Registrations::clear() {
  held_.clear();
  while (!idle_.empty()) retire(*idle_.front());
}

}  // namespace lacuna::protocol
