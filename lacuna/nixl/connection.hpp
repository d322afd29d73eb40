// connection: what two agents say to one another, of which the first begins transfers and the second has the memory. It
// hides that the two are ranks of a communicator.
//
//   ask       first ──▶ second    a token: which memory is it?
//   answer    first ◀── second    the number by which puts and gets name it, or that there is none
//   put, get  first ◀─▶ second    as of any communicator; or without the second one's CPU (direct.hpp)
//   notice    first ──▶ second    a notification, after the transfer that it belongs to
//
// What asks and notifies is a message of some bytes; a peer that says something else is lost. Any thread may call.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/nixl/direct.hpp"
#include "lacuna/nixl/estimate.hpp"
#include "lacuna/nixl/helpers.hpp"
#include "lacuna/nixl/inbox.hpp"
#include "lacuna/nixl/interface.hpp"
#include "lacuna/nixl/memory.hpp"
#include "lacuna/nixl/nixl.hpp"
#include "lacuna/nixl/parts.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::nixl {

class Attempt;
class Connection;

/// A transfer that a program has prepared, and begins as often as it likes.
class Transfer final : public nixlBackendReqH {
 public:
  Transfer(std::shared_ptr<Attempt> attempt, bool puts, std::vector<Part> parts)
      : attempt(std::move(attempt)), puts(puts), parts(std::move(parts)) {}
  const std::shared_ptr<Attempt> attempt;
  std::shared_ptr<Connection> connection;  ///< null: it is not there yet (beginnings.hpp)
  const bool puts;
  std::vector<Part> parts;

 private:
  friend class Beginnings;
  friend class Connection;
  enum class Stage { unready, waiting, ready, failed };
  Stage stage_ = Stage::unready;
  std::int64_t deadline_ = 0;  // of one that waits
  enum class State { idle, moving, over };
  State state_ = State::idle;
  std::vector<protocol::Request*> requests_;
  std::deque<Direct::Job> jobs_;
  std::optional<base::Error> error_;
  std::optional<std::string> notice_;
  bool released_ = false;  // the program wants to be rid of it
};

class Connection {
 public:
  /// The ends of a communicator; in this order they are destroyed.
  struct Ends {
    std::unique_ptr<nic::Context> context;
    std::unique_ptr<nic::Bootstrap> bootstrap;
    std::unique_ptr<protocol::Communicator> ranks;
    std::unique_ptr<Direct> direct;  ///< null: there is no path for it
  };
  /// Which one this agent is. An agent alone is both: it has one rank.
  enum class Role { first, second, alone };

  /// What it shares with the agent's other connections, which has to outlive it.
  struct Around {
    const Registrations& registrations;
    Inbox& inbox;
    Helpers& helpers;         ///< end what may not end soon
    std::int64_t timeout_ns;  ///< of silence, while something is under way
  };
  Connection(std::string agent, Role role, Ends ends, const Around& around);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The agent's name for people.
  [[nodiscard]] const std::string& shown() const { return shown_; }
  [[nodiscard]] Role role() const { return role_; }
  /// Why nothing goes this way any more.
  [[nodiscard]] std::optional<base::Error> lost() const;
  /// The same, once nothing of the peer's reaches this end's memory any more. Waits for nothing.
  [[nodiscard]] std::optional<base::Error> ended() const;
  /// Moves everything on, unless another thread does so; true if something moved.
  bool step();

  /// Asks for the numbers of all memory of the parts; once all are there, decides how each goes. To be called until it
  /// says that this was done. Errors: invalid_argument (the peer has no such memory), those of lost().
  Result<bool> resolve(std::vector<Part>& parts, bool puts);
  /// What a transfer is expected to take. Errors: those of Estimator::of().
  Result<Estimate> estimate(const Transfer& transfer);
  /// Errors: those of Communicator::put(); those that begin go on. `notice`: for the peer's program once all is there.
  Result<void> post(Transfer& transfer, std::optional<std::string> notice);
  /// The outcome of a transfer that was posted, once it is over. Errors: those of its puts and gets.
  std::optional<Result<void>> check(Transfer& transfer);
  struct Wish {
    bool again;  ///< it was said before
    bool busy;   ///< the transfer is under way
  };
  /// The program wants to be rid of a transfer, which notifies no agent from then on.
  Wish release(Transfer& transfer);
  /// Ends a transfer, so that its memory is the program's again; one that is under way takes the connection with it.
  /// False: a peer that is stopped in the middle of it may still reach the memory, after `deadline`.
  bool end(Transfer& transfer, std::int64_t deadline);
  /// A notification by itself. Errors: limit (its length, or too much waits for the peer), those of lost().
  Result<void> notify(std::string text);
  /// Errors: limit (its length).
  static Result<void> check_notice(const std::string& text);

