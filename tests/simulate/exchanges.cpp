// What a player does in exchanges.
#include "tests/simulate/player.hpp"

namespace lacuna::simulate {
namespace {

using base::Result;

std::uint64_t block_seed(const Step& step, int from, int to) {
  return step.seed + 1000u * static_cast<unsigned>(from) + 10u * static_cast<unsigned>(to);
}

std::int64_t block_bytes(const Step& step, int from, int to) {
  return static_cast<std::int64_t>(support::Random(block_seed(step, from, to)).next() % static_cast<std::uint64_t>(step.bytes + 1));
}

}  // namespace

bool Player::meet(const char* what) {
  const layout::Layout none = support::value(layout::Layout::bytes(0));
  const std::vector<collective::Source> out(static_cast<std::size_t>(ranks_.size()), {.layout = none});
  const std::vector<collective::Target> in(out.size(), {.layout = none});
  int& exchanging = stage_.fate.exchanging[static_cast<std::size_t>(rank())];
  ++exchanging;
  const Result<void> met = collective::alltoallw(ranks_, out, in);
  --exchanging;
  if (met || nic_.dead()) return met.has_value();
  const std::string objection = nic_.hung() ? met.error().text() : judge_.objects(met.error());
  if (!objection.empty()) wrong(fmt::format("{}: {}", what, objection));
  stage_.fate.troubled[static_cast<std::size_t>(rank())] = true;
  return false;
}

void Player::exchange(const Step& step) {
  Exchanging one{.step = &step};
  std::vector<collective::Source> out;
  std::vector<collective::Target> in;
  Ground* const ground = &stage_.ground;
  for (int other = 0; other < ranks_.size(); ++other) {
    const bool misfit = step.flaw == Step::Flaw::misfit && rank() == step.from && other == step.to;
    one.sends.push_back(
        std::make_unique<Piece>(block_seed(step, rank(), other) + 1, block_bytes(step, rank(), other) + (misfit ? 1 : 0), false, ground));
    one.receives.push_back(std::make_unique<Piece>(block_seed(step, other, rank()) + 2, block_bytes(step, other, rank()), true, ground));
    one.sends.back()->fill(block_seed(step, rank(), other));
    one.receives.back()->spoil();
    out.push_back({one.sends.back()->base(), one.sends.back()->layout()});
    in.push_back({one.receives.back()->base(), one.receives.back()->layout()});
  }
  const bool refused = step.flaw == Step::Flaw::refused && rank() == step.from;
  one.exchange = collective::alltoallw_init(ranks_, out, in, {.window = refused ? 0 : 8});
  say("step {}: begins to exchange", step.number);
  ++stage_.fate.exchanging[static_cast<std::size_t>(rank())];
  const Result<void> started = one.exchange->start();
  if (!started) return end(one, started);
  exchanging_.push_back(std::move(one));
  if (step.seed % 2 == 0) end(exchanging_.back());
}

void Player::end(Exchanging& one) {
  if (one.exchange != nullptr && !nic_.dead()) end(one, one.exchange->wait());
}

void Player::end(Exchanging& one, const Result<void>& ended) {
  const Step& step = *one.step;
  say("step {}: exchange ends", step.number);
  one.exchange.reset();
  --stage_.fate.exchanging[static_cast<std::size_t>(rank())];
  // One that ends well beside trouble may still lose a peer whose alarm was on its way.
  if (judge_.any_may_fail()) stage_.fate.troubled[static_cast<std::size_t>(rank())] = true;
  if (step.flaw != Step::Flaw::none && !nic_.dead()) {
    check_flawed(one, ended);
  } else if (!ended) {
    failed(step, "exchange", ended.error());
  } else {
    ++stage_.outcome.messages;
    for (int other = 0; other < ranks_.size() && !judge_.may_be_anything(step); ++other) {
      const std::string bad =
          one.receives[static_cast<std::size_t>(other)]->check(sent(block_seed(step, other, rank()), block_bytes(step, other, rank())));
      if (!bad.empty()) wrong(fmt::format("step {}: from rank {}: {}", step.number, other, bad));
    }
  }
  one.sends.clear();
  one.receives.clear();
}

// All ranks hear of it, and nothing is moved.
void Player::check_flawed(const Exchanging& one, const Result<void>& ended) {
  const Step& step = *one.step;
  if (judge_.may_be_anything(step)) return;
  if (ended) return wrong(fmt::format("step {}: an exchange that does not fit went well", step.number));
  ++stage_.outcome.failed;
  say("step {}: exchange failed: {}", step.number, ended.error().text());
  const bool named = ended.error().code == base::Code::invalid_argument && !nic_.hung();
  if (!named && !judge_.any_may_fail()) wrong(fmt::format("step {}: {}", step.number, ended.error().text()));
  for (const auto& piece : one.receives) {
    if (const std::string bad = piece->check({}); !bad.empty()) wrong(fmt::format("step {}: {}", step.number, bad));
  }
}

}  // namespace lacuna::simulate
