#include "lacuna/nixl/agent.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "lacuna/nixl/meeting.hpp"

namespace lacuna::nixl {
namespace {

using base::Code;
using nic::tcp::Acceptor;
using nic::tcp::Caller;
using nic::tcp::Endpoint;

constexpr double kMostSeconds = 3600;
constexpr int kMostGreeters = 256;         // threads, beyond which no agent is met: what was said so far may be false
constexpr std::size_t kMostCallers = 256;  // that connect at the same time: an Acceptor drops the oldest of more

// The thread that moves things on yields while something happens, and then sleeps longer and longer: what comes after a
// pause waits for a thousandth of it, and a millisecond at most.
constexpr std::int64_t kBusyNs = 100'000, kShortestSleepNs = 50'000, kLongestSleepNs = 1'000'000, kShareOfPause = 1000;
// A program that called so recently before is in a loop of calls, which goes on for some rounds more. In Python a round
// takes 2 microseconds.
constexpr std::int64_t kRoundNs = 50'000, kLoopNs = 200'000;
constexpr std::int64_t kLookNs = 100'000'000;  // between two looks for connections that ended

std::string listening_host(const Settings& settings) {
  if (!settings.host.empty()) return settings.host;
  return settings.nic == "local" ? "127.0.0.1" : "0.0.0.0";
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::create(std::string name, Settings settings) {
  if (name.size() > kMostNameBytes)
    return base::fail(Code::limit, fmt::format("the agent's name has {} bytes; at most {}", name.size(), kMostNameBytes));
  if (settings.nic.size() > kMostNicBytes || settings.host.size() > kMostHostBytes)
    return base::fail(Code::limit, fmt::format("a NIC's name may have {} bytes, a host's {}", kMostNicBytes, kMostHostBytes));
  if (!(settings.timeout_s > 0 && settings.timeout_s <= kMostSeconds))
    return base::fail(Code::invalid_argument,
                      fmt::format("timeout_s is {}; it may be above 0 and up to {} seconds", settings.timeout_s, kMostSeconds));
  if (!(settings.wait_s >= 0 && settings.wait_s <= kMostSeconds))
    return base::fail(Code::invalid_argument, fmt::format("wait_s is {}; it may be 0 to {} seconds", settings.wait_s, kMostSeconds));
  if (settings.connections < 1)
    return base::fail(Code::invalid_argument, fmt::format("connections is {}; it is at least 1", settings.connections));
  if (!settings.nic.empty()) LACUNA_TRY(nic::open(settings.nic));
  std::unique_ptr<Agent> agent(new Agent(std::move(name), std::move(settings)));
  LACUNA_TRY(agent->listen());
  return agent;
}

Result<void> Agent::listen() {
  timeout_ns_ = static_cast<std::int64_t>(settings_.timeout_s * kNsPerSecond);
  wait_ns_ = static_cast<std::int64_t>(settings_.wait_s * kNsPerSecond);
  beginnings_ = std::make_unique<Beginnings>(timeout_ns_);
  LACUNA_TRY(nic::tcp::Secret::create(""));  // before anything is drawn at random
  own_.secret = nic::tcp::random_bytes(kSecretBytes);
  own_.machine = nic::tcp::machine_identity();
  own_.user = geteuid();
  own_.nic = settings_.nic;
  auto secret = std::make_shared<nic::tcp::Secret>(LACUNA_TRY(nic::tcp::Secret::create(own_.secret)));

  const std::string host = listening_host(settings_);
  Endpoint endpoint = LACUNA_TRY(nic::tcp::resolve(at_port(host, 1))).front();
  endpoint.set_port(0);
  base::Fd socket = LACUNA_TRY(nic::tcp::listen_at(endpoint));
  own_.port = LACUNA_TRY(nic::tcp::near_end(socket.get())).port();
  own_.hosts = host == "0.0.0.0" ? own_hosts() : std::vector{host};
  wake_ = base::Fd(eventfd(0, EFD_CLOEXEC));
  if (!wake_) return std::unexpected(base::system_error("eventfd", errno));
  auto acceptor = std::make_shared<Acceptor>(std::move(socket), meeting_request_bytes(), kMostCallers, greet_meeting);
  base::without_signals([&] {
    listener_ = std::thread([this, acceptor = std::move(acceptor), secret = std::move(secret)] { accept(*acceptor, *secret); });
    server_ = std::thread([this] { serve(); });
  });
  return {};
}

Agent::~Agent() {
  stop_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = wake_ ? write(wake_.get(), &one, sizeof one) : 0;
  for (std::thread* thread : {&listener_, &server_})
    if (thread->joinable()) thread->join();
  greeters_.wait();
  helpers_.wait();
  outgoing_.clear();
  incoming_.clear();
}

// --- threads ---------------------------------------------------------------------------------------------------------

void Agent::accept(Acceptor& acceptor, const nic::tcp::Secret& secret) {
  const auto one = [&] {
    pollfd woken{wake_.get(), POLLIN, 0};
    Result<std::optional<Caller>> caller = acceptor.next({&woken, 1}, base::now_ns() + timeout_ns_);
    if (!caller) {
      base::log(base::Level::error, fmt::format("NIXL agent {} cannot hear who connects: {}", name_, caller.error().text()));
      nic::tcp::pause_until(base::now_ns() + kLookNs);
      return;
    }
    if (!*caller || stop_) return;
    if (greeters_.working() >= kMostGreeters) {
      base::log(base::Level::warn, fmt::format("NIXL agent {}: an agent could not connect: {} connect already", name_, kMostGreeters));
      return;
    }
    greeters_.run([this, secret, guest = std::make_shared<Caller>(std::move(**caller))] {
      if (const Result<void> came = take_in(std::move(*guest), secret); !came)
        base::log(base::Level::warn, fmt::format("NIXL agent {}: an agent could not connect: {}", name_, came.error().text()));
    });
  };
  while (!stop_)
    if (!contained("the thread that listens", one)) nic::tcp::pause_until(base::now_ns() + kLookNs);
}

Connection::Around Agent::around() { return {registrations_, inbox_, helpers_, timeout_ns_}; }

// Why another connection is not taken; else its place is kept.
std::string Agent::refusal() {
  const std::scoped_lock lock(mutex_);
  if (std::ssize(incoming_) + coming_ >= settings_.connections)
    return fmt::format("this agent has {} connections from others, and takes no more (parameter connections)", settings_.connections);
  ++coming_;
  return {};
}

Result<void> Agent::take_in(Caller caller, const nic::tcp::Secret& secret) {
  const std::string why = refusal();
  const std::unique_ptr<Agent, void (*)(Agent*)> place(why.empty() ? this : nullptr, [](Agent* agent) {
    const std::scoped_lock lock(agent->mutex_);
    --agent->coming_;
  });
  Result<Guest> guest = meet_second(name_, secret, std::move(caller), {.nic = settings_.nic, .refusal = why}, timeout_ns_);
  std::shared_ptr<Connection> made;
  if (guest) made = std::make_shared<Connection>(std::move(guest->name), Connection::Role::second, std::move(guest->ends), around());
  const std::scoped_lock lock(mutex_);
  if (!guest) return std::unexpected(guest.error());
  incoming_.push_back(std::move(made));
  return {};
}

void Agent::serve() {
  std::int64_t moved_at = base::now_ns(), looked_at = moved_at;
  const auto one = [&] {
    const std::int64_t now = base::now_ns();
    if (now - looked_at > kLookNs) {
      drop_lost();
      looked_at = now;
    }
    if (now - in_loop_at_.load(std::memory_order_relaxed) > kLoopNs && step()) {
      moved_at = base::now_ns();
      return;
    }
    if (now - moved_at < kBusyNs) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(
          std::chrono::nanoseconds(std::clamp((now - moved_at) / kShareOfPause, kShortestSleepNs, kLongestSleepNs)));
    }
  };
  while (!stop_)
    if (!contained("the thread that moves things on", one)) nic::tcp::pause_until(base::now_ns() + kLookNs);
}

bool Agent::step() {
  bool moved = beginnings_->step();
  for (const auto& connection : all()) moved = connection->step() || moved;
  return moved;
}

void Agent::called() {
  const std::int64_t now = base::now_ns();
  if (now - called_at_.exchange(now, std::memory_order_relaxed) < kRoundNs) in_loop_at_.store(now, std::memory_order_relaxed);
}

std::vector<std::shared_ptr<Connection>> Agent::all() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Connection>> found = incoming_;
  for (const auto& [agent, attempt] : outgoing_)
    if (const auto made = attempt->outcome(); made && *made) found.push_back(**made);
  return found;
}

// Of those that others made. What this agent made tells its program that it is lost.
void Agent::drop_lost() {
  std::vector<std::shared_ptr<Connection>> ended;
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(incoming_, [&](const std::shared_ptr<Connection>& connection) {
      const auto lost = connection->ended();
      if (!lost) return false;
      const auto level = lost->code == Code::peer_lost ? base::Level::info : base::Level::warn;
      base::log(level, fmt::format("NIXL agent {}: the connection from agent {} ended: {}", name_, connection->shown(), lost->text()));
      ended.push_back(connection);
      return true;
    });
  }
  for (auto& connection : ended) end(std::move(connection));
}

