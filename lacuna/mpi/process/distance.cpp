#include "lacuna/mpi/process/distance.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

#include "lacuna/base/base.hpp"
#include "lacuna/guide/usual_thresholds.hpp"

namespace lacuna::mpi {

using guide::Distance;

bool DistanceEstimate::add(std::int64_t ns) {
  last_.at(seen_++ % kLast) = ns;
  if (seen_ < kLast) return false;
  const std::optional<Distance> before = std::exchange(now_, guide::distance_of(line_ns(), now_));
  return now_ != before;
}

double DistanceEstimate::line_ns() const {
  if (seen_ < kLast) return 0;
  std::array<std::int64_t, kLast> sorted = last_;
  std::ranges::nth_element(sorted, sorted.begin() + kLast / 2);
  return static_cast<double>(std::max<std::int64_t>(1, sorted[kLast / 2]));
}

namespace {

std::optional<Distance> said_distance() {
  const char* said = std::getenv("LACUNA_MPI_DISTANCE");
  if (said == nullptr || *said == '\0') return std::nullopt;
  const std::optional<Distance> found = guide::distance_from_name(said);
  if (!found) std::fprintf(stderr, "lacuna: LACUNA_MPI_DISTANCE is '%s'; it may be near or distant. Measuring it\n", said);
  return found;
}

std::int64_t clock_takes() {
  constexpr int kTimes = 16;
  auto least = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTimes; ++i) {
    const std::int64_t began = base::now_ns();
    least = std::min(least, base::now_ns() - began);
  }
  return least;
}

}  // namespace

LineTimes::LineTimes(NodePeers& peers, int rank, bool reads)
    : rank_(rank), peers_(peers), places_(peers.size()), looked_at_(peers.size()), known_(peers.size()) {
  for (std::atomic<unsigned char>& known : known_) known.store(kUnknown, std::memory_order_relaxed);
  if (const std::optional<Distance> said = said_distance()) {
    all_ = *said;
    return;
  }
  clock_ns_ = clock_takes();
  if (!reads || clock_ns_ > kSlowClock) return;
  base::Result<nic::RegisteredBuffer> memory = nic::RegisteredBuffer::create(peers.context(), sizeof(Page));
  if (!memory) return;
  memory_ = std::make_shared<nic::RegisteredBuffer>(std::move(*memory));
  new (memory_->buffer.data()) Page;
  left_ = kAtFirst;
}

// Other ranks read there still.
LineTimes::~LineTimes() {
  if (memory_ != nullptr) peers_.keep(memory_);
}

// Those are few, and one of them is likely to be near, others distant, as those that a program talks to.
int LineTimes::next_by_turns() {
  const int ranks = static_cast<int>(looked_at_.size());
  const int further = 1 << turn_;
  turn_ = 2 * further < ranks ? turn_ + 1 : 0;
  return (rank_ + further) % ranks;
}

LineTimes::Peer* LineTimes::peer(int local) {
  if (local == kNone || local == rank_) return nullptr;
  Peer& found = looked_at_.at(static_cast<std::size_t>(local));
  if (found.page == nullptr && !found.gone) {
    const MemoryPlace& place = places_.at(static_cast<std::size_t>(local));
    std::byte* const page = place.there != 0 ? peers_.reach(local, place.addr, place.rkey, sizeof(Page)) : nullptr;
    found.gone = page == nullptr || reinterpret_cast<std::uintptr_t>(page) % alignof(Page) != 0;
    if (!found.gone) found.page = reinterpret_cast<const Page*>(page);
  }
  return found.gone ? nullptr : &found;
}

// Nanoseconds of a load from a page that is known to this CPU.
std::int64_t LineTimes::time_of(const std::atomic<std::uint32_t>& line, std::uint32_t& value) const {
  const std::int64_t began = base::now_ns();
  value = line.load(std::memory_order_acquire);
  return std::max<std::int64_t>(0, base::now_ns() - began - clock_ns_);
}

// A program that went through more memory meanwhile than the caches hold: then the other rank's line is in none either,
// however near that rank is. A line that only this rank has read, at the last look, says so.
bool LineTimes::caches_keep() const {
  std::uint32_t value = 0;
  static_cast<void>(own().first.load(std::memory_order_relaxed));
  return static_cast<double>(time_of(own().still, value)) <= guide::usual::kDistantLine / 2;
}

// Nothing: the owner has not written the line since, so this CPU's cache has it. Or the time would say nothing.
std::optional<std::int64_t> LineTimes::read(Peer& of) {
  ++of.tries;
  const bool keep = caches_keep();
  std::uint32_t looks = 0;
  static_cast<void>(of.page->first.load(std::memory_order_relaxed));
  const std::int64_t took = time_of(of.page->looks, looks);
  if (std::exchange(of.looks, looks) == looks) return std::nullopt;
  ++heard_;
  return keep ? std::optional(took) : std::nullopt;
}

bool LineTimes::add(int local, std::int64_t ns) {
  const auto number = static_cast<std::size_t>(local);
  DistanceEstimate& estimate = looked_at_.at(number).estimate;
  const bool changed = estimate.add(ns);
  line_ns_ = estimate.line_ns();
  if (!changed) return false;
  known_[number].store(static_cast<unsigned char>(estimate.now().value_or(Distance::near)), std::memory_order_relaxed);
  const auto count_of = [&](Distance distance) {
    return std::ranges::count_if(looked_at_, [&](const Peer& each) { return each.estimate.now() == distance; });
  };
  const auto near = count_of(Distance::near), distant = count_of(Distance::distant);
  if (near != distant) all_.store(distant > near ? Distance::distant : Distance::near, std::memory_order_relaxed);
  mixed_.store(near > 0 && distant > 0, std::memory_order_relaxed);
  return true;
}

bool LineTimes::look(int local) try {
  if (memory_ == nullptr) return false;
  if (local == kByTurns) local = next_by_turns();
  Peer* const of = peer(local);
  const std::optional<std::int64_t> took = of != nullptr ? read(*of) : std::nullopt;
  own().looks.store(++looks_, std::memory_order_release);
  const bool changed = took && add(local, *took);
  const bool soon = of != nullptr && !of->estimate.now() && of->tries < kInVain;
  if (soon) left_.store(kAtFirst, std::memory_order_relaxed);
  return changed;
} catch (const std::bad_alloc&) {  // a rank is attached to when it is first looked at
  return false;
}

}  // namespace lacuna::mpi
