// lacuna-message-bench: what a message takes, through Lacuna and through one MPI, between the same two processes. That MPI's mpiexec starts it twice:
//
//   mpiexec -n 2 lacuna-message-bench SHIM SOCKET NAME
//
// SHIM: the MPI's (bench/copy/mpi_shim.c); SOCKET: the Unix socket where commands come from; NAME: by which the two meet through Lacuna.
// Each rank connects to the socket, says who it is, and then answers each line with one; it sleeps in between. Both get the same commands, rank 0 first.
//
//   ◀ {"hello": {"rank", "pid", "version", "mpi", "instruction_set", "compiler", "machine": {..},
//                "cases": [{"suite", "name", "family", "payload_bytes", "blocks"}]}}
//   ▶ {"measure": 17, "milliseconds": 200, "fewest": 9}    ◀ {"row": {...}} or {"error": "..."}; rank 1: {"row": {}}
//
// `lacuna bench messages` is its user.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iostream>

#include "bench/messages/measure.hpp"
#include "lacuna/copy/copy.hpp"

using namespace lacuna;
using nlohmann::json;

namespace {

// Lines over a Unix socket.
class Talk {
 public:
  explicit Talk(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw bench::Broken(path + " is too long for a socket");
    path.copy(address.sun_path, path.size());
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw bench::Broken(base::system_error("connect " + path, errno).text());
  }

  void say(const json& line) const {
    const std::string text = line.dump() + "\n";
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t sent = ::send(socket_.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) throw bench::Broken(base::system_error("send", errno).text());
      done += static_cast<std::size_t>(sent);
    }
  }

  /// False at the end.
  bool hear(std::string& line) {
    for (;;) {
      if (const auto end = heard_.find('\n'); end != std::string::npos) {
        line = heard_.substr(0, end);
        heard_.erase(0, end + 1);
        return true;
      }
      char chunk[4096];
      const ssize_t got = ::read(socket_.get(), chunk, sizeof chunk);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      heard_.append(chunk, static_cast<std::size_t>(got));
    }
  }

 private:
  base::Fd socket_;
  std::string heard_;
};

json hello(const bench::Pair& pair, const base::Machine& m) {
  json cases = json::array();
  for (const bench::MessageCase& c : bench::message_cases())
    cases.push_back({{"suite", c.suite}, {"name", c.name}, {"family", c.family}, {"payload_bytes", c.payload}, {"blocks", c.blocks}});
  return {{"rank", pair.rank()},
          {"pid", getpid()},
          {"version", base::version()},
          {"mpi", pair.mpi().library()},
          {"instruction_set", copy::instruction_set()},
          {"compiler", fmt::format("GCC {}", __VERSION__)},
          {"machine",
           {{"cpu", m.cpu},
            {"kernel", m.kernel},
            {"cpus", m.cpus},
            {"l1d_bytes", m.l1d_bytes},
            {"l2_bytes", m.l2_bytes},
            {"llc_bytes", m.llc_bytes},
            {"page_bytes", m.page_bytes},
            {"memory_bytes", m.memory_bytes}}},
          {"cases", cases}};
}

json answer(const json& command, const bench::Pair& pair) {
  bench::Effort effort;
  effort.milliseconds = command.value("milliseconds", effort.milliseconds);
  effort.fewest = command.value("fewest", effort.fewest);
  const auto index = command.at("measure").get<std::size_t>();
  if (index >= bench::message_cases().size()) throw std::invalid_argument(fmt::format("there is no case {}", index));
  return {{"row", bench::measure(bench::message_cases()[index], pair, effort)}};
}

void run(const std::string& shim, const std::string& socket, const std::string& name) {
  const base::Machine machine = base::machine();  // before this process is bound to one of its CPUs
  const bench::Pair pair(shim, name);
  Talk talk(socket);
  talk.say({{"hello", hello(pair, machine)}});
  for (std::string line; talk.hear(line);) {
    json reply;
    try {
      reply = answer(json::parse(line), pair);
    } catch (const bench::Broken&) {
      throw;
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    talk.say(reply);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: lacuna-message-bench SHIM SOCKET NAME; `lacuna bench messages` has an mpiexec start it\n";
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a rank whose launcher is gone would wait for the other for ever
  try {
    run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    // The other rank may be waiting inside of the MPI: this has to end without MPI_Finalize, upon which mpiexec ends both.
    std::cerr << "lacuna-message-bench: " << error.what() << std::endl;
    _exit(3);
  }
}
