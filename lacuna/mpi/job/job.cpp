#include "lacuna/mpi/job/job.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/mpi/host/cpus.hpp"
#include "lacuna/mpi/host/environment.hpp"
#include "lacuna/mpi/host/machine.hpp"
#include "lacuna/mpi/host/pause.hpp"
#include "lacuna/mpi/job/gathering.hpp"

namespace lacuna::mpi {

#if defined(LACUNA_MPI_RANKS_ARE_THREADS)
thread_local
#endif
    Job* job = nullptr;

namespace {

constexpr const char* kNic = "local";
constexpr std::int64_t kMostChunk = 1 << 30;
constexpr std::int64_t kMostPatience = 3'600'000'000;  // us

/// What each rank says of itself in MPI_Init.
struct Card {
  std::uint64_t magic = 0x3930'6970'6d6c'636c;  // changes with Descriptor, Card, Said, boards and orders
  std::array<std::uint64_t, 2> node{};
  Cpus cpus;
  Nonce random{};
  std::int32_t mode = 0;
  std::int32_t unused = 0;
  nic::Card memory;  // by which others of its node reach its memory
};

Mode mode_of_environment() {
  const char* said = std::getenv("LACUNA_MPI");
  const std::string_view mode = said == nullptr ? "full" : said;
  if (mode == "off") return Mode::off;
  if (mode == "pack") return Mode::pack;
  if (mode != "full" && !mode.empty()) std::fprintf(stderr, "lacuna: LACUNA_MPI is '%s'; it may be off, pack or full. Taking full\n", said);
  return Mode::full;
}

std::int64_t bytes_of_environment(const char* name, std::int64_t otherwise) {
  return number_of_environment(name, otherwise, "bytes", Descriptor::kBytes);
}

Library library_of(const std::string& version) {
  if (version.contains("Open MPI")) return Library::open_mpi;
  if (version.contains("Intel")) return Library::intel;
  return version.contains("MPICH Version:\t4.0") ? Library::mpich_4_0 : Library::mpich;
}

// As they were measured, or as the user says.
guide::MpiThresholds thresholds(guide::MpiThresholds from) {
  from.contiguous = bytes_of_environment("LACUNA_MPI_OFFER_CONTIGUOUS", from.contiguous);
  from.inter_node = bytes_of_environment("LACUNA_MPI_OFFER_INTER_NODE", from.inter_node);
  from.chunk = std::min(bytes_of_environment("LACUNA_MPI_CHUNK", from.chunk), kMostChunk);
  return from;
}

// What it shares with the other ranks of its node.
struct Sharing {
  std::vector<int> ranks;  // of this node, in MPI_COMM_WORLD
  protocol::Options options;
};

// Opens the memory that others of this node will reach. How many they are is not known yet.
base::Result<void> open_memory(Job& made, Sharing& sharing, Card& mine) {
  sharing.options = LACUNA_TRY(protocol::Options::from_environment({.idle_thread = true}));
  const std::int64_t most = std::max(sharing.options.shared_bytes, protocol::usual_shared_bytes(1));
  made.context = LACUNA_TRY(nic::open(kNic, {.shared_bytes = 2 * most}));
  mine.memory = LACUNA_TRY(made.context->card());
  return {};
}

// All have said where their memory is.
base::Result<void> reach(Job& made, const Sharing& sharing, std::span<const Card> all) {
  protocol::Group group{.rank = made.local_rank, .peers = {}};
  for (const int rank : sharing.ranks) group.cards.push_back(all[static_cast<std::size_t>(rank)].memory);
  const std::int64_t bound = sharing.options.shared_bytes_of(static_cast<int>(sharing.ranks.size()));
  made.peers = std::make_unique<NodePeers>(*made.context, group.cards);
  made.boards = std::make_unique<Boards>(*made.peers, guide::mpi_board_bytes(bound));
  made.lines = std::make_unique<LineTimes>(*made.peers, made.local_rank, !made.crowded);
  // Of threads that call MPI at once the order of calls is not known.
  if (!Mutex::multiple()) made.inquiries = std::make_unique<Inquiries>(*made.peers);
  made.ranks = LACUNA_TRY(protocol::Communicator::create(*made.context, kNic, std::move(group), sharing.options));
  return {};
}

// Where the ranks are. Returns those that are on this node.
std::vector<int> find_places(Job& made, std::span<const Card> all, std::vector<RankPlace>& places) {
  const Card& mine = all[static_cast<std::size_t>(made.world_rank)];
  places.resize(all.size());
  std::vector<Cpus> cpus;  // of this node's ranks
  std::vector<int> here;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!std::ranges::equal(all[rank].node, mine.node)) {
      places[rank].remote = static_cast<int>(rank);
      continue;
    }
    places[rank].local = static_cast<int>(here.size());
    here.push_back(static_cast<int>(rank));
    cpus.push_back(all[rank].cpus);
  }
  made.crowded = mpi::crowded(cpus);
  ranks_share_cpus.store(made.crowded, std::memory_order_relaxed);
  made.local_rank = std::exchange(places[static_cast<std::size_t>(made.world_rank)].local, -1);
  return here;
}

