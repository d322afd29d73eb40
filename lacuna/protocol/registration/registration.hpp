// registration: which memory is registered with the NIC, and until when. It hides what registering costs.
//
//   a transfer ── lease(bytes) ──▶ in an entry, and the entry is intact? ── yes ──▶ its region
//                                        │ no
//                                        ▼
//                     watched first (memory_watch.hpp), then registered: an entry, left pinned when the lease ends.
//                     The least recently used entry goes when there are too many, or too many bytes
//
// A NIC that pins pages writes to those that were there at the registration, whatever is mapped there since. So an
// entry is good as long as nothing in it was unmapped, moved or discarded; the watch is asked at every hit. Where no
// watch is possible, a registration ends with its transfer, unless the program holds it: then the program has promised
// to keep the memory.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "lacuna/nic/nic.hpp"
#include "lacuna/protocol/protocol.hpp"
#include "lacuna/protocol/registration/memory_watch.hpp"

namespace lacuna::protocol {

using base::Result;

class Registrations {
  struct Entry;

 public:
  enum class Mode : std::uint8_t {
    watched,        ///< left pinned; the kernel tells what happens to the pages
    by_address,     ///< left; this NIC's keys are of addresses, whatever lies there
    each_transfer,  ///< ends with its transfer
  };
  struct Options {
    bool keep = true;  ///< leave memory registered where that is safe, and saves something
    /// Of a registration that is worth being kept: twice what a look at an entry takes (memory_watch.hpp). The local
    /// NIC's takes 0.2 us.
    double worth_ns = 2'000;
    std::int64_t most_bytes = std::int64_t{1} << 30;  ///< without a lease
    std::size_t most = 1024;                          ///< entries without a lease
    /// Before a region goes: nothing may stand for a part of it any more.
    std::function<Result<void>(const nic::Region&)> forget = {};
    /// For tests: a cache that believes everything.
    bool look = true;
  };
  Registrations(nic::Context& context, Options options);
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// A region for as long as one has it. It ends before its Registrations do.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept { swap(other); }
    Lease& operator=(Lease&& other) noexcept {
      swap(other);
      return *this;
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      if (entry_ != nullptr) from_->give_back(*entry_);
    }
    [[nodiscard]] explicit operator bool() const { return entry_ != nullptr; }
    [[nodiscard]] const nic::Region& region() const;
    /// Something stands for a part of it from now on, of which Options::forget() knows.
    void bound();

   private:
    friend class Registrations;
    Lease(Registrations& from, Entry& entry) : from_(&from), entry_(&entry) {}
    void swap(Lease& other) noexcept {
      std::swap(from_, other.from_);
      std::swap(entry_, other.entry_);
    }
    Registrations* from_ = nullptr;
    Entry* entry_ = nullptr;
  };

  /// A region of these bytes, with these rights at least. `keep`: leave it there afterwards, if this end does that at
  /// all.
  /// Errors: those of Context::register_memory.
  Result<Lease> lease(std::span<std::byte> bytes, nic::Rights rights, bool keep = true);
  /// Whether a lease of a layout's memory, from its lowest byte to its highest, may fail though all its blocks are
  /// there: nothing is mapped between some of them, or what cannot be read (as far as its form tells); it is much of
  /// what this process may lock.
  [[nodiscard]] bool doubtful(const Layout& layout, const std::byte* base) const;
  /// Whether a lease would find its region there.
  [[nodiscard]] bool has(std::span<const std::byte> bytes, nic::Rights rights);
  /// Registers until release(): the program keeps this memory mapped. Errors: as lease().
  Result<std::uint32_t> hold(std::span<std::byte> bytes);
  /// Errors: invalid_argument (no such number).
  Result<void> release(std::uint32_t held);
  /// Gives up all that has no lease, and what is held.
  void clear();

  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] const std::string& why() const { return statistics_.mode; }  ///< it is this mode, in words
  /// What registering so many bytes costs, with giving it up again, in nanoseconds, as it was measured at the
  /// beginning.
  [[nodiscard]] double cost_ns(std::int64_t bytes) const;

  using Statistics = RegistrationStatistics;
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }

 private:
  using Entries = std::multimap<std::uint64_t, std::unique_ptr<Entry>>;  // by their first byte
  [[nodiscard]] Entry* find(std::span<const std::byte> bytes, nic::Rights rights);
  [[nodiscard]] bool intact(const Entry& entry) const;
  Result<Entry*> make(std::span<std::byte> bytes, nic::Rights rights, bool keep);
  Result<nic::Region> register_memory(std::span<std::byte> bytes, nic::Rights& rights);
  void give_back(Entry& entry);
  void retire(Entry& entry);
  void finish(std::unique_ptr<Entry> entry);
  bool evict();
  void measure();

  nic::Context& context_;
  Options options_;
  std::shared_ptr<MemoryWatch> watch_;
  Mode mode_ = Mode::each_transfer;
  double base_ns_ = 0, page_ns_ = 0;
  std::uint64_t lockable_ = 0;  // bytes (RLIMIT_MEMLOCK)
  Entries entries_;
  std::uint64_t longest_ = 0;  // entry there ever was
  std::list<Entry*> idle_;     // without a lease; the least recently used first
  std::int64_t idle_bytes_ = 0;
  std::unordered_map<std::uint32_t, Lease> held_;
  std::uint32_t holds_ = 0;
  Statistics statistics_;
};

}  // namespace lacuna::protocol
