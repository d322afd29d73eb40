// What two agents say to one another of their memory.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "lacuna/nixl/connection.hpp"

namespace lacuna::nixl {
namespace {

using base::Code;
using protocol::Exposed;

// An answer, as it travels between two processes of one version (address.cpp).
struct Answer {
  Token token;
  std::uint32_t known = 0;
  std::int32_t rank = 0;
  std::int64_t bytes = 0;
  std::uint32_t number = 0;
  std::uint32_t key = 0;
  std::uint64_t has_key = 0;
};

// So long a look waits for a peer that is in the middle of a copy by its CPU. A look that found another copy each time
// would never find the peer outside, so it is longer than most copies (kBatchBytes of lacuna/nic/local).
constexpr std::int64_t kLook = 10'000'000;

// Of memory here that this end alone moves: the peer has no part in that.
constexpr nic::Rights kOwnRights{.local_write = true, .remote_write = false, .remote_read = false};

template <class Value>
std::vector<std::byte> bytes_of(const Value& value) {
  static_assert(std::has_unique_object_representations_v<Value>);
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class Value>
Value value_of(const std::vector<std::byte>& bytes) {
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

// Nothing: the peer of this role may not say that.
std::optional<std::size_t> Connection::most_bytes(Kind kind) const {
  if (role_ == Role::first) return kind == Kind::answer ? std::optional(sizeof(Answer)) : std::nullopt;
  if (kind == Kind::ask) return sizeof(Token);
  return kind == Kind::notice ? std::optional(kMostNotice) : std::nullopt;
}

// --- this agent's memory ---------------------------------------------------------------------------------------------

Result<void> Connection::answer(const std::vector<std::byte>& question) {
  Answer said{.token = value_of<Token>(question)};
  if (const Result<const Shared*> shared = expose(said.token); shared) {
    const Exposed& exposed = (*shared)->exposed;
    said.known = 1;
    said.rank = exposed.rank;
    said.number = exposed.number;
    said.bytes = exposed.bytes;
    said.has_key = (*shared)->region.bytes().empty() ? 0 : 1;
    said.key = (*shared)->region.rkey();
  }
  return say(Kind::answer, bytes_of(said));
}

Result<void> Connection::learn(const std::vector<std::byte>& answer) {
  const auto said = value_of<Answer>(answer);
  const auto asked = numbers_.find(said.token);
  if (asked == numbers_.end() || asked->second) return {};  // forgotten meanwhile, or said before
  if (said.known == 0) {
    asked->second =
        base::fail(Code::invalid_argument, fmt::format("agent {} has not registered this memory, or not any more: load its metadata "
                                                       "again",
                                                       shown_));
    return {};
  }
  if (said.rank != other() || said.bytes <= 0)
    return base::fail(Code::malformed, fmt::format("agent {} gives memory of {} bytes of rank {}", shown_, said.bytes, said.rank));
  asked->second = Known{.exposed = {said.rank, said.number, said.bytes}, .key = said.has_key != 0 ? std::optional(said.key) : std::nullopt};
  return {};
}

Result<const Connection::Shared*> Connection::expose(const Token& token) {
  if (const auto found = exposed_.find(token); found != exposed_.end()) return &found->second;
  const auto memory = around_.registrations.find(token);
  if (!memory) return base::fail(Code::invalid_argument, "this memory is not registered here, or not any more");
  Shared shared{.exposed = LACUNA_TRY(ends_.ranks->expose(memory->base, memory->bytes)),
                .region = register_memory(memory->base, memory->bytes, nic::Rights{})};
  return &exposed_.insert_or_assign(token, std::move(shared)).first->second;
}

// None, where the NIC cannot have it: then puts and gets go on.
nic::Region Connection::register_memory(std::byte* base, std::int64_t bytes, nic::Rights rights) {
  if (ends_.direct == nullptr) return {};
  auto made = ends_.context->register_memory({base, static_cast<std::size_t>(bytes)}, rights);
  if (made) return std::move(*made);
  base::log(base::Level::info, fmt::format("NIXL: {} bytes go without direct access: {}", bytes, made.error().text()));
  return {};
}

// --- the peer's memory -----------------------------------------------------------------------------------------------

Result<bool> Connection::resolve(std::vector<Part>& parts, bool puts) {
  const Lock lock(mutex_);
  if (!LACUNA_TRY(ask(parts))) {
    advance();
    if (!LACUNA_TRY(ask(parts))) return false;
  }
  LACUNA_TRY(decide(parts, puts));
  return true;
}

// Whether all is known.
Result<bool> Connection::ask(const std::vector<Part>& parts) {
  bool all = true;
  for (const Part& part : parts) {
    const Token& token = part.memory;
    const auto [place, unknown] = numbers_.try_emplace(token);
    if (lost_) return std::unexpected(*lost_);
    if (role_ == Role::alone) {
      const Result<const Shared*> shared = expose(token);
      place->second = shared ? Result<Known>(Known{.exposed = (*shared)->exposed, .key = {}}) : std::unexpected(shared.error());
    } else if (unknown) {
      if (Result<void> asked = say(Kind::ask, bytes_of(token)); !asked) {
        numbers_.erase(place);
        return std::unexpected(std::move(asked).error());
      }
    }
    const auto& answer = place->second;
    all = all && answer.has_value();
    if (!answer || *answer) continue;
    const base::Error refused = answer->error();
    numbers_.erase(place);  // it may be registered later
    return std::unexpected(refused);
  }
  return all;
}

Result<Connection::Known> Connection::known(const Token& token) const {
  const auto number = numbers_.find(token);
  const auto& answer = number == numbers_.end() ? std::nullopt : number->second;
  if (!answer) return base::fail(Code::invalid_argument, "the peer's memory was unloaded since the transfer was prepared");
  return *answer;
}

Result<void> Connection::decide(std::vector<Part>& parts, bool puts) {
  for (Part& part : parts) {
    const Known there = LACUNA_TRY(known(part.memory));
    LACUNA_TRY(estimator_.decide(part, puts, ends_.direct != nullptr && there.key && part.own));
    if (!part.direct || !part.own || own_.contains(part.own->token)) continue;
    nic::Region region = register_memory(part.own->base, part.own->bytes, kOwnRights);
    part.direct = !region.bytes().empty();
    if (part.direct) own_.emplace(part.own->token, std::move(region));
  }
  return {};
}

void Connection::forget(const Token& token) {
  const Lock lock(mutex_);
  numbers_.erase(token);
}

// Whether the peer, or a transfer with it, is in the middle of this memory; nothing begins there from now on. Once the
// communicator is being ended, that is for the one who ends it to say.
bool Connection::in_use(const Token& token) {
  if (ends_.ranks == nullptr) return false;
  const auto own = own_.find(token);
  const auto shared = exposed_.find(token);
  bool reached = own != own_.end() && !own->second.revoke(kLook);
  if (shared == exposed_.end()) return reached;
  reached = !shared->second.region.revoke(kLook) || reached;
  const Result<void> gone = ends_.ranks->withdraw(shared->second.exposed, 0);
  return reached || (!gone && gone.error().code == Code::timeout);
}

// The lock is not held all the time: a program's other calls go on. Half of the time is for what ends by itself.
bool Connection::withdraw(const Token& token, std::int64_t deadline) {
  const std::int64_t now = base::now_ns(), half_way = now + (deadline - now) / 2;
  Lock lock(mutex_);
  while (in_use(token) && base::now_ns() < half_way) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // a look has the lock for up to 20 ms
    lock.lock();
  }
  if (in_use(token)) {
    lose({Code::timeout, fmt::format("memory is deregistered that agent {} was using: the connection to it ends", shown_)});
    bury();
  }
  const std::shared_ptr<Errand> burial = burial_;
  if (burial != nullptr) {
    lock.unlock();
    if (!burial->wait(deadline)) return false;
    lock.lock();
  }
  own_.erase(token);
  exposed_.erase(token);
  return true;
}

}  // namespace lacuna::nixl
