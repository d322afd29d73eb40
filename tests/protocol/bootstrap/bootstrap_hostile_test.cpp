// The bootstrap by TCP among those who have another secret or none, and those who break the rules.
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>

#include "tests/protocol/bootstrap/tcp_rig.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using base::Code;

// --- other secrets ---

TEST(TcpSecret, OfOneIsWrong) {
  const Port port;
  Processes processes;
  processes.start([&] { return meet_and_greet(at(port, 2, 0)); });
  BootstrapOptions wrong = at(port, 2, 1);
  wrong.secret = kOtherSecret;
  EXPECT_EQ(meet_and_fail(wrong, Code::permission, {port.address(), "another secret"}), "");
  processes.start([&] { return meet_and_greet(at(port, 2, 1)); });
  EXPECT_EQ(processes.wait(), "");
}

TEST(TcpSecret, OfRank0IsWrong) {
  const auto bounded = [](double timeout_s) {
    const Port port;
    Processes processes;
    processes.start([&] {
      BootstrapOptions wrong = at(port, 2, 0);
      wrong.secret = kOtherSecret;
      wrong.timeout_s = timeout_s;
      return meet_and_fail(wrong, Code::timeout, {"1 of 2 processes came", "1 refused", "another secret"});
    });
    BootstrapOptions own = at(port, 2, 1);
    own.timeout_s = timeout_s;
    const std::string wrong = failed(protocol::form_group(own), Code::permission, {port.address(), "another secret"});
    return wrong + processes.wait();
  };
  EXPECT_EQ(with_timeouts(bounded), "");
}

TEST(TcpSecret, IsToBeProvedByRank0Too) {
  const auto answered = [](const std::function<std::string(const std::string& request)>& proof) {
    const Port port;
    HandMade impostor(port);
    Processes processes;
    processes.start([&] { return meet_and_fail(at(port, 2, 1), Code::permission, {"another secret"}); });
    const bootstrap::Caller victim = impostor.next();
    std::string accepted;
    tcp::put(accepted, 1);
    EXPECT_TRUE(tcp::send_bytes(victim.socket.get(), accepted + proof(victim.request), soon()));
    return processes.wait();
  };
  EXPECT_EQ(answered([](const std::string&) { return std::string(tcp::kProofBytes, 'x'); }), "");
  EXPECT_EQ(answered([](const std::string&) { return std::string(tcp::kProofBytes, '\0'); }), "");
  EXPECT_EQ(answered([](const std::string& request) { return request.substr(request.size() - tcp::kProofBytes); }), "") << "its own proof";
}

TEST(TcpSecret, IsNotProvedByWhatAnotherSaid) {
  const Port there;
  const Port here;
  HandMade eavesdropper(there);
  Processes processes;
  const pid_t victim = processes.start([&] { return meet_and_greet(at(there, 2, 1)); });
  const std::string request = eavesdropper.next().request;
  processes.kill(victim);
  processes.start([&] { return meet_and_greet(at(here, 2, 0)); });
  std::string heard;
  // Who needs a second for it hears nothing
  for (const std::int64_t deadline = soon(); heard.empty() && base::now_ns() < deadline;) {
    const base::Fd stranger = here.connect();
    std::array<char, 36> greeting;
    EXPECT_TRUE(bootstrap::receive_bytes(stranger.get(), greeting, soon()));
    say(stranger, request);
    heard = hear_all(stranger);
  }
  EXPECT_EQ(heard, std::string("\2\0\0\0", 4) + std::string(tcp::kProofBytes, '\0')) << "refused, and the end";
  processes.start([&] { return meet_and_greet(at(here, 2, 1)); });
  EXPECT_EQ(processes.wait(), "");
}

// --- strangers ---

// Connections that say nothing, or what no process would say, and do not go.
class Strangers {
 public:
  void come(const std::function<base::Fd()>& connect, int count = 60) {
    support::Random random(1);
    for (int i = 0; i < count; ++i) {
      sockets_.push_back(connect());
      std::string words;
      const std::int64_t length = random.pick(std::vector<std::int64_t>{0, 0, 1, 36, 151, 152, 153, 5000});
      for (std::int64_t at = 0; at < length; ++at) words.push_back(static_cast<char>(random.next()));
      say(sockets_.back(), i % 5 == 0 ? "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" : words);
    }
  }
  [[nodiscard]] const base::Fd& first() const { return sockets_.front(); }

 private:
  std::vector<base::Fd> sockets_;
};

TEST(TcpStrangers, DoNotDisturb) {
  const Port port;
  Processes processes;
  for (const int rank : {0, 1}) {
    processes.start([&, rank] {
      pretend_machine(rank);
      return meet_and_greet(at(port, 3, rank), false);
    });
  }
  Strangers strangers;
  // One after the other they would take longer than the bootstrap may
  strangers.come([&] { return port.connect(); }, 300);
  processes.start([&] {
    pretend_machine(2);
    return meet_and_greet(at(port, 3, 2), false);
  });
  EXPECT_EQ(processes.wait(), "");
}

