// Datatypes as layouts: decoded through their envelopes and contents (MPI-4.1, 5.1.13), once for each handle.
//
// A handle that was freed may come back as another type, so a decoded type carries an attribute of ours whose deletion, which is the type's own end, takes
// it out of the table. Types of equal runs have equal layouts, whichever constructors made them.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "lacuna/mpi/host.hpp"
#include "lacuna/mpi/mutex.hpp"

namespace lacuna::mpi {

using layout::Layout;

/// The layout of some elements of a type, for as long as that is kept.
class Elements {
 public:
  Elements() = default;
  explicit Elements(const Layout& one) : one_(&one) {}
  explicit Elements(Layout&& several) : several_(std::move(several)) {}
  operator const Layout&() const { return several_ ? *several_ : *one_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  const Layout* one_ = nullptr;
  std::optional<Layout> several_;
};

/// One datatype. Immutable but for the layouts of several elements that it keeps.
class Type : public std::enable_shared_from_this<Type> {
 public:
  explicit Type(Layout layout) : layout_(std::move(layout)), size_(layout_.size()) {
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
  /// Whether so many elements are one stretch of memory, which begins at start().
  [[nodiscard]] bool contiguous(Count count) const { return contiguous_ || (single_ && count == 1); }
  [[nodiscard]] std::int64_t start() const { return layout_.true_lower_bound(); }
  /// Whether its bytes are where no buffer is: MPI_BOTTOM's types.
  [[nodiscard]] bool absolute() const { return layout_.true_lower_bound() > 65536; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  /// Of `count` elements one after another. Errors: overflow.
  base::Result<Elements> of(Count count) const;

 private:
  Layout layout_;
  std::int64_t size_;
  bool contiguous_ = false;
  bool single_ = false;
  static constexpr std::size_t kKept = 8;
  mutable Mutex mutex_;
  mutable std::vector<std::pair<Count, Layout>> several_;
  mutable std::size_t next_ = 0;
};

/// A type for the length of a call. It is kept only if another thread may free it meanwhile: counting its uses takes as long as packing 300 bytes.
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
  /// For longer.
  void keep() {
    if (of_ != nullptr && kept_ == nullptr) kept_ = of_->shared_from_this();
  }

 private:
  const Type* of_ = nullptr;
  std::shared_ptr<const Type> kept_;
};

class Types {
 public:
  /// Once MPI is up.
  Types();
  /// Null: it was not committed that we know of, or its layout is larger than any.
  Use find(Datatype type);
  /// The type of a message in `comm`. One that was committed where we did not see it, the host takes for a message to nobody; else `wrong` is what it
  /// says, its error handler has been called, and so the program's call is over.
  Use of_message(Datatype type, Comm comm, int& wrong);
  /// A type of so many bytes and no gaps, of the host's; no_type: there is none.
  Datatype without_gaps(std::int64_t size);
  /// MPI_Type_commit took it. It is decoded once it is used: many a type only serves collectives, or other types.
  void committed(Datatype type);
  [[nodiscard]] bool is_committed(Datatype type) {
    const std::scoped_lock lock(mutex_);
    return known_.contains(type);
  }
  /// Whether so many elements are of a predefined type without gaps, and fewer bytes than `below`: what most messages are, told at once.
  [[nodiscard]] bool is_short(Datatype type, Count count, std::int64_t below) const {
#if defined(LACUNA_MPI_ABI_MPICH)
    const auto handle = static_cast<unsigned>(type);  // which has the size in it
    return (handle & 0xfc00'0000U) == 0x4c00'0000U && count * static_cast<Count>((handle >> 8) & 0xff) < below;
#else
    const Predefined& found = predefined_[slot_of(type)];
    return found.type == type && count * found.size < below;
#endif
  }

 private:
#if !defined(LACUNA_MPI_ABI_MPICH)
  struct Predefined {
    Datatype type = nullptr;
    Count size = 0;
  };
  static constexpr std::size_t kSlots = 1024;  // few enough collide; who is not found is looked up elsewhere
  static std::size_t slot_of(Datatype type) { return reinterpret_cast<std::uintptr_t>(type) * 0x9e37'79b9'7f4a'7c15 >> 54; }
  std::array<Predefined, kSlots> predefined_{};
#endif
  Use decoded(Datatype type);
  static int copied(Datatype, int, void*, void*, void*, int* flag);
  static int deleted(Datatype type, int, void*, void* types);
  Mutex mutex_;
  std::unordered_map<Datatype, std::shared_ptr<const Type>> known_;  // null: committed
  struct Recent {
    Datatype type{};
    std::shared_ptr<const Type> of;
  };
  static constexpr std::size_t kRecent = 64;
  Recent& recent(Datatype type) {
#if !defined(LACUNA_MPI_ABI_MPICH)
    const auto bits = reinterpret_cast<std::uintptr_t>(type);
#else
    const auto bits = static_cast<std::uintptr_t>(type);
#endif
    return recent_[bits * 0x9e37'79b9'7f4a'7c15 >> 58];
  }
  std::array<Recent, kRecent> recent_;  // of known_, each in one place
  static constexpr std::size_t kSizes = 4096;
  std::unordered_map<std::int64_t, Datatype> without_gaps_;
  int keyval_ = 0;
};

/// Whether MPI has it, and it need not be committed.
bool is_predefined(Datatype type);
/// The layout that the constructors of a type describe. Errors: those of Layout's constructors; unsupported (a constructor that is not known).
base::Result<Layout> decode(Datatype type);

}  // namespace lacuna::mpi
