// world: the simulated processes, and the channels by which they find one another.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "lacuna/nic/model/context.hpp"
#include "lacuna/nic/model/model.hpp"

namespace lacuna::nic::model {
namespace {

constexpr int kMostRanks = 4096;

void lower(int& limit, int wanted) { limit = wanted == 0 ? limit : std::min(limit, wanted); }

void apply(const OpenOptions& options, Limits& limits) {
  lower(limits.max_sge, options.max_sge);
  limits.max_sge_rd = std::min(limits.max_sge_rd, limits.max_sge);
  lower(limits.max_sge_rd, options.max_sge_rd);
  lower(limits.max_send_wr, options.max_send_wr);
  lower(limits.max_recv_wr, options.max_recv_wr);
  limits.max_inline = std::min(limits.max_inline, options.max_inline.value_or(limits.max_inline));
  if (options.max_message_bytes != 0) limits.max_message_bytes = std::min(limits.max_message_bytes, options.max_message_bytes);
  IndirectLimits& most = limits.indirect;
  const IndirectOptions& wanted = options.indirect;
  most = {std::min(most.keys, wanted.keys.value_or(most.keys)), std::min(most.entries, wanted.entries.value_or(most.entries)),
          std::min(most.inline_entries, wanted.inline_entries.value_or(most.inline_entries)),
          std::min(most.strided_entries, wanted.strided_entries.value_or(most.strided_entries)),
          std::min(most.stride, wanted.stride.value_or(most.stride))};
  if (most.keys == 0 || most.entries == 0) most = {};
  for (PathInfo& path : limits.paths) {
    if (std::ranges::find(options.forbidden_paths, path.path) == options.forbidden_paths.end()) continue;
    path.available = false;
    path.note = "forbidden by the caller";
  }
}

class Channel final : public Bootstrap {
 public:
  Channel(Schedule& schedule, Time step, int rank, int peer) : schedule_(schedule), step_(step), rank_(rank), peer_(peer) {}
  void join(Channel& other) { other_ = &other; }

  Result<Hello> exchange(const Hello& mine, std::int64_t timeout_ns) override {
    schedule_.settle(rank_, 0);  // what is said here is heard at once
    Time limit = 0;
    Time deadline = kNever;
    if (!__builtin_mul_overflow(timeout_ns, 1000, &limit) && limit < kNever - schedule_.clock(rank_))
      deadline = schedule_.clock(rank_) + limit;
    Hello copy;
    copy.bytes = mine.bytes;
    other_->inbox_.push_back(std::move(copy));
    schedule_.wake(peer_, schedule_.clock(rank_));
    while (inbox_.empty()) {
      if (!schedule_.sleep(rank_, deadline, step_) && inbox_.empty())
        return base::fail(base::Code::timeout, fmt::format("rank {} did not answer rank {} on the bootstrap channel", peer_, rank_));
    }
    Hello theirs = std::move(inbox_.front());
    inbox_.pop_front();
    return theirs;
  }

 private:
  Schedule& schedule_;
  Time step_;
  int rank_, peer_;
  Channel* other_ = nullptr;
  std::deque<Hello> inbox_;
};

class ModelWorld final : public nic::World {
 public:
  ModelWorld(Profile profile, const WorldOptions& options) : shared_(std::move(profile), options) {
    for (int rank = 0; rank < options.ranks; ++rank) contexts_.push_back(std::make_unique<Context>(shared_, rank));
  }

  [[nodiscard]] int ranks() const override { return static_cast<int>(contexts_.size()); }
  [[nodiscard]] nic::Context& context(int rank) override { return *contexts_.at(static_cast<std::size_t>(rank)); }

  [[nodiscard]] Usage usage(int rank) override { return contexts_.at(static_cast<std::size_t>(rank))->usage(); }

  // Called by the processes, one at a time.
  Bootstrap& bootstrap(int rank, int peer) override {
    static_cast<void>(context(rank));  // both are processes of this world
    static_cast<void>(context(peer));
    std::unique_ptr<Channel>& mine = channels_[{rank, peer}];
    if (mine == nullptr) {
      const Time step = shared_.profile.cpu.poll_empty;
      mine = std::make_unique<Channel>(shared_.schedule, step, rank, peer);
      std::unique_ptr<Channel>& theirs = channels_[{peer, rank}];
      theirs = std::make_unique<Channel>(shared_.schedule, step, peer, rank);
      mine->join(*theirs);
      theirs->join(*mine);
    }
    return *mine;
  }

  Result<void> run(const Program& program) override {
    // One runs at a time. The first error is the cause: of the others some did nothing but wait for that rank.
    std::optional<base::Error> first;
    const bool ran = shared_.schedule.run([&](int rank) {
      const Result<void> ended = program(rank);
      if (!ended && !first) first = base::Error{ended.error().code, fmt::format("rank {}: {}", rank, ended.error().message)};
    });
    if (!ran)
      return base::fail(base::Code::limit, fmt::format("the system has no memory for {} stacks, one for each simulated process", ranks()));
    if (first) return std::unexpected(*std::move(first));
    return {};
  }

 private:
  Shared shared_;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::map<std::pair<int, int>, std::unique_ptr<Channel>> channels_;
};

}  // namespace

Result<std::unique_ptr<nic::World>> simulate(const WorldOptions& options) {
  if (options.ranks < 1 || options.ranks > kMostRanks)
    return base::fail(base::Code::limit, fmt::format("{} simulated processes; a world has 1 to {}", options.ranks, kMostRanks));
  if (options.ranks_per_node < 1)
    return base::fail(base::Code::limit, fmt::format("{} simulated processes for each node; a node has 1 or more", options.ranks_per_node));
  Profile profile = LACUNA_TRY(Profile::load(options.profile, options.overrides));
  apply(options.limits, profile.limits);
  return std::make_unique<ModelWorld>(std::move(profile), options);
}

}  // namespace lacuna::nic::model
