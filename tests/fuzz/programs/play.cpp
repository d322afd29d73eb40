// Plays a story, and judges by what its blocks say.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "tests/fuzz/programs/collected.hpp"
#include "tests/fuzz/programs/story.hpp"
#include "tests/fuzz/programs/windows.hpp"
#include "tests/interposer/scarce.hpp"

namespace lacuna::fuzz {
namespace {

using mpi::kSuccess;
using support::Random;
namespace fake = test::fake;
using fake::Comm;
using fake::Host;

constexpr int kNoTag = 999;

struct Live {
  const StoryMessage* of = nullptr;
  bool receives = false, persistent = false;
  int error = kSuccess;
  std::vector<std::byte> memory, before;
  fake::Datatype type{};
  fake::Request request{};
  fake::Status status{};
};

// Thrown where a rank dies.
struct Died {};

// All of a run.
struct Judge {
  std::mutex mutex;
  std::vector<std::string> wrong;
  bool planted = false;
  void say(int rank, std::size_t round, const std::string& what) {
    const std::scoped_lock lock(mutex);
    wrong.push_back(fmt::format("rank {}, round {}: {}", rank, round, what));
  }
};

class Player {
 public:
  Player(const Story& story, const Host& mpi, int rank, Judge& judge)
      : story_(story), mpi_(mpi), rank_(rank), judge_(judge), random_(story.scarce + static_cast<std::uint64_t>(rank)) {}

  void all() try {
    fake::return_errors(mpi_.world);
    make_comms();
    for (round_ = 0; round_ < story_.rounds.size() && story_.is_there(rank_, round_); ++round_) round();
    for (auto& [ranks, comm] : comms_) mpi_.Comm_free(&comm);
  } catch (const Died&) {
    fake::die();
  }

 private:
  [[nodiscard]] const StoryRound& now() const { return story_.rounds[round_]; }
  [[nodiscard]] std::set<int> ranks_of(std::size_t round) const {
    std::set<int> ranks;
    for (int rank = 0; rank < story_.options.ranks; ++rank) {
      if (story_.is_there(rank, round)) ranks.insert(rank);
    }
    return ranks;
  }
  void wrong(const std::string& what) const { judge_.say(rank_, round_, what); }

  // One for each set of ranks that are there in a round.
  void make_comms() {
    for (std::size_t round = 0; round < story_.rounds.size(); ++round) {
      const std::set<int> ranks = ranks_of(round);
      if (made_.contains(ranks)) continue;
      made_.insert(ranks);
      Comm comm = fake::split(mpi_.world, ranks.contains(rank_) ? 0 : 1, rank_);
      fake::return_errors(comm);
      if (ranks.contains(rank_)) comms_[ranks] = comm;
      if (!ranks.contains(rank_)) mpi_.Comm_free(&comm);
    }
  }

  // Number of a rank in the communicator of this round, and the other way.
  [[nodiscard]] int local(int rank) const { return static_cast<int>(std::ranges::distance(ranks_.begin(), ranks_.find(rank))); }
  [[nodiscard]] int world(int local) const { return *std::next(ranks_.begin(), local); }

  // Before each call of a message.
  void step() {
    if (story_.dies(rank_, round_) && story_.death->calls == steps_++) throw Died{};
  }
  // Whether a message is with the rank that dies in this round.
  [[nodiscard]] bool may_fail(const Live& live) const { return story_.dies(live.receives ? live.of->from : live.of->to, round_); }

  // A call that may find no memory: a send none at all, a receive once, since it tries again (tests/interposer/
  // memory_test.cpp). One that has failed for that is made again.
  template <class Call>
  void made(const char* name, const Call& call, bool sends = false, Live* of = nullptr) {
    int result = kSuccess;
    if (story_.scarce_rank == rank_ && random_.one_in(3)) {
      const auto [code, failed] = test::scarce::call(static_cast<long>(random_.scaled(30)), sends && random_.one_in(2), call);
      if (failed && std::getenv("LACUNA_FUZZ_TRACE") != nullptr)
        fmt::print(stderr, "rank {}, round {}: {} finds no memory, and returns {}\n", rank_, round_, name, code);
      result = failed && code != kSuccess ? call() : code;
    } else {
      result = call();
    }
    if (of != nullptr && may_fail(*of)) {
      of->error = result;
    } else if (result != kSuccess) {
      wrong(fmt::format("{} returns {}", name, result));
    }
  }

