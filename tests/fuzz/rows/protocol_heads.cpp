// A peer of a communicator that changes, drops, repeats and invents what it says: nothing but errors, and no byte where
// no receive named it.
#include "tests/fuzz/rows/rows.hpp"
#include "tests/protocol/message/lies.hpp"

namespace lacuna::fuzz {
namespace {

using namespace test;
using namespace test::lies;

struct Field {
  std::string name;
  Setting setting;
};

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

// A planted fault: a byte that no receive named is another.
std::string round(const Setting& setting, std::uint64_t seed, bool planted) {
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
    const auto over = [&] { return all_ended(den, kept, &tolerable, "a message", wrong); };
    den.until(over, 200);
    // A rank that lost the other one is through with it.
    for (const int rank : {0, 1}) {
      if (den.rank(rank).isend(word.base(), word.layout, 1 - rank, 9)) continue;
      den.until(over, 2);
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
  if (planted) kept.front()->memory.bytes.front() ^= std::byte{1};
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

Verdict judge(const Bytes& input, bool planted) {
  static const std::vector<Field> all = fields();
  const std::uint64_t seed = seed_of(input);
  const Field& field = all[seed % all.size()];
  const std::string wrong = round(field.setting, seed / all.size(), planted);
  return {.taken = true, .wrong = wrong.empty() ? "" : field.name + ": " + wrong};
}

}  // namespace

Fuzzer protocol_heads() {
  return {.name = "protocol_heads",
          .what = "heads and payloads of a peer's messages, and the rings in memory that it shares",
          .smoke = 300,
          .least_taken = 1,
          .draw = draw_seed,
          .judge = judge};
}

}  // namespace lacuna::fuzz
