#include "lacuna/protocol/bootstrap/gather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lacuna::protocol::bootstrap {
namespace {

using base::Code;

constexpr std::int64_t kStatusNs = 20'000'000;  // many come at once: not a message to each for each
constexpr std::int64_t kFullestNs = 1'000'000'000;

// The processes that have come, in that order; the first is the coordinator itself.
class Arrivals {
 public:
  Arrivals(const BootstrapPlan& plan, Fullest& fullest) : plan_(plan), fullest_(fullest) {
    members_.push_back({.socket = {}, .asked = plan.rank, .request = {}, .no_memory = false});
    changed();
  }

  [[nodiscard]] int count() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] bool complete() const { return count() == plan_.size; }
  [[nodiscard]] std::string text() const { return attendance(asked(), plan_); }

  /// For poll(): only that they hang up is of interest, what they say is for later.
  [[nodiscard]] std::vector<pollfd> watched() const {
    std::vector<pollfd> all;
    for (const Member& member : members_)
      if (member.socket) all.push_back({member.socket.get(), POLLRDHUP, 0});
    return all;
  }
  void drop_gone(std::span<const pollfd> watched) {
    for (std::size_t i = watched.size(); i-- > 0;)
      if (watched[i].revents != 0) drop(1 + i);
  }

  /// Takes the caller's socket, unless there is an error.
  Result<void> add(Caller& caller, const Asked& wish) {
    if (wish.size != plan_.size)
      return base::fail(Code::invalid_argument,
                        fmt::format("this process expects {} processes at {}, the others expect {}", wish.size, plan_.where, plan_.size));
    if (wish.rank < -1 || wish.rank >= plan_.size)
      return base::fail(Code::invalid_argument, fmt::format("rank {} of {} processes", wish.rank, plan_.size));
    const bool taken = wish.rank >= 0 && std::ranges::any_of(members_, [&](const Member& member) { return member.asked == wish.rank; });
    if (taken) return base::fail(Code::invalid_argument, fmt::format("rank {} at {} is another process's already", wish.rank, plan_.where));
    members_.push_back(
        {.socket = std::move(caller.socket), .asked = wish.rank, .request = std::move(caller.request), .no_memory = wish.no_memory});
    changed();
    return {};
  }

  /// When there is something to tell.
  [[nodiscard]] std::int64_t tell_at() const { return news_ ? told_at_ + kStatusNs : plan_.deadline; }
  void tell_status() {
    news_ = false;
    told_at_ = base::now_ns();
    const Message status{.kind = MessageKind::status, .value = count(), .bytes = text(), .file = {}};
    for (std::size_t i = members_.size(); i-- > 1;)
      if (!send(members_[i].socket.get(), status, 0)) drop(i);  // a part of a message may be out: nothing can follow it
  }

  [[nodiscard]] Gathered gathered() && {
    const std::vector<int> ranks = assign_ranks(asked(), plan_.size);
    Gathered all{.rank = ranks[0], .members = std::vector<Member>(members_.size())};
    for (std::size_t i = 0; i < members_.size(); ++i) all.members[static_cast<std::size_t>(ranks[i])] = std::move(members_[i]);
    return all;
  }

 private:
  void drop(std::size_t index) {
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(index));
    changed();
  }
  void changed() {
    news_ = true;
    fullest_.note(count(), text());
  }
  [[nodiscard]] std::vector<int> asked() const {
    std::vector<int> ranks;
    ranks.reserve(members_.size());
    for (const Member& member : members_) ranks.push_back(member.asked);
    return ranks;
  }

  const BootstrapPlan& plan_;
  Fullest& fullest_;
  std::vector<Member> members_;
  bool news_ = false;
  std::int64_t told_at_ = 0;
};

}  // namespace

Result<Gathered> gather(Acceptor& acceptor, const BootstrapPlan& plan, const Check& check, Fullest& fullest) {
  Arrivals arrivals(plan, fullest);
  int refused = 0;
  base::Error last{};
  while (!arrivals.complete()) {
    const std::int64_t now = base::now_ns();
    if (now >= plan.deadline) {
      arrivals.tell_status();
      base::Error timeout = fullest.timeout({});
      if (refused > 0) timeout.message += fmt::format("; {} refused, the last one: {}", refused, last.text());
      if (acceptor.ran_out_of_files()) timeout.message += "; the coordinator ran out of open files (RLIMIT_NOFILE)";
      return std::unexpected(std::move(timeout));
    }
    if (now >= arrivals.tell_at()) arrivals.tell_status();
    std::vector<pollfd> watched = arrivals.watched();
    std::optional<Caller> caller = LACUNA_TRY(acceptor.next(watched, std::min(plan.deadline, arrivals.tell_at())));
    arrivals.drop_gone(watched);
    if (!caller) continue;
    const Result<Asked> wish = check(*caller);
    Result<void> added = wish ? arrivals.add(*caller, *wish) : base::fail(wish.error().code, wish.error().message);
    if (added) continue;
    if (wish) tell(caller->socket.get(), refusal(MessageKind::refused, added.error()));
    last = std::move(added).error();
    ++refused;
  }
  return std::move(arrivals).gathered();
}

