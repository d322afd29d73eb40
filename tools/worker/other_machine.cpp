// The two ranks on two machines. One listens for the workers of one command, each of which has its own process there:
//
//   lacuna guide HOST                                           lacuna guide --listen
//   worker, rank 0   ── handshake: the secret, the visit ──▶   serve_others()   ── fork ──▶  rank 1
//   another worker   ── the same visit ────────────────────▶                    ── fork ──▶  rank 1
//
// When the first worker's rank 1 ends, all is over. Another one takes a second look at cells, in other memory.
//
// Then both say which version they are and what they measure with, and are two ranks like any others; the TCP
// connection carries requests.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "lacuna/guide/guide.hpp"
#include "lacuna/nic/tcp.hpp"
#include "tools/measure/machine_json.hpp"
#include "tools/worker/serving.hpp"
#include "tools/worker/worker.hpp"

namespace lacuna::measure {
namespace {

namespace tcp = nic::tcp;

using base::Code;

// "LCG1"; changes with what both say after the handshake
constexpr tcp::Purpose kGuide{0x3147434c, "`lacuna guide --listen`"};
constexpr std::size_t kVisitBytes = 32;
constexpr std::size_t kMostCallers = 64;
constexpr std::int64_t kCallNs = 5'000'000'000;  // for the handshake, and for a listener that is about to start
constexpr std::int64_t kRetryNs = 50'000'000;
constexpr std::int64_t kTermsNs = 10'000'000'000;
constexpr std::int64_t kForever = std::int64_t{1} << 62;  // a listener waits until somebody comes, or its input ends
constexpr int kMostTold = 100;                            // refusals: a stranger shall not fill the terminal

// Read once: then it is in the environment no more, neither of this process nor of those that it starts.
Result<tcp::Secret> shared_secret() {
  char* const secret = std::getenv("LACUNA_SECRET");
  const std::string_view text = secret != nullptr ? secret : "";
  if (secret == nullptr || text.size() < tcp::kLeastSecretBytes)
    return base::fail(Code::invalid_argument,
                      fmt::format("two machines need a secret of {} bytes or more, which both know, in LACUNA_SECRET; it has {}",
                                  tcp::kLeastSecretBytes, text.size()));
  Result<tcp::Secret> made = tcp::Secret::create(text);
  explicit_bzero(secret, text.size());
  unsetenv("LACUNA_SECRET");
  return made;
}

std::string word(const Json& json, const char* member) {
  return json.contains(member) && json[member].is_string() ? json[member].get<std::string>() : "?";
}

std::string_view kind_of(std::string_view nic) { return nic.substr(0, nic.find(':')); }

// Both sides say who they are, and both find out alike whether that fits. What the other one said. Errors: unsupported
// (another version, another kind of NIC, what the other side says), malformed, those of Bootstrap.
Result<Json> agree_on_terms(nic::Bootstrap& control, const Station& station) {
  const Json mine = {
      {"protocol", kProtocol}, {"version", base::version()}, {"nic", station.nic}, {"machine", machine_json<Json>(base::machine())}};
  Json theirs = LACUNA_TRY(trade(control, mine, kTermsNs));
  if (theirs.contains("refused")) return base::fail(Code::unsupported, fmt::format("the other side refuses: {}", word(theirs, "refused")));
  if (theirs.value("protocol", Json()) != kProtocol || theirs.value("version", Json()) != base::version())
    return base::fail(Code::unsupported, fmt::format("this side is Lacuna {}, the other one {}: install the same version on both machines",
                                                     base::version(), word(theirs, "version")));
  const std::string nic = word(theirs, "nic");
  if (kind_of(nic) != kind_of(station.nic))
    return base::fail(Code::unsupported, fmt::format("this side measures with --nic {}, the other one with --nic {}", station.nic, nic));
  return theirs;
}

// --- the side that was given HOST ---

Result<base::Fd> call(const std::string& address, const tcp::Secret& secret, const std::string& visit) {
  const std::vector<tcp::Endpoint> endpoints = LACUNA_TRY(tcp::resolve(address));
  const std::int64_t deadline = base::now_ns() + kCallNs;
  for (std::size_t attempt = 0;; ++attempt) {
    const tcp::Endpoint& endpoint = endpoints[attempt % endpoints.size()];
    Result<base::Fd> socket = tcp::connect_to(endpoint, deadline);
    Result<void> known = socket ? tcp::introduce(socket->get(), secret, kGuide, visit, deadline) : std::unexpected(socket.error());
    if (known) {
      tcp::notice_death(socket->get());
      return socket;
    }
    const base::Error& error = known.error();
    if (error.code == Code::permission || error.code == Code::malformed)
      return base::fail(error.code, fmt::format("{}: {}", endpoint.text(), error.message));
    if (base::now_ns() >= deadline)
      return base::fail(error.code,
                        fmt::format("{}: {}. Does `lacuna guide --listen` run there, and does the firewall let TCP port {} through?",
                                    endpoint.text(), error.message, endpoint.port()));
    tcp::pause_until(std::min(deadline, base::now_ns() + kRetryNs));
  }
}

Result<void> lead_far(const std::string& address, const std::string& visit, const std::string& nic, const nic::OpenOptions& options,
                      const std::string& fault) {
  const Station station = LACUNA_TRY(station_of(nic, options, fault));
  const tcp::Secret secret = LACUNA_TRY(shared_secret());
  if (visit.size() > kVisitBytes)
    return base::fail(Code::invalid_argument, fmt::format("a visit is named by up to {} bytes, not by \"{}\"", kVisitBytes, visit));
  std::string name = visit.empty() ? tcp::random_bytes(kVisitBytes) : visit;
  name.resize(kVisitBytes, '\0');
  tcp::TcpBootstrap channel(LACUNA_TRY(call(address, secret, name)));
  const Json theirs = LACUNA_TRY(agree_on_terms(channel, station));
  const Json peer = {{"address", address}, {"machine", theirs.value("machine", Json())}};
  return lead(station, {channel, channel}, &peer);
}

// --- the side that listens ---

struct Process {
  pid_t id = -1;
  base::Fd end;  // readable once it has ended
};

// `task` in a process that does not outlive this one.
Result<Process> start(const std::function<int()>& task) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return std::unexpected(base::system_error("fork", errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::_Exit(getppid() == parent ? task() : 1);
  }
  Process process{child, base::Fd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)))};
  if (process.end) return process;
  const base::Error error = base::system_error("pidfd_open", errno);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return std::unexpected(error);
}

