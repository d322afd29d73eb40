// ways: which way data with gaps takes between two ranks of this node: the guide's choice (lacuna/guide/mpi_ways.hpp),
// what the user forces, or what is tried to learn (LACUNA_LEARN). It hides where the times come from.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lacuna/guide/mpi_learner.hpp"
#include "lacuna/guide/mpi_ways.hpp"
#include "lacuna/mpi/types/types.hpp"

namespace lacuna::mpi {

using Library = guide::MpiLibrary;
using guide::MpiUse;
using guide::MpiWay;

class Ways {
 public:
  /// Once the host has told which it is, and the first line of its version: reads the times, and what the environment
  /// forces (LACUNA_MPI_WAY, LACUNA_MPI_OFFER: at least `least` bytes). Wrong values are told on stderr, and force
  /// nothing. `warns`: so is a profile that does not hold.
  void find(Library library, std::string_view version, std::int64_t least, bool warns);

  /// Ranks share CPUs: before all else is asked.
  void share_cpus() {
    for (guide::MpiPrices& each : prices_) each.share_cpus();
  }
  /// How far ranks are: `all`: what most of them are, by which collectives choose; `mixed`: others are not.
  void know_distance(guide::Distance all, bool mixed) {
    all_.store(all, std::memory_order_relaxed);
    mixed_.store(mixed, std::memory_order_relaxed);
  }
  [[nodiscard]] guide::Distance distance() const { return all_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool mixed() const { return mixed_.load(std::memory_order_relaxed); }
  /// From how many bytes on other ways are gone: as measured near, or else distant; or usual.
  [[nodiscard]] const guide::MpiThresholds& thresholds() const;

  /// The way of `count` elements in a collective. A caller that cannot go it takes the host's.
  [[nodiscard]] MpiWay choose(MpiUse use, const Type& type, Count count) const { return choose(use, type, count, distance()); }
  /// And to or from a rank that is so far.
  [[nodiscard]] MpiWay choose(MpiUse use, const Type& type, Count count, guide::Distance distance) const {
    const int forced = forced_.load(std::memory_order_relaxed);
    if (forced != kNone || offered_from_ > 0) return forced_way(forced, use, type.bytes(count));
    if (const std::optional<MpiWay> known = type.way(use, count, distance)) return *known;
    return type.remember(use, count, distance, prices(distance).choose(use, type.piece(count)));
  }
  /// Whether packing is better than the host's way, where nothing can be offered.
  [[nodiscard]] bool packs(MpiUse use, const Type& type, Count count) const { return packs(use, type, count, distance()); }
  [[nodiscard]] bool packs(MpiUse use, const Type& type, Count count, guide::Distance distance) const {
    const int forced = forced_.load(std::memory_order_relaxed);
    if (forced != kNone || offered_from_ > 0) return forced != static_cast<int>(MpiWay::host);
    if (const std::optional<MpiWay> known = type.way(use, count, distance, Type::Among::host_and_packed)) return *known == MpiWay::packed;
    constexpr unsigned packed = 1U << static_cast<unsigned>(MpiWay::packed);
    const MpiWay way = prices(distance).choose(use, type.piece(count), packed);
    return type.remember(use, count, distance, way, Type::Among::host_and_packed) == MpiWay::packed;
  }
  /// Of a collective: whether the ranks ask one another what they offer. All ranks say the same. `bytes`: of a block on
  /// every rank; below 0: not every rank knows. `board`: by a board (board.hpp), not by the host.
  [[nodiscard]] bool asks(MpiUse use, std::int64_t bytes, bool board) const {
    const int measured = measured_.load(std::memory_order_relaxed);
    if (measured != kNone) return measured == static_cast<int>(MpiWay::offered);
    const std::uint64_t asked = (board ? by_board_ : asked_)[static_cast<std::size_t>(use)];
    return bytes < 0 ? asked != 0 : (asked >> bits(bytes) & 1) != 0;
  }
  /// A bit for each binary order of magnitude of bytes, by use.
  using Asked = std::array<std::uint64_t, guide::kMpiUses>;
  /// Of which this rank would ask. `crowded`: ranks share CPUs. Then each question by the host costs more than what is
  /// gained, so only what is forced is asked about.
  [[nodiscard]] Asked would_ask(bool crowded) const;
  /// Of which all ranks would.
  void agree(const Asked& asked, const Asked& by_board) {
    asked_ = asked;
    by_board_ = by_board;
  }
  /// Whether the same was left to the host before, whatever rank it is for, told at once; false where that is not
  /// known.
  [[nodiscard]] bool leaves(MpiUse use, const Type* seen, Count count, Type::Among among = Type::Among::all) const {
    if (seen == nullptr || count < 0) return false;
    const int forced = forced_.load(std::memory_order_relaxed);
    if (forced != kNone || offered_from_ > 0)
      return !seen->contiguous(count) && forced_way(forced, use, seen->bytes(count)) == MpiWay::host;
    const guide::Distance most = distance();
    if (seen->way(use, count, most, among) != MpiWay::host) return false;
    if (among == Type::Among::host_and_packed || !mixed()) return true;  // collectives go by what most ranks are
    return seen->way(use, count, other(most), among) == MpiWay::host;
  }
  /// Messages of so many elements are the host's: leaves() says so at once from now on. Not where a force says so,
  /// which may end.
  void leave(MpiUse use, const Type& type, Count count) const {
    if (!forces()) type.leave(use, count);
  }
  /// Those to ranks that are so far are, since that was chosen for `chosen_as`. Where others are elsewhere, what holds
  /// for these is found out, too.
  void leave(MpiUse use, const Type& type, Count count, guide::Distance distance, MpiUse chosen_as) const {
    if (forces()) return;
    type.remember(use, count, distance, MpiWay::host);
    if (!mixed()) return;
    const MpiWay to_others = choose(chosen_as, type, count, other(distance));
    if (to_others == MpiWay::host) type.remember(use, count, other(distance), to_others);
  }
  /// A transfer of this rank. True: it goes as chosen. Else start() or try_collective() says how it goes: of a job that
  /// learns, now and then.
  [[nodiscard]] bool rests() { return learner_ == nullptr || forces() || learner_->rests(); }
  /// Whether this job tries other ways at all.
  [[nodiscard]] bool learns() const { return learner_ != nullptr; }
  /// A message to a rank of this node. What is learned by it, types forget what they remember of.
  struct Message {
    MpiUse use{};
    int to = -1;
    guide::Distance distance{};
  };
  [[nodiscard]] MpiWay start(const Message& message, const Type& type, Count count, Types& types);
  /// What another rank has learned holds for blocks of this one: types forget what they remember.
  void learn(guide::MpiLearned learned, Types& types);
  /// A blocking collective that this rank packs alone, or not, and in which each rank waits for others: for its length
  /// one way holds.
  class OneWay {
   public:
    OneWay() = default;
    OneWay(OneWay&& other) noexcept : ways_(std::exchange(other.ways_, nullptr)) {}
    OneWay& operator=(OneWay&& other) noexcept {
      std::swap(ways_, other.ways_);
      return *this;
    }
    OneWay(const OneWay&) = delete;
    OneWay& operator=(const OneWay&) = delete;
    [[nodiscard]] bool holds() const { return ways_ != nullptr; }
    ~OneWay() {
      if (ways_ != nullptr) ways_->forced_.store(kNone, std::memory_order_relaxed);
    }

   private:
    friend class Ways;
    explicit OneWay(Ways& ways) : ways_(&ways) {}
    Ways* ways_ = nullptr;
  };
  [[nodiscard]] OneWay try_collective(MpiUse use, const Type* seen, Count count, Types& types);
  /// A blocking collective of ranks that go one way together, in which each waits for others. `comm` tells its
  /// communicator from others.
  struct Together {
    OneWay one;
    bool tries = false;
    MpiWay way{}, chosen{};
    std::optional<guide::MpiLearned> learned;
  };
  /// The call that was to be tried next has gone by.
  void break_off() { learner_->break_off(); }
  [[nodiscard]] Together try_together(MpiUse use, const Type& type, Count count, const void* comm, Types& types);
  /// A receive has begun. The next call that waits may then wait for another rank,
  void receives() {
    if (learner_ != nullptr) some_received_ = true;
  }
  /// and so end a round of what is tried.
  void waited() {
    if (learner_ != nullptr && std::exchange(some_received_, false)) learner_->waited();
  }
  [[nodiscard]] const guide::MpiPrices& prices() const { return prices(distance()); }
  [[nodiscard]] const guide::MpiPrices& prices(guide::Distance distance) const { return prices_[static_cast<std::size_t>(distance)]; }
  /// Keeps what was learned for other programs.
  void save() const;
  /// A line for people; empty: the job does not learn.
  [[nodiscard]] std::string describe_learning() const;
  /// The best of the other ways, and its expected nanoseconds; nothing: there is none.
  [[nodiscard]] std::optional<std::pair<MpiWay, double>> best_beside(MpiUse use, MpiWay way, const Type& type, Count count,
                                                                     guide::Distance distance) const;
  /// Expected nanoseconds; nothing: the way is none for that use.
  [[nodiscard]] std::optional<double> expected_ns(MpiUse use, MpiWay way, const Type& type, Count count) const {
    return expected_ns(use, way, type, count, distance());
  }
  [[nodiscard]] std::optional<double> expected_ns(MpiUse use, MpiWay way, const Type& type, Count count, guide::Distance distance) const {
    return prices(distance).ns(use, way, type.piece(count));
  }
  /// From now on all goes that way where it can; nothing: as chosen. For what measures; all ranks have to say it.
  void force(std::optional<MpiWay> way) {
    measured_.store(way ? static_cast<int>(*way) : kNone, std::memory_order_relaxed);
    forced_.store(way ? static_cast<int>(*way) : kNone, std::memory_order_relaxed);
  }

 private:
  static constexpr int kNone = -1;
  static constexpr guide::Distance other(guide::Distance than) {
    return than == guide::Distance::near ? guide::Distance::distant : guide::Distance::near;
  }
  [[nodiscard]] static unsigned bits(std::int64_t bytes) {
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(bytes)));
  }
  [[nodiscard]] bool forces() const { return forced_.load(std::memory_order_relaxed) != kNone || offered_from_ > 0; }
  [[nodiscard]] MpiWay forced_way(int forced, MpiUse use, std::int64_t bytes) const {
    const auto way = forced != kNone ? std::optional(static_cast<MpiWay>(forced)) : std::nullopt;
    return guide::forced_mpi_way(way, offered_from_, use, bytes);
  }
  void learn_by_environment(Library library);
  [[nodiscard]] guide::MpiLearner::Started learn(const guide::MpiLearner::Transfer& transfer, guide::Distance distance, Types& types);
  [[nodiscard]] OneWay all_go(MpiWay way) {
    forced_.store(static_cast<int>(way), std::memory_order_relaxed);
    return OneWay(*this);
  }
  [[nodiscard]] guide::MpiPrices& times_of(guide::Distance distance) { return prices_[static_cast<std::size_t>(distance)]; }
  std::array<guide::MpiPrices, guide::kDistances> prices_;
  std::atomic<guide::Distance> all_ = guide::Distance::near;
  std::atomic<bool> mixed_ = false;
  std::unique_ptr<guide::MpiLearner> learner_;  // null: nothing is tried
  std::string version_;                         // of the MPI
  std::string learned_file_;                    // where it is kept; empty: nowhere
  bool some_received_ = false;
  std::atomic<int> forced_{kNone};
  std::atomic<int> measured_{kNone};  // forced while the program runs
  Asked asked_{}, by_board_{};
  std::int64_t offered_from_ = 0;  // 0: not forced
};

}  // namespace lacuna::mpi
