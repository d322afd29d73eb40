#include "tests/simulate/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "lacuna/collective/collective.hpp"
#include "lacuna/method/method.hpp"
#include "lacuna/nic/world.hpp"
#include "lacuna/protocol/protocol.hpp"
#include "tests/simulate/piece.hpp"

namespace lacuna::simulate {
namespace {

using base::Result;
using layout::Layout;
using protocol::Communicator;
using protocol::Request;

constexpr std::int64_t kSlot = 8192;                // bytes of a rank's exposed memory for each step
constexpr std::int64_t kUntil = 3'600'000'000'000;  // ns, by which all has to be over
constexpr int kEndTag = 1 << 20;

// What all ranks of a story share: they take turns on one thread.
struct Stage {
  const Story& story;
  Trace& trace;
  Outcome& outcome;
  std::map<int, const Step*> steps;  // by number
  std::vector<protocol::Exposed> exposed;
  std::vector<bool> was_put;  // by number
  // Numbers of steps stay where others are left out
  [[nodiscard]] std::int64_t slots() const { return steps.empty() ? 1 : steps.rbegin()->first + 1; }
};

// Blocks of a slot: so many of so many bytes, with gaps.
struct SlotLayout {
  std::int64_t blocks, bytes;
  explicit SlotLayout(const Step& step)
      : blocks(1 + static_cast<std::int64_t>(step.seed % 7)), bytes(std::max<std::int64_t>(step.bytes / blocks, 1)) {}
  [[nodiscard]] std::int64_t size() const { return blocks * bytes; }
  [[nodiscard]] std::int64_t place(std::int64_t i) const { return i / bytes * 2 * bytes + i % bytes; }
  [[nodiscard]] Layout layout() const {
    return support::value(Layout::hvector(blocks, bytes, 2 * bytes, support::value(Layout::bytes(1))));
  }
};

// What a step with this seed sends: as its sender fills it.
std::vector<std::byte> sent(std::uint64_t seed, std::int64_t bytes) {
  Piece piece(seed + 1, bytes, false);
  piece.fill(seed);
  return piece.stream();
}

class Player {
 public:
  Player(Stage& stage, Unlucky& nic, Communicator& ranks)
      : stage_(stage), nic_(nic), ranks_(ranks), random_(stage.story.seed + 77u * static_cast<unsigned>(ranks.rank())) {
    memory_.resize(static_cast<std::size_t>(kSlot * stage.slots()));
  }