constexpr const char* kWithout = "MPI messages go without Lacuna: a rank has no memory for it";

bool worked(const Job& made, const base::Result<void>& result) {
  if (!result)
    base::log(base::Level::warn, fmt::format("MPI messages go without Lacuna: rank {}: {}", made.world_rank, result.error().text()));
  return result.has_value();
}

// Whether this rank has memory for others to reach. Nothing is thrown.
bool opens_memory(Job& made, Sharing& sharing, Card& mine) try {
  return worked(made, open_memory(made, sharing, mine));
} catch (const std::bad_alloc&) {
  base::log(base::Level::warn, kWithout);
  return false;
}

// Whether this rank can take part, and reaches the others of its node. They are told afterwards, so nothing is thrown.
bool set_up(Job& made, std::span<const Card> all, std::vector<RankPlace>& places, Sharing& sharing) try {
  const std::string version = library_version();
  made.library = library_of(version);
  made.ways.find(made.library, version.substr(0, version.find_first_of("\r\n")), Descriptor::kBytes, made.world_rank == 0);
  made.from = thresholds(made.ways.thresholds());
  made.patience_ns =
      1000 * std::min(number_of_environment("LACUNA_MPI_PATIENCE", made.patience_ns / 1000, "microseconds", 0), kMostPatience);
  sharing.ranks = find_places(made, all, places);
  if (made.crowded) made.ways.share_cpus();
  made.comms = std::make_unique<Comms>(places);
  if (std::ranges::any_of(places, [](const RankPlace& place) { return place.remote >= 0; }))
    made.transport = std::make_unique<InterNodeTransport>(made.bounces, places.size());
  return made.comms->sound() && (sharing.ranks.size() == 1 || worked(made, reach(made, sharing, all)));
} catch (const std::bad_alloc&) {
  base::log(base::Level::warn, kWithout);
  return false;
}

struct Said {
  Ways::Asked asked{}, by_board{};
  std::uint64_t works = 0;
  MemoryPlace inquiries;
  MemoryPlace line;
};

// Collectives are inquired about if all ranks of this node can do that.
void know_inquiries(Job& made, const Sharing& sharing, std::span<const Said> all) {
  bool there = made.inquiries != nullptr;
  for (std::size_t local = 0; there && local < sharing.ranks.size(); ++local)
    there = made.inquiries->know(local, all[static_cast<std::size_t>(sharing.ranks[local])].inquiries);
  if (!there) made.inquiries.reset();
}

void know_lines(Job& made, const Sharing& sharing, std::span<const Said> all) {
  if (made.lines == nullptr) return;
  for (std::size_t local = 0; local < sharing.ranks.size(); ++local)
    made.lines->know(local, all[static_cast<std::size_t>(sharing.ranks[local])].line);
  made.ways.know_distance(made.lines->all(), false);
}

// Whether all ranks say so, and which collectives they all would ask one another about. `said` is room for twice as
// many as there are ranks. Ranks that wait here let others have their CPU, which the host's own MPI_Allreduce may not.
bool agree(bool works, Job& made, const Sharing& sharing, std::vector<Said>& said) {
  const Said mine{.asked = works ? made.ways.would_ask(made.crowded) : Ways::Asked{},
                  .by_board = works ? made.ways.would_ask(false) : Ways::Asked{},
                  .works = works ? 1U : 0U,
                  .inquiries = made.inquiries != nullptr ? made.inquiries->place() : MemoryPlace(),
                  .line = made.lines != nullptr ? made.lines->place() : MemoryPlace()};
  said[static_cast<std::size_t>(made.world_rank)] = mine;
  gather_ranks(std::as_writable_bytes(std::span(said)));
  Said all = mine;
  for (const Said& one : std::span(said).first(said.size() / 2)) {
    all.works &= one.works;
    std::ranges::transform(all.asked, one.asked, all.asked.begin(), std::bit_and());
    std::ranges::transform(all.by_board, one.by_board, all.by_board.begin(), std::bit_and());
  }
  made.ways.agree(all.asked, all.by_board);
  know_inquiries(made, sharing, said);
  know_lines(made, sharing, said);
  return all.works == 1;
}

}  // namespace

