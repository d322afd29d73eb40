#include "tests/protocol/bootstrap/bootstrap_rig.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "lacuna/nic/tcp.hpp"

namespace lacuna::test {
namespace {

// A child that hangs must not outlive the test. Its own waits in vain, and what it says of them, come before that.
constexpr unsigned kMostSeconds = 3 * kPatience / 1'000'000'000;

struct Introduction {
  int rank;
  pid_t process;
};

base::Fd file_with(int value) {
  base::Fd file(memfd_create("meet_test", MFD_CLOEXEC));
  if (write(file.get(), &value, sizeof value) != sizeof value) return {};
  return file;
}

std::string greet(const Group& group, int peer, bool files) {
  const Introduction mine{group.rank, getpid()};
  nic::Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  if (files) hello.files.push_back(file_with(group.rank));
  const nic::Hello theirs = LACUNA_END_TRY(group.peers[static_cast<std::size_t>(peer)]->exchange(hello, kPatience));
  Introduction told{};
  LACUNA_END_EXPECT(theirs.bytes.size() == sizeof told);
  std::memcpy(&told, theirs.bytes.data(), sizeof told);
  LACUNA_END_EXPECT(told.rank == peer);
  LACUNA_END_EXPECT(theirs.process == (files ? told.process : 0));
  LACUNA_END_EXPECT(theirs.files.size() == (files ? 1U : 0U));
  int value = -1;
  LACUNA_END_EXPECT(!files || pread(theirs.files[0].get(), &value, sizeof value, 0) == sizeof value);
  LACUNA_END_EXPECT(!files || value == peer);
  return {};
}

struct UnixName {
  UnixName(const std::string& name, uid_t user) {
    const std::string full = fmt::format("lacuna-{}-{}", user, name);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, full.data(), full.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size());
  }
  [[nodiscard]] const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t length;
};

base::Fd connect_when_listening(const std::function<base::Fd()>& make, const sockaddr* address, socklen_t length) {
  for (const std::int64_t deadline = base::now_ns() + kPatience; base::now_ns() < deadline; sleep_ms(2)) {
    base::Fd socket = make();
    if (connect(socket.get(), address, length) == 0) return socket;
  }
  ADD_FAILURE() << in_vain("somebody to listen");
  return {};
}

}  // namespace

