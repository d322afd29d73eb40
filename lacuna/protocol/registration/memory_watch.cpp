#include "lacuna/protocol/registration/memory_watch.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "lacuna/protocol/protocol.hpp"

namespace lacuna::protocol {
namespace {

using base::Code;
using base::fail;
using base::now_ns;
using base::system_error;

constexpr std::int64_t kQuarantine = 1'000'000'000;  // ns
constexpr std::size_t kEventsAtOnce = 64;

std::uint64_t page() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

struct Pages {
  std::uint64_t begin;
  std::uint64_t end;
};

Pages pages_of(std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(bytes.data());
  return {begin / page() * page(), (begin + bytes.size() + page() - 1) / page() * page()};
}

// The next number of a text, which begins with it. Nothing: there is none.
std::optional<std::uint64_t> take_number(std::string_view& text, int base) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (read.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

// A line of proc_pid_maps(5): "begin-end rwxp offset device inode path".
struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool own = false;  // private, and of no file
  static std::optional<Mapping> parse(std::string_view line) {
    const auto begin = take_number(line, 16);
    if (!begin || !line.starts_with('-')) return std::nullopt;
    line.remove_prefix(1);
    const auto end = take_number(line, 16);
    if (!end || line.size() < 6) return std::nullopt;
    const bool shared = line[4] != 'p';
    for (int field = 0; field < 3 && !line.empty(); ++field) line.remove_prefix(std::min(line.size(), line.find(' ', 1)));
    if (line.empty()) return std::nullopt;
    line.remove_prefix(1);
    const auto inode = take_number(line, 10);
    if (!inode) return std::nullopt;
    return Mapping{*begin, *end, !shared && *inode == 0};
  }
};

// Whether all of it is anonymous memory of this process alone.
bool anonymous(Pages pages) {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t reached = pages.begin;
  for (std::string line; reached < pages.end && std::getline(maps, line);) {
    const auto mapping = Mapping::parse(line);
    if (!mapping) return false;
    if (mapping->end <= reached) continue;
    if (mapping->begin > reached || !mapping->own) return false;
    reached = mapping->end;
  }
  return reached >= pages.end;
}

}  // namespace

Result<std::unique_ptr<MemoryWatch>> MemoryWatch::open() {
  // Faults of the kernel's own are never wanted, and without them an ordinary user may have it (Linux 5.11).
  Fd faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
  if (!faults) {
    const int error = errno;
    return fail(
        error == EPERM ? Code::permission : Code::unsupported,
        system_error("userfaultfd, which tells when registered memory is freed (Linux 5.11; containers may filter it)", error).message);
  }
  constexpr std::uint64_t kEvents = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kEvents | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (ioctl(faults.get(), UFFDIO_API, &api) != 0)
    return std::unexpected(base::Error{Code::unsupported, system_error("UFFDIO_API", errno).message});
  Fd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop) return std::unexpected(system_error("eventfd", errno));
  try {
    return std::unique_ptr<MemoryWatch>(new MemoryWatch(std::move(faults), std::move(stop), getpid()));
  } catch (const std::system_error& error) {
    return fail(Code::limit, std::string("no thread can be started that reads what the kernel tells: ") + error.what());
  }
}

Result<std::shared_ptr<MemoryWatch>> MemoryWatch::shared() {
  static std::mutex mutex;
  static std::weak_ptr<MemoryWatch> one;
  static int process = 0;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<MemoryWatch> watch = process == getpid() ? one.lock() : nullptr;  // a child has its own
  if (watch == nullptr) {
    watch = LACUNA_TRY(open());
    one = watch;
    process = getpid();
  }
  return watch;
}

Result<void> freed_memory_is_told() {
  LACUNA_TRY(MemoryWatch::shared());
  return {};
}

// Lets others run, and ends after a while: others may pause in their unmapping, and our thread may get a CPU.
class MemoryWatch::Patience {
 public:
  explicit Patience(const MemoryWatch& watch) : patience_ns_(watch.patience_ns_.load(std::memory_order_relaxed)) {}
  bool ends() {
    sched_yield();
    if (deadline_ == 0) deadline_ = now_ns() + patience_ns_;
    return now_ns() >= deadline_;
  }

 private:
  std::int64_t patience_ns_;
  std::int64_t deadline_ = 0;
};

MemoryWatch::MemoryWatch(Fd faults, Fd stop, int process) : faults_(std::move(faults)), stop_(std::move(stop)), process_(process) {
  base::without_signals([this] { reader_ = std::jthread([this] { read_events(); }); });
}

MemoryWatch::~MemoryWatch() {
  if (getpid() != process_) {
    static_cast<void>(new (std::nothrow) std::jthread(std::move(reader_)));  // it is the parent's, and not here
    return;
  }
  const std::uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof one) != sizeof one) base::log(base::Level::error, "a memory watch cannot be ended");
}

