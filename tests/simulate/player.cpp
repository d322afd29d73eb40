#include "tests/simulate/player.hpp"

#include <algorithm>
#include <array>

namespace lacuna::simulate {

using base::Result;
using layout::Layout;
using protocol::Status;

namespace {

constexpr int kEndTag = 1 << 20;
constexpr std::int64_t kLook = 10'000'000'000;  // ns, after which a rank looks whether all have played

}  // namespace

Player::Player(Stage& stage, Unlucky& nic, protocol::Communicator& ranks)
    : stage_(stage), nic_(nic), ranks_(ranks), judge_(stage), random_(stage.story.seed + 77u * static_cast<unsigned>(ranks.rank())) {
  memory_.resize(static_cast<std::size_t>(kSlot * stage.slots()));
  stage.memory[static_cast<std::size_t>(rank())] = memory_;
}

void Player::wrong(const std::string& what) {
  say("WRONG: {}", what);
  stage_.outcome.wrong.push_back(fmt::format("rank {}: {}", rank(), what));
}

void Player::failed(const Step& step, const char* what, const base::Error& error) {
  if (nic_.dead()) return;
  say("step {}: {} failed: {}", step.number, what, error.text());
  ++stage_.outcome.failed;
  const std::string objection = nic_.hung() ? error.text() : judge_.objects(step, error);
  if (!objection.empty()) wrong(fmt::format("step {}: {}: {}", step.number, what, objection));
}

// --- the story -------------------------------------------------------------------------------------------------------

void Player::play() {
  const bool opened = open();
  if (opened) perform();
  ++stage_.fate.over;
  if (opened && !gone()) leave();
}

bool Player::open() {
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

void Player::perform() {
  nic_.begin();
  while (rank() == stage_.story.luck.dies && !stage_.fate.all_begun()) nic_.work(1000);
  for (const Round& round : stage_.story.rounds) {
    play(round);
    if (gone()) return;
    if (std::ranges::any_of(round, [](const Step& step) { return step.any_source && step.any_tag; })) meet("a barrier");
  }
  if (rank() == stage_.story.luck.dies) return nic_.kill();
  nic_.end();
  if (stage_.story.luck.kills()) {
    part(false);
  } else if (meet("the end") && !judge_.any_may_fail()) {
    check_room();
  }
}

// A rank serves its peers until all have played: where something was refused, no message says so for sure.
void Player::leave() {
  while (stage_.fate.over < stage_.fate.ranks && !nic_.hung()) {
    if (ranks_.progress()) continue;
    [[maybe_unused]] const Result<void> waited = nic_.wait(nic_.now() + kLook);
  }
  if (nic_.hung()) return wrong("others did not end");
  check_memory();
  if (const auto withdrawn = ranks_.withdraw(stage_.exposed[static_cast<std::size_t>(rank())], 1'000'000'000);
      !withdrawn && !(stage_.fate.deceived && rank() == stage_.story.luck.victim))
    wrong("withdraw: " + withdrawn.error().text());
}

// Those that live tell one another that they are here.
void Player::part(bool all) {
  const Layout none = support::value(Layout::bytes(0));
  std::vector<Request*> begun;
  const auto told = [this](const base::Error& error) {
    const std::string objection = nic_.hung() ? error.text() : judge_.objects(error);
    if (!objection.empty()) wrong("the end: " + objection);
  };
  for (int other = 0; other < ranks_.size(); ++other) {
    if ((!all && other == stage_.story.luck.dies) || other == rank()) continue;
    for (const bool out : {false, true}) {
      const Result<Request*> made =
          out ? ranks_.isend(memory_.data(), none, other, kEndTag) : ranks_.irecv(memory_.data(), none, other, kEndTag);
      if (!made) told(made.error());
      if (made) begun.push_back(*made);
    }
  }
  if (const Result<void> ended = ranks_.wait_all(begun); !ended) told(ended.error());
}

void Player::play(const Round& round) {
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

// --- messages, puts and gets -----------------------------------------------------------------------------------------

void Player::begin(const Step& step) {
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
bool Player::begin(const Step& step, Role role) {
  const bool remote = role == Role::puts || role == Role::gets;
  if (remote && step.from != rank()) return false;
  const bool receives = role == Role::receives || role == Role::gets;
  Ground* const ground = &stage_.ground;
  const std::int64_t bytes = remote ? SlotLayout(step).size() : step.bytes;
  Begun one{.step = &step, .role = role, .piece = std::make_unique<Piece>(step.seed + (receives ? 2 : 1), bytes, receives, ground)};
  receives ? one.piece->spoil() : one.piece->fill(step.seed);
  if (stage_.story.luck.spoils && role == Role::sends) one.piece->spoil_first();
  Result<Request*> made = start(step, role, *one.piece);
  if (made && role == Role::receives && step.takes_back) made = begin_again(step, *one.piece, *made);
  say("step {}: begins to {}", step.number, std::array{"send", "receive", "put", "get"}.at(static_cast<std::size_t>(role)));
  if (!made) failed(step, "begun", made.error());
  if (!made) return false;
  one.request = *made;
  if (role == Role::receives && step.open) opened_[*made] = open_.size() - 1;
  begun_.push_back(std::move(one));
  if (!step.waits) return true;
  end(begun_.back(), ranks_.wait(*made));
  begun_.pop_back();
  return true;
}

Result<protocol::Request*> Player::start(const Step& step, Role role, Piece& piece) {
  const auto& there = stage_.exposed[static_cast<std::size_t>(step.to)];
  const std::int64_t at = step.number * kSlot;
  if (role == Role::sends) return ranks_.isend(piece.base(), piece.layout(), step.to, step.tag);
  if (role == Role::puts) return ranks_.put(piece.base(), piece.layout(), there, at, SlotLayout(step).layout());
  if (role == Role::gets) return ranks_.get(piece.base(), piece.layout(), there, at, SlotLayout(step).layout());
  if (step.probes && !step.open) probe(step);
  if (step.open) open_.push_back({-1, -1});
  return receive(step, piece);
}

Result<protocol::Request*> Player::receive(const Step& step, Piece& piece) {
  return ranks_.irecv(piece.base(), piece.layout(), step.any_source ? protocol::kAnySource : step.from,
                      step.any_tag ? protocol::kAnyTag : step.tag);
}

// A receive that still waits is taken back, and takes the same place again.
Result<protocol::Request*> Player::begin_again(const Step& step, Piece& piece, Request* begun) {
  ranks_.progress();
  if (!ranks_.cancel(begun)) return begun;
  say("step {}: takes its receive back", step.number);
  return receive(step, piece);
}

void Player::probe(const Step& step) {
  const Result<std::optional<Status>> found =
      ranks_.probe(step.any_source ? protocol::kAnySource : step.from, step.any_tag ? protocol::kAnyTag : step.tag);
  if (!found) return failed(step, "probe", found.error());
  if (*found && ((*found)->source != step.from || (*found)->tag != step.tag || (*found)->bytes != step.bytes) &&
      !judge_.may_be_anything(step))
    wrong(fmt::format("step {}: a probe found something else", step.number));
}

void Player::take_back(const Step& step) {
  Piece piece(step.seed, step.bytes, true, &stage_.ground);
  const Result<Request*> made = ranks_.irecv(piece.base(), piece.layout(), step.from, step.number);
  if (!made) return failed(step, "receive", made.error());
  ranks_.progress();
  if (judge_.may_fail(step) || nic_.dead()) return ranks_.give_up(*made);
  if (!ranks_.cancel(*made)) wrong(fmt::format("step {}: a receive of nothing cannot be taken back", step.number));
}

void Player::end_any() {
  std::vector<Request*> all;
  for (const Begun& one : begun_) all.push_back(one.request);
  const Result<std::size_t> ready = ranks_.wait_any(all);
  if (!ready) return give_up_all("wait_any: " + ready.error().text());
  const std::optional<Result<Status>> ended = ranks_.test(all[*ready]);
  if (!ended) return give_up_all("wait_any named a request that is not done");
  end(begun_[*ready], *ended);
  begun_.erase(begun_.begin() + static_cast<std::ptrdiff_t>(*ready));
}

void Player::give_up_all(const std::string& why) {
  if (!nic_.dead()) wrong(why);
  for (const Begun& one : begun_) ranks_.give_up(one.request);
  begun_.clear();
}

void Player::end(Begun& one, const Result<Status>& ended) {
  const Step& step = *one.step;
  const std::unique_ptr<Piece> piece = std::move(one.piece);  // which goes now
  const auto opened = opened_.find(one.request);
  one.request = nullptr;
  if (!ended) return failed(step, "ended", ended.error());
  say("step {}: ends, {} bytes from {} with tag {}", step.number, ended->bytes, ended->source, ended->tag);
  ++stage_.outcome.messages;
  if (judge_.may_be_anything(step)) return;
  if (one.role == Role::puts) check_put(step);
  const Step* of = &step;
  if (one.role == Role::receives && step.open) {
    const auto found = stage_.steps.find(ended->tag);
    if (found == stage_.steps.end()) return wrong(fmt::format("step {}: a message with tag {}, which none has", step.number, ended->tag));
    of = found->second;
    open_.at(opened->second) = {ended->source, ended->tag};
    opened_.erase(opened);
  }
  if (one.role == Role::receives && (ended->source != of->from || ended->tag != of->tag || ended->bytes != of->bytes))
    return wrong(fmt::format("step {}: {} bytes from {} with tag {}", step.number, ended->bytes, ended->source, ended->tag));
  const bool receives = one.role == Role::receives || one.role == Role::gets;
  const std::string bad =
      receives ? piece->check(one.role == Role::gets ? contents(step.seed, SlotLayout(step).size()) : sent(of->seed, step.bytes)) : "";
  if (!bad.empty()) wrong(fmt::format("step {}: {}", step.number, bad));
}

// --- what came -------------------------------------------------------------------------------------------------------

// A put that has ended is in the memory of its target.
void Player::check_put(const Step& step) {
  stage_.was_put[static_cast<std::size_t>(step.number)] = true;
  if (judge_.may_fail(step)) return;
  const SlotLayout slot(step);
  const std::vector<std::byte> put = sent(step.seed, slot.size());
  const std::span<const std::byte> there = stage_.memory[static_cast<std::size_t>(step.to)];
  for (std::int64_t i = 0; i < slot.size(); ++i) {
    if (there[static_cast<std::size_t>(step.number * kSlot + slot.place(i))] != put[static_cast<std::size_t>(i)])
      return wrong(fmt::format("step {}: byte {} of a put that ended is not there", step.number, i));
  }
}

// Of messages of one rank, all of which any of these receives takes, an earlier one has the earlier receive; and each
// comes once.
void Player::check_order() {
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

void Player::check_memory() {
  for (const auto& [number, step] : stage_.steps) {
    if (step->kind != Step::Kind::put || step->to != rank() || judge_.may_fail(*step)) continue;
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

}  // namespace lacuna::simulate
