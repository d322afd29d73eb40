#include "lacuna/mpi/ways/ways.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "lacuna/mpi/host/environment.hpp"

namespace lacuna::mpi {

void Ways::find(Library library, std::string_view version, std::int64_t least, bool warns) {
  prices_ = guide::MpiPrices::find(library, version);
  version_ = version;
  if (warns && !prices_.warning().empty()) base::log(base::Level::warn, prices_.warning());
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
  if (options->learning == guide::Learning::on) learned_file_ = guide::learned_file(guide::MpiPrices::file_of(library));
}

guide::MpiLearner::Started Ways::learn(const guide::MpiLearner::Transfer& transfer, Types& types) {
  guide::MpiLearner::Started started = learner_->start(prices_, transfer, base::now_ns());
  if (started.learned) types.forget_ways();
  return started;
}

void Ways::learn(MpiUse use, const guide::Piece& piece, MpiWay first, MpiWay second, double log_ratio, Types& types) {
  prices_.learn({.version = version_, .use = use, .piece = piece, .first = first, .second = second, .log_ratio = log_ratio, .samples = 1});
  types.forget_ways();
}

MpiWay Ways::start(MpiUse use, const Type& type, Count count, int to, Types& types) {
  return learn({.use = use, .piece = type.piece(count), .to = to}, types).way;
}

Ways::OneWay Ways::try_collective(MpiUse use, const Type* seen, Count count, Types& types) {
  if (seen == nullptr || count <= 0 || seen->contiguous(count) || !guide::mpi_way_serves(MpiWay::packed, use)) return {};
  const std::int64_t bytes = seen->bytes(count);
  if (bytes <= 0 || asks(use, bytes, true) || rests()) return {};
  constexpr unsigned ways = 1U << static_cast<unsigned>(MpiWay::host) | 1U << static_cast<unsigned>(MpiWay::packed);
  return all_go(learn({.use = use, .piece = seen->piece(count), .to = -1, .ways = ways}, types).way);
}

Ways::Together Ways::try_together(MpiUse use, const Type& type, Count count, const void* comm, Types& types) {
  const guide::Piece piece = type.piece(count);
  guide::MpiLearner::Started started = learn({.use = use, .piece = piece, .to = reinterpret_cast<std::intptr_t>(comm)}, types);
  Together made{.tries = started.tries, .way = started.way, .chosen = prices_.choose(use, piece), .learned = std::move(started.learned)};
  if (made.tries) made.one = all_go(made.way);
  return made;
}

void Ways::save() const try {
  if (learner_ == nullptr || learned_file_.empty() || learner_->learned().empty()) return;
  const base::Result<void> kept = guide::merge_mpi_learned(learned_file_, learner_->learned());
  if (!kept) base::log(base::Level::warn, "what was learned is lost: " + kept.error().message);
} catch (const std::exception&) {  // no memory, or a version that is no text: MPI_Finalize goes on
  base::log(base::Level::warn, "what was learned is lost");
}

std::string Ways::describe_learning() const { return learner_ != nullptr ? learner_->describe() : std::string(); }

// Where blocks of some kind are offered. All orders of magnitude from the last one on are alike, unless a length is
// forced.
Ways::Asked Ways::would_ask(bool crowded) const {
  constexpr unsigned kLast = 21;
  const int forced = forced_.load(std::memory_order_relaxed);
  const bool forces = forced != kNone || offered_from_ > 0;
  const auto offers = [&](MpiUse use, std::int64_t bytes) {
    if (forces) return forced_way(forced, use, bytes) == MpiWay::offered;
    return !crowded && std::ranges::any_of(guide::kMpiRuns, [&](std::int64_t run) {
      return 2 * run <= bytes && prices_.choose(use, {.bytes = bytes, .run = run}) == MpiWay::offered;
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

std::optional<std::pair<MpiWay, double>> Ways::best_beside(MpiUse use, MpiWay way, const Type& type, Count count) const {
  std::optional<std::pair<MpiWay, double>> best;
  for (const MpiWay other : {MpiWay::host, MpiWay::packed, MpiWay::offered}) {
    const std::optional<double> ns = other != way ? expected_ns(use, other, type, count) : std::nullopt;
    if (ns && (!best || *ns < best->second)) best = {other, *ns};
  }
  return best;
}

}  // namespace lacuna::mpi