void MemoryWatch::read_events() {
  std::array<pollfd, 2> files{{{faults_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
  std::array<uffd_msg, kEventsAtOnce> events;
  for (;;) {
    if (poll(files.data(), files.size(), -1) < 0) continue;
    if (files[1].revents != 0) return;
    turn_.fetch_add(1);
    const ssize_t got = read(faults_.get(), events.data(), sizeof events);
    const std::size_t count = got > 0 ? static_cast<std::size_t>(got) / sizeof events[0] : 0;
    for (const uffd_msg& event : std::span(events).first(count)) {
      if (event.event == UFFD_EVENT_REMAP) mark(event.arg.remap.from, event.arg.remap.from + event.arg.remap.len);
      if (event.event == UFFD_EVENT_REMOVE || event.event == UFFD_EVENT_UNMAP) mark(event.arg.remove.start, event.arg.remove.end);
      if (event.event == UFFD_EVENT_REMOVE) {
        Discard& discard = discards_[discarded_.load() % discards_.size()];
        discard.begin.store(event.arg.remove.start);
        discard.end.store(event.arg.remove.end);
        discard.when.store(now_ns());
        discarded_.fetch_add(1);
      }
    }
    events_.fetch_add(count, std::memory_order_relaxed);
    turn_.fetch_add(1);
  }
}

void MemoryWatch::mark(std::uint64_t begin, std::uint64_t end) {
  const std::uint32_t used = used_.load();
  for (Slot& slot : std::span(slots_).first(used)) {
    if (slot.begin.load() < end && begin < slot.end.load()) slot.changed.store(true);
  }
}

bool MemoryWatch::discarded(std::uint64_t begin, std::uint64_t end) const {
  const std::int64_t since = now_ns() - kQuarantine;
  const auto late = [&](const Discard& discard) { return discard.when.load() >= since; };
  if (std::ranges::all_of(discards_, late)) return true;  // and some more that are forgotten
  return std::ranges::any_of(discards_, [&](const Discard& d) { return late(d) && d.begin.load() < end && begin < d.end.load(); });
}

Result<MemoryWatch::Range> MemoryWatch::begin(std::span<const std::byte> bytes) {
  if (bytes.empty()) return fail(Code::invalid_argument, "a watch over 0 bytes");
  if (getpid() != process_) return fail(Code::unsupported, "a watch of the parent process");
  const std::scoped_lock lock(mutex_);
  const auto free = std::ranges::find_if(slots_, [](const Slot& slot) { return slot.end.load() == 0; });
  if (free == slots_.end()) return fail(Code::limit, "all ranges of a memory watch are taken");
  const Pages pages = pages_of(bytes);
  // What happened to these addresses before is not held against them, as far as our thread knows of it.
  Patience patience(*this);
  settled(patience);
  // In the slot before the kernel watches, so that no event passes it by.
  free->changed.store(false);
  free->begin.store(pages.begin);
  free->end.store(pages.end);
  const auto slot = static_cast<std::uint32_t>(free - slots_.begin());
  if (slot >= used_.load()) used_.store(slot + 1);
  uffdio_register wanted{};
  wanted.range = {pages.begin, pages.end - pages.begin};
  wanted.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(faults_.get(), UFFDIO_REGISTER, &wanted) == 0 && anonymous(pages)) {
    // What is discarded from now on is marked; so is what was read already. In between nothing is: a discard waits
    // until it was read.
    if (!discarded(pages.begin, pages.end)) return Range{slot};
    give_up(*free);
    return fail(Code::unsupported, "memory that was discarded a moment ago (madvise) cannot be watched yet");
  }
  give_up(*free);
  return fail(Code::unsupported, "memory that is not anonymous, or not all mapped, cannot be watched");
}

// What was read so far is marked.
bool MemoryWatch::settled(Patience& patience) const {
  const std::uint64_t turn = turn_.load();
  while (turn % 2 != 0 && turn_.load() == turn) {
    if (patience.ends()) return false;
  }
  return true;
}

bool MemoryWatch::intact(Range range) {
  Slot& slot = slots_[range.slot];
  if (getpid() != process_ || slot.changed.load()) return false;
  // Of one page, of which nothing is protected: it changes nothing, and is refused while anybody's unmapping has not
  // been told yet.
  uffdio_writeprotect nothing{};
  nothing.range = {slot.begin.load(), page()};
  Patience patience(*this);
  while (ioctl(faults_.get(), UFFDIO_WRITEPROTECT, &nothing) != 0) {
    if (errno != EAGAIN || patience.ends()) return false;
  }
  return settled(patience) && !slot.changed.load();
}

void MemoryWatch::release(Range range) {
  if (getpid() != process_) return;
  const std::scoped_lock lock(mutex_);
  give_up(slots_[range.slot]);
}

void MemoryWatch::give_up(Slot& slot) {
  const Pages pages{slot.begin.load(), slot.end.load()};
  slot.end.store(0);
  slot.begin.store(0);
  unwatch(pages.begin, pages.end);
}

// Those of the pages that no other range has.
void MemoryWatch::unwatch(std::uint64_t begin, std::uint64_t end) {
  while (begin < end) {
    std::uint64_t stop = end;
    std::uint64_t covered = begin;  // up to there another range begins at or before `begin`
    for (const Slot& slot : std::span(slots_).first(used_.load())) {
      const std::uint64_t other_begin = slot.begin.load();
      const std::uint64_t other_end = slot.end.load();
      if (other_end <= begin || other_begin >= end) continue;
      if (other_begin <= begin) covered = std::max(covered, other_end);
      if (other_begin > begin) stop = std::min(stop, other_begin);
    }
    if (covered > begin) {
      begin = covered;
      continue;
    }
    uffdio_range range{begin, stop - begin};
    ioctl(faults_.get(), UFFDIO_UNREGISTER, &range);  // what is not mapped any more is not watched any more
    begin = stop;
  }
}

}  // namespace lacuna::protocol