pid_t Processes::start(const Task& task) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(kMostSeconds);
    const std::string words = task();
    _exit(write(ends[1], words.data(), words.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  children_.push_back({child, ends[0]});
  return child;
}

void Processes::kill(pid_t child) {
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  for (Child& one : children_) one.killed = one.killed || one.id == child;
}

void Processes::signal_until_done(int signal) {
  for (bool some = true; some;) {
    some = false;
    for (const Child& child : children_) {
      siginfo_t ended{};
      if (waitid(P_PID, static_cast<id_t>(child.id), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0) continue;
      ::kill(child.id, signal);
      some = true;
    }
    sleep_ms(1);
  }
}

std::string Processes::wait() {
  std::string all;
  for (const Child& child : children_) {
    std::array<char, 4096> part;
    std::string words;
    for (ssize_t n = 0; (n = read(child.words, part.data(), part.size())) > 0;) words.append(part.data(), static_cast<std::size_t>(n));
    close(child.words);
    int status = 0;
    waitpid(child.id, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) words += fmt::format("did not end within {} s", kMostSeconds);
    if (!child.killed && status != 0) words += fmt::format("ended with wait status {:#x}", status);
    if (!words.empty()) all += words + "\n";
  }
  children_.clear();
  return all;
}

std::string meet_and_greet(const BootstrapOptions& wanted, bool files) {
  const Group group = LACUNA_END_TRY(protocol::form_group(patient(wanted)));
  LACUNA_END_EXPECT(group.size() == wanted.size);
  LACUNA_END_EXPECT(wanted.rank < 0 || group.rank == wanted.rank);
  for (int peer = 0; peer < group.size(); ++peer) {
    LACUNA_END_EXPECT((group.peers[static_cast<std::size_t>(peer)] == nullptr) == (peer == group.rank));
    if (peer == group.rank) continue;
    if (const std::string wrong = greet(group, peer, files); !wrong.empty())
      return fmt::format("rank {}, peer {}: {}", group.rank, peer, wrong);
  }
  return {};
}

std::string meet_and_fail(const BootstrapOptions& wanted, base::Code code, const std::vector<std::string>& texts) {
  return failed(protocol::form_group(code == base::Code::timeout ? wanted : patient(wanted)), code, texts);
}

std::string failed(const base::Result<Group>& group, base::Code code, const std::vector<std::string>& texts) {
  if (group) return "they met";
  bool as_wanted = group.error().code == code;
  for (const std::string& text : texts) as_wanted = as_wanted && group.error().message.find(text) != std::string::npos;
  return as_wanted ? "" : fmt::format("\"{}\" instead of {}: {}", group.error().text(), base::code_name(code), fmt::join(texts, ", "));
}

std::string under_signals(int count, const std::function<std::string(int)>& task) {
  struct sigaction nothing{};
  struct sigaction before{};
  nothing.sa_handler = [](int) {};  // and no SA_RESTART
  sigaction(SIGUSR1, &nothing, &before);
  Processes processes;
  for (int i = 0; i < count; ++i) {
    processes.start([&task, i] {
      sleep_ms(20 * i);
      return task(i);
    });
  }
  processes.signal_until_done(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  return processes.wait();
}

base::Fd hold_name(const std::string& name, uid_t user) {
  const UnixName held(name, user);
  base::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(socket.get(), held.generic(), held.length) != 0 || listen(socket.get(), 10) != 0) return {};
  return socket;
}

base::Fd connect_to_name(const std::string& name, uid_t user) {
  const UnixName wanted(name, user);
  return connect_when_listening([] { return base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }, wanted.generic(), wanted.length);
}

base::Fd accept_one(const base::Fd& listener) {
  EXPECT_TRUE(nic::tcp::wait_for(listener.get(), POLLIN, base::now_ns() + kPatience)) << in_vain("somebody to connect");
  return base::Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

Port::Port(bool v6) : v6_(v6) {
  if (v6) {
    auto* address = reinterpret_cast<sockaddr_in6*>(&where_);
    address->sin6_family = AF_INET6;
    address->sin6_addr = in6addr_loopback;
    length_ = sizeof *address;
  } else {
    auto* address = reinterpret_cast<sockaddr_in*>(&where_);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    length_ = sizeof *address;
  }
  // Bound and not listening: it can be bound again by those who say that they would share it, and is no process's by
  // chance.
  reserved_ = make_socket();
  const int on = 1;
  setsockopt(reserved_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto* generic = reinterpret_cast<sockaddr*>(&where_);
  if (bind(reserved_.get(), generic, length_) != 0 || getsockname(reserved_.get(), generic, &length_) != 0) return;
  number_ = ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(&where_)->sin6_port : reinterpret_cast<sockaddr_in*>(&where_)->sin_port);
}

std::string Port::address() const { return fmt::format("{}:{}", v6_ ? "[::1]" : "127.0.0.1", number_); }

base::Fd Port::make_socket() const { return base::Fd(::socket(where_.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

base::Fd Port::connect() const {
  return connect_when_listening([this] { return make_socket(); }, reinterpret_cast<const sockaddr*>(&where_), length_);
}

base::Fd Port::listen() const {
  base::Fd socket = make_socket();
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&where_), length_) != 0 || ::listen(socket.get(), 10) != 0) return {};
  return socket;
}

std::string with_timeouts(const std::function<std::string(double timeout_s)>& bounded) {
  std::string wrong;
  for (const double timeout_s : {1, 2, 4, 8, 16}) {
    const std::int64_t began = base::now_ns();
    wrong = bounded(timeout_s);
    const double took_s = static_cast<double>(base::now_ns() - began) * 1e-9;
    if (wrong.empty() && took_s < timeout_s) wrong = fmt::format("it ended after {} s, and not after {}", took_s, timeout_s);
    if (wrong.empty() && took_s > timeout_s + BootstrapOptions().timeout_s / 2)
      wrong = fmt::format("it took {} s, and not {}", took_s, timeout_s);
    if (wrong.empty()) return {};
  }
  return wrong;
}

void say(const base::Fd& socket, const std::string& bytes) {
  static_cast<void>(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

std::string hear_all(const base::Fd& socket) {
  std::string all;
  for (;;) {
    pollfd waiting{socket.get(), POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(kPatience / 1'000'000)) == 0) return all + "(open)";
    std::array<char, 4096> part;
    const ssize_t n = recv(socket.get(), part.data(), part.size(), 0);
    if (n <= 0) return all;
    all.append(part.data(), static_cast<std::size_t>(n));
  }
}

void sleep_ms(int ms) {  // also under signals
  const std::int64_t until = base::now_ns() + ms * std::int64_t{1'000'000};
  for (std::int64_t left = until - base::now_ns(); left > 0; left = until - base::now_ns())
    poll(nullptr, 0, static_cast<int>(left / 1'000'000) + 1);
}

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace lacuna::test
