// MPI's rules of matching, tried with hundreds of thousands of random sends and receives.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "lacuna/protocol/matching/matching.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "Matcher.*");  // what one thread does alone
LACUNA_TIER(test, "Storm.*");
LACUNA_LEFT_OUT(thread, "Storm.*Processes");

using layout::Layout;
using protocol::Communicator;
using protocol::kAnySource;
using protocol::kAnyTag;
using protocol::Matchable;
using protocol::Matcher;
using support::Random;

// The rules as the standard words them: two lists, looked through from the front.
struct Plain {
  struct Item {
    int id, source, tag;
  };
  std::vector<Item> receives, messages;
  static bool fit(const Item& receive, const Item& message) {
    return (receive.source == kAnySource || receive.source == message.source) && (receive.tag == kAnyTag || receive.tag == message.tag);
  }
  // The id of what matches, or -1 after it was put behind the others.
  int receive(const Item& item) {
    const auto found = std::ranges::find_if(messages, [&](const Item& message) { return fit(item, message); });
    return take(messages, found, receives, item);
  }
  int message(const Item& item) {
    const auto found = std::ranges::find_if(receives, [&](const Item& receive) { return fit(receive, item); });
    return take(receives, found, messages, item);
  }
  static int take(std::vector<Item>& from, std::vector<Item>::iterator found, std::vector<Item>& others, const Item& item) {
    if (found == from.end()) {
      others.push_back(item);
      return -1;
    }
    const int id = found->id;
    from.erase(found);
    return id;
  }
};

TEST(Matcher, DoesWhatTwoListsDo) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const int sources = static_cast<int>(random.between(1, 5));
    const int tags = static_cast<int>(random.between(1, 40));
    const std::int64_t wild = random.between(2, 20);
    struct Thing : Matchable {
      int id = 0;
    };
    constexpr int kSteps = 10'000;
    std::vector<Thing> things(kSteps);
    Matcher matcher;
    Plain plain;
    for (int i = 0; i < kSteps; ++i) {
      Thing& thing = things[static_cast<std::size_t>(i)];
      thing.id = i;
      thing.source = static_cast<int>(random.below(sources));
      thing.tag = static_cast<int>(random.below(tags));
      const bool receives = plain.receives.size() > 300 ? false : plain.messages.size() > 300 ? true : random.one_in(2);
      int found = -1;
      if (receives) {
        if (random.one_in(wild)) thing.source = kAnySource;
        if (random.one_in(wild)) thing.tag = kAnyTag;
        auto* message = static_cast<Thing*>(matcher.find(thing.source, thing.tag));
        if (message != nullptr) {
          matcher.remove(*message);
          found = message->id;
        } else {
          matcher.post(thing);
        }
      } else if (auto* receive = static_cast<Thing*>(matcher.match(thing.source, thing.tag)); receive != nullptr) {
        found = receive->id;
      } else {
        matcher.keep(thing);
      }
      const Plain::Item item{i, thing.source, thing.tag};
      ASSERT_EQ(found, receives ? plain.receive(item) : plain.message(item)) << "step " << i;
    }
  }
}

// --- between ranks ---------------------------------------------------------------------------------------------------

// Every message tells who sent it, to whom, which of these it is, and its tag; the rest of its bytes follow from that.
struct Label {
  std::int32_t source, dest, number, tag;
};
std::byte filler(const Label& label, std::size_t i) {
  return static_cast<std::byte>((static_cast<std::size_t>(label.number) * 31 + static_cast<std::size_t>(label.source) * 7 + i) & 0xff);
}
std::int64_t length_of(Random& random) {
  const std::int64_t high = random.one_in(100) ? 200'000 : random.one_in(10) ? 12'000 : 100;
  return static_cast<std::int64_t>(sizeof(Label)) + random.scaled(high);
}

struct Received {
  Label label;
  int source, tag;  // that the receive asked for
};

