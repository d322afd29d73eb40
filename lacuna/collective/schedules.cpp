#include "lacuna/collective/schedules.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <new>

namespace lacuna::collective {
namespace {

Result<void> move(nic::Context& context, const Source& from, const Target& to) {
  if (from.layout.size() == 0) return {};
  return context.transpack(from.layout, static_cast<const std::byte*>(from.base), to.layout, static_cast<std::byte*>(to.base));
}

// Blocks of the user's memory and their slots, to be copied all at once: each has its place relative to one of them.
class Together {
 public:
  explicit Together(std::byte* slots) : slots_(slots) {}
  void add(std::int64_t slot, const void* base, const Layout& layout) {
    if (layout.size() == 0) return;
    if (base_ == nullptr) base_ = static_cast<const std::byte*>(base);
    places_.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(base) - reinterpret_cast<std::uintptr_t>(base_)));
    layouts_.push_back(layout);
    starts_.push_back(slot);
    lengths_.push_back(layout.size());
  }
  [[nodiscard]] Result<std::function<Result<void>()>> copy(nic::Context& context, bool to_slots) const {
    const std::vector<std::int64_t> once(places_.size(), 1);
    const Source user{base_, LACUNA_TRY(Layout::structure(once, places_, layouts_))};
    const Source slots{slots_, LACUNA_TRY(Layout::blocks(starts_, lengths_))};
    const auto writable = [](const Source& source) { return Target{const_cast<void*>(source.base), source.layout}; };
    return [&context, from = to_slots ? user : slots, to = writable(to_slots ? slots : user)] { return move(context, from, to); };
  }

 private:
  std::byte* slots_;
  const std::byte* base_ = nullptr;
  std::vector<std::int64_t> places_, starts_, lengths_;
  std::vector<Layout> layouts_;
};

// The own messages: the i-th send goes into the i-th receive.
std::function<Result<void>()> own_copies(const Work& work, nic::Context& context) {
  std::vector<std::pair<Source, Target>> copies;
  for (const Send& send : work.sends) {
    if (send.to == work.rank) copies.emplace_back(send.what, Target{});
  }
  auto copy_of = copies.begin();
  for (const Receive& receive : work.receives) {
    if (receive.from == work.rank && copy_of != copies.end()) (copy_of++)->second = receive.where;
  }
  return [copies = std::move(copies), &context]() -> Result<void> {
    for (const auto& [from, to] : copies) LACUNA_TRY(move(context, from, to));
    return {};
  };
}

// By steps; those of one step stay in their order.
void sort(std::vector<Post>& posts, const auto& step) {
  std::multimap<int, Post> sorted;
  for (const Post& post : posts) sorted.emplace(step(post), post);
  posts.clear();
  for (auto& [of, post] : sorted) posts.push_back(std::move(post));
}

}  // namespace

int step_of(int from, int to, int size) { return std::has_single_bit(static_cast<unsigned>(size)) ? from ^ to : (to - from + size) % size; }

Round direct(const Work& work, int window, nic::Context& context) {
  Round round;
  round.window = window;
  for (const Receive& receive : work.receives) {
    if (receive.from != work.rank && receive.where.layout.size() > 0)
      round.receives.push_back({receive.from, static_cast<std::byte*>(receive.where.base), receive.where.layout});
  }
  for (const Send& send : work.sends) {
    if (send.to != work.rank && send.what.layout.size() > 0)  // what is sent is not written
      round.sends.push_back({send.to, static_cast<std::byte*>(const_cast<void*>(send.what.base)), send.what.layout});
  }
  // Messages of one pair stay in the caller's order.
  sort(round.receives, [&](const Post& post) { return step_of(post.peer, work.rank, work.size); });
  sort(round.sends, [&](const Post& post) { return step_of(work.rank, post.peer, work.size); });
  round.meanwhile = own_copies(work, context);
  return round;
}

// --- store and forward -----------------------------------------------------------------------------------------------

namespace {

// Slots of a number below `size` that have a bit.
int with_bit(int size, int bit) { return size / (2 * bit) * bit + std::max(0, size % (2 * bit) - bit); }

// Where slots lie, in blocks: those that did not move yet in the order of their numbers, then those that came in round
// 0, in round 1, ... In that way what comes is one piece, and what goes on in the round of bit k has about k pieces for
// each 2^k slots.
int place_of(int size, int slot, int bit) {
  const int journeys = slot & (bit - 1);  // the bits by which it went already
  if (journeys == 0) return slot;
  const int last = static_cast<int>(std::bit_floor(static_cast<unsigned>(journeys)));
  int place = size;
  for (int earlier = 1; earlier < last; earlier *= 2) place += with_bit(size, earlier);
  return place + with_bit(slot, last);
}

int blocks_in_all(int size) {
  int blocks = size;
  for (int bit = 1; bit < size; bit *= 2) blocks += with_bit(size, bit);
  return blocks;
}

}  // namespace

std::int64_t forwarding_bytes(int ranks, std::int64_t largest) {
  std::int64_t bytes = 0;
  return base::mul(blocks_in_all(ranks), largest, bytes) ? bytes : layout::kMaxBytes;
}

// Slot j holds the block that has j ranks to go in all: at first the own one for rank + j. In the round of bit k all
// slots whose number has that bit go 2^k ranks on, and as many come from 2^k ranks before; so each block goes as far as
// its slot says, and in the end slot j holds the one from rank - j. A block is as long as the largest, since no rank
// knows those of others.
Result<void> Forwarding::make(const Work& work, std::int64_t largest, nic::Context& context) {
  const int size = work.size;
  try {
    slots_.resize(static_cast<std::size_t>(forwarding_bytes(size, largest)));
  } catch (const std::bad_alloc&) {
    return base::fail(base::Code::out_of_memory, "no memory for the blocks that are forwarded");
  }
  const auto place = [=](int slot, int bit) { return place_of(size, slot, bit) * largest; };
  const auto slot_of = [=](int distance) { return (distance + size) % size; };
  const int beyond = static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)));
  Together out(slots_.data()), in(slots_.data());
  for (const Send& send : work.sends) {
    if (send.to != work.rank) out.add(place(slot_of(send.to - work.rank), 1), send.what.base, send.what.layout);
  }
  for (const Receive& receive : work.receives) {
    if (receive.from != work.rank) in.add(place(slot_of(work.rank - receive.from), beyond), receive.where.base, receive.where.layout);
  }

  for (int bit = 1; bit < size; bit *= 2) {
    std::vector<std::int64_t> from, to;
    for (int slot = 0; slot < size; ++slot) {
      if ((slot & bit) == 0) continue;
      from.push_back(place(slot, bit));
      to.push_back(place(slot, 2 * bit));
    }
    const std::vector<std::int64_t> lengths(from.size(), largest);
    Round& round = rounds_.emplace_back();
    round.sends.push_back({(work.rank + bit) % size, slots_.data(), LACUNA_TRY(Layout::blocks(from, lengths))});
    round.receives.push_back({(work.rank - bit + size) % size, slots_.data(), LACUNA_TRY(Layout::blocks(to, lengths))});
  }
  if (rounds_.empty()) rounds_.emplace_back();
  rounds_.front().before = LACUNA_TRY(out.copy(context, true));
  rounds_.front().meanwhile = own_copies(work, context);
  rounds_.back().after = LACUNA_TRY(in.copy(context, false));
  return {};
}

}  // namespace lacuna::collective
