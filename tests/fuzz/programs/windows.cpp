#include "tests/fuzz/programs/windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tests/fuzz/programs/collected.hpp"

namespace lacuna::fuzz {
namespace {

namespace fake = test::fake;
using fake::Datatype;
using mpi::kSuccess;
using support::Random;
using Memory = std::vector<std::byte>;

// Lengths from which on the interposer packs, too.
std::int64_t draw_bytes(Random& random) { return random.one_in(3) ? 1 + random.scaled(4000) : random.between(2000, 30'000); }

// Without gaps at the target every second time: with others most hosts keep the access.
Shape draw_target(Random& random, std::int64_t bytes) {
  if (random.one_in(2)) return {.blocks = {{0, bytes}}, .extent = bytes};
  return draw_shape(random, bytes);
}

// Parts of a window that are accessed in one epoch lie one behind another.
StoryEpoch draw_epoch(Random& random, StoryWindow& window, const std::vector<int>& ranks) {
  StoryEpoch epoch{.end = static_cast<WindowEnd>(random.below(static_cast<int>(WindowEnd::last) + 1))};
  std::vector<std::int64_t> used(window.bytes.size());
  epoch.accesses.resize(static_cast<std::size_t>(random.between(1, 6)));
  for (StoryAccess& one : epoch.accesses) {
    one.from = random.pick(ranks);
    one.to = random.pick(ranks);
    one.gets = random.one_in(2);
    const std::int64_t bytes = draw_bytes(random);
    one.here = draw_shape(random, bytes);
    one.there = draw_target(random, bytes);
    one.data = random.next();
    one.freed_early = random.one_in(3);
    std::int64_t& at = used[static_cast<std::size_t>(one.to)];
    one.place = (at + random.below(20)) / window.unit + 1;
    at = one.place * window.unit + one.there.span();
    std::int64_t& all = window.bytes[static_cast<std::size_t>(one.to)];
    all = std::max(all, at);
  }
  return epoch;
}

// One rank's part, with what all windows have.
class Part {
 public:
  Part(const StoryWindow& story, const fake::Host& mpi, const std::vector<int>& ranks, int me, const MadeCall& made)
      : story_(story), mpi_(mpi), ranks_(ranks), me_(me), made_(made) {
    for (std::size_t rank = 0; rank < story.bytes.size(); ++rank) windows_.push_back(bytes_of(story.data + rank, story.bytes[rank]));
  }

  std::string all(fake::Comm comm) {
    make(comm);
    for (const StoryEpoch& epoch : story_.epochs) {
      mpi_.Win_fence(0, win_);
      play(epoch);
    }
    if (mpi_.Win_free(&win_) != kSuccess) say("MPI_Win_free fails");
    return wrong_;
  }

 private:
  struct Live {
    const StoryAccess* of;
    Memory memory, wanted;
  };

  [[nodiscard]] int own() const { return ranks_[static_cast<std::size_t>(me_)]; }
  [[nodiscard]] int local(int rank) const { return static_cast<int>(std::ranges::find(ranks_, rank) - ranks_.begin()); }
  [[nodiscard]] Memory& window_of(int rank) { return windows_[static_cast<std::size_t>(rank)]; }
  void say(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  void make(fake::Comm comm) {
    const Memory& first = window_of(own());
    const auto bytes = static_cast<fake::Aint>(first.size());
    void* base = nullptr;
    if (story_.made == WindowMade::create) {
      memory_ = first;
      base = memory_.data();
      mpi_.Win_create(base, bytes, story_.unit, {}, comm, &win_);
    } else {
      const auto call = story_.made == WindowMade::allocate ? mpi_.Win_allocate : mpi_.Win_allocate_shared;
      call(bytes, story_.unit, {}, comm, static_cast<void*>(&base), &win_);
      std::ranges::copy(first, static_cast<std::byte*>(base));
    }
    base_ = static_cast<std::byte*>(base);
  }

  // Gets have what was there before the epoch.
  void play(const StoryEpoch& epoch) {
    std::vector<Live> live;
    for (const StoryAccess& one : epoch.accesses) {
      if (one.from == own()) live.push_back({.of = &one, .memory = {}, .wanted = {}});
    }
    for (Live& one : live) begin(one);
    complete(epoch);
    for (const Live& one : live) {
      if (one.memory != one.wanted) say(one.of->gets ? "a get brings other bytes, or its gaps have them" : "a put changes its memory");
    }
    for (Live& one : live) std::ranges::fill(one.memory, std::byte{0x77});
    for (const StoryAccess& one : epoch.accesses) {
      if (!one.gets) one.there.unpack(one.here.pack(bytes_of(one.data, one.here.span()).data()), place_of(one));
    }
    mpi_.Win_fence(0, win_);
    if (!std::ranges::equal(window_of(own()), std::span(base_, window_of(own()).size()))) say("a window has other bytes");
  }
  std::byte* place_of(const StoryAccess& one) { return window_of(one.to).data() + one.place * story_.unit; }

  void begin(Live& live) {
    const StoryAccess& of = *live.of;
    live.memory = of.gets ? spoiled(of.here.span()) : bytes_of(of.data, of.here.span());
    live.wanted = live.memory;
    if (of.gets) of.here.unpack(of.there.pack(place_of(of)), live.wanted.data());
    Datatype here = of.here.make(mpi_), there = of.there.make(mpi_);
    const auto count = static_cast<int>(of.here.count), there_count = static_cast<int>(of.there.count);
    const int to = local(of.to);
    if (of.gets) {
      made_("a get", [&] { return mpi_.Get(live.memory.data(), count, here, to, of.place, there_count, there, win_); });
    } else {
      made_("a put", [&] { return mpi_.Put(live.memory.data(), count, here, to, of.place, there_count, there, win_); });
    }
    for (Datatype* type : {&here, &there}) {
      if (of.freed_early) {
        mpi_.Type_free(type);
      } else {
        types_.push_back(*type);
      }
    }
  }

  void complete(const StoryEpoch& epoch) {
    std::vector<int> targets;
    for (const StoryAccess& one : epoch.accesses) {
      if (one.from == own() && std::ranges::find(targets, local(one.to)) == targets.end()) targets.push_back(local(one.to));
    }
    const auto each = [&](const auto& call) {
      for (const int target : targets) {
        if (call(target, win_) != kSuccess) say("a call that completes accesses fails");
      }
    };
    const auto once = [&](int result) {
      if (result != kSuccess) say("a call that completes accesses fails");
    };
    switch (epoch.end) {
      case WindowEnd::fence: once(mpi_.Win_fence(0, win_)); break;
      case WindowEnd::complete: once(mpi_.Win_complete(win_)); break;
      case WindowEnd::unlock: each(mpi_.Win_unlock); break;
      case WindowEnd::unlock_all: once(mpi_.Win_unlock_all(win_)); break;
      case WindowEnd::flush: each(mpi_.Win_flush); break;
      case WindowEnd::flush_all: once(mpi_.Win_flush_all(win_)); break;
      case WindowEnd::flush_local: each(mpi_.Win_flush_local); break;
      case WindowEnd::flush_local_all: once(mpi_.Win_flush_local_all(win_)); break;
    }
    for (Datatype& type : types_) mpi_.Type_free(&type);
    types_.clear();
  }

  const StoryWindow& story_;
  const fake::Host& mpi_;
  const std::vector<int>& ranks_;
  const int me_;
  const MadeCall& made_;
  std::vector<Memory> windows_;  // of each rank, as they have to be
  Memory memory_;                // of MPI_Win_create
  std::byte* base_ = nullptr;
  fake::Win win_{};
  std::vector<Datatype> types_;
  std::string wrong_;
};

}  // namespace

StoryWindow draw_window(Random& random, int world, const std::vector<int>& ranks) {
  static const std::vector<int> units{1, 4, 8};
  StoryWindow window{.made = static_cast<WindowMade>(random.below(static_cast<int>(WindowMade::last) + 1)),
                     .unit = random.pick(units),
                     .bytes = std::vector<std::int64_t>(static_cast<std::size_t>(world), 16),
                     .data = random.next()};
  const std::int64_t epochs = random.between(1, 3);
  for (std::int64_t i = 0; i < epochs; ++i) window.epochs.push_back(draw_epoch(random, window, ranks));
  return window;
}

std::string describe(const StoryWindow& window) {
  std::string text = fmt::format("    a window, made {}, units of {}\n", static_cast<int>(window.made), window.unit);
  for (const StoryEpoch& epoch : window.epochs) {
    text += fmt::format("    an epoch, end {}\n", static_cast<int>(epoch.end));
    for (const StoryAccess& one : epoch.accesses)
      text += fmt::format("      {} {} {} at {}{}: {}; {}\n", one.from, one.gets ? "gets from" : "puts to", one.to, one.place,
                          one.freed_early ? ", freed early" : "", one.here.describe(), one.there.describe());
  }
  return text;
}

std::string play_window(const StoryWindow& story, const fake::Host& mpi, fake::Comm comm, const std::vector<int>& ranks, int me,
                        const MadeCall& made) {
  return Part(story, mpi, ranks, me, made).all(comm);
}

}  // namespace lacuna::fuzz