// What MPI promises of a pair of ranks, whatever the timing: if a receive took a message, then each earlier message of
// that sender that it would have taken went to a receive that was posted before it.
std::string in_order(const std::vector<Received>& received) {
  std::map<int, std::vector<std::pair<int, std::size_t>>> of;  // by source: number of the message, place of its receive
  for (std::size_t i = 0; i < received.size(); ++i) of[received[i].label.source].emplace_back(received[i].label.number, i);
  for (auto& [source, messages] : of) {
    std::ranges::sort(messages);
    std::map<int, std::size_t> latest;  // by tag: the last receive that an earlier message went to
    std::size_t latest_of_all = 0;
    for (std::size_t k = 0; k < messages.size(); ++k) {
      if (messages[k].first != static_cast<int>(k))
        return "message " + std::to_string(k) + " of rank " + std::to_string(source) + " came not once";
      const std::size_t at = messages[k].second;
      const Received& taken = received[at];
      const std::size_t before = taken.tag == kAnyTag ? latest_of_all : latest.contains(taken.label.tag) ? latest[taken.label.tag] : 0;
      if (k > 0 && before > at) return "message " + std::to_string(k) + " of rank " + std::to_string(source) + " overtook another";
      latest[taken.label.tag] = std::max(latest[taken.label.tag], at);
      latest_of_all = std::max(latest_of_all, at);
    }
  }
  return {};
}

// A rank that sends `messages` to random ranks, itself among them, and receives all that comes to it, with many
// requests at a time.
class StormRank {
 public:
  StormRank(Communicator& ranks, int messages, std::uint64_t seed)
      : ranks_(ranks),
        messages_(messages),
        random_(seed * 7777 + static_cast<std::uint64_t>(ranks.rank())),
        numbers_(static_cast<std::size_t>(ranks.size())) {
    // Each rank knows how many messages come to it: all draw the same destinations.
    for (int rank = 0; rank < ranks.size(); ++rank) {
      Random random(seed * 1000 + static_cast<std::uint64_t>(rank));
      for (int i = 0; i < messages; ++i) {
        const int dest = static_cast<int>(random.below(ranks.size()));
        if (rank == ranks.rank()) dests_.push_back(dest);
        if (dest == ranks.rank()) ++to_come_;
      }
    }
  }

  std::string run() {
    for (moved_ = true; std::cmp_less(sends_, messages_) || !sent_.empty() || std::ssize(done_) < to_come_;) {
      if (!std::exchange(moved_, false)) sched_yield();  // the others may need this CPU
      for (const auto step : {&StormRank::send, &StormRank::post, &StormRank::take_received, &StormRank::take_sent}) {
        if (std::string wrong = (this->*step)(); !wrong.empty()) return wrong;
      }
    }
    for (const Posted& one : posted_) LACUNA_END_EXPECT(ranks_.cancel(one.request));
    std::ranges::sort(done_, {}, &std::pair<std::size_t, Received>::first);
    std::vector<Received> received;
    for (auto& [where, one] : done_) received.push_back(one);
    return in_order(received);
  }

 private:
  struct Sent {
    std::vector<std::byte> bytes;
    protocol::Request* request;
  };
  struct Posted {
    std::vector<std::byte> bytes;
    protocol::Request* request;
    int source, tag;
    std::size_t place = 0;
  };

  std::string send() {
    if (std::cmp_equal(sends_, messages_) || sent_.size() >= 64 || !random_.one_in(2)) return {};
    const int dest = dests_[sends_++];
    const Label label{ranks_.rank(), dest, numbers_[static_cast<std::size_t>(dest)]++, static_cast<int>(random_.below(6))};
    Sent one{std::vector<std::byte>(static_cast<std::size_t>(length_of(random_))), nullptr};
    for (std::size_t i = 0; i < one.bytes.size(); ++i) one.bytes[i] = filler(label, i);
    std::memcpy(one.bytes.data(), &label, sizeof label);
    one.request = LACUNA_END_TRY(ranks_.isend(one.bytes.data(), LACUNA_END_TRY(Layout::bytes(std::ssize(one.bytes))), dest, label.tag));
    sent_.push_back(std::move(one));
    moved_ = true;
    return {};
  }

  // Receives of all kinds. Some will find no message, so there is always one that takes any, and the others are
  // cancelled in the end.
  std::string post() {
    const bool one_takes_all = std::ranges::any_of(posted_, [](const Posted& p) { return p.source == kAnySource && p.tag == kAnyTag; });
    if (std::ssize(done_) >= to_come_ || !(posted_.size() < 48 ? random_.one_in(2) || !one_takes_all : !one_takes_all)) return {};
    Posted one{random_.one_in(50) ? std::vector<std::byte>(sizeof(Label)) : spare(), nullptr,
               !one_takes_all || random_.one_in(3) ? kAnySource : static_cast<int>(random_.below(ranks_.size())),
               !one_takes_all || random_.one_in(3) ? kAnyTag : static_cast<int>(random_.below(6)), places_++};
    one.request = LACUNA_END_TRY(ranks_.irecv(one.bytes.data(), LACUNA_END_TRY(Layout::bytes(std::ssize(one.bytes))), one.source, one.tag));
    posted_.push_back(std::move(one));
    return {};
  }

