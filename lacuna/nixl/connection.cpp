#include "lacuna/nixl/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace lacuna::nixl {
namespace {

using base::Code;
using protocol::Exposed;
using protocol::Request;

// A peer's CPU may copy a whole transfer without a word, by a link of 1 Gb/s at the least.
constexpr double kBytesPerSecond = 100e6;

Result<Layout> layout_of(const std::vector<std::byte>& bytes) { return Layout::bytes(static_cast<std::int64_t>(bytes.size())); }

}  // namespace

Connection::Connection(std::string agent, Role role, Ends ends, const Around& around)
    : agent_(std::move(agent)),
      shown_(printable(agent_)),
      role_(role),
      around_(around),
      ends_(std::move(ends)),
      estimator_(*ends_.context, ends_.direct ? std::optional(ends_.direct->path()) : std::nullopt) {}

// What is registered ends once the peer's requests and this end's are over.
Connection::~Connection() {
  if (burial_ != nullptr) burial_->wait(INT64_MAX);
  ends_.direct.reset();
  ends_.ranks.reset();
}

std::optional<base::Error> Connection::lost() const {
  const Lock lock(mutex_);
  return lost_;
}

std::optional<base::Error> Connection::ended() const {
  const Lock lock(mutex_, std::try_to_lock);
  return lock && lost_ && burial_ != nullptr && burial_->over() ? lost_ : std::nullopt;
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
  if (role_ == Role::alone) return burial_ == nullptr && ends_.ranks->progress();
  bool moved = false;
  const auto completed = [this] { return ends_.direct != nullptr ? ends_.direct->completed() : 0; };
  const std::int64_t before = completed();
  if (!lost_) {
    moved = ends_.ranks->progress();
    moved = listen() || moved;
    moved = flush() || moved;
  }
  moved = std::erase_if(active_, [this](Transfer* transfer) { return advance(*transfer).has_value(); }) > 0 || moved;
  moved = moved || completed() != before;
  look_for_silence(moved);
  if (lost_ && burial_ == nullptr) bury();
  return moved;
}

// A peer that is stopped, or whose machine is gone, says nothing, and takes nothing.
void Connection::look_for_silence(bool moved) {
  if (active_.empty() || lost_) return;
  const std::int64_t now = base::now_ns();
  if (moved) moved_at_ = now;
  if (now - moved_at_ <= around_.timeout_ns) return;
  auto allowed = static_cast<double>(around_.timeout_ns);
  for (const Transfer* transfer : active_)
    for (const Part& part : transfer->parts) allowed += static_cast<double>(part.ours.size()) / kBytesPerSecond * kNsPerSecond;
  if (static_cast<double>(now - moved_at_) <= allowed) return;
  lose({Code::peer_lost, fmt::format("agent {} has moved nothing for {:.1f} s: its process is stopped, or its machine is gone", shown_,
                                     static_cast<double>(now - moved_at_) / kNsPerSecond)});
}

// Ends what is left of the communicator, and with it all transfers. That may take as long as the peer's CPU needs for
// the piece of memory that it copies, so a thread of its own does it.
void Connection::bury() {
  std::erase_if(active_, [this](Transfer* transfer) { return advance(*transfer).has_value(); });
  auto over = std::make_shared<Errand>();
  auto remains = std::make_shared<Ends>();
  remains->ranks = std::move(ends_.ranks);
  remains->direct = std::move(ends_.direct);
  burial_ = over;
  for (Transfer* transfer : active_) transfer->requests_.clear();
  const auto end = [remains, over, peer = other()] {
    remains->direct.reset();
    contained("the end of a connection", [&] { remains->ranks->give_up_rank(peer); });
    remains->ranks.reset();
    over->end();
  };
  if (!contained("a thread that ends a connection", [&] { around_.helpers.run(end); })) end();
}

// Requests move on together, in advance(): each of many would move all.
std::optional<Result<protocol::Status>> Connection::ended(Request* request) const {
  return ends_.ranks->is_done(request) ? ends_.ranks->test(request) : std::nullopt;
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
    case Kind::notice:
      heard = around_.inbox.put(agent_, {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()});
      break;
  }
  if (!heard) lose(heard.error());
  return heard.has_value();
}