bool Job::force(const char* name) {
  constexpr std::string_view chunked = "chunked ";
  if (name == nullptr) {
    ways.force(std::nullopt);
    if (chosen_from_) from = *chosen_from_;
    chosen_from_.reset();
    return true;
  }
  const std::string_view said(name);
  const std::optional<MpiWay> way = guide::mpi_way_from_name(said);
  std::int64_t chunk = 0;
  if (said.starts_with(chunked)) std::from_chars(name + chunked.size(), name + said.size(), chunk);
  if (!way && (chunk < Descriptor::kBytes || chunk > kMostChunk)) return false;
  if (!chosen_from_) chosen_from_ = from;
  ways.force(way);
  // What is shorter than a descriptor has no other way than the host's.
  constexpr std::int64_t least = Descriptor::kBytes + 1, never = guide::MpiThresholds::kNever;
  from = {.contiguous = way == MpiWay::offered ? least : never, .inter_node = way ? never : least, .chunk = way ? from.chunk : chunk};
  return true;
}

void Job::look_at(int local) {
  const auto lock = enter();
  if (lines->look(local)) ways.know_distance(lines->all(), lines->mixed());
}

void Job::look_at(Comm comm, int rank) try {
  if (rank == kAnySource) return look_at(LineTimes::kByTurns);
  const int local = rank >= 0 ? comms->place(comm, rank).local : -1;
  look_at(local >= 0 ? local : LineTimes::kNone);
} catch (const std::bad_alloc&) {
  return;  // at another call
}

std::unique_ptr<Job> Job::begin() {
  Card mine;
  mine.node = node();
  mine.cpus = own_cpus();
  mine.mode = static_cast<std::int32_t>(mode_of_environment());
  if (getrandom(mine.random.data(), mine.random.size(), 0) < 0) {  // an old kernel
    const std::int64_t now = base::now_ns();
    std::memcpy(mine.random.data(), &now, sizeof now);
  }
  std::unique_ptr<Job> made(new Job);
  int size = 0;
  host().Comm_size(host().world, &size);
  host().Comm_rank(host().world, &made->world_rank);
  std::vector<Card> told(2 * static_cast<std::size_t>(size));
  std::vector<Said> said(told.size());
  const std::span<Card> all = std::span(told).first(static_cast<std::size_t>(size));
  // From here on nothing is thrown before the others have heard of this rank.
  Sharing sharing;
  const bool alone = size == 1 || static_cast<Mode>(mine.mode) != Mode::full;
  const bool opened = alone || opens_memory(*made, sharing, mine);
  all[static_cast<std::size_t>(made->world_rank)] = mine;
  gather_ranks(std::as_writable_bytes(std::span(told)));
  if (static_cast<Mode>(mine.mode) == Mode::off) return nullptr;

  made->mode = static_cast<Mode>(mine.mode);
  made->reports = made->report.on();
  made->types.decode_at(number_of_environment("LACUNA_MPI_DECODE", 0, "uses", 0));
  int provided = 0;
  host().Query_thread(&provided);
  Mutex::say_multiple(provided == kThreadMultiple);
  const auto full = [&](const Card& card) { return card.magic == mine.magic && static_cast<Mode>(card.mode) == Mode::full; };
  if (!std::ranges::all_of(all, full)) {
    made->mode = Mode::pack;
    return made;
  }
  made->nonce = all.front().random;
  std::vector<RankPlace> places;
  if (!agree(opened && set_up(*made, all, places, sharing), *made, sharing, said)) {
    made->mode = Mode::pack;
    made->transport.reset();
    return made;
  }
  if (made->transport != nullptr && !made->transport->connect(made->world_rank, places)) made->transport.reset();
  if (made->transport == nullptr) made->comms->forget_other_nodes();
  return made;
}

// What was sent to ranks of this node is packed, and theirs to take. What the program freed may want us still, and
// chunks for other nodes the host.
void Job::end() {
  {
    const auto lock = enter();
    // Of a receive whose message never came whole, chunks are posted still.
    operations.each([](Operation& operation) { operation.incoming.reset(); });
    for (const std::unique_ptr<Operation>& orphan : operations.orphans()) orphan->incoming.reset();
    if (transport != nullptr) transport->end();
    for (const std::unique_ptr<Operation>& orphan :
         operations.orphans()) {  // the host ends them in its MPI_Finalize, from our memory, which stays
      Request handle = orphan->handle;
      if (orphan->instead != Request{}) host().Request_free(&orphan->instead);
      if (!orphan->generalized) host().Request_free(&handle);
    }
  }
  idle_requests.end();
  types.end();
  ways.save();
  SharedUse shared{.refused = ranks != nullptr ? ranks->statistics().shared.refused : 0};
  if (boards != nullptr) {
    shared.boards_refused = boards->refused();
    shared.board_bytes = boards->most();
    shared.board_limit = boards->limit();
  }
  report.print(world_rank, ways.describe_learning(), shared);
}

Job::~Job() = default;

}  // namespace lacuna::mpi
