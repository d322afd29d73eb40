// Processes that meet, what a group that met must be able to do, and strangers who only have a socket.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lacuna/protocol/protocol.hpp"
#include "tests/support/names.hpp"
#include "tests/support/pair.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::test {

using protocol::BootstrapOptions;
using protocol::Group;

/// Children, each with something to do that says what went wrong.
class Processes {
 public:
  using Task = std::function<std::string()>;
  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() { wait(); }

  pid_t start(const Task& task);
  void kill(pid_t child);  ///< and waits until it is gone; what it says is of no interest any more
  std::string wait();      ///< what they said
  void signal_until_done(int signal);

 private:
  struct Child {
    pid_t id;
    int words;
    bool killed = false;
  };
  std::vector<Child> children_;
};

/// The same, for as long as a test waits; with a timeout of its own it keeps that.
inline BootstrapOptions patient(BootstrapOptions wanted) {
  if (wanted.timeout_s >= BootstrapOptions().timeout_s) wanted.timeout_s = static_cast<double>(kPatience) * 1e-9;
  return wanted;
}
/// Meets, and exchanges with each of the others who one is, and a file if `files`; also checks the rank that was asked
/// for.
std::string meet_and_greet(const BootstrapOptions& wanted, bool files = true);
/// Meets, and wants an error of that code whose message has all of these texts. Any but a timeout is waited for as
/// long as a test waits.
std::string meet_and_fail(const BootstrapOptions& wanted, base::Code code, const std::vector<std::string>& texts);
/// The same of a result.
std::string failed(const base::Result<Group>& group, base::Code code, const std::vector<std::string>& texts);

/// A number of processes that get a signal each millisecond. What they said.
std::string under_signals(int count, const std::function<std::string(int)>& task);

/// A name to meet at that no other test has.
inline std::string unique_name() { return unique_name("meet-test"); }
/// A socket that holds the name of this user's groups and listens, or is connected to it as soon as somebody listens.
base::Fd hold_name(const std::string& name, uid_t user);
base::Fd connect_to_name(const std::string& name, uid_t user);
/// The next one who connects there.
base::Fd accept_one(const base::Fd& listener);

/// A TCP port that nobody else gets while this lives. 0 where the address family is missing.
class Port {
 public:
  explicit Port(bool v6 = false);
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] std::string address() const;
  base::Fd connect() const;  ///< as soon as somebody listens
  [[nodiscard]] base::Fd listen() const;

 private:
  [[nodiscard]] base::Fd make_socket() const;
  sockaddr_storage where_{};
  socklen_t length_;
  bool v6_;
  int number_ = 0;
  base::Fd reserved_;
};

/// Runs a bootstrap that ends by its timeout, which it is given in seconds: where several processes have to come within
/// it. While it goes wrong it is run once more with a longer one.
std::string with_timeouts(const std::function<std::string(double timeout_s)>& bounded);

void say(const base::Fd& socket, const std::string& bytes);
/// All that comes until the other side closes; "(open)" is added if it does not.
std::string hear_all(const base::Fd& socket);

void sleep_ms(int ms);
std::size_t open_files();

}  // namespace lacuna::test
