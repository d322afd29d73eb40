#include "lacuna/nixl/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace lacuna::nixl {
namespace {

using base::Code;
using protocol::Exposed;
using protocol::Request;

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

Result<Layout> layout_of(const std::vector<std::byte>& bytes) { return Layout::bytes(static_cast<std::int64_t>(bytes.size())); }

}  // namespace

Connection::Connection(std::string agent, Role role, Ends ends, const Registrations& registrations, Inbox& inbox)
    : agent_(std::move(agent)),
      shown_(printable(agent_)),
      role_(role),
      registrations_(registrations),
      inbox_(inbox),
      ends_(std::move(ends)),
      estimator_(*ends_.context, ends_.direct ? std::optional(ends_.direct->path()) : std::nullopt) {}

Connection::~Connection() {
  ends_.direct.reset();
  ends_.ranks.reset();
}

std::optional<base::Error> Connection::lost() const {
  const Lock lock(mutex_);
  return lost_;
}

void Connection::lose(base::Error error) {
  if (!lost_) lost_ = std::move(error);
}

// --- moving on -------------------------------------------------------------------------------------------------------

bool Connection::step() {
  const Lock lock(mutex_, std::try_to_lock);
  return lock && advance();
}

// Transfers go on, and notify the peer, whether or not their program looks after them.
bool Connection::advance() {
  if (role_ == Role::alone) return ends_.ranks->progress();
  bool moved = false;
  if (!lost_) {
    moved = ends_.ranks->progress();
    moved = listen() || moved;
    moved = flush() || moved;
  }
  return std::erase_if(active_, [this](Transfer* transfer) { return advance(*transfer).has_value(); }) > 0 || moved;
}

// Requests move on together, in advance(): each of many would move all.
std::optional<Result<protocol::Status>> Connection::ended(Request* request) const {
  return ends_.ranks->is_done(request) ? ends_.ranks->test(request) : std::nullopt;
}

// Nothing: the peer of this role may not say that.
std::optional<std::size_t> Connection::most_bytes(Kind kind) const {
  if (role_ == Role::first) return kind == Kind::answer ? std::optional(sizeof(Answer)) : std::nullopt;
  if (kind == Kind::ask) return sizeof(Token);
  return kind == Kind::notice ? std::optional(kMostNotice) : std::nullopt;
}

// One message at a time: the next one is looked at once this one is there.
bool Connection::listen() {
  if (!incoming_) {
    const auto found = ends_.ranks->probe(other(), protocol::kAnyTag);
    if (!found) lose(found.error());
    if (!found || !*found) return false;
    const auto kind = static_cast<Kind>((*found)->tag);
    const std::int64_t bytes = (*found)->bytes;
    const auto most = most_bytes(kind);
    if (!most || std::cmp_greater(bytes, *most) || (kind != Kind::notice && std::cmp_not_equal(bytes, *most))) {
      lose({Code::malformed, fmt::format("agent {} sends {} bytes of kind {}", shown_, bytes, (*found)->tag)});
      return false;
    }
    incoming_ = Incoming{kind, std::vector<std::byte>(static_cast<std::size_t>(bytes)), nullptr};
    const Result<Layout> layout = layout_of(incoming_->bytes);
    const auto begun =
        layout ? ends_.ranks->irecv(incoming_->bytes.data(), *layout, other(), (*found)->tag) : std::unexpected(layout.error());
    if (!begun) {
      lose(begun.error());
      return false;
    }
    incoming_->request = *begun;
  }
  const auto done = ended(incoming_->request);
  if (!done) return false;
  const Incoming message = std::move(*incoming_);
  incoming_.reset();
  if (!*done) lose(done->error());
  return *done && hear(message);
}

bool Connection::hear(const Incoming& message) {
  Result<void> heard;
  switch (message.kind) {
    case Kind::ask: heard = answer(message.bytes); break;
    case Kind::answer: heard = learn(message.bytes); break;
    case Kind::notice: heard = inbox_.put(agent_, {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()}); break;
  }
  if (!heard) lose(heard.error());
  return heard.has_value();
}

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
  const auto memory = registrations_.find(token);
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

// --- messages to the peer --------------------------------------------------------------------------------------------

