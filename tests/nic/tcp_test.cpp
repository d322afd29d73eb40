// The Bootstrap over TCP: two ends that know one secret, and whoever does not, is silent, or says what it should not.
#include "lacuna/nic/tcp.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "tests/support/patience.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

namespace tcp = nic::tcp;
using base::Code;
using base::Result;
using nic::Hello;
using tcp::Purpose;
using tcp::Secret;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr Purpose kTest{0x54534554, "test"};
constexpr Purpose kOther{0x52485430, "other thing"};
constexpr std::size_t kClaimBytes = 8;
const std::string kClaim = "claim 17";

std::int64_t in(double seconds) { return base::now_ns() + static_cast<std::int64_t>(seconds * 1e9); }
std::int64_t soon() { return base::now_ns() + kPatience; }
Secret secret(std::string_view text = "that both of them know") { return Secret::create(text).value(); }

Hello hello_of(std::string_view text) {
  Hello hello;
  hello.bytes.assign(reinterpret_cast<const std::byte*>(text.data()), reinterpret_cast<const std::byte*>(text.data() + text.size()));
  return hello;
}
std::string text_of(const Hello& hello) { return {reinterpret_cast<const char*>(hello.bytes.data()), hello.bytes.size()}; }

TEST(TcpSecret, LeavesNothingInMemory) {
  alignas(Secret) std::array<std::byte, sizeof(Secret)> memory{};
  auto* made = new (memory.data()) Secret(secret());
  EXPECT_TRUE(std::ranges::any_of(memory, [](std::byte byte) { return byte != std::byte{}; }));
  made->~Secret();
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{}; }));
}

// A listening socket on this machine.
class Here {
 public:
  Here() : socket_(tcp::listen_at(any_port()).value()) {}
  [[nodiscard]] tcp::Endpoint endpoint() const { return tcp::near_end(socket_.get()).value(); }
  [[nodiscard]] base::Fd connect() const { return tcp::connect_to(endpoint(), soon()).value(); }
  [[nodiscard]] base::Fd accept() const {
    EXPECT_TRUE(tcp::wait_for(socket_.get(), POLLIN, soon())) << in_vain("somebody to connect");
    return base::Fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  base::Fd take() { return std::move(socket_); }

 private:
  static tcp::Endpoint any_port() {
    tcp::Endpoint endpoint = tcp::resolve("127.0.0.1:1").value().front();
    endpoint.set_port(0);
    return endpoint;
  }
  base::Fd socket_;
};

tcp::Acceptor acceptor_of(base::Fd socket, const Purpose& purpose) {
  const auto greet = [&purpose](tcp::Caller& caller) { return tcp::challenge(purpose, caller); };
  return {std::move(socket), tcp::request_bytes(kClaimBytes), 8, greet, 10 * kPatience};
}

// One end that listens properly, in a thread, for one caller whose request is complete.
class Listener {
 public:
  explicit Listener(const Secret& secret, const Purpose& purpose = kTest) : purpose_(purpose) {
    Here here;
    endpoint_ = here.endpoint();
    thread_ = std::thread([this, secret, socket = here.take()]() mutable {
      tcp::Acceptor acceptor = acceptor_of(std::move(socket), purpose_);
      Result<std::optional<tcp::Caller>> caller = acceptor.next({}, soon());
      if (!caller || !*caller) return;
      claim = tcp::verify(secret, purpose_, **caller);
      socket_ = std::move((*caller)->socket);
    });
  }
  ~Listener() {
    if (thread_.joinable()) thread_.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] base::Fd connect() const { return tcp::connect_to(endpoint_, soon()).value(); }
  base::Fd socket() {
    thread_.join();
    return std::move(socket_);
  }

  Result<std::string> claim = base::fail(Code::timeout, "nobody came");