int code_of(const Process& process) {
  int status = 0;
  waitpid(process.id, &status, 0);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return report_failure(base::fail(Code::io, fmt::format("the receiver was killed by signal {}", WTERMSIG(status))), "worker");
}

class Listening {
 public:
  Listening(const Station& station, const tcp::Secret& secret, base::Fd listener)
      : station_(station),
        secret_(secret),
        acceptor_(std::move(listener), tcp::request_bytes(kVisitBytes), kMostCallers,
                  [](tcp::Caller& caller) { return tcp::challenge(kGuide, caller); }) {}
  ~Listening() {
    for (const Process& rank : ranks_) kill(rank.id, SIGKILL);
    for (const Process& rank : ranks_) waitpid(rank.id, nullptr, 0);
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  /// The exit code of the first rank, which is there as long as the visit.
  Result<int> run() {
    for (;;) {
      std::vector<pollfd> watched{{STDIN_FILENO, POLLIN, 0}};
      for (const Process& rank : ranks_) watched.push_back({rank.end.get(), POLLIN, 0});
      const std::optional<tcp::Caller> caller = LACUNA_TRY(acceptor_.next(watched, base::now_ns() + kForever));
      if (watched.front().revents != 0 && input_ended()) return 0;
      for (std::size_t i = ranks_.size(); i-- > 0;) {
        if (watched[1 + i].revents == 0) continue;
        const int code = code_of(ranks_[i]);
        ranks_.erase(ranks_.begin() + static_cast<std::ptrdiff_t>(i));
        if (i == 0) return code;
      }
      if (caller) LACUNA_TRY(hear(*caller));
    }
  }

 private:
  static bool input_ended() {
    std::array<char, 256> unused;
    return read(STDIN_FILENO, unused.data(), unused.size()) <= 0;
  }

  Result<void> hear(const tcp::Caller& caller) {
    const Result<tcp::Endpoint> far = tcp::far_end(caller.socket.get());
    const std::string from = far ? far->text() : "somebody who has gone";
    const Result<std::string> visit = tcp::verify(secret_, kGuide, caller);
    if (!visit) {
      refused(from, visit.error().message);
      return {};
    }
    if (!visit_.empty() && *visit != visit_) {
      refused(from, fmt::format("this side is measuring with {}", first_));
      ranks_.push_back(LACUNA_TRY(answer(caller, [&](nic::Bootstrap& channel) {
        const Json why = {{"refused", fmt::format("it is measuring with {}", first_)}};
        return trade(channel, why, kTermsNs) ? 0 : 1;
      })));
      return {};
    }
    if (visit_.empty()) {
      visit_ = *visit;
      first_ = from;
      print({{"met", {{"from", from}}}});
    }
    ranks_.push_back(
        LACUNA_TRY(answer(caller, [&](nic::Bootstrap& channel) { return report_failure(attend(channel, from), "receiver"); })));
    return {};
  }

  // The process that answers keeps neither the listener nor anybody else's connection.
  Result<Process> answer(const tcp::Caller& caller, const std::function<int(nic::Bootstrap&)>& task) {
    return start([&] {
      acceptor_.forget();
      base::Fd socket(dup(caller.socket.get()));
      tcp::send_at_once(socket.get());
      tcp::notice_death(socket.get());
      tcp::TcpBootstrap channel(std::move(socket));
      return task(channel);
    });
  }

  Result<void> attend(nic::Bootstrap& channel, const std::string& from) {
    LACUNA_TRY(agree_on_terms(channel, station_));
    const Result<void> assisted = assist(station_, {channel, channel}, true);
    if (!assisted && assisted.error().code == Code::peer_lost)
      return base::fail(Code::peer_lost, fmt::format("{} went before it was done: {}", from, assisted.error().message));
    return assisted;
  }

  void refused(const std::string& from, const std::string& why) {
    if (++told_ <= kMostTold) print({{"refused", {{"from", from}, {"why", why}}}});
  }

  const Station& station_;
  const tcp::Secret& secret_;
  tcp::Acceptor acceptor_;
  std::string visit_;           // of the command that is served; empty: nobody has come
  std::string first_;           // from where
  std::vector<Process> ranks_;  // the visit's first one first
  int told_ = 0;
};

// Before anybody comes it is known whether there is a NIC: in a process of its own, since what a driver sets up does
// not survive a fork.
Result<void> try_nic(const Station& station, const std::string& at) {
  const Process trial = LACUNA_TRY(start([&] {
    const auto context = nic::open(station.nic, station.options);
    if (!context) return report_failure(std::unexpected(context.error()), "receiver");
    print({{"listening",
            {{"protocol", kProtocol},
             {"version", base::version()},
             {"at", at},
             {"nic", describe_nic((*context)->nic_name(), (*context)->limits())}}}});
    return 0;
  }));
  if (code_of(trial) != 0) return base::fail(Code::unsupported, fmt::format("nothing to listen for: NIC {} cannot be opened", station.nic));
  return {};
}

Result<base::Fd> listen_at_first(const std::string& address) {
  Result<base::Fd> listener = base::Fd();
  for (const tcp::Endpoint& endpoint : LACUNA_TRY(tcp::resolve(address))) {
    listener = tcp::listen_at(endpoint);
    if (listener) break;
  }
  return listener;
}

Result<int> listen_far(const std::string& address, const std::string& nic, const nic::OpenOptions& options, const std::string& fault) {
  const Station station = LACUNA_TRY(station_of(nic, options, fault));
  const tcp::Secret secret = LACUNA_TRY(shared_secret());
  base::Fd listener = LACUNA_TRY(listen_at_first(address));
  const std::string at = LACUNA_TRY(tcp::near_end(listener.get())).text();
  LACUNA_TRY(try_nic(station, at));
  return Listening(station, secret, std::move(listener)).run();
}

// A simulated NIC has both its ranks in one process.
Result<void> check_real(const std::string& nic) {
  if (!guide::simulated_platform(nic)) return {};
  return base::fail(Code::invalid_argument, fmt::format("NIC {} is simulated: it has no second machine", nic));
}

}  // namespace

int serve_with(const std::string& address, const std::string& visit, const std::string& nic, const nic::OpenOptions& options,
               const std::string& fault) {
  Result<void> result = check_real(nic);
  if (result) result = lead_far(address, visit, nic, options, fault);
  return report_failure(result, "sender");
}

int serve_others(const std::string& address, const std::string& nic, const nic::OpenOptions& options, const std::string& fault) {
  const Result<void> real = check_real(nic);
  const Result<int> code = real ? listen_far(address, nic, options, fault) : std::unexpected(real.error());
  return code ? *code : report_failure(std::unexpected(code.error()), "receiver");
}

}  // namespace lacuna::measure
