// How far the CPU of this rank is from those of the ranks of its node that it talks to: the guide has times of near and
// of distant CPUs. No file says so for certain: a hypervisor moves CPUs of its guests while they run, and says that
// they share a cache wherever they are. Ranks that are not bound move by themselves. So now and then a rank reads a
// line that another rank has written since, and times that.
//
//   rank 0   call call ... call │ reads rank 1's line, writes its own │ call call ... call │ reads ...
//   rank 1   call ... call │ reads rank 0's line, writes its own │ call call ... call │ reads ...
//                                  └── ns ──▶ median of the last five ──▶ near, distant
//
// Each rank of the node has an estimate of its own: some share a cache with this one, others do not.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "lacuna/guide/mpi_ways.hpp"
#include "lacuna/mpi/process/node_peers.hpp"

namespace lacuna::mpi {

/// The median of the last times of a rank's line, and what that says.
class DistanceEstimate {
 public:
  static constexpr std::size_t kLast = 5;
  /// Another time. True: what is known has changed.
  bool add(std::int64_t ns);
  /// Nothing: not known yet.
  [[nodiscard]] std::optional<guide::Distance> now() const { return now_; }
  [[nodiscard]] double line_ns() const;  ///< 0: not known

 private:
  std::array<std::int64_t, kLast> last_{};
  std::size_t seen_ = 0;
  std::optional<guide::Distance> now_;
};

/// Of this process. Belongs to one thread at a time, but for what says otherwise.
class LineTimes {
 public:
  /// `rank`: this one's number on its node. `reads`: false where ranks share CPUs, so that no time says anything; then
  /// all are near. LACUNA_MPI_DISTANCE, near or distant, says what is so; then no line is read either. A wrong value is
  /// told on stderr.
  LineTimes(NodePeers& peers, int rank, bool reads);
  ~LineTimes();
  LineTimes(const LineTimes&) = delete;
  LineTimes& operator=(const LineTimes&) = delete;

  /// What a rank tells the others in MPI_Init.
  [[nodiscard]] MemoryPlace place() const { return MemoryPlace::of(memory_); }
  /// That of each rank of this node, this one included.
  void know(std::size_t local, const MemoryPlace& place) { places_.at(local) = place; }

  /// Counts a call of a message or collective. True: look(). Any thread's.
  bool count() {
    const std::int32_t left = left_.load(std::memory_order_relaxed);
    if (left <= 0) return false;
    left_.store(left > 1 ? left - 1 : kEvery, std::memory_order_relaxed);
    return left == 1;
  }
  /// Reads the line of that rank of this node, and writes this rank's. True: what is known has changed.
  bool look(int local);
  /// Such a rank's line took so long. True: what is known has changed.
  bool add(int local, std::int64_t ns);
  static constexpr int kByTurns = -1;  ///< of some ranks of the node: 1, 2, 4, 8, ... numbers further
  static constexpr int kNone = -2;     ///< of none: only this rank's is written

  /// Of a rank of this node; all() as long as it is not known. Any thread's.
  [[nodiscard]] guide::Distance of(int local) const {
    const unsigned char known = known_[static_cast<std::size_t>(local)].load(std::memory_order_relaxed);
    return known == kUnknown ? all() : static_cast<guide::Distance>(known);
  }
  /// What most of the ranks are that are known; as before, if as many are near as distant. At first near, or what the
  /// user says. Any thread's.
  [[nodiscard]] guide::Distance all() const { return all_.load(std::memory_order_relaxed); }
  /// Whether some are near, and others distant. Any thread's.
  [[nodiscard]] bool mixed() const { return mixed_.load(std::memory_order_relaxed); }
  /// At how many looks the other rank had written its line since the look before.
  [[nodiscard]] std::uint32_t heard() const { return heard_; }
  /// Whether lines are read at all.
  [[nodiscard]] bool reads() const { return memory_ != nullptr; }
  /// That the line of the rank takes that was looked at last; 0: not known.
  [[nodiscard]] double line_ns() const { return line_ns_; }

  /// Calls for each look, which takes 0.1 to 0.3 us. A prime, since programs go in rounds of some calls.
  static constexpr std::int32_t kEvery = 61;
  static constexpr std::int32_t kAtFirst = 2;   ///< until the rank is known that was looked at,
  static constexpr std::uint32_t kInVain = 16;  ///< or was looked at so often

 private:
  static constexpr std::int32_t kNever = 0;
  static constexpr unsigned char kUnknown = 255;
  // Reading a slower clock says nothing of lines.
  static constexpr std::int64_t kSlowClock = 60;
  struct Page {
    std::atomic<std::uint32_t> looks = 0;  // how often its owner has looked
    std::array<std::byte, 1024> between{};
    // Never written. What is read first, so that the page is known to this CPU.
    std::atomic<std::uint32_t> first = 0;
    std::array<std::byte, 1020> behind{};
    // Nor is this, which only its owner reads, once in each look.
    std::atomic<std::uint32_t> still = 0;
  };
  struct Peer {
    const Page* page = nullptr;  // null: not looked for yet
    bool gone = false;           // it is not to be reached
    std::uint32_t looks = 0;     // that its owner had made when this rank looked last,
    std::uint32_t tries = 0;     // as it did so often
    DistanceEstimate estimate;
  };
  [[nodiscard]] Page& own() const { return *reinterpret_cast<Page*>(memory_->buffer.data()); }
  [[nodiscard]] int next_by_turns();
  [[nodiscard]] Peer* peer(int local);
  [[nodiscard]] std::int64_t time_of(const std::atomic<std::uint32_t>& line, std::uint32_t& value) const;
  [[nodiscard]] bool caches_keep() const;
  [[nodiscard]] std::optional<std::int64_t> read(Peer& of);
  // Calls until the next look. Threads that send write it.
  alignas(64) std::atomic<std::int32_t> left_ = kNever;
  int rank_;
  NodePeers& peers_;
  nic::SharedBuffer memory_;  // null: there is none, or no line is read
  std::vector<MemoryPlace> places_;
  std::vector<Peer> looked_at_;  // by rank of the node, as
  std::vector<std::atomic<unsigned char>> known_;
  std::int64_t clock_ns_ = 0;  // that reading the clock takes
  double line_ns_ = 0;
  int turn_ = 0;
  std::uint32_t looks_ = 0, heard_ = 0;
  std::atomic<guide::Distance> all_ = guide::Distance::near;
  std::atomic<bool> mixed_ = false;
};

}  // namespace lacuna::mpi