  void round() {
    ranks_ = ranks_of(round_);
    base_ = comm_ = comms_.at(ranks_);
    if (now().own_comm) {
      mpi_.Comm_dup(base_, &comm_);
      fake::return_errors(comm_);
    }
    usleep(static_cast<useconds_t>(now().late[static_cast<std::size_t>(rank_)]) * 1000);
    begun_.clear();
    over_.clear();
    for (const bool blocking : {false, true}) {
      for (const StoryMessage& one : now().messages) {
        if (one.to == rank_ && one.receive_begins() != blocking) receive(one);
        if (one.from == rank_ && one.send_begins() != blocking) send(one);
      }
    }
    if (now().own_comm && now().freed_early) mpi_.Comm_free(&comm_);
    if (std::ranges::find(now().cancels, rank_) != now().cancels.end()) cancel();
    step();
    complete();
    judge();
    if (now().own_comm && !now().freed_early) mpi_.Comm_free(&comm_);
    if (now().collective) collective();
    if (now().window) window();
    if (story_.dies(rank_, round_)) throw Died{};
    fake::Request barrier{};
    mpi_.Ibarrier(base_, &barrier);
    mpi_.Wait(&barrier, mpi::ignored());
  }

  std::unique_ptr<Live> side(const StoryMessage& message, bool receives) const {
    auto live = std::make_unique<Live>();
    live->of = &message;
    live->receives = receives;
    const Shape& shape = receives ? message.in : message.out;
    live->memory = receives ? spoiled(shape.span()) : bytes_of(message.data, shape.span());
    live->before = live->memory;
    live->type = shape.make(mpi_);
    return live;
  }

  void send(const StoryMessage& message) {
    step();
    auto live = side(message, false);
    const void* const base = live->memory.data();
    const auto count = static_cast<int>(message.out.count);
    const int to = local(message.to);
    using enum SendWay;
    if (message.send_begins()) {
      const auto call = message.send == isend    ? mpi_.Isend
                        : message.send == issend ? mpi_.Issend
                        : message.send == ibsend ? mpi_.Ibsend
                                                 : mpi_.Send_init;
      live->persistent = message.send == send_init;
      made("a send that begins", [&] { return call(base, count, live->type, to, message.tag, comm_, &live->request); }, true, live.get());
      begin(std::move(live));
      return;
    }
    const auto call = message.send == SendWay::send ? mpi_.Send : message.send == ssend ? mpi_.Ssend : mpi_.Bsend;
    made("a send", [&] { return call(base, count, live->type, to, message.tag, comm_); }, true, live.get());
    end(std::move(live));
  }

  // What a call has made.
  void begin(std::unique_ptr<Live> live) {
    if (live->persistent && live->error == kSuccess) made("a start", [&] { return mpi_.Start(&live->request); }, false, live.get());
    if (live->error != kSuccess) return end(std::move(live));
    begun_.push_back(std::move(live));
  }

  void receive(const StoryMessage& message) {
    step();
    auto live = side(message, true);
    Live* const of = live.get();
    void* const base = live->memory.data();
    const auto count = static_cast<int>(message.in.count);
    const Wild wild = now().wild[static_cast<std::size_t>(rank_)];
    const int from = wild == Wild::no ? local(message.from) : mpi::kAnySource, tag = wild == Wild::both ? mpi::kAnyTag : message.tag;
    using enum ReceiveWay;
    if (message.receive_begins()) {
      live->persistent = message.receive == recv_init;
      const auto call = live->persistent ? mpi_.Recv_init : mpi_.Irecv;
      made("a receive that begins", [&] { return call(base, count, live->type, from, tag, comm_, &live->request); }, false, of);
      begin(std::move(live));
      return;
    }
    fake::Message matched{};
    int found = 0;
    if (message.receive == probe) made("a probe", [&] { return mpi_.Probe(from, tag, comm_, &live->status); }, false, of);
    if (message.receive == mprobe) made("a probe", [&] { return mpi_.Mprobe(from, tag, comm_, &matched, &live->status); }, false, of);
    while (message.receive == improbe && found == 0 && live->error == kSuccess)
      made("a probe", [&] { return mpi_.Improbe(from, tag, comm_, &found, &matched, &live->status); }, false, of);
    if (live->error != kSuccess) {
      // nothing has come
    } else if (message.receive == mprobe || message.receive == improbe) {
      made("a matched receive", [&] { return mpi_.Mrecv(base, count, live->type, &matched, &live->status); }, false, of);
    } else {
      made("a receive", [&] { return mpi_.Recv(base, count, live->type, from, tag, comm_, &live->status); }, false, of);
    }
    end(std::move(live));
  }