 private:
  const Purpose& purpose_;
  tcp::Endpoint endpoint_;
  base::Fd socket_;
  std::thread thread_;
};

TEST(Tcp, TwoThatKnowTheSecretExchangeHellos) {
  Listener listener(secret());
  base::Fd ours = listener.connect();
  ASSERT_TRUE(tcp::introduce(ours.get(), secret(), kTest, kClaim, soon()));
  tcp::TcpBootstrap near(std::move(ours));
  tcp::TcpBootstrap far(listener.socket());
  EXPECT_EQ(listener.claim.value(), kClaim);
  // Both send first, and more than the sockets hold.
  const std::string large(128 << 10, 'x');
  for (const std::string& text : {std::string(), std::string("a"), large}) {
    std::thread there([&] {
      const Result<Hello> heard = far.exchange(hello_of(text + (text.size() < large.size() ? "!" : "")), kPatience);
      EXPECT_EQ(text_of(heard.value()), text);
    });
    EXPECT_EQ(text_of(near.exchange(hello_of(text), kPatience).value()), text + (text.size() < large.size() ? "!" : ""));
    there.join();
  }
}

// A child has a copy of the listener; who is waiting there is its parent's.
TEST(Tcp, AChildThatForgetsTakesNobody) {
  Here here;
  const tcp::Endpoint endpoint = here.endpoint();
  base::Fd copy(here.take());
  const int listening = copy.get();
  tcp::Acceptor parents = acceptor_of(base::Fd(dup(copy.get())), kTest);
  tcp::Acceptor childs = acceptor_of(std::move(copy), kTest);
  Result<void> known;
  std::thread caller([&] {
    const base::Fd socket = tcp::connect_to(endpoint, soon()).value();
    known = tcp::introduce(socket.get(), secret(), kTest, kClaim, soon());
  });
  EXPECT_TRUE(tcp::wait_for(listening, POLLIN, soon()));  // it waits to be accepted
  childs.forget();
  const auto found = parents.next({}, soon());
  ASSERT_TRUE(found && *found);
  EXPECT_TRUE(tcp::verify(secret(), kTest, **found));
  caller.join();
  EXPECT_TRUE(known) << known.error().text();
}

TEST(Tcp, AnotherSecretIsAnErrorAtBothEnds) {
  for (const std::string_view other : {"that both of them knew", "", "THAT BOTH OF THEM KNOW"}) {
    Listener listener(secret());
    const base::Fd ours = listener.connect();
    const Result<void> known = tcp::introduce(ours.get(), secret(other), kTest, kClaim, soon());
    ASSERT_FALSE(known);
    EXPECT_EQ(known.error().code, Code::permission) << known.error().text();
    EXPECT_NE(known.error().message.find("another secret"), std::string::npos);
    listener.socket();
    EXPECT_EQ(listener.claim.error().code, Code::permission);
  }
}

TEST(Tcp, AnotherPurposeIsNoneOfOurs) {
  Listener listener(secret(), kOther);
  const base::Fd ours = listener.connect();
  const Result<void> known = tcp::introduce(ours.get(), secret(), kTest, kClaim, soon());
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().code, Code::malformed);
  EXPECT_NE(known.error().message.find("no test"), std::string::npos) << known.error().text();
  const base::Fd theirs = listener.connect();
  EXPECT_TRUE(tcp::introduce(theirs.get(), secret(), kOther, kClaim, soon()));
  listener.socket();
  EXPECT_EQ(listener.claim.value(), kClaim) << "who has that purpose is heard";
}

// A request that another listener was given, with another nonce; and one whose claim was changed on its way.
TEST(Tcp, AProofServesOnce) {
  Here eavesdropper;
  std::string request(tcp::request_bytes(kClaimBytes), '\0');
  std::thread victim([&] {
    const base::Fd socket = eavesdropper.connect();
    EXPECT_TRUE(tcp::introduce(socket.get(), secret(), kTest, kClaim, soon()));
  });
  {
    tcp::Caller caller{.socket = eavesdropper.accept()};
    EXPECT_TRUE(tcp::challenge(kTest, caller));
    EXPECT_TRUE(tcp::receive_bytes(caller.socket.get(), request, soon()));
    caller.request = request;
    EXPECT_TRUE(tcp::verify(secret(), kTest, caller)) << "told to the one that it was meant for";
    caller.request[5] ^= 1;
    EXPECT_EQ(tcp::verify(secret(), kTest, caller).error().code, Code::permission) << "another claim";
    caller.request = request;
    caller.challenge[0] = static_cast<char>(caller.challenge[0] ^ 1);
    EXPECT_EQ(tcp::verify(secret(), kTest, caller).error().code, Code::permission) << "another nonce";
    caller.request[0] ^= 1;
    EXPECT_EQ(tcp::verify(secret(), kTest, caller).error().code, Code::malformed) << "another purpose";
  }
  victim.join();
}

