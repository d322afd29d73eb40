#include "tests/support/apart.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "lacuna/nic/tcp.hpp"
#include "tests/support/child.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::test {
namespace {

using base::Fd;
using base::Result;
using nic::tcp::TcpBootstrap;

constexpr std::int64_t kMeet = kPatience;  // one machine may boot, or one end compute, longer than the other
constexpr std::int64_t kEnd = kPatience;
constexpr int kMostStale = 100;  // hellos of an end that does not know yet that the other one gave up

// The one connection of a pair. What an end sends its peer while it runs goes through it, marked as such, and so does
// what went wrong: an end that waits for its peer learns that the peer has ended.
class Channel final : public nic::Bootstrap {
 public:
  enum class Kind : unsigned char { name = 1, hello, verdict };

  explicit Channel(Fd socket) : tcp_(std::move(socket)) {}

  Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override {
    if (!mine.files.empty()) return base::fail(base::Code::unsupported, "files do not travel between machines");
    auto [kind, theirs] = LACUNA_TRY(swap(Kind::hello, mine.bytes, timeout_ns));
    if (kind != Kind::hello) return base::fail(base::Code::peer_lost, "the other end of this test has ended");
    nic::Hello hello;
    hello.bytes = std::move(theirs);
    return hello;
  }

  /// Errors: malformed (the other is at another test).
  Result<void> agree(const std::string& name) {
    const auto [kind, theirs] = LACUNA_TRY(swap(Kind::name, bytes_of(name), kMeet));
    if (kind == Kind::name && text_of(theirs) == name) return {};
    return base::fail(base::Code::malformed, fmt::format("the machines are out of step: here {}, there {}", name, text_of(theirs)));
  }

  Result<std::string> swap_verdicts(const std::string& mine) {
    for (int i = 0; i < kMostStale; ++i) {
      const auto [kind, theirs] = LACUNA_TRY(swap(Kind::verdict, bytes_of(mine), kEnd));
      if (kind == Kind::verdict) return text_of(theirs);
    }
    return base::fail(base::Code::malformed, "the other end does not end");
  }

 private:
  struct Marked {
    Kind kind;
    std::vector<std::byte> bytes;
  };
  Result<Marked> swap(Kind kind, const std::vector<std::byte>& bytes, std::int64_t timeout_ns) {
    nic::Hello mine;
    mine.bytes = bytes;
    mine.bytes.push_back(static_cast<std::byte>(kind));
    nic::Hello theirs = LACUNA_TRY(tcp_.exchange(mine, timeout_ns));
    if (theirs.bytes.empty()) return base::fail(base::Code::malformed, "an empty message from the other machine");
    const auto its_kind = static_cast<Kind>(theirs.bytes.back());
    theirs.bytes.pop_back();
    return Marked{its_kind, std::move(theirs.bytes)};
  }
  static std::vector<std::byte> bytes_of(const std::string& text) {
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
  }
  static std::string text_of(const std::vector<std::byte>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

  TcpBootstrap tcp_;
};

class Machines {
 public:
  static Machines& get() {
    static Machines machines;
    return machines;
  }
  [[nodiscard]] int rank() const { return rank_; }

  Result<Channel> meet() {
    if (!lost_.empty()) return base::fail(base::Code::peer_lost, "the other machine was lost before: " + lost_);
    Result<Fd> socket = rank_ == 0 ? accept_one() : connect_one();
    if (!socket) return lost(socket.error());
    const int one = 1;
    setsockopt(socket->get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Channel channel(std::move(*socket));
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    const std::string name = fmt::format("{}.{}", test.test_suite_name(), test.name());
    if (Result<void> agreed = channel.agree(name); !agreed) return lost(agreed.error());
    return channel;
  }

 private:
  Machines() {
    rank_ = std::atoi(std::getenv("LACUNA_TEST_RANK"));
    const char* meet = std::getenv("LACUNA_TEST_MEET");
    const std::string where = meet == nullptr ? "" : meet;
    const std::size_t colon = where.find(':');
    address_.sin_family = AF_INET;
    if (colon == std::string::npos || inet_pton(AF_INET, where.substr(0, colon).c_str(), &address_.sin_addr) != 1) {
      lost_ = fmt::format("LACUNA_TEST_MEET=\"{}\"; it takes an IPv4 address, a colon and a port", where);
      return;
    }
    address_.sin_port = htons(static_cast<std::uint16_t>(std::atoi(where.c_str() + colon + 1)));
    if (rank_ != 0) return;
    listener_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int one = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) != 0 || listen(listener_.get(), 8) != 0)
      lost_ = base::system_error("listening at " + where, errno).text();
  }

  std::unexpected<base::Error> lost(const base::Error& error) {
    lost_ = error.text();
    return std::unexpected(error);
  }

  Result<Fd> accept_one() const {
    pollfd waiting{listener_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(kMeet / 1'000'000)) != 1)
      return base::fail(base::Code::timeout, in_vain("the other machine to come", kMeet));
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) return std::unexpected(base::system_error("accept", errno));
    return socket;
  }

  Result<Fd> connect_one() const {
    const std::int64_t deadline = base::now_ns() + kMeet;
    for (;;) {
      Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) == 0) return socket;
      const int error = errno;
      if (base::now_ns() > deadline) return std::unexpected(base::system_error("connecting to the other machine", error));
      usleep(20'000);
    }
  }

  int rank_ = 0;
  sockaddr_in address_{};
  Fd listener_;
  std::string lost_;  // why there will be no more meetings
};

}  // namespace

bool apart() { return std::getenv("LACUNA_TEST_RANK") != nullptr; }

std::string in_two_machines(const End& end, int expected_signal) {
  Machines& machines = Machines::get();
  const int rank = machines.rank();
  Result<Channel> channel = machines.meet();
  if (!channel) return channel.error().text();
  std::string mine;
  if (rank == 1 && expected_signal != 0) {
    mine = Child([&] { return end(rank, *channel); }).end(expected_signal);
  } else {
    mine = end(rank, *channel);
  }
  const Result<std::string> theirs = channel->swap_verdicts(mine);
  const std::string others = theirs ? *theirs : "its verdict did not come: " + theirs.error().text();
  return rank == 0 ? both(mine, others) : both(others, mine);
}

}  // namespace lacuna::test
