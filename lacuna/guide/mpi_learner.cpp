#include "lacuna/guide/mpi_learner.hpp"

#include <fmt/format.h>

namespace lacuna::guide {

// What was learned, if choices follow that. A round without a wait says nothing: the sender runs ahead. Nor will later
// ones of such a program.
std::optional<MpiLearned> MpiLearner::end_round(MpiPrices& prices, std::int64_t now) {
  const Round round = std::exchange(round_, {});
  if (waits_ == round.waits) {
    contests_.give_up(decltype(contests_)::kRests);
    return std::nullopt;
  }
  const auto decided = contests_.took(round.number, static_cast<double>(now - round.began));
  if (!decided) return std::nullopt;
  const Subject& subject = contests_.subject(decided->at);
  MpiLearned found{.version = version_,
                   .distance = subject.distance,
                   .use = subject.use,
                   .piece = subject.piece,
                   .first = decided->best,
                   .second = decided->other,
                   .log_ratio = decided->log_ratio,
                   .samples = decided->samples};
  std::erase_if(learned_, [&](const MpiLearned& old) { return old.same(found); });
  learned_.push_back(found);
  if (options_.learning != Learning::on) return std::nullopt;
  if (found.distance == prices.distance()) prices.learn(found);
  return found;
}

MpiLearner::Started MpiLearner::start(MpiPrices& prices, const Transfer& transfer, std::int64_t now) {
  const bool ends = round_.number != 0 && transfer == round_.of;
  std::optional<MpiLearned> learned = ends ? end_round(prices, now) : std::nullopt;
  const MpiWay chosen = prices.choose(transfer.use, transfer.piece, transfer.ways);
  const double ns = prices.ns(transfer.use, chosen, transfer.piece).value_or(0);
  // The time from trial to trial varies, so what begins one stands for those between.
  all_ns_ += ns * static_cast<double>(contests_.transfers() - std::exchange(counted_, contests_.transfers()));
  if (transfer.piece.bytes < MpiPrices::kLeastBytes || ns == 0) return {.way = chosen, .learned = std::move(learned)};
  const auto beside = [&](std::span<const MpiWay> ways) -> std::optional<Contests<Subject, MpiWay>::Beside> {
    const std::optional<MpiWay> other = prices.best_beside(ways, transfer.use, transfer.piece, transfer.ways);
    if (!other) return std::nullopt;
    return {{.way = *other, .ns = prices.ns(transfer.use, *other, transfer.piece).value_or(0)}};
  };
  const Subject subject{.distance = prices.distance(), .use = transfer.use, .piece = transfer.piece};
  const auto trial = contests_.next(subject, chosen, ns, all_ns_, beside);
  if (!trial) return {.way = chosen, .learned = std::move(learned)};
  round_ = {.number = trial->number, .of = transfer, .began = now, .waits = waits_};
  return {.way = trial->way, .tries = true, .learned = std::move(learned)};
}

void MpiLearner::break_off() {
  contests_.give_up(0);
  round_ = {};
}

std::string MpiLearner::describe() const {
  return fmt::format("learning: {} of {} transfers went another way; {} comparisons decided, {} for the other way", contests_.tried(),
                     contests_.transfers(), contests_.settled(), contests_.better());
}

}  // namespace lacuna::guide
