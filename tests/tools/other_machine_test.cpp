// A worker with its receiver on another machine, whose other side is played by hand: versions, NICs, visits, and
// nonsense.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "lacuna/nic/tcp.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

namespace tcp = nic::tcp;
using Json = nlohmann::json;

constexpr tcp::Purpose kGuide{0x3147434c, "guide"};
constexpr std::size_t kVisitBytes = 32;
constexpr const char* kSecret = "of the two who measure";
constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t soon() { return base::now_ns() + kPatience; }

// lacuna-worker, with pipes.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    for (auto* ends : {&in, &out, &err}) EXPECT_EQ(pipe2(ends->data(), O_CLOEXEC), 0);
    child_ = fork();
    if (child_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(err[1], 2);
      setenv("LACUNA_SECRET", kSecret, 1);
      arguments.insert(arguments.begin(), LACUNA_WORKER);
      std::vector<char*> line;
      for (std::string& argument : arguments) line.push_back(argument.data());
      line.push_back(nullptr);
      execv(line[0], line.data());
      std::_Exit(127);
    }
    for (const int end : {in[0], out[1], err[1]}) close(end);
    in_ = base::Fd(in[1]);
    out_ = base::Fd(out[0]);
    err_ = base::Fd(err[0]);
  }
  ~Program() {
    if (child_ > 0) kill(child_, SIGKILL), waitpid(child_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void close_input() { in_ = base::Fd(); }
  /// What others of this user, and what it starts, see of its environment.
  [[nodiscard]] std::string environment() const {
    std::ifstream file(fmt::format("/proc/{}/environ", child_), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Json line() {
    std::string text;
    for (char c = 0; tcp::wait_for(out_.get(), POLLIN, soon()) && read(out_.get(), &c, 1) == 1 && c != '\n';) text.push_back(c);
    return Json::parse(text, nullptr, false);
  }
  /// Its exit code; -1: it does not end.
  int ends() {
    for (const std::int64_t until = soon(); base::now_ns() < until; tcp::pause_until(base::now_ns() + kSecond / 100)) {
      int status = 0;
      if (waitpid(child_, &status, WNOHANG) != child_) continue;
      child_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    ADD_FAILURE() << in_vain("the worker to end");
    return -1;
  }
  std::string errors() const {
    std::string text(4096, '\0');
    const ssize_t n = read(err_.get(), text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return text;
  }

 private:
  pid_t child_ = -1;
  base::Fd in_, out_, err_;
};

// A port that nobody gets by chance while this lives: bound, and not listened at. Who says that he would share it, as a
// worker does, may listen there.
class Port {
 public:
  Port() : held_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(held_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(held_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  }
  [[nodiscard]] tcp::Endpoint endpoint() const { return tcp::near_end(held_.get()).value(); }

 private:
  base::Fd held_;
};

// A worker that listens, and who calls it.
class Listening {
 public:
  Listening() : worker({"--listen", endpoint_.text()}) {
    const Json line = worker.line();
    EXPECT_EQ(line["listening"]["at"], endpoint_.text());
    EXPECT_EQ(line["listening"]["nic"]["name"], "local");
  }
  std::unique_ptr<tcp::TcpBootstrap> call(char visit) const {
    const tcp::Secret secret = tcp::Secret::create(kSecret).value();
    base::Fd socket;
    // Who has no CPU for a second is dropped, and tries again.
    for (const std::int64_t deadline = soon(); base::now_ns() < deadline;) {
      socket = tcp::connect_to(endpoint_, soon()).value();
      const base::Result<void> known = tcp::introduce(socket.get(), secret, kGuide, std::string(kVisitBytes, visit), soon());
      if (known || known.error().code != base::Code::peer_lost) {
        EXPECT_TRUE(known) << known.error().text();
        break;
      }
    }
    return std::make_unique<tcp::TcpBootstrap>(std::move(socket));
  }

 private:
  Port port_;
  tcp::Endpoint endpoint_ = port_.endpoint();

 public:
  Program worker;
};

base::Result<Json> swap(nic::Bootstrap& channel, const std::string& mine) {
  nic::Hello hello;
  hello.bytes.assign(reinterpret_cast<const std::byte*>(mine.data()), reinterpret_cast<const std::byte*>(mine.data() + mine.size()));
  const nic::Hello theirs = LACUNA_TRY(channel.exchange(hello, kPatience));
  return Json::parse(std::string(reinterpret_cast<const char*>(theirs.bytes.data()), theirs.bytes.size()), nullptr, false);
}

std::string terms(const char* member = "", const Json& value = {}) {
  Json all = {{"protocol", 1}, {"version", base::version()}, {"nic", "local"}, {"machine", Json::object()}};
  if (*member != '\0') all[member] = value;
  return all.dump();
}

TEST(Far, WhatDoesNotFitIsSaid) {
  const std::pair<std::string, const char*> wrong[] = {
      {terms("version", "9.9.9\x1b[2J"), "the other one 9.9.9?[2J: install the same version"},
      {terms("version", Json::array()), "install the same version"},
      {terms("protocol", 2), "install the same version"},
      {terms("nic", "verbs:rxe0"), "the other one with --nic verbs:rxe0"},
      {terms("refused", "it is busy"), "the other side refuses: it is busy"},
      {"[]", "does not say who it is"},
      {"no JSON", "does not say who it is"},
      {"", "does not say who it is"},
  };
  for (const auto& [said, error] : wrong) {
    Listening listening;
    const auto channel = listening.call('a');
    const auto theirs = swap(*channel, said);
    ASSERT_TRUE(theirs) << theirs.error().text();
    EXPECT_EQ((*theirs)["version"], base::version());
    EXPECT_TRUE(listening.worker.line().contains("met"));
    EXPECT_EQ(listening.worker.ends(), 1);
    const std::string errors = listening.worker.errors();
    EXPECT_NE(errors.find(error), std::string::npos) << error << " is not in: " << errors;
  }
}

TEST(Far, TheSecretIsInTheEnvironmentNoMore) {
  const Listening listening;
  const std::string environment = listening.worker.environment();
  EXPECT_FALSE(environment.empty());
  EXPECT_EQ(environment.find(kSecret), std::string::npos);
  listening.call('a');  // and is known all the same
}

TEST(Far, ACallerThatGoesIsAnError) {
  Listening listening;
  listening.call('a').reset();
  EXPECT_EQ(listening.worker.ends(), 1);
  EXPECT_NE(listening.worker.errors().find("peer"), std::string::npos);
}

TEST(Far, OneVisitAtATime) {
  Listening listening;
  const auto first = listening.call('a');
  EXPECT_TRUE(listening.worker.line().contains("met"));
  const auto second = listening.call('b');
  const auto refusal = swap(*second, terms());
  ASSERT_TRUE(refusal) << refusal.error().text();
  EXPECT_NE((*refusal)["refused"].get<std::string>().find("it is measuring with 127.0.0.1:"), std::string::npos);
  EXPECT_TRUE(listening.worker.line().contains("refused"));
  const auto same = listening.call('a');
  EXPECT_EQ(swap(*same, terms()).value()["version"], base::version());
}

TEST(Far, ItEndsWithItsInput) {
  Listening listening;
  const auto first = listening.call('a');
  listening.worker.close_input();
  EXPECT_EQ(listening.worker.ends(), 0);
  EXPECT_FALSE(first->exchange({}, kPatience).has_value() && first->exchange({}, kPatience).has_value()) << "its ranks have ended with it";
}

// The worker calls, and what listens is played by hand.
TEST(Far, TheCallerFindsOutAsWell) {
  const auto told = [](const std::function<void(nic::Bootstrap&)>& play) {
    tcp::Endpoint any = tcp::resolve("127.0.0.1:1").value().front();
    any.set_port(0);
    base::Fd listener = tcp::listen_at(any).value();
    const tcp::Endpoint endpoint = tcp::near_end(listener.get()).value();
    tcp::Acceptor acceptor(
        std::move(listener), tcp::request_bytes(kVisitBytes), 4, [](tcp::Caller& caller) { return tcp::challenge(kGuide, caller); },
        kPatience);
    Program worker({"--connect", endpoint.text(), "--visit", "v"});
    auto caller = acceptor.next({}, soon()).value();
    EXPECT_TRUE(caller);
    EXPECT_EQ(tcp::verify(tcp::Secret::create(kSecret).value(), kGuide, *caller).value(), "v" + std::string(kVisitBytes - 1, '\0'));
    {
      tcp::TcpBootstrap channel(std::move(caller->socket));
      play(channel);
    }
    EXPECT_EQ(worker.ends(), 1);
    return worker.errors();
  };
  EXPECT_NE(told([](nic::Bootstrap& channel) { EXPECT_TRUE(swap(channel, terms("version", "9.9.9"))); }).find("install the same version"),
            std::string::npos);
  EXPECT_NE(told([](nic::Bootstrap& channel) { EXPECT_TRUE(swap(channel, terms("refused", "it is busy"))); }).find("it is busy"),
            std::string::npos);
  EXPECT_NE(told([](nic::Bootstrap&) {}).find("the peer closed"), std::string::npos);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