// --- messages to the peer --------------------------------------------------------------------------------------------

Result<void> Connection::say(Kind kind, std::vector<std::byte> bytes) {
  const std::size_t room = bytes.size() + sizeof(Outgoing);
  if (outgoing_bytes_ + room > kMostWaiting)
    return base::fail(Code::limit, fmt::format("{} bytes of messages wait for agent {}, which takes none", outgoing_bytes_, shown_));
  outgoing_.push_back({.bytes = std::move(bytes)});
  Outgoing& message = outgoing_.back();
  const Layout layout = LACUNA_TRY(layout_of(message.bytes));
  const auto begun = ends_.ranks->isend(message.bytes.data(), layout, other(), static_cast<int>(kind));
  if (!begun) {
    outgoing_.pop_back();
    return std::unexpected(begun.error());
  }
  message.request = *begun;
  outgoing_bytes_ += room;
  return {};
}

// They mostly end in their order: one that does not keeps its memory until those before it are over.
bool Connection::flush() {
  bool moved = false;
  for (; !outgoing_.empty(); outgoing_.pop_front(), moved = true) {
    const auto done = ended(outgoing_.front().request);
    if (!done) break;
    if (!*done) lose(done->error());
    outgoing_bytes_ -= outgoing_.front().bytes.size() + sizeof(Outgoing);
  }
  return moved;
}

Result<void> Connection::notify(std::string text) {
  const Lock lock(mutex_);
  return tell(std::move(text));
}

Result<void> Connection::check_notice(const std::string& text) {
  if (text.size() <= kMostNotice) return {};
  return base::fail(Code::limit, fmt::format("a notification of {} bytes; at most {}", text.size(), kMostNotice));
}

Result<void> Connection::tell(std::string text) {
  LACUNA_TRY(check_notice(text));
  if (lost_) return std::unexpected(*lost_);
  if (role_ == Role::alone) return around_.inbox.put(agent_, std::move(text));
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return say(Kind::notice, {first, first + text.size()});
}

Result<Estimate> Connection::estimate(const Transfer& transfer) {
  const Lock lock(mutex_);
  return estimator_.of(transfer.parts, transfer.puts);
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
  std::vector<protocol::Request*>& requests = transfer.requests_;
  // A request that begins is kept
  if (requests.size() == requests.capacity()) requests.reserve(2 * requests.size() + 1);
  const auto request = transfer.puts ? ranks.put(part.local, part.ours, there.exposed, part.offset, part.theirs)
                                     : ranks.get(part.local, part.ours, there.exposed, part.offset, part.theirs);
  if (request) {
    requests.push_back(*request);
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
  if (active_.empty()) moved_at_ = base::now_ns();
  std::vector<Part> begun;
  begun.reserve(transfer.parts.size());
  active_.push_back(&transfer);  // nothing is thrown from here on
  for (const Part& part : transfer.parts) {
    Result<void> one = base::fail(Code::out_of_memory, "there was no memory for a part of the transfer");
    contained("a transfer that begins", [&] { one = begin(transfer, part, begun); });
    if (!one) {
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
  if (transfer.state_ == State::moving && burial_ != nullptr) {
    if (!burial_->over()) return std::nullopt;
    transfer.jobs_.clear();
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

bool Connection::end(Transfer& transfer, std::int64_t deadline) {
  std::shared_ptr<Errand> burial;
  {
    const Lock lock(mutex_);
    if (transfer.state_ == Transfer::State::moving && burial_ == nullptr) {
      lose({Code::peer_lost, fmt::format("a transfer to agent {} was released while it was under way", shown_)});
      bury();
    }
    if (transfer.state_ == Transfer::State::moving) burial = burial_;
    std::erase(active_, &transfer);
    transfer.jobs_.clear();
    transfer.state_ = Transfer::State::over;
  }
  return burial == nullptr || burial->wait(deadline);
}

}  // namespace lacuna::nixl
