// agent: all that one NIXL agent has here: what it registered, its connections, the thread that listens and the one
// that moves things on. It hides threads.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lacuna/nic/tcp.hpp"
#include "lacuna/nixl/address.hpp"
#include "lacuna/nixl/attempt.hpp"
#include "lacuna/nixl/beginnings.hpp"
#include "lacuna/nixl/connection.hpp"
#include "lacuna/nixl/helpers.hpp"
#include "lacuna/nixl/memory.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

class Agent {
 public:
  /// Errors: invalid_argument (the host, or no such NIC), io, permission (it cannot listen there), limit (a name too
  /// long).
  static Result<std::unique_ptr<Agent>> create(std::string name, Settings settings);
  /// Waits until peers took what was sent to them, a minute at most.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string address() const { return encode(own_); }
  /// For a call that begins now: until when it may wait for a peer.
  [[nodiscard]] std::int64_t soon() const { return base::now_ns() + wait_ns_; }
  [[nodiscard]] Beginnings& beginnings() { return *beginnings_; }
  [[nodiscard]] Inbox& inbox() { return inbox_; }
  [[nodiscard]] Registrations& registrations() { return registrations_; }

  /// Where an agent is. Errors: malformed.
  Result<void> learn(const std::string& agent, const std::string& address);
  /// The connection to an agent, which begins to be made if there is none. Errors: invalid_argument (its address was
  /// not loaded), peer_lost and others (there was one, which ended); of the attempt: invalid_argument (the two name
  /// different NICs), peer_lost, timeout, permission, unsupported (no such NIC there, or it takes no agent).
  Result<std::shared_ptr<Attempt>> reach(const std::string& agent);
  /// Ends the connection to an agent, and forgets where it is.
  void leave(const std::string& agent);
  /// Ends a registration: no peer reaches the memory afterwards. Errors: timeout (a peer that is stopped in the middle
  /// of a transfer may).
  Result<void> withdraw(const Token& token);
  /// This agent uses that memory no more.
  void forget(const Token& token);
  /// Moves all connections on; true if something moved.
  bool step();
  /// The program is in a call. While it calls again and again it moves things on itself, and the thread need not.
  void called();

 private:
  Agent(std::string name, Settings settings) : name_(std::move(name)), settings_(std::move(settings)) {}
  Result<void> listen();
  void accept(nic::tcp::Acceptor& acceptor, const nic::tcp::Secret& secret);
  void serve();
  Result<void> take_in(nic::tcp::Caller caller, const nic::tcp::Secret& secret);
  Result<std::shared_ptr<Connection>> connect(const std::string& agent, const Address& there);
  [[nodiscard]] Connection::Around around();
  std::string refusal();
  [[nodiscard]] Result<std::string> nic_to(const Address& there) const;
  void end(std::shared_ptr<Connection> connection);
  [[nodiscard]] std::vector<std::shared_ptr<Connection>> all() const;
  void drop_lost();

  const std::string name_;
  const Settings settings_;
  std::int64_t timeout_ns_ = 0, wait_ns_ = 0;
  std::unique_ptr<Beginnings> beginnings_;
  Address own_;
  Registrations registrations_;
  Inbox inbox_;

  mutable std::mutex mutex_;
  std::map<std::string, Address> known_;
  std::map<std::string, std::shared_ptr<Attempt>> outgoing_;
  std::vector<std::shared_ptr<Connection>> incoming_;
  std::int64_t coming_ = 0;  // connections that others are making

  std::atomic<bool> stop_ = false;
  std::atomic<std::int64_t> called_at_ = 0, in_loop_at_ = 0;
  base::Fd wake_;  // ends the listener's wait
  std::thread listener_, server_;
  Helpers greeters_;  // meet agents that connect to this one
  Helpers helpers_;   // connect to other agents, or end a connection
};

}  // namespace lacuna::nixl