  void play() {
    if (!open()) return;
    nic_.begin();
    while (rank() == stage_.story.luck.dies && !nic_.all_begun()) nic_.work(1000);
    for (const Round& round : stage_.story.rounds) {
      play(round);
      if (nic_.dead() || nic_.hung()) return;
      if (std::ranges::any_of(round, [](const Step& step) { return step.any_tag; })) meet("a barrier");
    }
    if (rank() == stage_.story.luck.dies) return nic_.kill();
    nic_.end();
    if (stage_.story.luck.kills()) part(false);
    if (!stage_.story.luck.kills()) meet("the end");
    if (nic_.hung()) return;
    check_memory();
    if (const auto withdrawn = ranks_.withdraw(stage_.exposed[static_cast<std::size_t>(rank())], 1'000'000'000); !withdrawn)
      wrong("withdraw: " + withdrawn.error().text());
  }

 private:
  enum class Role : std::uint8_t { sends, receives, puts, gets };
  struct Begun {
    const Step* step = nullptr;
    Role role{};
    Request* request = nullptr;
    std::unique_ptr<Piece> piece;
  };
  struct Exchanging {
    const Step* step = nullptr;
    std::vector<std::unique_ptr<Piece>> sends, receives;
    std::unique_ptr<collective::Exchange> exchange;
  };

  [[nodiscard]] int rank() const { return ranks_.rank(); }
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    stage_.trace.say(nic_.time(), rank(), format, std::forward<Args>(args)...);
  }
  void wrong(const std::string& what) {
    say("WRONG: {}", what);
    stage_.outcome.wrong.push_back(fmt::format("rank {}: {}", rank(), what));
  }
  // Whether a step may fail: a rank of it is gone, or will be.
  [[nodiscard]] bool may_fail(const Step& step) const {
    const int dies = stage_.story.luck.dies;
    return dies >= 0 && (step.of(dies) || step.from == dies);
  }
  // Where the NIC refuses to register memory, or has too few keys for the method that is forced: both ends of a message
  // are told, and if a receiver relied on that memory the two ranks are lost to one another, and with them what the
  // others wait for from both.
  [[nodiscard]] bool may_lack_keys() const {
    const Story& story = stage_.story;
    return story.luck.no_keys > 0 || (story.keys >= 0 && !story.method.empty() && (*method::find(story.method))->indirect_keys);
  }
  void failed(const Step& step, const char* what, const base::Error& error) {
    if (nic_.dead()) return;
    say("step {}: {} failed: {}", step.number, what, error.text());
    ++stage_.outcome.failed;
    if (nic_.hung() || !(may_fail(step) || may_lack_keys())) wrong(fmt::format("step {}: {}: {}", step.number, what, error.text()));
  }

  bool open() {
    const Result<protocol::Exposed> mine = ranks_.expose(memory_.data(), std::ssize(memory_));
    if (!mine) wrong("expose: " + mine.error().text());
    if (!mine) return false;
    stage_.exposed[static_cast<std::size_t>(rank())] = *mine;
    for (const auto& [number, step] : stage_.steps) {
      if (step->kind != Step::Kind::get || step->to != rank()) continue;
      const SlotLayout slot(*step);
      for (std::int64_t i = 0; i < slot.size(); ++i)
        memory_[static_cast<std::size_t>(number * kSlot + slot.place(i))] = content(step->seed, i);
    }
    if (stage_.story.hub && stage_.story.luck.kills()) part(true);  // else a rank does not miss one it never talked to
    return meet("the beginning");
  }

  bool meet(const char* what) {
    const Layout none = support::value(Layout::bytes(0));
    const std::vector<collective::Source> out(static_cast<std::size_t>(ranks_.size()), {.layout = none});
    const std::vector<collective::Target> in(out.size(), {.layout = none});
    const Result<void> met = collective::alltoallw(ranks_, out, in);
    if (!met && (nic_.hung() || !may_lack_keys())) wrong(fmt::format("{}: {}", what, met.error().text()));
    return met.has_value();
  }

  // Those that live tell one another that they are here.
  void part(bool all) {
    const Layout none = support::value(Layout::bytes(0));
    std::vector<Request*> begun;
    for (int other = 0; other < ranks_.size(); ++other) {
      if ((!all && other == stage_.story.luck.dies) || other == rank()) continue;
      for (const bool out : {false, true}) {
        const Result<Request*> made =
            out ? ranks_.isend(memory_.data(), none, other, kEndTag) : ranks_.irecv(memory_.data(), none, other, kEndTag);
        if (!made && !may_lack_keys()) wrong("the end: " + made.error().text());
        if (made) begun.push_back(*made);
      }
    }
    if (const Result<void> ended = ranks_.wait_all(begun); !ended && (nic_.hung() || !may_lack_keys()))
      wrong("the end: " + ended.error().text());
  }

  void play(const Round& round) {
    for (const Step& step : round) {
      if (step.of(rank()) && !nic_.dead()) begin(step);
    }
    random_.shuffle(begun_);
    if (random_.one_in(2)) {
      while (!begun_.empty()) end_any();
    }
    for (Begun& one : begun_) {
      if (one.request != nullptr) end(one, ranks_.wait(one.request));
    }
    begun_.clear();
    for (Exchanging& one : exchanging_) end(one);
    exchanging_.clear();
    check_order();
  }

  void begin(const Step& step) {
    switch (step.kind) {
      case Step::Kind::works: nic_.work(step.takes_ns); break;
      case Step::Kind::nothing: take_back(step); break;
      case Step::Kind::exchange: exchange(step); break;
      case Step::Kind::put: begin(step, Role::puts); break;
      case Step::Kind::get: begin(step, Role::gets); break;
      case Step::Kind::message:
        if (step.to == rank() && !begin(step, Role::receives) && step.from == rank()) break;  // no receive is there
        if (step.from == rank()) begin(step, Role::sends);
        break;
    }
  }

  // Whether it has begun.
  bool begin(const Step& step, Role role) {
    if ((role == Role::puts || role == Role::gets) && step.from != rank()) return false;
    const bool receives = role == Role::receives || role == Role::gets;
    const SlotLayout slot(step);
    const bool remote = role == Role::puts || role == Role::gets;
    Begun one{.step = &step,
              .role = role,
              .piece = std::make_unique<Piece>(step.seed + (receives ? 2 : 1), remote ? slot.size() : step.bytes, receives)};
    Piece& piece = *one.piece;
    receives ? piece.spoil() : piece.fill(step.seed);
    if (stage_.story.luck.spoils && role == Role::sends) piece.spoil_first();
    const auto& there = stage_.exposed[static_cast<std::size_t>(step.to)];
    const std::int64_t at = step.number * kSlot;
    Result<Request*> made = base::fail(base::Code::unsupported, "");
    switch (role) {
      case Role::sends: made = ranks_.isend(piece.base(), piece.layout(), step.to, step.number); break;
      case Role::receives:
        if (step.probes && !step.any_tag) probe(step);
        made = ranks_.irecv(piece.base(), piece.layout(), step.any_source ? protocol::kAnySource : step.from,
                            step.any_tag ? protocol::kAnyTag : step.number);
        if (step.any_tag) open_.push_back({-1, -1});
        break;
      case Role::puts: made = ranks_.put(piece.base(), piece.layout(), there, at, slot.layout()); break;
      case Role::gets: made = ranks_.get(piece.base(), piece.layout(), there, at, slot.layout()); break;
    }
    say("step {}: begins to {}", step.number, std::array{"send", "receive", "put", "get"}.at(static_cast<std::size_t>(role)));
    if (!made) failed(step, "begun", made.error());
    if (!made) return false;
    one.request = *made;
    if (role == Role::receives && step.any_tag) opened_[*made] = open_.size() - 1;
    begun_.push_back(std::move(one));
    return true;
  }

  void probe(const Step& step) {
    const Result<std::optional<protocol::Status>> found = ranks_.probe(step.from, step.number);
    if (!found) return failed(step, "probe", found.error());
    if (*found && ((*found)->source != step.from || (*found)->tag != step.number || (*found)->bytes != step.bytes))
      wrong(fmt::format("step {}: a probe found something else", step.number));
  }

  void take_back(const Step& step) {
    Piece piece(step.seed, step.bytes, true);
    const Result<Request*> made = ranks_.irecv(piece.base(), piece.layout(), step.from, step.number);
    if (!made) return failed(step, "receive", made.error());
    ranks_.progress();
    if (may_fail(step) || may_lack_keys() || nic_.dead()) return ranks_.give_up(*made);
    if (!ranks_.cancel(*made)) wrong(fmt::format("step {}: a receive of nothing cannot be taken back", step.number));
  }

  void exchange(const Step& step) {
    Exchanging one{.step = &step};
    std::vector<collective::Source> out;
    std::vector<collective::Target> in;
    for (int other = 0; other < ranks_.size(); ++other) {
      one.sends.push_back(std::make_unique<Piece>(block_seed(step, rank(), other) + 1, block_bytes(step, rank(), other), false));
      one.receives.push_back(std::make_unique<Piece>(block_seed(step, other, rank()) + 2, block_bytes(step, other, rank()), true));
      one.sends.back()->fill(block_seed(step, rank(), other));
      one.receives.back()->spoil();
      out.push_back({one.sends.back()->base(), one.sends.back()->layout()});
      in.push_back({one.receives.back()->base(), one.receives.back()->layout()});
    }
    one.exchange = collective::alltoallw_init(ranks_, out, in);
    say("step {}: begins to exchange", step.number);
    const Result<void> started = one.exchange->start();
    if (!started) return failed(step, "exchange", started.error());
    exchanging_.push_back(std::move(one));
    if (step.seed % 2 == 0) end(exchanging_.back());
  }
  static std::uint64_t block_seed(const Step& step, int from, int to) {
    return step.seed + 1000u * static_cast<unsigned>(from) + 10u * static_cast<unsigned>(to);
  }
  static std::int64_t block_bytes(const Step& step, int from, int to) {
    return static_cast<std::int64_t>(support::Random(block_seed(step, from, to)).next() % static_cast<std::uint64_t>(step.bytes + 1));
  }

  void end(Exchanging& one) {
    if (one.exchange == nullptr || nic_.dead()) return;
    const Result<void> ended = one.exchange->wait();
    say("step {}: exchange ends", one.step->number);
    if (!ended) failed(*one.step, "exchange", ended.error());
    for (int other = 0; ended && other < ranks_.size(); ++other) {
      const std::string bad = one.receives[static_cast<std::size_t>(other)]->check(
          sent(block_seed(*one.step, other, rank()), block_bytes(*one.step, other, rank())));
      if (!bad.empty()) wrong(fmt::format("step {}: from rank {}: {}", one.step->number, other, bad));
    }
    if (ended) ++stage_.outcome.messages;
    one.exchange.reset();
  }

  void end_any() {
    std::vector<Request*> all;
    for (const Begun& one : begun_) all.push_back(one.request);
    const Result<std::size_t> ready = ranks_.wait_any(all);
    if (!ready) return give_up_all("wait_any: " + ready.error().text());
    const std::optional<Result<protocol::Status>> ended = ranks_.test(all[*ready]);
    if (!ended) return give_up_all("wait_any named a request that is not done");
    end(begun_[*ready], *ended);
    begun_.erase(begun_.begin() + static_cast<std::ptrdiff_t>(*ready));
  }
  void give_up_all(const std::string& why) {
    if (!nic_.dead()) wrong(why);
    for (const Begun& one : begun_) ranks_.give_up(one.request);
    begun_.clear();
  }

  void end(Begun& one, const Result<protocol::Status>& ended) {
    const Step& step = *one.step;
    const auto opened = opened_.find(one.request);
    one.request = nullptr;
    if (!ended) return failed(step, "ended", ended.error());
    say("step {}: ends, {} bytes from {} with tag {}", step.number, ended->bytes, ended->source, ended->tag);
    ++stage_.outcome.messages;
    if (one.role == Role::puts) stage_.was_put[static_cast<std::size_t>(step.number)] = true;
    const Step* of = &step;
    if (one.role == Role::receives && step.any_tag) {
      const auto found = stage_.steps.find(ended->tag);
      if (found == stage_.steps.end()) return wrong(fmt::format("step {}: a message with tag {}, which none has", step.number, ended->tag));
      of = found->second;
      open_.at(opened->second) = {ended->source, ended->tag};
      opened_.erase(opened);
    }
    if (one.role == Role::receives && (ended->source != of->from || ended->tag != of->number || ended->bytes != of->bytes))
      return wrong(fmt::format("step {}: {} bytes from {} with tag {}", step.number, ended->bytes, ended->source, ended->tag));
    const bool receives = one.role == Role::receives || one.role == Role::gets;
    const std::string bad =
        receives ? one.piece->check(one.role == Role::gets ? contents(step.seed, SlotLayout(step).size()) : sent(of->seed, step.bytes))
                 : "";
    if (!bad.empty()) wrong(fmt::format("step {}: {}", step.number, bad));
  }

  // Of messages of one rank, all of which any of these receives takes, an earlier one has the earlier receive; and each
  // comes once.
  void check_order() {
    std::map<int, int> last;
    for (const auto& [source, tag] : open_) {
      if (tag < 0) continue;
      int& before = last.try_emplace(source, -1).first->second;
      if (tag <= before) wrong(fmt::format("message {} of rank {} overtook message {}, or came twice", before, source, tag));
      before = tag;
    }
    open_.clear();
    opened_.clear();
  }

  void check_memory() {
    for (const auto& [number, step] : stage_.steps) {
      if (step->kind != Step::Kind::put || step->to != rank() || may_fail(*step)) continue;
      const SlotLayout slot(*step);
      const std::vector<std::byte> put = sent(step->seed, slot.size());
      std::vector<bool> written(static_cast<std::size_t>(kSlot));
      for (std::int64_t i = 0; i < slot.size(); ++i) {
        written[static_cast<std::size_t>(slot.place(i))] = true;
        if (stage_.was_put[static_cast<std::size_t>(number)] &&
            memory_[static_cast<std::size_t>(number * kSlot + slot.place(i))] != put[static_cast<std::size_t>(i)])
          return wrong(fmt::format("step {}: byte {} that was put is wrong", number, i));
      }
      for (std::size_t i = 0; i < written.size(); ++i) {
        if (!written[i] && memory_[static_cast<std::size_t>(number * kSlot) + i] != std::byte{})
          return wrong(fmt::format("step {}: memory beside what was put", number));
      }
    }
  }

  Stage& stage_;
  Unlucky& nic_;
  Communicator& ranks_;
  support::Random random_;
  std::vector<std::byte> memory_;
  std::vector<Begun> begun_;
  std::vector<Exchanging> exchanging_;
  std::vector<std::pair<int, int>> open_;  // source and tag of what came, by the order of the receives
  std::map<Request*, std::size_t> opened_;
};

protocol::Options options_of(const Story& story) {
  protocol::Options options;
  if (story.eager_bytes > 0) options.eager_bytes = story.eager_bytes;
  if (story.part_bytes > 0) options.part_bytes = story.part_bytes;
  if (story.registered_bytes > 0) options.registered_bytes = story.registered_bytes;
  if (story.registered_entries > 0) options.registered_entries = story.registered_entries;
  if (story.unexpected_bytes >= 0) options.unexpected_bytes = story.unexpected_bytes;
  options.registering = static_cast<protocol::Registering>(story.registering);
  if (story.learns) options.learn = {.learning = guide::Learning::on, .one_in = 3};
  if (!story.method.empty()) options.force.method = *method::find(story.method);
  return options;
}

nic::WorldOptions world_of(const Story& story) {
  nic::WorldOptions options{.profile = LACUNA_SOURCE_DIR "/lacuna/nic/model/profiles/" + story.profile + ".json",
                            .ranks = story.ranks,
                            .ranks_per_node = story.ranks_per_node};
  options.limits.max_send_wr = story.max_send_wr;
  options.limits.max_recv_wr = story.max_recv_wr;
  options.limits.max_sge = story.max_sge;
  if (story.keys >= 0) options.limits.indirect.keys = story.keys;
  return options;
}

}  // namespace

Outcome run(const Story& story, bool keeps_trace) {
  Outcome outcome;
  Trace trace(keeps_trace);
  Result<std::unique_ptr<nic::World>> world = nic::simulate(world_of(story));
  if (!world) {
    outcome.wrong.push_back("the world: " + world.error().text());
    return outcome;
  }
  Stage stage{.story = story,
              .trace = trace,
              .outcome = outcome,
              .steps = {},
              .exposed = std::vector<protocol::Exposed>(static_cast<std::size_t>(story.ranks)),
              .was_put = {}};
  for (const Round& round : story.rounds) {
    for (const Step& step : round) stage.steps[step.number] = &step;
  }
  stage.was_put.resize(static_cast<std::size_t>(stage.slots()));
  int begun = 0;
  const Result<void> ran = (*world)->run([&](int rank) -> Result<void> {
    Unlucky nic((*world)->context(rank), story.luck, story.seed, rank, kUntil, story.ranks, begun, trace);
    {
      auto group = story.hub ? protocol::form_group_by_hub(**world, rank) : protocol::form_group(**world, rank);
      const auto made = protocol::Communicator::create(nic, "model", std::move(group), options_of(story));
      if (!made) {
        outcome.wrong.push_back(fmt::format("rank {}: no communicator: {}", rank, made.error().text()));
        return {};
      }
      Player(stage, nic, **made).play();
    }
    outcome.happened.add(nic.happened());
    return {};
  });
  if (!ran) outcome.wrong.push_back(ran.error().text());
  for (int rank = 0; rank < story.ranks; ++rank) {
    const nic::World::Usage left = (*world)->usage(rank);
    if (left.allocated != 0 || left.registered != 0)
      outcome.wrong.push_back(fmt::format("rank {} leaves {} bytes allocated and {} registered", rank, left.allocated, left.registered));
  }
  outcome.trace = trace.text();
  outcome.digest = trace.digest();
  return outcome;
}

}  // namespace lacuna::simulate