  void end(std::unique_ptr<Live> live) {
    if (live->persistent && live->request != mpi_.no_request && live->request != fake::Request{}) mpi_.Request_free(&live->request);
    mpi_.Type_free(&live->type);
    over_.push_back(std::move(live));
  }

  // A receive that nothing is sent for.
  void cancel() {
    std::vector<std::byte> memory = spoiled(9000);
    const std::vector<std::byte> before = memory;
    fake::Request request{};
    fake::Status status{};
    int cancelled = 0;
    made("a receive that begins", [&] { return mpi_.Irecv(memory.data(), 9000, mpi_.byte, mpi::kAnySource, kNoTag, base_, &request); });
    mpi_.Cancel(&request);
    mpi_.Wait(&request, &status);
    mpi_.Test_cancelled(&status, &cancelled);
    if (cancelled == 0 || memory != before) wrong("a receive is not taken back");
  }

  // What a call has said of all requests, or of some.
  struct Completion {
    std::vector<fake::Request> requests;
    std::vector<fake::Status> statuses;
    std::vector<int> errors;
    [[nodiscard]] int count() const { return static_cast<int>(requests.size()); }
    /// Where `result` is MPI_ERR_IN_STATUS.
    void read_errors(int result) {
      for (std::size_t i = 0; i < requests.size() && result == mpi::kErrInStatus; ++i) errors[i] = statuses[i].error;
    }
  };

  void complete() {
    Completion all;
    for (const auto& live : begun_) all.requests.push_back(live->request);
    all.statuses.resize(begun_.size());
    all.errors.resize(begun_.size(), kSuccess);
    switch (now().completion) {
      case 0: all.read_errors(no_other("MPI_Waitall", mpi_.Waitall(all.count(), all.requests.data(), all.statuses.data()))); break;
      case 1: {
        int flag = 0, result = kSuccess;
        while (flag == 0 && result == kSuccess)
          result = no_other("MPI_Testall", mpi_.Testall(all.count(), all.requests.data(), &flag, all.statuses.data()));
        all.read_errors(result);
        break;
      }
      case 2: wait_for_some(all); break;
      default:
        for (std::size_t i = 0; i < all.requests.size(); ++i) wait_for_one(all, i);
    }
    for (std::size_t i = 0; i < begun_.size(); ++i) {
      if (all.errors[i] == mpi::kErrPending) wait_for_one(all, i);
      Live& live = *begun_[i];
      live.request = all.requests[i];
      live.status = all.statuses[i];
      live.error = all.errors[i];
      if (live.error != kSuccess && !may_fail(live)) wrong(fmt::format("a request ends with {}", live.error));
      end(std::move(begun_[i]));
    }
  }

  // The results of a call for several requests.
  int no_other(const char* name, int result) {
    if (result != kSuccess && (result != mpi::kErrInStatus || !story_.has_death(round_))) wrong(fmt::format("{} returns {}", name, result));
    return result;
  }

  void wait_for_some(Completion& all) {
    std::vector<fake::Status> statuses(all.requests.size());
    std::vector<int> some(all.requests.size());
    int ended = 0;
    for (int left = all.count(); left > 0; left -= ended) {
      const int result = no_other("MPI_Waitsome", mpi_.Waitsome(all.count(), all.requests.data(), &ended, some.data(), statuses.data()));
      if (ended <= 0) return wrong("MPI_Waitsome ends nothing");
      for (int k = 0; k < ended; ++k) {
        const auto at = static_cast<std::size_t>(some[static_cast<std::size_t>(k)]);
        all.statuses[at] = statuses[static_cast<std::size_t>(k)];
        if (result == mpi::kErrInStatus) all.errors[at] = all.statuses[at].error;
      }
    }
  }

  void wait_for_one(Completion& all, std::size_t i) {
    int& error = all.errors[i];
    error = kSuccess;
    if (now().completion != 3) {
      error = mpi_.Wait(&all.requests[i], &all.statuses[i]);
      return;
    }
    for (int flag = 0; flag == 0 && error == kSuccess;) error = mpi_.Test(&all.requests[i], &flag, &all.statuses[i]);
  }

