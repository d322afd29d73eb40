// A peer that puts and gets, and changes what it says of that: nothing outside of what is exposed is written, and the
// victim's own puts and gets end or are lost with the peer.
#include "tests/fuzz/rows/rows.hpp"
#include "tests/protocol/message/lies.hpp"

namespace lacuna::fuzz {
namespace {

using namespace test;
using namespace test::lies;
using protocol::Exposed;

constexpr std::int64_t kExposed = 200'000;

bool tolerable(Code code) {
  return code == Code::malformed || code == Code::peer_lost || code == Code::transfer || code == Code::truncated ||
         code == Code::out_of_memory || code == Code::invalid_argument || code == Code::limit;
}

struct Access {
  int rank;
  Guarded memory;
  bool gets;
  Request* request = nullptr;
};

class Round {
 public:
  Round(std::uint64_t seed) : random_(seed), exposed_{Guarded(bytes(kExposed), seed), Guarded(bytes(kExposed), seed + 1)} {}

  std::string play(bool planted) {
    {
      Setting setting = random_.one_in(2) ? shared() : queues();
      Den den(setting, random_.next(), static_cast<int>(random_.pick(std::vector<int>{1, 2, 4, 12})));
      std::array<Exposed, 2> there;
      for (int rank : {0, 1})
        there.at(static_cast<std::size_t>(rank)) =
            support::value(den.rank(rank).expose(exposed_.at(static_cast<std::size_t>(rank)).base(), kExposed));
      for (std::int64_t left = random_.between(2, 9); left > 0; --left) {
        begin(den, there);
        if (random_.one_in(3)) den.victim_moves(2);
      }
      den.until([&] { return all_ended(den, accesses_, &tolerable, "an access", wrong_); }, 200);
    }
    if (planted) exposed_[0].bytes.front() ^= std::byte{1};
    if (wrong_.empty() && !exposed_[0].intact()) return "bytes were written that are not exposed";
    for (const auto& one : accesses_) {
      if (wrong_.empty() && !(one->gets ? one->memory.intact() : one->memory.untouched())) return "bytes were written that no get named";
    }
    return wrong_;
  }

 private:
  void begin(Den& den, const std::array<Exposed, 2>& there) {
    const int rank = random_.one_in(2) ? 0 : 1;
    const bool gets = random_.one_in(2);
    const support::Sample own =
        support::random_receive_layout(random_, -1, {.runs = 500, .bytes = random_.one_in(2) ? 60'000 : 5'000, .span = 150'000});
    const Layout far = bytes(own.layout.size());
    const std::int64_t offset = random_.below(kExposed - own.layout.size() + 1);
    auto one = std::make_unique<Access>(Access{rank, Guarded(own.layout, random_.next()), gets});
    const Exposed& theirs = there.at(static_cast<std::size_t>(1 - rank));
    auto begun = gets ? den.rank(rank).get(one->memory.base(), own.layout, theirs, offset, far)
                      : den.rank(rank).put(one->memory.base(), own.layout, theirs, offset, far);
    if (begun) one->request = *begun;
    if (!begun && !tolerable(begun.error().code)) wrong_ = "begun: " + begun.error().text();
    accesses_.push_back(std::move(one));
  }

  Random random_;
  std::array<Guarded, 2> exposed_;
  std::vector<std::unique_ptr<Access>> accesses_;  // longer than the communicators
  std::string wrong_;
};

Verdict judge(const Bytes& input, bool planted) { return {.taken = true, .wrong = Round(seed_of(input)).play(planted)}; }

}  // namespace

Fuzzer protocol_access() {
  return {.name = "protocol_access",
          .what = "puts and gets of a peer, and its answers to them",
          .smoke = 300,
          .least_taken = 1,
          .draw = draw_seed,
          .judge = judge};
}

}  // namespace lacuna::fuzz