TEST(TcpStrangers, AreSentAway) {
  const Port port;
  Processes processes;
  const pid_t waiting = processes.start([&] {
    BootstrapOptions wanted = patient(at(port, 2, 0));
    wanted.timeout_s *= 10;  // so that it is not its end that sends them away
    return failed(protocol::form_group(wanted), Code::timeout, {});
  });
  const base::Fd silent = port.connect();
  EXPECT_EQ(hear_all(silent).size(), 36U) << "the greeting, and the end";
  processes.kill(waiting);
}

// --- the mesh ---

// What rank 0 tells of a mesh of three: rank 1 as it said, rank 2 nowhere.
Message mesh_of(const Claim& claim, const std::string& group_id) {
  Message mesh{.kind = Kind::mesh, .value = 0, .bytes = group_id, .file = {}};
  for (const std::uint32_t port : {claim.port, 1U}) {
    mesh.bytes += std::string("\x7f\0\0\x01", 4) + std::string(12, '\0');
    bootstrap::put(mesh.bytes, port);
  }
  return mesh;
}

TEST(TcpMesh, HasNoPlaceForStrangers) {
  const Port port;
  HandMade rank_0(port);
  Processes processes;
  processes.start([&]() -> std::string {
    const Group group = LACUNA_END_TRY(protocol::form_group(patient(at(port, 3, 1))));
    return group.rank == 1 && group.size() == 3 ? "" : "another group";
  });
  const Secret secret = Secret::create(kSecret).value();
  const Secret other_secret = Secret::create(kOtherSecret).value();
  const bootstrap::Caller member = rank_0.next();
  const Claim theirs = bootstrap::verify(secret, member).value();
  const std::string group_id = tcp::random_bytes(bootstrap::kDigestBytes);
  EXPECT_TRUE(bootstrap::send(member.socket.get(), mesh_of(theirs, group_id), soon()));

  tcp::Endpoint endpoint = tcp::far_end(member.socket.get()).value();
  endpoint.set_port(static_cast<std::uint16_t>(theirs.port));
  const auto connect = [&] { return tcp::connect_to(endpoint, soon()).value(); };
  Strangers strangers;
  strangers.come(connect);
  Claim mine = theirs;
  mine.rank = 2;
  mine.to = 1;
  mine.group_id = group_id;
  EXPECT_EQ(introduced(connect, other_secret, mine).error().code, Code::permission);
  for (std::uint32_t Claim::* field : {&Claim::size, &Claim::rank, &Claim::to}) {
    for (const std::uint32_t value : {0U, 4U, 0xffffffffU}) {
      Claim wrong = mine;
      wrong.*field = value;
      EXPECT_EQ(hear_all(introduced(connect, secret, wrong).value()), "") << "closed";
    }
  }
  Claim elsewhere = mine;
  elsewhere.group_id[0] = static_cast<char>(~elsewhere.group_id[0]);
  EXPECT_EQ(hear_all(introduced(connect, secret, elsewhere).value()), "") << "closed";

  const base::Fd socket = introduced(connect, secret, mine).value();
  EXPECT_EQ(bootstrap::receive(member.socket.get(), soon()).value().kind, Kind::done);
  EXPECT_TRUE(bootstrap::send(member.socket.get(), {.kind = Kind::go}, soon()));
  EXPECT_EQ(processes.wait(), "");
}

TEST(TcpMesh, Rank0ThatSaysNonsenseIsNotBelieved) {
  const auto with = [](const std::function<Message(const Claim&)>& answer) {
    const Port port;
    HandMade rank_0(port);
    Processes processes;
    processes.start([&] { return meet_and_fail(at(port, 3, 1), Code::malformed, {}); });
    const bootstrap::Caller member = rank_0.next();
    const Claim claim = bootstrap::verify(Secret::create(kSecret).value(), member).value();
    EXPECT_TRUE(bootstrap::send(member.socket.get(), answer(claim), soon()));
    return processes.wait();
  };
  const auto plain = [](Kind kind, std::string bytes) { return Message{.kind = kind, .value = 0, .bytes = std::move(bytes), .file = {}}; };
  const std::string group_id(bootstrap::kDigestBytes, 'm');
  EXPECT_EQ(with([&](const Claim&) { return plain(Kind::mesh, ""); }), "");
  EXPECT_EQ(with([&](const Claim& claim) { return plain(Kind::mesh, mesh_of(claim, group_id).bytes + "x"); }), "");
  EXPECT_EQ(with([&](const Claim&) { return plain(Kind::name, "a name that a user could choose"); }), "");
  EXPECT_EQ(with([&](const Claim&) { return plain(Kind::go, ""); }), "");
  EXPECT_EQ(with([&](const Claim&) { return plain(Kind::name, std::string(bootstrap::kMostMessageBytes + 1, ':')); }), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