TEST(Tcp, AnImpostorIsNotBelieved) {
  const auto against = [](const std::function<std::string(const std::string& request)>& answer) {
    Here impostor;
    Result<void> known;
    std::thread victim([&] {
      const base::Fd socket = impostor.connect();
      known = tcp::introduce(socket.get(), secret(), kTest, kClaim, soon());
    });
    {
      tcp::Caller caller{.socket = impostor.accept()};
      EXPECT_TRUE(tcp::challenge(kTest, caller));
      std::string request(tcp::request_bytes(kClaimBytes), '\0');
      EXPECT_TRUE(tcp::receive_bytes(caller.socket.get(), request, soon()));
      EXPECT_TRUE(tcp::send_bytes(caller.socket.get(), answer(request), soon()));
    }
    victim.join();
    return known.error().code;
  };
  const auto accepted = [](const std::string& proof) { return std::string("\1\0\0\0", 4) + proof; };
  EXPECT_EQ(against([&](const std::string&) { return accepted(std::string(tcp::kProofBytes, 'x')); }), Code::permission);
  EXPECT_EQ(against([&](const std::string& request) { return accepted(request.substr(request.size() - tcp::kProofBytes)); }),
            Code::permission)
      << "its own proof";
  EXPECT_EQ(against([](const std::string&) { return std::string(tcp::kAnswerBytes, '\xff'); }), Code::malformed);
  EXPECT_EQ(against([&](const std::string&) { return accepted("short"); }), Code::peer_lost);
  EXPECT_EQ(against([](const std::string&) { return std::string(); }), Code::peer_lost);
}

TEST(Tcp, ASilentListenerIsATimeout) {
  const Here here;
  const base::Fd ours = here.connect();
  const std::int64_t deadline = in(0.3);
  const Result<void> known = tcp::introduce(ours.get(), secret(), kTest, kClaim, deadline);
  EXPECT_EQ(known.error().code, Code::timeout);
  EXPECT_GE(base::now_ns(), deadline);
  EXPECT_LT(base::now_ns(), deadline + kPatience);
}

TEST(Tcp, WhoSaysNothingIsSentAwayOnceHisTimeIsOver) {
  for (const std::int64_t time_ns : {kSecond / 10, kPatience}) {
    Here here;
    const tcp::Endpoint endpoint = here.endpoint();
    tcp::Acceptor acceptor(
        here.take(), tcp::request_bytes(kClaimBytes), 8, [](tcp::Caller& caller) { return tcp::challenge(kTest, caller); }, time_ns);
    const base::Fd silent = tcp::connect_to(endpoint, soon()).value();
    std::string greeting(tcp::kGreetingBytes, '\0');
    std::jthread listening([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) EXPECT_FALSE(acceptor.next({}, in(0.05)).value());
    });
    EXPECT_TRUE(tcp::receive_bytes(silent.get(), greeting, soon()));
    char more = 0;
    const Result<void> heard = tcp::receive_bytes(silent.get(), {&more, 1}, time_ns < kPatience ? soon() : in(0.5));
    EXPECT_EQ(heard.error().code, time_ns < kPatience ? Code::peer_lost : Code::timeout);
  }
}

TEST(Tcp, NobodyIsHeldUpByTheSilentAndByGarbage) {
  Listener listener(secret());
  const base::Fd silent = listener.connect();
  const base::Fd garbage = listener.connect();
  EXPECT_TRUE(tcp::send_bytes(garbage.get(), "GET / HTTP/1.1\r\n\r\n", soon()));
  const base::Fd ours = listener.connect();
  EXPECT_TRUE(tcp::introduce(ours.get(), secret(), kTest, kClaim, soon()));
  listener.socket();
  EXPECT_EQ(listener.claim.value(), kClaim);
}