  std::string take_received() {
    for (std::size_t i = 0; i < posted_.size();) {
      const auto ended = ranks_.test(posted_[i].request);
      if (!ended) {
        ++i;
        continue;
      }
      moved_ = true;
      if (std::string wrong = check(posted_[i], *ended); !wrong.empty()) return wrong;
      if (posted_[i].bytes.size() > sizeof(Label)) used_.push_back(std::move(posted_[i].bytes));
      posted_.erase(posted_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return {};
  }

  std::string check(const Posted& one, const base::Result<protocol::Status>& ended) {
    if (!ended && ended.error().code != base::Code::truncated) return ended.error().text();
    Label label{};
    std::memcpy(&label, one.bytes.data(), sizeof label);
    if (label.dest != ranks_.rank()) {
      return "a message from rank " + std::to_string(label.source) + " for rank " + std::to_string(label.dest) + ", which is " +
             std::to_string(label.number) + " with tag " + std::to_string(label.tag) + (ended ? "" : ", cut");
    }
    if (ended) {
      if (ended->source != label.source || ended->tag != label.tag) return "a wrong status";
      for (std::size_t at = sizeof label; std::cmp_less(at, ended->bytes); ++at) {
        if (one.bytes[at] != filler(label, at)) return "wrong bytes";
      }
    }
    done_.emplace_back(one.place, Received{label, one.source, one.tag});
    return {};
  }

  std::string take_sent() {
    for (std::size_t i = 0; i < sent_.size();) {
      const auto ended = ranks_.test(sent_[i].request);
      if (!ended) {
        ++i;
        continue;
      }
      if (!*ended) return ended->error().text();
      moved_ = true;
      sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return {};
  }

  std::vector<std::byte> spare() {
    if (used_.empty()) return std::vector<std::byte>(sizeof(Label) + 200'000);
    std::vector<std::byte> memory = std::move(used_.back());
    used_.pop_back();
    return memory;
  }

  Communicator& ranks_;
  int messages_;
  Random random_;
  std::vector<int> dests_;
  std::int64_t to_come_ = 0;
  std::vector<int> numbers_;  // of messages to each rank
  std::size_t sends_ = 0;
  std::vector<Sent> sent_;
  std::vector<Posted> posted_;
  std::size_t places_ = 0;
  std::vector<std::vector<std::byte>> used_;            // receives' memory, to be used again
  std::vector<std::pair<std::size_t, Received>> done_;  // by the receive's place
  bool moved_ = true;
};

Program storm(int messages, std::uint64_t seed) {
  return [=](Communicator& ranks) { return StormRank(ranks, messages, seed).run(); };
}

// Sanitizers see the same paths with fewer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLess = 10;
#else
constexpr int kLess = 1;
#endif

TEST(Storm, TwoThreads) { EXPECT_EQ(in_ranks({.ranks = 2}, storm(60'000 / kLess, 1)), ""); }
TEST(Storm, FiveThreads) { EXPECT_EQ(in_ranks({.ranks = 5}, storm(8'000 / kLess, 2)), ""); }
TEST(Storm, FourProcesses) { EXPECT_EQ(in_ranks({.ranks = 4, .processes = true}, storm(10'000 / kLess, 3)), ""); }
TEST(Storm, SixteenProcesses) { EXPECT_EQ(in_ranks({.ranks = 16, .processes = true}, storm(500, 4)), ""); }
TEST(Storm, LittleRoom) { EXPECT_EQ(in_ranks({.ranks = 3, .options = {.unexpected_bytes = 4096}}, storm(5'000 / kLess, 5)), ""); }
TEST(Storm, WithoutSharedMemory) {
  Setting setting{.ranks = 3};
  setting.nic.forbidden_paths = {nic::Path::mapped};
  EXPECT_EQ(in_ranks(setting, storm(3'000 / kLess, 6)), "");
}
TEST(Storm, ProgressThreads) { EXPECT_EQ(in_ranks({.ranks = 2, .options = {.progress_thread = true}}, storm(3'000 / kLess, 7)), ""); }
TEST(Storm, Model) {
  EXPECT_EQ(in_model(2, {}, storm(2'000 / kLess, 8)), "");
  EXPECT_EQ(in_model(8, {}, storm(300 / kLess, 9)), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
