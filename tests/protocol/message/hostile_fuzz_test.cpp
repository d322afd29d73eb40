// Peers that change what they say at random: nothing but errors, and no byte where no receive named it.
#include "tests/protocol/message/lies.hpp"
#include "tests/support/fuzz.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace lies;

struct Field {
  std::string name;
  Setting setting;
};
std::ostream& operator<<(std::ostream& out, const Field& field) { return out << field.name; }

std::vector<Field> fields() {
  std::vector<Field> made;
  made.push_back({"Shared", shared()});
  made.push_back({"Queues", queues()});
  Setting slots = queues();
  slots.nic.forbidden_paths = {nic::Path::mapped, nic::Path::kernel};
  made.push_back({"Slots", slots});
  Setting three = shared();
  three.ranks = 3;
  made.push_back({"ThreeRanks", three});
  three.nic = queues().nic;
  made.push_back({"ThreeRanksQueues", three});
  Setting poor = shared();
  poor.options.unexpected_bytes = 4000;
  made.push_back({"LittleCredit", poor});
  for (const method::Method& method : method::methods()) made.push_back({std::string(method.name), forced(method.name.data())});
  return made;
}

// What may become of a message between the victim and a liar.
bool tolerable(Code code) {
  return code == Code::malformed || code == Code::peer_lost || code == Code::transfer || code == Code::truncated ||
         code == Code::out_of_memory;
}

struct Message {
  int rank;  ///< whose
  int other;
  bool sends;
  Guarded memory;
  Request* request = nullptr;
};

std::vector<std::unique_ptr<Message>> begin(Den& den, Random& random, std::string& wrong) {
  std::vector<std::unique_ptr<Message>> made;
  const auto add = [&](int rank, int other, bool sends, Layout layout, int tag) {
    auto one = std::make_unique<Message>(Message{rank, other, sends, Guarded(std::move(layout), random.next())});
    auto begun = sends ? den.rank(rank).isend(one->memory.base(), one->memory.layout, other, tag)
                       : den.rank(rank).irecv(one->memory.base(), one->memory.layout, other, tag);
    if (begun) one->request = *begun;
    if (!begun && !tolerable(begun.error().code)) wrong = "begun: " + begun.error().text();
    made.push_back(std::move(one));
  };
  const int messages = static_cast<int>(random.between(3, 9));
  for (int i = 0; i < messages; ++i) {
    const std::int64_t most = random.one_in(2) ? 300'000 : 20'000;
    const support::Sample from = support::random_layout(random, {.runs = 500, .bytes = most, .span = 1 << 20});
    const Layout to = random.one_in(4) ? bytes(random.scaled(most)) : support::random_receive_layout(random, from.layout.size()).layout;
    const int sender = random.one_in(2) ? 0 : 1;
    const int tag = static_cast<int>(random.below(3));
    const bool early = random.one_in(2);
    if (early) add(1 - sender, sender, false, to, tag);
    if (random.one_in(3)) den.victim_moves(2);
    add(sender, 1 - sender, true, from.layout, tag);
    if (random.one_in(3)) den.until([] { return false; }, 2);
    if (!early) add(1 - sender, sender, false, to, tag);
  }
  return made;
}

std::string round(const Setting& setting, std::uint64_t seed) {
  Random random(seed);
  std::string wrong;
  std::vector<std::unique_ptr<Message>> messages;
  Guarded out(vector(3000, 40, 60), 1), in(vector(3000, 40, 70), 2), word(bytes(1), 3);
  std::vector<std::unique_ptr<Message>> kept;  // longer than the communicators
  {
    Den den(setting, random.next(), static_cast<int>(random.pick(std::vector<int>{1, 2, 4, 12})));
    Request* aside[2] = {};
    if (setting.ranks > 2) {
      aside[0] = support::value(den.rank(0).irecv(in.base(), in.layout, 2, 5));
      aside[1] = support::value(den.rank(2).isend(out.base(), out.layout, 0, 5));
    }
    kept = begin(den, random, wrong);
    const auto all_ended = [&] {
      bool all = true;
      for (const auto& one : kept) {
        if (one->request == nullptr) continue;
        const auto result = den.rank(one->rank).test(one->request);
        if (!result) {
          all = false;
          continue;
        }
        one->request = nullptr;
        if (!*result && !tolerable(result->error().code)) wrong = "a message: " + result->error().text();
      }
      return all;
    };
    den.until(all_ended, 200);
    // Whoever lost the other is through with it.
    for (const int rank : {0, 1}) {
      if (den.rank(rank).isend(word.base(), word.layout, 1 - rank, 9)) continue;
      den.until(all_ended, 2);
      for (const auto& one : kept) {
        if (one->rank == rank && one->request != nullptr) wrong = "a request that goes on although its peer is lost";
      }
    }
    if (setting.ranks > 2) {
      for (int i = 0; i < 2; ++i) {
        std::optional<base::Result<protocol::Status>> result;
        const bool came = den.until([&] { return (result = den.rank(2 * i).test(aside[i])).has_value(); }, 20'000);
        if (!came) return "a message between others does not end";
        if (!*result) wrong = "a message between others: " + result->error().text();
      }
    }
  }
  for (const auto& one : kept) {
    if (one->sends ? !one->memory.untouched() : !one->memory.intact()) return "bytes were written that no receive named";
  }
  if (setting.ranks > 2) {
    if (!in.intact() || !out.untouched()) return "bytes of others were written";
    layout::Cursor from(out.layout), to(in.layout);
    for (std::int64_t i = 0; i < out.layout.size(); ++i) {
      if (out.base()[from.next_run(1).offset] != in.base()[to.next_run(1).offset]) return "a message between others came changed";
    }
  }
  return wrong;
}

// The same ones each time, unless seconds are asked for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRounds = 3;
#else
constexpr int kRounds = 10;
#endif

class Fuzz : public testing::TestWithParam<Field> {};
TEST_P(Fuzz, NothingButErrors) {
  const auto expect_no_harm = [](std::uint64_t seed) { EXPECT_EQ(round(GetParam().setting, seed), ""); };
  RecordProperty("rounds", support::fuzz(kRounds, expect_no_harm, 1.0 / static_cast<double>(fields().size())));
}
INSTANTIATE_TEST_SUITE_P(Of, Fuzz, testing::ValuesIn(fields()), [](const auto& info) { return info.param.name; });

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