  /// The peer reaches this memory no more. What it does with it meanwhile ends by `deadline`, or the connection does.
  /// False: a peer that is stopped in the middle of it may still reach the memory.
  bool withdraw(const Token& token, std::int64_t deadline);
  /// This agent uses that memory no more.
  void forget(const Token& token);

  /// A notification may have so many bytes.
  static constexpr std::size_t kMostNotice = 1 << 20;
  /// Bytes that wait for the peer, at most, with what a list takes for each message; a peer that takes nothing, and
  /// asks on and on, is lost.
  static constexpr std::size_t kMostWaiting = 64 << 20;

 private:
  enum class Kind : int { ask = 1, answer, notice };
  struct Outgoing {
    std::vector<std::byte> bytes;
    protocol::Request* request = nullptr;
  };
  struct Incoming {
    Kind kind;
    std::vector<std::byte> bytes;
    protocol::Request* request = nullptr;
  };
  // Memory of this agent, as the peer reaches it.
  struct Shared {
    protocol::Exposed exposed;
    nic::Region region;  // none: not without this agent's CPU
  };
  // Memory of the peer.
  struct Known {
    protocol::Exposed exposed;
    std::optional<std::uint32_t> key;
  };
  using Lock = std::unique_lock<std::mutex>;

  bool advance();
  void look_for_silence(bool moved);
  void bury();
  bool listen();
  bool hear(const Incoming& message);
  Result<void> answer(const std::vector<std::byte>& question);
  Result<void> learn(const std::vector<std::byte>& answer);
  Result<const Shared*> expose(const Token& token);
  bool in_use(const Token& token);
  Result<bool> ask(const std::vector<Part>& parts);
  Result<void> decide(std::vector<Part>& parts, bool puts);
  [[nodiscard]] nic::Region register_memory(std::byte* base, std::int64_t bytes, nic::Rights rights);
  Result<void> begin_direct(Transfer& transfer, const Part& part, const Known& there);
  [[nodiscard]] Result<Known> known(const Token& token) const;
  Result<void> say(Kind kind, std::vector<std::byte> bytes);
  Result<void> tell(std::string text);
  bool flush();
  std::optional<Result<protocol::Status>> ended(protocol::Request* request) const;
  void lose(base::Error error);
  Result<void> begin(Transfer& transfer, Part part, std::vector<Part>& begun);
  std::optional<Result<void>> advance(Transfer& transfer);
  bool advance_jobs(Transfer& transfer);
  [[nodiscard]] int other() const { return role_ == Role::first ? 1 : 0; }
  [[nodiscard]] std::optional<std::size_t> most_bytes(Kind kind) const;

  const std::string agent_, shown_;
  const Role role_;
  const Around around_;
  mutable std::mutex mutex_;
  Ends ends_;
  std::optional<base::Error> lost_;
  std::shared_ptr<Errand> burial_;  // of what is left of the communicator, once the connection is lost
  std::int64_t moved_at_ = 0;       // while transfers are under way
  std::list<Outgoing> outgoing_;
  std::size_t outgoing_bytes_ = 0;
  std::optional<Incoming> incoming_;
  std::vector<Transfer*> active_;  // under way
  Estimator estimator_;
  std::map<Token, Shared> exposed_;                        // by this agent, to the peer
  std::map<Token, nic::Region> own_;                       // of this agent, for what it moves alone
  std::map<Token, std::optional<Result<Known>>> numbers_;  // of the peer's memory; nothing: asked for
};

}  // namespace lacuna::nixl