void Agent::end(std::shared_ptr<Connection> connection) {
  helpers_.run([connection = std::move(connection)]() mutable { connection.reset(); });
}

// --- agents ----------------------------------------------------------------------------------------------------------

Result<void> Agent::learn(const std::string& agent, const std::string& address) {
  Address there = LACUNA_TRY(decode_address(address));
  bool other = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto known = known_.find(agent);
    other = known != known_.end() && known->second != there;
  }
  if (other) leave(agent);  // it was started again
  const std::scoped_lock lock(mutex_);
  known_[agent] = std::move(there);
  return {};
}

Result<std::shared_ptr<Attempt>> Agent::reach(const std::string& agent) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = outgoing_.find(agent); found != outgoing_.end()) {
    const auto outcome = found->second->outcome();
    if (!outcome) return found->second;
    const auto lost = *outcome ? (**outcome)->lost() : std::nullopt;
    if (lost)
      return base::fail(lost->code,
                        fmt::format("the connection to agent {} ended ({}): remove it, and load its metadata again", agent, lost->message));
    if (*outcome) return found->second;
  }
  Address there;
  if (agent != name_) {
    const auto found = known_.find(agent);
    if (found == known_.end())
      return base::fail(Code::invalid_argument, fmt::format("where agent {} is, is not known: load its metadata first", agent));
    there = found->second;
  }
  auto attempt = std::make_shared<Attempt>();
  helpers_.run([this, agent, there, attempt] {
    Attempt::Outcome made = base::fail(Code::out_of_memory, "there was no memory for a connection");
    contained("a connection", [&] { made = connect(agent, there); });
    attempt->end(std::move(made));
  });
  outgoing_[agent] = attempt;
  return attempt;
}

