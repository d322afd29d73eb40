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
  std::vector<std::byte> memory, before;
  fake::Datatype type{};
  fake::Request request{};
  fake::Status status{};
};

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

  void all() {
    fake::return_errors(mpi_.world);
    make_comms();
    for (round_ = 0; round_ < story_.rounds.size() && story_.is_there(rank_, round_); ++round_) round();
    for (auto& [ranks, comm] : comms_) mpi_.Comm_free(&comm);
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

  // A call that may find no memory: a send none at all, a receive once, since it tries again (tests/interposer/
  // memory_test.cpp). One that has failed for that is made again.
  template <class Call>
  void made(const char* name, const Call& call, bool sends = false) {
    int result = kSuccess;
    if (story_.scarce_rank == rank_ && random_.one_in(3)) {
      const auto [code, failed] = test::scarce::call(static_cast<long>(random_.scaled(30)), sends && random_.one_in(2), call);
      if (failed && std::getenv("LACUNA_FUZZ_TRACE") != nullptr)
        fmt::print(stderr, "rank {}, round {}: {} finds no memory, and returns {}\n", rank_, round_, name, code);
      result = failed && code != kSuccess ? call() : code;
    } else {
      result = call();
    }
    if (result != kSuccess) wrong(fmt::format("{} returns {}", name, result));
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
    complete();
    judge();
    if (now().own_comm && !now().freed_early) mpi_.Comm_free(&comm_);
    if (now().collective) collective();
    if (now().window) window();
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
      made("a send that begins", [&] { return call(base, count, live->type, to, message.tag, comm_, &live->request); }, true);
      if (live->persistent) made("a start", [&] { return mpi_.Start(&live->request); });
      begun_.push_back(std::move(live));
      return;
    }
    const auto call = message.send == SendWay::send ? mpi_.Send : message.send == ssend ? mpi_.Ssend : mpi_.Bsend;
    made("a send", [&] { return call(base, count, live->type, to, message.tag, comm_); }, true);
    end(std::move(live));
  }

  void receive(const StoryMessage& message) {
    auto live = side(message, true);
    void* const base = live->memory.data();
    const auto count = static_cast<int>(message.in.count);
    const Wild wild = now().wild[static_cast<std::size_t>(rank_)];
    const int from = wild == Wild::no ? local(message.from) : mpi::kAnySource, tag = wild == Wild::both ? mpi::kAnyTag : message.tag;
    using enum ReceiveWay;
    if (message.receive_begins()) {
      live->persistent = message.receive == recv_init;
      const auto call = live->persistent ? mpi_.Recv_init : mpi_.Irecv;
      made("a receive that begins", [&] { return call(base, count, live->type, from, tag, comm_, &live->request); });
      if (live->persistent) made("a start", [&] { return mpi_.Start(&live->request); });
      begun_.push_back(std::move(live));
      return;
    }
    fake::Message matched{};
    int found = 0;
    if (message.receive == probe) made("a probe", [&] { return mpi_.Probe(from, tag, comm_, &live->status); });
    if (message.receive == mprobe) made("a probe", [&] { return mpi_.Mprobe(from, tag, comm_, &matched, &live->status); });
    while (message.receive == improbe && found == 0)
      made("a probe", [&] { return mpi_.Improbe(from, tag, comm_, &found, &matched, &live->status); });
    if (message.receive == mprobe || message.receive == improbe) {
      made("a matched receive", [&] { return mpi_.Mrecv(base, count, live->type, &matched, &live->status); });
    } else {
      made("a receive", [&] { return mpi_.Recv(base, count, live->type, from, tag, comm_, &live->status); });
    }
    end(std::move(live));
  }

  void end(std::unique_ptr<Live> live) {
    if (live->persistent) mpi_.Request_free(&live->request);
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

  void complete() {
    std::vector<fake::Request> requests;
    for (const auto& live : begun_) requests.push_back(live->request);
    const auto n = static_cast<int>(requests.size());
    std::vector<fake::Status> statuses(requests.size()), some_statuses(requests.size());
    std::vector<int> some(requests.size());
    int flag = 0, ended = 0;
    switch (now().completion) {
      case 0:
        if (mpi_.Waitall(n, requests.data(), statuses.data()) != kSuccess) wrong("MPI_Waitall fails");
        break;
      case 1:
        while (flag == 0) {
          if (mpi_.Testall(n, requests.data(), &flag, statuses.data()) != kSuccess) return wrong("MPI_Testall fails");
        }
        break;
      case 2:
        for (int left = n; left > 0; left -= ended) {
          if (mpi_.Waitsome(n, requests.data(), &ended, some.data(), some_statuses.data()) != kSuccess || ended <= 0)
            return wrong("MPI_Waitsome fails");
          for (int k = 0; k < ended; ++k)
            statuses[static_cast<std::size_t>(some[static_cast<std::size_t>(k)])] = some_statuses[static_cast<std::size_t>(k)];
        }
        break;
      default:
        for (std::size_t i = 0; i < requests.size(); ++i) {
          for (flag = 0; now().completion == 3 && flag == 0;) {
            if (mpi_.Test(&requests[i], &flag, &statuses[i]) != kSuccess) return wrong("MPI_Test fails");
          }
          if (now().completion != 3 && mpi_.Wait(&requests[i], &statuses[i]) != kSuccess) return wrong("MPI_Wait fails");
        }
    }
    for (std::size_t i = 0; i < begun_.size(); ++i) {
      begun_[i]->request = requests[i];
      begun_[i]->status = statuses[i];
      end(std::move(begun_[i]));
    }
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
    const std::string what = play_collective(*now().collective, mpi_, base_, ranks, local(rank_));
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