Result<void> conclude(const Gathered& gathered, std::int64_t deadline) {
  const std::size_t size = gathered.members.size();
  std::vector<pollfd> waiting(size);  // by rank; poll() passes over what is negative
  for (std::size_t rank = 0; rank < size; ++rank) waiting[rank] = {gathered.members[rank].socket.get(), POLLIN, 0};
  for (std::size_t left = size - 1; left > 0;) {
    if (base::now_ns() >= deadline)
      return base::fail(Code::timeout, fmt::format("{} processes did not connect to the others in time", left));
    if (::poll(waiting.data(), waiting.size(), poll_ms(deadline)) <= 0) continue;
    for (std::size_t rank = 0; rank < size; ++rank) {
      if (waiting[rank].revents == 0) continue;
      const Result<Message> said = receive(waiting[rank].fd, deadline);
      if (!said)
        return base::fail(said.error().code, fmt::format("rank {}, while all were being connected: {}", rank, said.error().message));
      if (said->kind == MessageKind::failed) {
        const base::Error why = told_error(*said);
        return base::fail(why.code, fmt::format("rank {}, while all were being connected: {}", rank, why.message));
      }
      if (said->kind != MessageKind::done) return base::fail(Code::malformed, fmt::format("rank {} did not say that it is done", rank));
      waiting[rank] = {-1, 0, 0};
      --left;
    }
  }
  for (const Member& member : gathered.members)
    if (member.socket) LACUNA_TRY(send(member.socket.get(), {.kind = MessageKind::go}, deadline));
  return {};
}

base::Error give_up(const Gathered& gathered, base::Error error) {
  for (const Member& member : gathered.members)
    if (member.socket) tell(member.socket.get(), refusal(MessageKind::failed, error));
  return error;
}

std::vector<int> assign_ranks(std::span<const int> asked, int size) {
  std::vector<bool> taken(static_cast<std::size_t>(size));
  for (const int rank : asked)
    if (rank >= 0) taken[static_cast<std::size_t>(rank)] = true;
  std::vector<int> ranks;
  std::size_t lowest = 0;
  for (int rank : asked) {
    if (rank < 0) {
      while (taken[lowest]) ++lowest;
      taken[lowest] = true;
      rank = static_cast<int>(lowest);
    }
    ranks.push_back(rank);
  }
  return ranks;
}

std::string attendance(std::span<const int> asked, const BootstrapPlan& plan) {
  std::vector<bool> here(static_cast<std::size_t>(plan.size));
  for (const int rank : assign_ranks(asked, plan.size)) here[static_cast<std::size_t>(rank)] = true;
  std::vector<std::string> missing;
  int count = 0;
  for (std::size_t first = 0; first < here.size();) {
    std::size_t last = first;
    while (last < here.size() && !here[last]) ++last;
    if (last > first) {
      missing.push_back(last - first == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, last - 1));
      count += static_cast<int>(last - first);
    }
    first = last + 1;
  }
  std::string came = fmt::format("{} of {} processes came to {}", asked.size(), plan.size, plan.where);
  if (missing.empty()) return came;
  constexpr std::size_t kMostNamed = 20;
  const std::size_t named = std::min(missing.size(), kMostNamed);
  return fmt::format("{}; rank{} {}{} {} missing", came, count == 1 ? "" : "s",
                     fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                     missing.size() > named ? ", ..." : "", count == 1 ? "is" : "are");
}

void Fullest::note(int came, std::string text) {
  now_.until = base::now_ns();
  if (now_.came >= before_.came || now_.until - before_.until > kFullestNs) before_ = std::move(now_);
  now_ = {.came = came, .text = std::move(text)};
}

base::Error Fullest::timeout(const std::string& otherwise) const {
  const bool fuller = before_.came > now_.came && base::now_ns() - before_.until < kFullestNs;
  const Attendance& seen = fuller ? before_ : now_;
  return {Code::timeout, seen.text.empty() ? otherwise : seen.text};
}

}  // namespace lacuna::protocol::bootstrap