Result<void> Connection::say(Kind kind, std::vector<std::byte> bytes) {
  outgoing_.push_back({.bytes = std::move(bytes)});
  Outgoing& message = outgoing_.back();
  const Layout layout = LACUNA_TRY(layout_of(message.bytes));
  const auto begun = ends_.ranks->isend(message.bytes.data(), layout, other(), static_cast<int>(kind));
  if (!begun) {
    outgoing_.pop_back();
    return std::unexpected(begun.error());
  }
  message.request = *begun;
  return {};
}

// They mostly end in their order: one that does not keeps its memory until those before it are over.
bool Connection::flush() {
  bool moved = false;
  for (; !outgoing_.empty(); outgoing_.pop_front(), moved = true) {
    const auto done = ended(outgoing_.front().request);
    if (!done) break;
    if (!*done) lose(done->error());
  }
  return moved;
}

Result<void> Connection::notify(std::string text) {
  const Lock lock(mutex_);
  return tell(std::move(text));
}

Result<void> Connection::tell(std::string text) {
  if (text.size() > kMostNotice)
    return base::fail(Code::limit, fmt::format("a notification of {} bytes; at most {}", text.size(), kMostNotice));
  if (lost_) return std::unexpected(*lost_);
  if (role_ == Role::alone) return inbox_.put(agent_, std::move(text));
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return say(Kind::notice, {first, first + text.size()});
}

// --- memory ----------------------------------------------------------------------------------------------------------