TEST(Tcp, GarbageOfTheRightLengthIsRefused) {
  Listener listener(secret());
  const base::Fd ours = listener.connect();
  EXPECT_TRUE(tcp::send_bytes(ours.get(), std::string(tcp::request_bytes(kClaimBytes), 'g'), soon()));
  listener.socket();
  EXPECT_EQ(listener.claim.error().code, Code::malformed);
}

TEST(Tcp, NobodyListens) {
  const base::Fd bound(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // so that nobody else listens there
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(bound.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  EXPECT_EQ(tcp::connect_to(tcp::near_end(bound.get()).value(), soon()).error().code, Code::peer_lost);
}

// --- the Bootstrap with a peer that has proved itself, and then goes wrong ---

class Pair {
 public:
  Pair() {
    const Here here;
    base::Fd near = here.connect();
    theirs = here.accept();
    ours = std::make_unique<tcp::TcpBootstrap>(std::move(near));
  }
  std::unique_ptr<tcp::TcpBootstrap> ours;
  base::Fd theirs;
};

TEST(TcpBootstrap, LengthsAreBounded) {
  for (const std::string& length : {std::string("\x01\x00\x02\x00", 4), std::string("\xff\xff\xff\xff", 4)}) {
    const Pair pair;
    EXPECT_TRUE(tcp::send_bytes(pair.theirs.get(), length + "x", soon()));
    EXPECT_EQ(pair.ours->exchange({}, kPatience).error().code, Code::malformed);
  }
  const Pair pair;
  EXPECT_EQ(pair.ours->exchange(hello_of(std::string((128 << 10) + 1, 'x')), kPatience).error().code, Code::limit);
}

TEST(TcpBootstrap, APeerThatIsSilentOrGoneIsAnError) {
  {
    const Pair pair;
    EXPECT_EQ(pair.ours->exchange({}, kSecond / 5).error().code, Code::timeout);
  }
  {
    Pair pair;
    EXPECT_TRUE(tcp::send_bytes(pair.theirs.get(), std::string("\5\0\0\0ab", 6), soon()));
    pair.theirs = base::Fd();
    EXPECT_EQ(pair.ours->exchange({}, kPatience).error().code, Code::peer_lost) << "in the middle of its hello";
  }
  Pair pair;
  const linger at_once{1, 0};
  setsockopt(pair.theirs.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  pair.theirs = base::Fd();
  EXPECT_EQ(pair.ours->exchange({}, kPatience).error().code, Code::peer_lost) << "reset";
}

TEST(TcpBootstrap, FilesDoNotTravel) {
  const Pair pair;
  Hello hello;
  hello.files.emplace_back(dup(0));
  const Result<Hello> answer = pair.ours->exchange(hello, kPatience);
  EXPECT_EQ(answer.error().code, Code::unsupported);
  EXPECT_NE(answer.error().message.find("one machine"), std::string::npos);
}

// What NIC local is over such a channel: refused at both ends, at once.
TEST(TcpBootstrap, ANicThatPassesFilesSaysSo) {
  const Here here;
  base::Fd near = here.connect();
  base::Fd far = here.accept();
  const auto connected = [](base::Fd socket) -> Result<void> {
    tcp::TcpBootstrap channel(std::move(socket));
    const auto context = LACUNA_TRY(nic::open("local"));
    const auto queue = LACUNA_TRY(context->create_completion_queue(8));
    LACUNA_TRY(context->connect(channel, *queue, {nic::Path::slots, 4, 4}));
    return {};
  };
  Result<void> there;
  std::thread other([&] { there = connected(std::move(far)); });
  const Result<void> ours = connected(std::move(near));
  other.join();
  EXPECT_EQ(ours.error().code, Code::unsupported);
  EXPECT_EQ(there.error().code, Code::unsupported);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
