// What comes over sockets before two ends are connected: handshakes, introductions, messages of a bootstrap.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <thread>

#include "lacuna/nic/tcp.hpp"
#include "lacuna/protocol/bootstrap/message.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/rows/rows.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::fuzz {
namespace {

namespace tcp = nic::tcp;
namespace bootstrap = protocol::bootstrap;
using base::Code;

std::int64_t soon() { return base::now_ns() + test::kPatience; }

struct Pair {
  Pair() {
    std::array<int, 2> made{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made.data()) != 0) std::abort();
    ours = base::Fd(made[0]);
    theirs = base::Fd(made[1]);
  }
  base::Fd ours, theirs;
};

// A peer that says this, and goes.
base::Fd peer_that_says(const Bytes& said, base::Fd& other) {
  Pair pair;
  const int room = 2 << 20;  // of a socket: so that all of it fits
  setsockopt(pair.theirs.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  if (!tcp::send_bytes(pair.theirs.get(), said, soon())) std::abort();
  shutdown(pair.theirs.get(), SHUT_WR);
  other = std::move(pair.theirs);
  return std::move(pair.ours);
}

bool one_of(Code code, std::initializer_list<Code> known) { return std::ranges::find(known, code) != known.end(); }

// --- the handshake ---

constexpr tcp::Purpose kPurpose{0x4655'5a5a, "fuzzer"};
const std::string kClaim = "claim 17", kNonce(tcp::kNonceBytes, 'n'), kChallenge(tcp::kNonceBytes, 'c');
const tcp::Secret& secret() {
  static const tcp::Secret made = tcp::Secret::create("that both of them know").value();
  return made;
}

const Bytes& true_request() {
  static const Bytes made = [] {
    Bytes request;
    tcp::put(request, kPurpose.magic);
    request += kClaim + kNonce;
    return request + secret().prove("connecting" + kChallenge + request);
  }();
  return made;
}

Bytes draw_request(Random& random) { return random.one_in(20) ? true_request() : mutated(random, {true_request()}); }

// Whatever is not what the secret proves is refused. A planted fault: what is true is thought a forgery.
Verdict judge_request(const Bytes& input, bool planted) {
  tcp::Caller caller{.socket = {}, .until = 0, .challenge = kChallenge, .request = input};
  caller.request.resize(tcp::request_bytes(kClaim.size()));
  Pair pair;
  caller.socket = std::move(pair.ours);
  const bool true_one = caller.request == true_request() && !planted;
  const auto claim = tcp::verify(secret(), kPurpose, caller);
  if (claim) return {.taken = true, .wrong = true_one && *claim == kClaim ? "" : "a forgery is believed"};
  if (true_one) return {.taken = false, .wrong = "the truth is not believed: " + claim.error().text()};
  return {.taken = false, .wrong = one_of(claim.error().code, {Code::malformed, Code::permission}) ? "" : claim.error().text()};
}

constexpr std::size_t kSaidBytes = tcp::kGreetingBytes + tcp::kAnswerBytes;
Bytes draw_answer(Random& random) { return draw_edits(random, kSaidBytes); }

std::string edited(const Bytes& edits, std::string_view said, std::string_view before) {
  std::vector<std::byte> bytes;
  for (const char byte : std::string(before) + std::string(said)) bytes.push_back(static_cast<std::byte>(byte));
  edit(edits, bytes);
  return text_of(bytes).substr(std::min(before.size(), bytes.size()));
}

// The listening side, some of whose bytes are others. A planted fault: they are not, and are thought so.
Verdict judge_answer(const Bytes& input, bool planted) {
  const Bytes edits = planted ? "" : input;
  Pair pair;
  bool changed = planted;
  std::thread listener([&] {
    std::string greeting;
    tcp::put(greeting, kPurpose.magic);
    greeting += kNonce;
    const std::string said = edited(edits, greeting, "").substr(0, greeting.size());
    changed = changed || said != greeting;
    (void)tcp::send_bytes(pair.theirs.get(), said, soon());
    if (said.size() < greeting.size()) return void(shutdown(pair.theirs.get(), SHUT_WR));
    std::string request(tcp::request_bytes(kClaim.size()), '\0');
    if (!tcp::receive_bytes(pair.theirs.get(), request, soon())) return;
    std::string answer;
    tcp::put(answer, 1);
    answer += secret().prove("listening " + kNonce + request.substr(0, request.size() - tcp::kProofBytes));
    const std::string told = edited(edits, answer, greeting);
    changed = changed || told.substr(0, answer.size()) != answer;
    (void)tcp::send_bytes(pair.theirs.get(), told, soon());
    shutdown(pair.theirs.get(), SHUT_WR);
  });
  auto introduced = tcp::introduce(pair.ours.get(), secret(), kPurpose, kClaim, soon());
  pair.ours = {};
  listener.join();
  if (introduced) return {.taken = true, .wrong = changed ? "a listener is believed that does not know the secret" : ""};
  if (!changed) return {.taken = false, .wrong = "a true listener is not believed: " + introduced.error().text()};
  const bool well = one_of(introduced.error().code, {Code::malformed, Code::permission, Code::peer_lost});
  return {.taken = false, .wrong = well ? "" : introduced.error().text()};
}

// --- introductions ---

Bytes hello_of(const Bytes& text) {
  Bytes made;
  tcp::put(made, static_cast<std::uint32_t>(text.size()));
  return made + text;
}
Bytes draw_hello(Random& random) {
  static const std::vector<Bytes> seeds{hello_of(""), hello_of("x"), hello_of(Bytes(300, 'h')), hello_of(Bytes(3'000, 'l'))};
  return mutated(random, seeds);
}

// As many bytes as were announced, and those. A planted fault: one of them is another.
Verdict judge_hello(const Bytes& input, bool planted) {
  base::Fd other;
  tcp::TcpBootstrap end(peer_that_says(input, other));
  const auto came = end.exchange({}, test::kPatience);
  if (!came) return {.taken = false, .wrong = one_of(came.error().code, {Code::malformed, Code::peer_lost}) ? "" : came.error().text()};
  const Bytes said = text_of(came->bytes) + (planted ? "x" : "");
  return {.taken = true, .wrong = input.starts_with(hello_of(said)) ? "" : "other bytes than were sent"};
}

// --- messages of a bootstrap ---

Bytes draw_message(Random& random) {
  static const std::vector<Bytes> seeds = [] {
    using enum bootstrap::MessageKind;
    std::vector<Bytes> made;
    for (const auto kind : {status, refused, rank, peer, name, mesh, done, go, failed}) {
      Bytes one;
      tcp::put(one, static_cast<std::uint32_t>(kind));
      tcp::put(one, 3);
      const Bytes text = kind == mesh ? Bytes(100, 'm') : kind == status ? Bytes("2 and 5 \x1b[2J") : Bytes();
      tcp::put(one, static_cast<std::uint32_t>(text.size()));
      made.push_back(one + text);
    }
    return made;
  }();
  return mutated(random, seeds);
}

// What is told is short and harmless to a terminal. A planted fault: no letter is harmless.
Verdict judge_message(const Bytes& input, bool planted) {
  base::Fd other;
  const base::Fd end = peer_that_says(input, other);
  const auto message = bootstrap::receive(end.get(), soon());
  if (!message)
    return {.taken = false, .wrong = one_of(message.error().code, {Code::malformed, Code::peer_lost}) ? "" : message.error().text()};
  if (message->bytes.size() > bootstrap::kMostMessageBytes) return {.taken = true, .wrong = "a message beyond the limit"};
  if (!input.substr(3 * sizeof(std::uint32_t)).starts_with(message->bytes)) return {.taken = true, .wrong = "other bytes than were sent"};
  const std::string told = bootstrap::told_error(*message).text();
  const auto harms = [&](char c) {
    return planted ? std::isalpha(static_cast<unsigned char>(c)) != 0 : std::iscntrl(static_cast<unsigned char>(c)) != 0;
  };
  const bool harmless = std::ranges::none_of(told, harms) && told.size() < 4000;
  return {.taken = true, .wrong = harmless ? "" : "words that a terminal would obey: " + told};
}

}  // namespace

Fuzzer tcp_request() {
  return {.name = "tcp_request",
          .what = "what a process says that connects: a claim, and a proof that it knows the secret",
          .smoke = 50'000,
          .least_taken = 0.02,
          .draw = draw_request,
          .judge = judge_request};
}
Fuzzer tcp_answer() {
  return {.name = "tcp_answer",
          .what = "what a process says that listens: a greeting, and its own proof",
          .smoke = 10'000,
          .least_taken = 0.05,
          .draw = draw_answer,
          .judge = judge_answer};
}
Fuzzer tcp_hello() {
  return {.name = "tcp_hello",
          .what = "introductions over TCP, before a NIC looks at them",
          .smoke = 30'000,
          .least_taken = 0.2,
          .draw = draw_hello,
          .judge = judge_hello};
}
Fuzzer bootstrap_message() {
  return {.name = "bootstrap_message",
          .what = "messages of ranks that meet, by Unix socket or TCP",
          .smoke = 50'000,
          .least_taken = 0.2,
          .draw = draw_message,
          .judge = judge_message};
}

}  // namespace lacuna::fuzz