  // Messages of one sender that the same receives ask for come in their order; begun ones first, on both sides.
  void judge() {
    const Wild wild = now().wild[static_cast<std::size_t>(rank_)];
    const auto key = [&](int from, int tag) { return std::pair(from, wild == Wild::both ? 0 : tag); };
    std::map<std::pair<int, int>, std::deque<const StoryMessage*>> coming;
    for (const bool blocking : {false, true}) {
      for (const StoryMessage& one : now().messages) {
        if (one.to == rank_ && one.send_begins() != blocking) coming[key(one.from, one.tag)].push_back(&one);
      }
    }
    for (const bool blocking : {false, true}) {
      for (const StoryMessage& one : now().messages) {
        for (const auto& live : over_) {
          if (live->of != &one || !live->receives || one.receive_begins() == blocking) continue;
          judge(*live, wild, key, coming);
        }
      }
    }
    for (const auto& live : over_) {
      if (!live->receives && live->memory != live->before) wrong("a send changes its memory");
    }
  }

  template <class Key, class Coming>
  void judge(const Live& live, Wild wild, const Key& key, Coming& coming) {
    if (live.error != kSuccess) {  // in its place
      auto& queue = coming[key(live.of->from, live.of->tag)];
      if (!queue.empty()) queue.pop_front();
      return;
    }
    if (live.status.source < 0 || std::cmp_greater_equal(live.status.source, ranks_.size())) return wrong("a message of no rank");
    const int from = world(live.status.source);
    auto& queue = coming[key(from, live.status.tag)];
    if (queue.empty()) return wrong(fmt::format("a message of rank {} with tag {}, of which there are no more", from, live.status.tag));
    const StoryMessage& sent = *queue.front();
    queue.pop_front();
    if (sent.tag != live.status.tag || (wild == Wild::no && from != live.of->from)) return wrong("a message that was overtaken");
    if (wild != Wild::both && sent.tag != live.of->tag) return wrong("a message of another tag");
    if (mpi::bytes_of(live.status) != sent.out.size())
      return wrong(fmt::format("{} bytes of rank {} instead of {}", mpi::bytes_of(live.status), from, sent.out.size()));
    std::vector<std::byte> expected = live.before;
    live.of->in.unpack(sent.out.pack(bytes_of(sent.data, sent.out.span()).data()), expected.data());
    if (judge_.planted && !expected.empty()) expected.back() ^= std::byte{1};
    if (live.memory != expected) wrong(fmt::format("a message of rank {} with tag {} has other bytes, or its gaps have", from, sent.tag));
  }

  void collective() {
    const std::vector<int> ranks(ranks_.begin(), ranks_.end());
    const std::string what = play_collective(*now().collective, mpi_, base_, ranks, local(rank_), story_.has_death(round_));
    if (!what.empty()) wrong(what);
  }

  void window() {
    const std::vector<int> ranks(ranks_.begin(), ranks_.end());
    const MadeCall call = [this](const char* name, const std::function<int()>& body) { made(name, body, true); };
    const std::string what = play_window(*now().window, mpi_, base_, ranks, local(rank_), call);
    if (!what.empty()) wrong(what);
  }

  const Story& story_;
  const Host& mpi_;
  const int rank_;
  Judge& judge_;
  Random random_;
  std::size_t round_ = 0;
  int steps_ = 0;  // in the round of the death
  std::set<std::set<int>> made_;
  std::map<std::set<int>, Comm> comms_;
  std::set<int> ranks_;  // of this round
  Comm base_{}, comm_{};
  std::vector<std::unique_ptr<Live>> begun_, over_;
};

}  // namespace

std::string play(const Story& story, bool preloaded, bool planted) {
  Judge judge;
  judge.planted = planted;
  const auto program = [&](const Host& mpi, int rank) { Player(story, mpi, rank, judge).all(); };
  const fake::Outcome outcome =
      preloaded ? fake::run_preloaded(story.options, program, story.faults) : fake::run_plain(story.options, program);
  judge.wrong.insert(judge.wrong.end(), outcome.wrong.begin(), outcome.wrong.end());
  return judge.wrong.empty() ? "" : fmt::format("{} and {} more", judge.wrong.front(), judge.wrong.size() - 1);
}

}  // namespace lacuna::fuzz
