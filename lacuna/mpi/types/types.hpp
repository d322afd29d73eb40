// Datatypes as layouts: decoded through their envelopes and contents (MPI-4.1, 5.1.13), once for each handle.
//
// Many a program makes a type, sends one message with it and frees it. So a type's uses are the host's until they have
// taken ten times as long as decoding the type takes, both by estimate. A receive of that kind may get a descriptor
// still: then the type is decoded, and so it has to be there.
//
// A handle that was freed may come back as another type. MPI_Type_free takes it out of the table; a decoded type
// carries an attribute of ours, whose deletion does the same where that call is not seen. Types of equal runs have
// equal layouts, whichever constructors made them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lacuna/guide/mpi_ways.hpp"
#include "lacuna/layout/layout.hpp"
#include "lacuna/mpi/host/host.hpp"
#include "lacuna/mpi/host/mutex.hpp"

namespace lacuna::mpi {

using layout::Layout;

/// The layout of some elements of a type, for as long as that is kept.
class Elements {
 public:
  Elements() = default;
  explicit Elements(const Layout& one) : one_(&one) {}
  explicit Elements(Layout&& several) : several_(std::move(several)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): it is one
  operator const Layout&() const { return several_ ? *several_ : *one_; }

 private:
  const Layout* one_ = nullptr;
  std::optional<Layout> several_;
};

/// One datatype. Immutable but for what it remembers: layouts of several elements, and ways.
class Type : public std::enable_shared_from_this<Type> {
 public:
  explicit Type(Layout layout) : layout_(std::move(layout)), size_(layout_.size()), piece_(guide::Piece::of(layout_, 1)) {
    const bool one = layout_.run_count() == 1;
    contiguous_ = one && layout_.extent() == size_;
    single_ = one;
  }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::int64_t bytes(Count count) const;  ///< -1: more than there can be
  /// More elements than any memory has.
  [[nodiscard]] Count most() const {
    return layout::kMaxBytes / 2 / std::max<std::int64_t>({size_, layout_.extent(), -layout_.extent(), 1});
  }
  /// Whether any number of elements are one stretch of memory, which begins where their buffer does.
  [[nodiscard]] bool whole() const { return contiguous_ && start() == 0; }
  /// Whether so many elements are one stretch of memory, which begins at start().
  [[nodiscard]] bool contiguous(Count count) const { return contiguous_ || (single_ && count == 1); }
  [[nodiscard]] std::int64_t start() const { return layout_.true_lower_bound(); }
  /// Whether its bytes are where no buffer is: MPI_BOTTOM's types.
  [[nodiscard]] bool absolute() const { return layout_.true_lower_bound() > 65536; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  /// Of `count` elements one after another. Errors: overflow.
  base::Result<Elements> of(Count count) const;
  /// Whether a descriptor, which ends within an element, may be received by this type. Open MPI's unpack has room for
  /// 16 bytes of such an element, and no check (opal_unpack_partial_predefined of 5.0). `handle`: its own.
  [[nodiscard]] bool takes_part_of_element(Datatype handle) const;
  /// The same, if that is known.
  [[nodiscard]] bool is_known_to_take_part() const { return takes_part_.load(std::memory_order_relaxed) == 1; }
  /// What ways cost depends on.
  [[nodiscard]] guide::Piece piece(Count count) const {
    return {.bytes = piece_.bytes * count, .run = piece_.run, .listed = piece_.listed};
  }
  /// Of which ways one was chosen.
  enum class Among : std::uint8_t { all, host_and_packed };
  /// The way that was chosen last for this use between CPUs that are so far from one another, if it was for as many
  /// elements.
  [[nodiscard]] std::optional<guide::MpiWay> way(guide::MpiUse use, Count count, guide::Distance distance, Among among = Among::all) const {
    const std::uint64_t last = chosen(use, distance, among).load(std::memory_order_relaxed);
    if (last >> 2 != static_cast<std::uint64_t>(count) + 1) return std::nullopt;
    return static_cast<guide::MpiWay>(last & 3);
  }
  guide::MpiWay remember(guide::MpiUse use, Count count, guide::Distance distance, guide::MpiWay way, Among among = Among::all) const {
    chosen(use, distance, among)
        .store((static_cast<std::uint64_t>(count) + 1) << 2 | static_cast<std::uint64_t>(way), std::memory_order_relaxed);
    return way;
  }
  /// That it is the host's, wherever the CPUs are.
  void leave(guide::MpiUse use, Count count, Among among = Among::all) const {
    for (const auto distance : {guide::Distance::near, guide::Distance::distant})
      remember(use, count, distance, guide::MpiWay::host, among);
  }

  void forget_ways() const {
    for (auto& of_distance : ways_) {
      for (auto& of_among : of_distance) {
        for (std::atomic<std::uint64_t>& way : of_among) way.store(0, std::memory_order_relaxed);
      }
    }
  }

 private:
  Layout layout_;
  std::int64_t size_;
  guide::Piece piece_;
  bool contiguous_ = false;
  bool single_ = false;
  static constexpr std::size_t kKept = 8;
  mutable Mutex mutex_;
  mutable std::vector<std::pair<Count, Layout>> several_;
  mutable std::size_t next_ = 0;
  [[nodiscard]] std::atomic<std::uint64_t>& chosen(guide::MpiUse use, guide::Distance distance, Among among) const {
    return ways_[static_cast<std::size_t>(distance)][static_cast<std::size_t>(among)][static_cast<std::size_t>(use)];
  }
  mutable std::array<std::array<std::array<std::atomic<std::uint64_t>, guide::kMpiUses>, 2>, guide::kDistances> ways_{};
  mutable std::atomic<signed char> takes_part_{0};  // -1: it does not
};

/// A type for the length of a call. It is kept only if another thread may free it meanwhile: counting its uses takes as
/// long as packing 300 bytes.
class Use {
 public:
  Use() = default;
  Use(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as of pointers
  explicit Use(const std::shared_ptr<const Type>& of) : of_(of.get()) {
    if (Mutex::multiple()) kept_ = of;
  }
  const Type* operator->() const { return of_; }
  [[nodiscard]] const Type* get() const { return of_; }
  bool operator==(std::nullptr_t) const { return of_ == nullptr; }
  /// Keeps it as long as this is there.
  [[nodiscard]] std::shared_ptr<const Type> kept() const { return kept_ != nullptr || of_ == nullptr ? kept_ : of_->shared_from_this(); }
  /// For longer.
  void keep() {
    if (of_ != nullptr && kept_ == nullptr) kept_ = of_->shared_from_this();
  }

 private:
  const Type* of_ = nullptr;
  std::shared_ptr<const Type> kept_;
};

class Types;

/// Keeps a datatype that a receive may have to decode later: while there is one, MPI_Type_free waits.
class Loan {
 public:
  Loan() = default;
  Loan(Types& types, Datatype type);
  Loan(Loan&& other) noexcept : types_(std::exchange(other.types_, nullptr)), type_(other.type_) {}
  Loan& operator=(Loan&& other) noexcept {
    std::swap(types_, other.types_);
    std::swap(type_, other.type_);
    return *this;
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan();

 private:
  Types* types_ = nullptr;
  Datatype type_{};
};

class Types {
 public:
  /// Once MPI is up.
  Types();
  /// The use of a type at which it is decoded; 1 is the first, 0: when it pays.
  void decode_at(std::int64_t use) { decode_at_ = use; }
  /// One that was decoded, and asked for a moment ago; null: find() may know it. Never where threads call MPI at once.
  [[nodiscard]] const Type* seen(Datatype type) {
    if (Mutex::multiple()) return nullptr;
    const Recent& last = recent(type);
    return last.type == type && last.known != nullptr ? last.known->of.get() : nullptr;
  }
  /// Null: it was not committed that we know of, or its layout is larger than any.
  Use find(Datatype type) { return find(type, kDecode); }
  /// The same for a use of so many elements that the host can do as well: null also if decoding does not pay yet.
  Use find(Datatype type, Count count) {
    bool early = false;
    return find(type, count, early);
  }
  /// `early`: null, since decoding does not pay yet.
  Use find(Datatype type, Count count, bool& early);
  /// The type of a message of so many elements in `comm`; `early`: null, since decoding does not pay yet. One that was
  /// committed where we did not see it, the host takes for a message to MPI_PROC_NULL; else `wrong` is what it says,
  /// its error handler has been called, and so the program's call is over.
  Use of_message(Datatype type, Count count, Comm comm, bool& early, int& wrong);
  /// However many.
  static constexpr Count kDecode = -1;
  /// MPI_Type_free is called. False: the host is to do it. True: it is put off until no receive needs the type any
  /// more.
  bool puts_off_free(Datatype type);
  /// A type of so many bytes and no gaps, of the host's; no_type: there is none.
  Datatype without_gaps(std::int64_t size);
  /// What is best has changed: types choose anew.
  void forget_ways();
  /// Before MPI_Finalize: frees what it has made.
  void end();
  /// MPI_Type_commit took it.
  void committed(Datatype type);
  [[nodiscard]] bool is_committed(Datatype type) {
    const std::scoped_lock lock(mutex_);
    return known_.contains(type);
  }
  /// Bytes of an element of a type without gaps whose first byte is where its buffer is, told at once; 0: it is none
  /// that is known to be so.
  [[nodiscard]] Count whole_bytes(Datatype type) const {
#if defined(LACUNA_MPI_ABI_MPICH)
    const auto handle = static_cast<unsigned>(type);  // one that is predefined has the size in it
    if ((handle & 0xfc00'0000U) == 0x4c00'0000U) return static_cast<Count>((handle >> 8) & 0xff);
#endif
    const Whole& found = whole_[slot_of(type)];
    return found.type == type ? found.size : 0;
  }
  /// Whether so many elements are of such a type, and fewer bytes than `below`: what most messages are.
  [[nodiscard]] bool is_short(Datatype type, Count count, std::int64_t below) const {
    const Count bytes = whole_bytes(type);
    return bytes != 0 && count * bytes < below;
  }
  /// The same, of any type that is known at once.
  [[nodiscard]] bool is_below(Datatype type, Count count, std::int64_t below) {
    Count bytes = whole_bytes(type);
    if (bytes == 0) {
      const Type* const known = seen(type);
      bytes = known != nullptr && count >= 0 && count < below ? known->size() : 0;
    }
    return bytes != 0 && count * bytes < below;
  }

 private:
  struct Whole {
    Datatype type{};
    Count size = 0;
  };
  static constexpr std::size_t kSlots = 1024;  // few enough collide; who is not found is looked up elsewhere
  static std::uint64_t bits_of(Datatype type) {
#if !defined(LACUNA_MPI_ABI_MPICH)
    return reinterpret_cast<std::uintptr_t>(type);
#else
    return static_cast<unsigned>(type);
#endif
  }
  static std::size_t slot_of(Datatype type) { return bits_of(type) * 0x9e37'79b9'7f4a'7c15 >> 54; }
  /// Predefined types; of a program whose threads do not call MPI at once, decoded ones, too.
  std::array<Whole, kSlots> whole_{};
  void add_whole(Datatype type, const Type& decoded);
  friend class Loan;
  struct Known {
    std::shared_ptr<const Type> of;  // null: committed, and not decoded
    std::int64_t uses = 0;
    std::int64_t size = -1;    // of an element; below 0: not known yet
    std::int64_t host_ns = 0;  // that its uses have taken, by estimate
    std::int64_t entries = 0;  // of its lists, at least
    int loans = 0;
    bool freed = false;      // by the program; the host still has it
    bool in_making = false;  // a thread sets its attribute
  };
  bool is_early(Known& of, Datatype type, Count count, std::unique_lock<Mutex>& lock);
  Use decoded(Datatype type);
  void forget(Datatype type);
  Known* known(Datatype type);
  void give_back(Datatype type);
  static int copied(Datatype, int, void*, void*, void*, int* flag);
  static int deleted(Datatype type, int, void*, void* types);
  Mutex mutex_;
  std::unordered_map<Datatype, Known> known_;
  std::vector<decltype(known_)::node_type> spare_;  // of types that were freed, for those that are committed next
  std::int64_t decode_at_ = 0;
  struct Recent {
    Datatype type{};
    Known* known = nullptr;
  };
  static constexpr std::size_t kRecent = 64;
  Recent& recent(Datatype type) { return recent_[bits_of(type) * 0x9e37'79b9'7f4a'7c15 >> 58]; }
  std::array<Recent, kRecent> recent_{};  // of known_, each in one place
  static constexpr std::size_t kSizes = 4096;
  std::unordered_map<std::int64_t, Datatype> without_gaps_;
  int keyval_ = 0;
};

/// Whether MPI has it, and it need not be committed.
bool is_predefined(Datatype type);
/// The layout that the constructors of a type describe. Errors: those of Layout's constructors; unsupported (a
/// constructor that is not known).
base::Result<Layout> decode(Datatype type);
/// Numbers and types that a type's constructors have; more than `most`: at least so many.
std::int64_t entries_of(Datatype type, std::int64_t most);
/// The largest of the predefined types that a type is made of, bytes.
std::int64_t largest_element_of(Datatype type);
/// Bytes of an element; below 0: the host cannot tell.
std::int64_t size_of(Datatype type);

}  // namespace lacuna::mpi