Result<std::shared_ptr<Connection>> Agent::connect(const std::string& agent, const Address& there) {
  using Role = Connection::Role;
  if (agent == name_) return std::make_shared<Connection>(agent, Role::alone, LACUNA_TRY(meet_alone()), around());
  const std::string nic = LACUNA_TRY(nic_to(there));
  Result<Connection::Ends> ends = meet_first(name_, agent, there, nic, timeout_ns_);
  if (!ends) return base::fail(ends.error().code, fmt::format("no connection to agent {} by NIC {}: {}", agent, nic, ends.error().message));
  return std::make_shared<Connection>(agent, Role::first, std::move(*ends), around());
}

Result<std::string> Agent::nic_to(const Address& there) const {
  if (!settings_.nic.empty() && !there.nic.empty() && settings_.nic != there.nic)
    return base::fail(Code::invalid_argument,
                      fmt::format("this agent takes NIC {} only, that one {}: give both the same parameter nic", settings_.nic, there.nic));
  if (!settings_.nic.empty() || !there.nic.empty()) return settings_.nic.empty() ? there.nic : settings_.nic;
  const bool together = there.machine == own_.machine && there.user == own_.user;
  return std::string(LACUNA_TRY(nic::open_usual(!together))->nic_name());
}

void Agent::leave(const std::string& agent) {
  std::shared_ptr<Attempt> attempt;
  {
    const std::scoped_lock lock(mutex_);
    known_.erase(agent);
    const auto found = outgoing_.find(agent);
    if (found == outgoing_.end()) return;
    attempt = std::move(found->second);
    outgoing_.erase(found);
  }
  helpers_.run([attempt = std::move(attempt)]() mutable { attempt.reset(); });
}

Result<void> Agent::withdraw(const Token& token) {
  registrations_.remove(token);
  Result<void> done;
  const std::int64_t deadline = soon();  // of all of them; each is looked at
  for (const auto& connection : all())
    if (!connection->withdraw(token, deadline))
      done = base::fail(Code::timeout, fmt::format("agent {} is stopped in the middle of a transfer: it may still reach this memory, which "
                                                   "has to stay as it is until its process ends",
                                                   connection->shown()));
  return done;
}

void Agent::forget(const Token& token) {
  for (const auto& connection : all()) connection->forget(token);
}

}  // namespace lacuna::nixl
