// Team: fragments of one layout, a thread each. Any fragment can be moved at any time, so threads need nothing from one
// another but a start and an end.
#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/kernels.hpp"

namespace lacuna::copy {
namespace {

// Below this many bytes for each, waking a thread (some 10 us) takes longer than it saves.
constexpr std::int64_t kShare = 256 << 10;

// Bytes of the largest entries of a layout's loops that fit into `most`. Parts that are cut between two entries have
// the loops of the whole.
std::int64_t entry_of(const Layout& layout, std::int64_t most) {
  for (const layout::Node* node = layout.form(); node->kind == layout::NodeKind::loop || node->kind == layout::NodeKind::list;
       node = node->children[0].get()) {
    if (node->children[0]->size <= most) return node->children[0]->size;
  }
  return 1;
}

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

  // How many threads take part.
  [[nodiscard]] int useful(std::int64_t length) const {
    return static_cast<int>(std::clamp<std::int64_t>(length / kShare, 1, static_cast<std::int64_t>(threads.size()) + 1));
  }

  // [position, position + length) in equal parts, each but the last a multiple of 4 KiB.
  template <class Move>
  void split(std::int64_t position, std::int64_t length, Move move) {
    const int wanted = useful(length);
    if (wanted == 1) return move(position, length);
    const std::int64_t share = (length / wanted + kPage - 1) / kPage * kPage;
    run(wanted, [&](int i) {
      const std::int64_t from = std::min(i * share, length);
      const std::int64_t to = i + 1 == wanted ? length : std::min(from + share, length);
      move(position + from, to - from);
    });
  }
};

Team::Team(int threads) : state_(std::make_unique<State>()) {
  state_->threads.reserve(static_cast<std::size_t>(threads));
  base::without_signals([&] {
    for (int i = 1; i < threads; ++i) state_->threads.emplace_back([state = state_.get(), i] { state->work(i); });
  });
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

base::Result<void> Team::transpack(const Layout& src, const std::byte* src_base, const Layout& dst, std::byte* dst_base) {
  LACUNA_TRY(layout::check_sizes(src, dst));
  const std::int64_t size = src.size();
  if (src.contiguous_bytes()) {
    unpack(dst, dst_base, 0, size, src_base + src.true_lower_bound());
    return {};
  }
  if (dst.contiguous_bytes()) {
    pack(src, src_base, 0, size, dst_base + dst.true_lower_bound());
    return {};
  }
  const int wanted = state_->useful(size);
  if (wanted == 1) return copy::transpack(src, src_base, dst, dst_base);
  const std::int64_t even = size / wanted;
  const std::int64_t entry = std::lcm(entry_of(src, even), entry_of(dst, even));
  const std::int64_t unit = entry <= even ? entry : 1;
  const std::int64_t share = (even + unit - 1) / unit * unit;
  std::vector<std::pair<Layout, Layout>> parts;
  for (std::int64_t at = 0; at < size; at += share) {
    const std::int64_t length = static_cast<int>(parts.size()) + 1 == wanted ? size - at : std::min(share, size - at);
    parts.emplace_back(LACUNA_TRY(src.slice(at, length)), LACUNA_TRY(dst.slice(at, length)));
    if (at + length == size) break;
  }
  state_->run(static_cast<int>(parts.size()), [&](int i) {
    const auto& [from, to] = parts[static_cast<std::size_t>(i)];
    [[maybe_unused]] const base::Result<void> moved = copy::transpack(from, src_base, to, dst_base);  // sizes are equal
  });
  return {};
}

}  // namespace lacuna::copy
