// Introductions of NICs: what the other end of a connection says of itself, changed on its way. Both ends come to a
// connection, or both to an error.
#include <algorithm>
#include <thread>

#include "lacuna/nic/checks.hpp"
#include "lacuna/nic/nic.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/rows/rows.hpp"
#include "tests/support/mlx5/fake.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::fuzz {
namespace {

using base::Code;
using base::Result;

// Changes the first that comes.
class Changing final : public nic::Bootstrap {
 public:
  Changing(base::Fd socket, Bytes edits) : inner_(std::move(socket)), edits_(std::move(edits)) {}
  Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override {
    nic::Hello theirs = LACUNA_TRY(inner_.exchange(mine, timeout_ns));
    if (first_) {
      const std::vector<std::byte> said = theirs.bytes;
      edit(edits_, theirs.bytes);
      changed = theirs.bytes != said;
    }
    first_ = false;
    return theirs;
  }
  bool changed = false;

 private:
  nic::UnixBootstrap inner_;
  Bytes edits_;
  bool first_ = true;
};

struct Ends {
  std::unique_ptr<nic::Context> victim, other;
};
using Open = std::function<Result<std::unique_ptr<nic::Context>>()>;
Ends open_both(const Open& open) { return {support::value(open()), support::value(open())}; }

Result<std::unique_ptr<nic::QueuePair>> connect(nic::Context& context, nic::Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                nic::Path path) {
  return context.connect(bootstrap, queue, {path, 16, 16});
}

// A planted fault: what changed on its way is thought to be as it was.
Verdict judge(Ends& ends, nic::Path path, const Bytes& input, bool planted) {
  auto sockets = support::value(nic::UnixBootstrap::socket_pair());
  const auto victims = support::value(ends.victim->create_completion_queue(64));
  const auto others = support::value(ends.other->create_completion_queue(64));
  Changing changing(std::move(sockets.first), planted ? "flip 0 0" : input);
  std::string other_wrong;
  std::thread other([&, socket = std::move(sockets.second)]() mutable {
    nic::UnixBootstrap bootstrap(std::move(socket));
    const auto made = connect(*ends.other, bootstrap, *others, path);
    if (!made && made.error().text().empty()) other_wrong = "an error that says nothing";
  });
  auto made = connect(*ends.victim, changing, *victims, path);
  other.join();
  if (!other_wrong.empty()) return {.taken = made.has_value(), .wrong = other_wrong};
  const bool changed = changing.changed && !planted;
  if (!made && !changed) return {.taken = false, .wrong = "a true introduction is refused: " + made.error().text()};
  if (!made) {
    const Code code = made.error().code;
    const bool well = code == Code::malformed || code == Code::unsupported || code == Code::limit || code == Code::io ||
                      code == Code::permission || code == Code::peer_lost || code == Code::invalid_argument;
    return {.taken = false, .wrong = well ? "" : made.error().text()};
  }
  const nic::Limits& limits = (*made)->limits();
  const bool sound = limits.max_sge > 0 && limits.max_sge <= ends.victim->limits().max_sge && limits.max_message_bytes > 0 &&
                     limits.max_inline >= 0 && limits.max_send_wr > 0;
  return {.taken = true, .wrong = sound ? "" : "limits that no connection has"};
}

Bytes draw_local(Random& random) { return draw_edits(random, 200); }
Verdict judge_local(const Bytes& input, bool planted) {
  static Ends ends = open_both([] { return nic::open("local", {.shared_bytes = 16 << 20}); });
  return judge(ends, nic::Path::slots, input, planted);
}

Bytes draw_verbs(Random& random) { return draw_edits(random, 160); }
Verdict judge_verbs(const Bytes& input, bool planted) {
  static Ends ends = open_both([] { return test::mlx5::open(); });
  return judge(ends, nic::Path::wire, input, planted);
}

// Up to the nonces and the addresses behind the limits: with others the two look for one another where no end is, for a
// minute.
constexpr std::int64_t kOfiFields = 8 + 4 + 4 + 32 + sizeof(nic::LimitsOnWire);
Bytes draw_ofi(Random& random) { return draw_edits(random, kOfiFields); }
std::string lacks_ofi() {
  const auto opened = nic::open("ofi:tcp");
  return opened ? "" : opened.error().text();
}
Verdict judge_ofi(const Bytes& input, bool planted) {
  static Ends ends = open_both([] { return nic::open("ofi:tcp"); });
  return judge(ends, nic::Path::wire, input, planted);
}

}  // namespace

Fuzzer local_hello() {
  return {.name = "local_hello",
          .what = "introductions of NIC local",
          .smoke = 2'000,
          .least_taken = 0.1,
          .draw = draw_local,
          .judge = judge_local};
}
Fuzzer verbs_hello() {
  return {.name = "verbs_hello",
          .what = "introductions of NIC verbs, on the fake of an mlx5 device",
          .smoke = 3'000,
          .least_taken = 0.1,
          .draw = draw_verbs,
          .judge = judge_verbs};
}
Fuzzer ofi_hello() {
  return {.name = "ofi_hello",
          .what = "introductions of NIC ofi, on provider tcp",
          .smoke = 200,
          .least_taken = 0.1,
          .draw = draw_ofi,
          .judge = judge_ofi,
          .lacks = lacks_ofi};
}

}  // namespace lacuna::fuzz
