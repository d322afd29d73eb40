// Team: fragments of one layout, a thread each. Any fragment can be moved at any time, so threads need nothing from one another but a start and an end.
#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "lacuna/copy/copy.hpp"

namespace lacuna::copy {
namespace {

// Below this many bytes for each, waking a thread (some 10 us) takes longer than it saves.
constexpr std::int64_t kShare = 256 << 10;

}  // namespace

struct Team::State {
  std::atomic<std::uint64_t> round{0};  // of the job at hand; odd numbers end the threads
  std::atomic<int> busy{0};
  std::function<void(int)> job;  // of part 0 <= i < parts
  int parts = 0;
  std::vector<std::jthread> threads;  // last: they end before what they use

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    round.fetch_add(1, std::memory_order_release);
    round.notify_all();
  }

  void work(int self) {
    for (std::uint64_t seen = 0;;) {
      round.wait(seen, std::memory_order_acquire);
      const std::uint64_t now = round.load(std::memory_order_acquire);
      if (now == seen) continue;
      seen = now;
      if (seen % 2 == 1) return;
      if (self < parts) job(self);
      if (busy.fetch_sub(1, std::memory_order_acq_rel) == 1) busy.notify_one();
    }
  }

  // Runs all parts; the caller's thread takes the first.
  void run(int wanted, std::function<void(int)> part) {
    job = std::move(part);
    parts = wanted;
    busy.store(static_cast<int>(threads.size()), std::memory_order_relaxed);
    round.fetch_add(2, std::memory_order_release);
    round.notify_all();
    job(0);
    for (int left = busy.load(std::memory_order_acquire); left != 0; left = busy.load(std::memory_order_acquire)) busy.wait(left);
  }

  // [position, position + length) in equal parts, each but the last a multiple of 4 KiB.
  template <class Move>
  void split(std::int64_t position, std::int64_t length, Move move) {
    const auto most = static_cast<std::int64_t>(threads.size()) + 1;
    const int wanted = static_cast<int>(std::clamp<std::int64_t>(length / kShare, 1, most));
    if (wanted == 1) return move(position, length);
    const std::int64_t share = (length / wanted + 4095) / 4096 * 4096;
    run(wanted, [&](int i) {
      const std::int64_t from = std::min(i * share, length);
      const std::int64_t to = i + 1 == wanted ? length : std::min(from + share, length);
      move(position + from, to - from);
    });
  }
};

Team::Team(int threads) : state_(std::make_unique<State>()) {
  state_->threads.reserve(static_cast<std::size_t>(threads));
  for (int i = 1; i < threads; ++i) state_->threads.emplace_back([state = state_.get(), i] { state->work(i); });
}

Team::~Team() = default;

void Team::pack(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out) {
  prepare(layout);
  state_->split(position, length, [&](std::int64_t at, std::int64_t bytes) { copy::pack(layout, base, at, bytes, out + (at - position)); });
}

void Team::unpack(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in) {
  prepare(layout);
  state_->split(position, length,
                [&](std::int64_t at, std::int64_t bytes) { copy::unpack(layout, base, at, bytes, in + (at - position)); });
}

}  // namespace lacuna::copy