Result<void> Connection::resolve(std::vector<Part>& parts, bool puts, std::int64_t deadline) {
  for (;;) {
    bool moved = false;
    {
      const Lock lock(mutex_);
      if (LACUNA_TRY(ask(parts))) return decide(parts, puts);
      moved = advance();
    }
    if (base::now_ns() > deadline)
      return base::fail(Code::timeout, fmt::format("agent {} does not answer: is its process stopped, or busy? timeout_s sets how long is "
                                                   "waited",
                                                   shown_));
    if (!moved) std::this_thread::yield();
  }
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
      LACUNA_TRY(say(Kind::ask, bytes_of(token)));
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

Result<Estimate> Connection::estimate(const Transfer& transfer) {
  const Lock lock(mutex_);
  return estimator_.of(transfer.parts, transfer.puts);
}

void Connection::withdraw(const Token& token, std::int64_t timeout_ns) {
  const Lock lock(mutex_);
  own_.erase(token);
  const auto found = exposed_.find(token);
  if (found == exposed_.end()) return;
  const Exposed exposed = found->second.exposed;
  exposed_.erase(found);
  if (ends_.ranks == nullptr) return;
  const Result<void> gone = ends_.ranks->withdraw(exposed, timeout_ns);
  if (gone) return;
  lose({Code::timeout, fmt::format("memory is deregistered that agent {} was using: the connection to it ends", shown_)});
  ends_.ranks.reset();
}

void Connection::forget(const Token& token) {
  const Lock lock(mutex_);
  numbers_.erase(token);
}

// --- transfers -------------------------------------------------------------------------------------------------------

// What one put or get cannot describe becomes two.
Result<void> Connection::begin(Transfer& transfer, Part part, std::vector<Part>& begun) {
  const Known there = LACUNA_TRY(known(part.memory));
  if (part.direct && ends_.direct != nullptr && !ends_.direct->failed()) {
    LACUNA_TRY(begin_direct(transfer, part, there));
    begun.push_back(std::move(part));
    return {};
  }
  protocol::Communicator& ranks = *ends_.ranks;
  const auto request = transfer.puts ? ranks.put(part.local, part.ours, there.exposed, part.offset, part.theirs)
                                     : ranks.get(part.local, part.ours, there.exposed, part.offset, part.theirs);
  if (request) {
    transfer.requests_.push_back(*request);
    begun.push_back(std::move(part));
    return {};
  }
  if (request.error().code != Code::limit) return std::unexpected(request.error());
  auto [first, second] = LACUNA_TRY(halves_of(part));
  LACUNA_TRY(begin(transfer, std::move(first), begun));
  return begin(transfer, std::move(second), begun);
}

Result<void> Connection::begin_direct(Transfer& transfer, const Part& part, const Known& there) {
  const auto own = !part.own ? own_.end() : own_.find(part.own->token);
  if (own == own_.end() || !there.key) return base::fail(Code::invalid_argument, "memory was deregistered since the transfer was prepared");
  const Direct::Job::Side here{reinterpret_cast<std::uint64_t>(part.local), own->second.lkey()};
  const Direct::Job::Side far{part.base + static_cast<std::uint64_t>(part.offset), *there.key};
  transfer.jobs_.push_back(LACUNA_TRY(Direct::Job::create(transfer.puts, part.ours, here, part.theirs, far)));
  return {};
}

Result<void> Connection::post(Transfer& transfer, std::optional<std::string> notice) {
  const Lock lock(mutex_);
  if (lost_) return std::unexpected(*lost_);
  if (transfer.state_ == Transfer::State::moving) return base::fail(Code::invalid_argument, "this transfer is under way");
  transfer.state_ = Transfer::State::moving;
  transfer.jobs_.clear();
  transfer.error_.reset();
  transfer.notice_ = std::move(notice);
  active_.push_back(&transfer);
  std::vector<Part> begun;
  for (const Part& part : transfer.parts) {
    if (Result<void> one = begin(transfer, part, begun); !one) {
      transfer.error_ = std::move(one).error();
      return {};  // check() says so, once what has begun is over
    }
  }
  transfer.parts = std::move(begun);
  return {};
}

std::optional<Result<void>> Connection::check(Transfer& transfer) {
  Lock lock(mutex_);
  bool moved = true;
  if (transfer.state_ == Transfer::State::moving && !advance(transfer)) moved = advance();
  std::optional<Result<void>> over = advance(transfer);
  if (over) std::erase(active_, &transfer);
  lock.unlock();
  if (!over && !moved) std::this_thread::yield();  // the peer may wait for this CPU
  return over;
}

// Whether some go on.
bool Connection::advance_jobs(Transfer& transfer) {
  bool waits = false;
  for (Direct::Job& job : transfer.jobs_) {
    if (job.over()) continue;
    const Result<void> moved =
        ends_.direct != nullptr ? ends_.direct->advance(job) : base::fail(Code::peer_lost, "the connection has ended");
    if (!moved) {
      transfer.error_ = moved.error();
      transfer.jobs_.clear();
      return false;
    }
    waits = waits || !job.over();
  }
  return waits;
}

std::optional<Result<void>> Connection::advance(Transfer& transfer) {
  using State = Transfer::State;
  if (transfer.state_ == State::moving && ends_.ranks == nullptr) {
    transfer.requests_.clear();
    transfer.error_ = lost_;
  }
  const bool waits = advance_jobs(transfer);
  while (transfer.state_ == State::moving && !transfer.requests_.empty()) {
    const auto done = ended(transfer.requests_.back());
    if (!done) return std::nullopt;
    if (!*done && !transfer.error_) transfer.error_ = done->error();
    transfer.requests_.pop_back();
  }
  if (waits) return std::nullopt;
  if (transfer.state_ == State::moving) {
    transfer.state_ = State::over;
    if (!transfer.error_ && transfer.notice_ && !transfer.released_) {
      if (Result<void> told = tell(std::move(*transfer.notice_)); !told) transfer.error_ = std::move(told).error();
    }
  }
  if (transfer.error_) return std::unexpected(*transfer.error_);
  return Result<void>();
}

Connection::Wish Connection::release(Transfer& transfer) {
  const Lock lock(mutex_);
  return {.again = std::exchange(transfer.released_, true), .busy = transfer.state_ == Transfer::State::moving};
}

void Connection::end(Transfer& transfer) {
  const Lock lock(mutex_);
  if (ends_.ranks != nullptr)
    for (Request* request : transfer.requests_) ends_.ranks->give_up(request);
  transfer.requests_.clear();
  if (!std::ranges::all_of(transfer.jobs_, &Direct::Job::over)) {
    ends_.direct.reset();  // its requests end with it
    lose({Code::peer_lost, fmt::format("a transfer to agent {} was released while it was under way", shown_)});
  }
  transfer.jobs_.clear();
  transfer.state_ = Transfer::State::over;
  std::erase(active_, &transfer);
}

}  // namespace lacuna::nixl
