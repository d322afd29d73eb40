#include "lacuna/mpi/ways/ways.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "lacuna/mpi/host/environment.hpp"

namespace lacuna::mpi {

void Ways::find(Library library, std::string_view version, std::int64_t least, bool warns) {
  for (const auto distance : {guide::Distance::near, guide::Distance::distant}) {
    guide::MpiPrices& found = prices_.at(static_cast<std::size_t>(distance));
    found = guide::MpiPrices::find(library, distance, version);
    const bool told = distance != guide::Distance::near && prices_.front().warning().contains(found.warning());
    if (warns && !found.warning().empty() && !told) base::log(base::Level::warn, found.warning());
  }
  version_ = version;
  learn_by_environment(library);
  offered_from_ = number_of_environment("LACUNA_MPI_OFFER", 0, "bytes", least);
  const char* said = std::getenv("LACUNA_MPI_WAY");
  if (said == nullptr || *said == '\0') return;
  const std::optional<MpiWay> way = guide::mpi_way_from_name(said);
  if (!way) std::fprintf(stderr, "lacuna: LACUNA_MPI_WAY is '%s'; it may be host, packed or offered. Forcing nothing\n", said);
  forced_.store(way ? static_cast<int>(*way) : kNone, std::memory_order_relaxed);
}

// Threads that call MPI at once have no rounds that could be told apart. A wrong value is told where the communicator
// reads it.
void Ways::learn_by_environment(Library library) {
  const base::Result<guide::LearnOptions> options = guide::LearnOptions::from_environment();
  if (!options || options->learning == guide::Learning::off || Mutex::multiple()) return;
  learner_ = std::make_unique<guide::MpiLearner>(*options, version_);
  if (options->learning == guide::Learning::on) learned_file_ = guide::MpiPrices::learned_file_of(library);
}

// What was decided of ranks that are elsewhere by now holds for such ranks.
guide::MpiLearner::Started Ways::learn(const guide::MpiLearner::Transfer& transfer, guide::Distance distance, Types& types) {
  guide::MpiLearner::Started started = learner_->start(times_of(distance), transfer, base::now_ns());
  if (!started.learned) return started;
  if (started.learned->distance != distance) times_of(started.learned->distance).learn(*started.learned);
  types.forget_ways();
  return started;
}

void Ways::learn(guide::MpiLearned learned, Types& types) {
  learned.version = version_;
  times_of(learned.distance).learn(learned);
  types.forget_ways();
}

MpiWay Ways::start(const Message& message, const Type& type, Count count, Types& types) {
  return learn({.use = message.use, .piece = type.piece(count), .to = message.to}, message.distance, types).way;
}

Ways::OneWay Ways::try_collective(MpiUse use, const Type* seen, Count count, Types& types) {
  if (seen == nullptr || count <= 0 || seen->contiguous(count) || !guide::mpi_way_serves(MpiWay::packed, use)) return {};
  const std::int64_t bytes = seen->bytes(count);
  if (bytes <= 0 || asks(use, bytes, true) || rests()) return {};
  constexpr unsigned ways = 1U << static_cast<unsigned>(MpiWay::host) | 1U << static_cast<unsigned>(MpiWay::packed);
  return all_go(learn({.use = use, .piece = seen->piece(count), .to = -1, .ways = ways}, distance(), types).way);
}

Ways::Together Ways::try_together(MpiUse use, const Type& type, Count count, const void* comm, Types& types) {
  const guide::Piece piece = type.piece(count);
  guide::MpiLearner::Started started = learn({.use = use, .piece = piece, .to = reinterpret_cast<std::intptr_t>(comm)}, distance(), types);
  Together made{.tries = started.tries, .way = started.way, .chosen = prices().choose(use, piece), .learned = std::move(started.learned)};
  if (made.tries) made.one = all_go(made.way);
  return made;
}

const guide::MpiThresholds& Ways::thresholds() const {
  const auto measured = std::ranges::find_if(prices_, [](const guide::MpiPrices& each) { return !each.file().empty(); });
  return (measured != prices_.end() ? *measured : prices_.front()).thresholds();
}

void Ways::save() const try {
  if (learner_ == nullptr || learned_file_.empty() || learner_->learned().empty()) return;
  const base::Result<void> kept = guide::merge_mpi_learned(learned_file_, learner_->learned());
  if (!kept) base::log(base::Level::warn, "what was learned is lost: " + kept.error().message);
} catch (const std::exception&) {  // no memory, or a version that is no text: MPI_Finalize goes on
  base::log(base::Level::warn, "what was learned is lost");
}

std::string Ways::describe_learning() const { return learner_ != nullptr ? learner_->describe() : std::string(); }

// Where blocks of some kind are offered, between near or distant CPUs, since all ranks have to say the same while CPUs
// move. All orders of magnitude from the last one on are alike, unless a length is forced.
Ways::Asked Ways::would_ask(bool crowded) const {
  constexpr unsigned kLast = 21;
  const int forced = forced_.load(std::memory_order_relaxed);
  const bool forces = forced != kNone || offered_from_ > 0;
  const auto offers = [&](MpiUse use, std::int64_t bytes) {
    if (forces) return forced_way(forced, use, bytes) == MpiWay::offered;
    return !crowded && std::ranges::any_of(guide::kMpiRuns, [&](std::int64_t run) {
      return 2 * run <= bytes && std::ranges::any_of(prices_, [&](const guide::MpiPrices& each) {
               return each.choose(use, {.bytes = bytes, .run = run}) == MpiWay::offered;
             });
    });
  };
  Asked asked{};
  for (std::size_t use = 0; use < asked.size(); ++use) {
    bool asks = false;
    for (unsigned bit = 1; bit < 63; ++bit) {
      const std::int64_t least = std::int64_t{1} << (bit - 1);
      if (forces || bit <= kLast) asks = offers(static_cast<MpiUse>(use), least) || offers(static_cast<MpiUse>(use), 2 * least - 1);
      if (asks) asked[use] |= std::uint64_t{1} << bit;
    }
  }
  return asked;
}

std::optional<std::pair<MpiWay, double>> Ways::best_beside(MpiUse use, MpiWay way, const Type& type, Count count,
                                                           guide::Distance distance) const {
  std::optional<std::pair<MpiWay, double>> best;
  for (const MpiWay other : {MpiWay::host, MpiWay::packed, MpiWay::offered}) {
    const std::optional<double> ns = other != way ? expected_ns(use, other, type, count, distance) : std::nullopt;
    if (ns && (!best || *ns < best->second)) best = {other, *ns};
  }
  return best;
}

}  // namespace lacuna::mpi
