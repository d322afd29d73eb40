// Whether memory is still what it was: the kernel tells (userfaultfd(2)) what of watched ranges was unmapped, moved or
// discarded. It hides how.
//
//   a thread that unmaps              our thread                     the caller of intact()
//   mmap_changing += 1, pages go
//   waits ── event ────────────────▶  reads it: mmap_changing -= 1   1. a page's ioctl says EAGAIN while
//   returns                           marks what it overlaps            mmap_changing > 0: every event was read
//                                                                    2. waits until our thread has marked what it read
//                                                                    3. looks at the mark
//
// The steps close what the event alone leaves open: between the unmapping and its event another thread may be given the
// same addresses, and ask.
//
// The thread that reads takes no lock, allocates nothing and unmaps nothing, since a thread in free() waits for it.
// Pages are registered for write-protect faults and never protected, so that no access to them ever waits.
//
// Two things it does not see. A file that is truncated under its mapping: so only private anonymous memory can be
// watched. And when pages that are discarded (MADV_DONTNEED, MADV_FREE) are gone: their event comes before, and a
// thread that begins to use them then would still get the old ones. Such pages cannot be watched for a second.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "lacuna/base/base.hpp"

namespace lacuna::protocol {

using base::Fd;
using base::Result;

class MemoryWatch {
 public:
  static constexpr std::size_t kMost = 8192;             // ranges at once
  static constexpr std::int64_t kPatience = 10'000'000;  // ns, of intact()

  /// Errors: unsupported (the kernel, a container's filter), permission, limit (no more threads).
  static Result<std::unique_ptr<MemoryWatch>> open();
  /// The one of this process, since the kernel gives a page to one watch only; it ends with the last that has it.
  /// Errors: as open().
  static Result<std::shared_ptr<MemoryWatch>> shared();
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  struct Range {
    std::uint32_t slot = 0;
  };
  /// The pages of `bytes`, from now on and until release(). Errors: limit (kMost), unsupported (not all of it is
  /// private anonymous memory, or some of it was discarded within the last second), invalid_argument (empty).
  Result<Range> begin(std::span<const std::byte> bytes);
  /// Nothing has happened to these pages since begin(), by any thread, that came before this call. Not in a child of
  /// this process: there, never. About 1 us. After 10 ms, if others unmap without pause or the machine has no CPU for
  /// our thread, it says no, and may say otherwise when asked again.
  [[nodiscard]] bool intact(Range range);
  /// So long from now on instead: for tests, where a no shall mean that something happened.
  void be_patient(std::int64_t patience_ns) { patience_ns_.store(patience_ns, std::memory_order_relaxed); }
  void release(Range range);
  /// Events that were read: what this cost others.
  [[nodiscard]] std::uint64_t events() const { return events_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<std::uint64_t> begin = 0;
    std::atomic<std::uint64_t> end = 0;  // 0: free
    std::atomic<bool> changed = false;
  };
  struct Discard {
    std::atomic<std::uint64_t> begin = 0;
    std::atomic<std::uint64_t> end = 0;
    std::atomic<std::int64_t> when = 0;
  };
  MemoryWatch(Fd faults, Fd stop, int process);
  void read_events();
  void mark(std::uint64_t begin, std::uint64_t end);
  class Patience;
  bool settled(Patience& patience) const;
  [[nodiscard]] bool discarded(std::uint64_t begin, std::uint64_t end) const;
  void give_up(Slot& slot);
  void unwatch(std::uint64_t begin, std::uint64_t end);

  Fd faults_;
  Fd stop_;
  int process_;
  std::mutex mutex_;  // of begin() and release(); the reading thread never takes it
  std::array<Slot, kMost> slots_;
  std::array<Discard, 256> discards_;  // the last ones, in turn
  std::atomic<std::uint64_t> discarded_ = 0;
  std::atomic<std::uint32_t> used_ = 0;  // slots below it may be taken
  std::atomic<std::uint64_t> turn_ = 0;  // odd while events are being read and marked
  std::atomic<std::uint64_t> events_ = 0;
  std::atomic<std::int64_t> patience_ns_ = kPatience;
  std::jthread reader_;
};

}  // namespace lacuna::protocol
