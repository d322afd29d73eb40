// Requests that the host completes alone, and what is remembered of them: receives of numbers without gaps, which the
// host puts where they belong, and short messages with gaps, whose bytes lie in a buffer. Most requests of most
// programs are of these kinds. So what is remembered is as little as can be, in a table without allocations, and many
// are waited for by one call of the host's. messages/remembered.cpp makes an Operation of the few that have got a
// descriptor, and of those that a rare call is about. Not in a program whose threads call MPI at once: there another
// thread may get a handle before what belongs to the one before is out of the table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lacuna/mpi/host/bounce.hpp"
#include "lacuna/mpi/host/host.hpp"
#include "lacuna/mpi/types/types.hpp"

namespace lacuna::mpi {

/// Where the host puts the bytes of a type with gaps, or reads them.
struct Buffered {
  Bounce bounce;                     ///< none: the host puts them where they belong
  std::shared_ptr<const Type> type;  ///< of a receive
};

/// What is remembered of one.
struct Remembered {
  std::byte* base = nullptr;
  Count count = 0;         ///< elements of its type
  std::int64_t bytes = 0;  ///< that the message has, or may have
  Datatype handle{};       ///< what the host is asked to receive, if it puts the bytes where they belong
  Comm comm{};
  std::unique_ptr<Buffered> buffered;  ///< of a type with gaps
  bool receives = true;
  /// Whether the bytes lie in a buffer.
  [[nodiscard]] bool bounced() const { return buffered != nullptr && buffered->bounce.data() != nullptr; }
  /// Whether the host puts them where they belong though there are gaps.
  [[nodiscard]] bool typed() const { return buffered != nullptr && buffered->bounce.data() == nullptr; }
};

class RememberedRequests {
 public:
  struct Entry {
    Request handle{};
    Remembered what;
  };
  /// Places, of 64 bytes, that stay though few are used: those who look at all look at each place.
  static constexpr std::size_t kMostKept = 1 << 14;
  [[nodiscard]] bool empty() const { return used_ == 0; }
  [[nodiscard]] std::size_t places() const { return places_.size(); }
  /// Gets what add() needs next, so that it wants no memory once the host has begun a request. At most half of the
  /// places are used, so that few are looked at.
  void make_room() {
    if (endings_ != 0) displaced_.reserve(displaced_.size() + 1);
    const std::size_t wanted = 2 * (used_ + 1);
    if (wanted <= places_.size() && (places_.size() <= kMostKept || 16 * wanted > places_.size())) return;
    std::vector<Entry> before(std::max<std::size_t>(32, std::bit_ceil(2 * wanted)));
    for (Entry& place : before) place.handle = none();
    before.swap(places_);
    for (Entry& entry : before) {
      if (entry.handle != none()) places_[place_of(entry.handle)] = std::move(entry);
    }
  }
  /// In the place of one that the host has completed behind our back, or in a call that ends it (take_ended()).
  void add(Request handle, Remembered what) {
    Entry& place = places_[place_of(handle)];
    if (place.handle == none()) {
      ++used_;
    } else if (endings_ != 0) {
      displaced_.push_back({.handle = handle, .what = std::exchange(place.what, {})});
    }
    place.handle = handle;
    place.what = std::move(what);
  }
  /// While there is one, a call ends requests: an error handler may begin others, which get their handles.
  class Ending {
   public:
    explicit Ending(RememberedRequests& of) : of_(of) { ++of_.endings_; }
    ~Ending() {
      if (--of_.endings_ == 0) of_.displaced_.clear();
    }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;

   private:
    RememberedRequests& of_;
  };
  /// One that the host has completed meanwhile. False: nothing is remembered of it.
  bool take_ended(Request handle, Remembered& taken) {
    for (Entry& entry : displaced_) {
      if (entry.handle != handle) continue;
      entry.handle = none();
      taken = std::move(entry.what);
      return true;
    }
    return take(handle, taken);
  }
  /// Null: nothing is. Holds until the next change.
  [[nodiscard]] const Remembered* find(Request handle) const {
    if (used_ == 0 || handle == none()) return nullptr;
    const Entry& place = places_[place_of(handle)];
    return place.handle == handle ? &place.what : nullptr;
  }
  std::optional<Remembered> take(Request handle) {
    Remembered taken;
    if (!take(handle, taken)) return std::nullopt;
    return taken;
  }
  /// False: nothing is remembered of it.
  bool take(Request handle, Remembered& taken) {
    if (used_ == 0 || handle == none()) return false;
    const std::size_t place = place_of(handle);
    if (places_[place].handle != handle) return false;
    taken = std::move(places_[place].what);
    remove(place);
    return true;
  }
  /// Each of them, some perhaps again. The visitor may take out what it is shown: then another may come to its place.
  template <class Visit>
  void each(const Visit& visit) {
    for (std::size_t at = 0; used_ != 0 && at < places_.size();) {
      const Request shown = places_[at].handle;
      if (shown != none()) visit(std::as_const(places_[at]));
      if (at < places_.size() && (places_[at].handle == none() || places_[at].handle == shown)) ++at;
    }
  }

 private:
  static Request none() { return host().no_request; }
  [[nodiscard]] std::size_t next(std::size_t place) const { return (place + 1) & (places_.size() - 1); }
  [[nodiscard]] std::size_t wanted(Request handle) const {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: neighbours go to other places
    return (std::hash<Request>()(handle) * golden >> 32) & (places_.size() - 1);
  }
  /// Where a handle is, or is to be.
  [[nodiscard]] std::size_t place_of(Request handle) const {
    std::size_t place = wanted(handle);
    while (places_[place].handle != none() && places_[place].handle != handle) place = next(place);
    return place;
  }
  /// Those behind it that would not be found any more move up (Knuth, The Art of Computer Programming 3, 6.4,
  /// algorithm R).
  void remove(std::size_t hole) {
    const std::size_t mask = places_.size() - 1;
    for (std::size_t at = next(hole); places_[at].handle != none(); at = next(at)) {
      if (((at - wanted(places_[at].handle)) & mask) < ((at - hole) & mask)) continue;
      places_[hole] = std::move(places_[at]);
      hole = at;
    }
    places_[hole].handle = none();
    places_[hole].what = {};
    --used_;
  }
  std::vector<Entry> places_;  // a power of 2 of them, or none
  std::size_t used_ = 0;
  int endings_ = 0;
  std::vector<Entry> displaced_;
};

}  // namespace lacuna::mpi
