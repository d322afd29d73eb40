// Whether the ranks of a communicator exchange: what they say before they have boards.
#include <algorithm>
#include <array>
#include <bit>

#include "lacuna/mpi/messages/exchange.hpp"

namespace lacuna::mpi::detail {
namespace {

// Calls that are not asked about one after the other, by the size class of the longest block: a question takes about as
// long as a call of short blocks, so it is at most some percent of the calls beside it.
constexpr std::array kMostUnasked{256, 64, 32, 16, 8, 4, 2, 1};
static_assert(kMostUnasked.size() == Askings::kSizes);

// Whether this rank can take part in exchanges.
bool prepare(CommOf& of, Comm comm) try {
  if (of.of_host || !knows(of, comm)) return false;
  std::size_t blocks = of.places.size();
  if (of.neighbors) blocks = std::max({blocks, of.neighbors->out.size(), of.neighbors->in.size()});
  of.exchange_memory.resize(Exchange::memory_for(blocks));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// A root packs a block for each rank, where the host's tree packs it once: beyond so many ranks that takes longer.
constexpr std::size_t kMostOfBcast = 8;

}  // namespace

CommOf* find(Job& job, Comm comm) try { return job.comms->find(comm); } catch (const std::bad_alloc&) {
  return nullptr;
}

bool knows(CommOf& of, Comm comm) try {
  int topology = 0, rank = 0;
  if (!of.kept || host().Topo_test(comm, &topology) != kSuccess) return false;
  if (topology != kCart && topology != kDistGraph) return true;
  host().Comm_rank(comm, &rank);
  return neighbors_of(of, comm, rank) != nullptr;
} catch (const std::bad_alloc&) {
  return false;
}

bool may_agree(Job& job, Comm comm, const CommOf* of, MpiUse use) {
  if (of == nullptr) return Comms::has_one_group(comm) && !job.comms->refuses(comm);
  if (of->exchanges == CommOf::Exchanges::refused || of->inter || of->foreign || of->of_threads) return false;
  return of->places.size() > 1 && (of->one_node || use == MpiUse::alltoallw);
}

bool find_circle(Job& job, Comm comm, CommOf* of, Circle*& circle) {
  Inquiries* const inquiries = job.inquiries.get();
  circle = nullptr;
  if (inquiries == nullptr) return true;
  if (of != nullptr ? !of->one_node : job.comms->is_of_one_node(comm) == false) return true;
  if (of == nullptr || (of->circle == nullptr && !knows(*of, comm))) inquiries->become_deaf();
  if (inquiries->is_deaf()) return false;
  if (of->circle == nullptr) {
    int rank = 0;
    host().Comm_rank(comm, &rank);
    of->circle = inquiries->circle(of->name, of->places, static_cast<std::size_t>(rank));
  }
  circle = of->circle;
  return circle != nullptr && !circle->refused;
}

bool inquire(Job& job, Comm comm, Circle& circle, Said& said, int& result) {
  circle.answer(said.says, said.sizes);
  std::int64_t since = 0;
  for (std::size_t rank = 0; rank < circle.size(); ++rank) {
    if (rank == circle.rank()) continue;
    const Answer* answer = circle.hear(rank);
    for (int spins = 1; answer == nullptr; ++spins) {
      const bool deaf = circle.is_deaf(rank);  // before another look: what it said before counts
      answer = circle.hear(rank);
      if (answer == nullptr && deaf) {
        circle.refused = true;
        break;
      }
      if (answer != nullptr) continue;
      result = await(job, comm, {}, spins, since);
      if (result != kSuccess) {
        circle.refused = true;  // the host tells of the death in each call
        return false;
      }
    }
    if (answer != nullptr) said.add(answer->says, answer->sizes);
  }
  return !circle.refused;
}

int combine(Comm comm, Said& said) {
  const std::array mine{static_cast<unsigned char>(~said.says), static_cast<unsigned char>(~said.sizes)};
  std::array all = mine;
  const int result = host().Allreduce(mine.data(), all.data(), static_cast<int>(mine.size()), host().byte, host().band, comm);
  said = {.says = static_cast<unsigned char>(~all[0]), .sizes = static_cast<unsigned char>(~all[1])};
  return result;
}

// They say, too, whether no other rank is on their node. If all say so there is nothing to exchange.
bool agree_by_host(Job& job, Comm comm, CommOf* of, Said said, Asking* asking, int& result) {
  using Exchanges = CommOf::Exchanges;
  const bool mine = of != nullptr && prepare(*of, comm);
  if (!mine) job.comms->refuse(comm);
  const bool alone = of == nullptr || std::ranges::none_of(of->places, [](const RankPlace& place) { return place.local >= 0; });
  const bool one_node = of != nullptr && of->one_node;
  const auto yes = [](bool is) { return static_cast<unsigned char>(is ? 1 : 0); };
  const std::array told{yes(mine), yes(alone), yes(one_node), static_cast<unsigned char>(~said.says),
                        static_cast<unsigned char>(~said.sizes)};
  std::array all = told;
  result = host().Allreduce(told.data(), all.data(), static_cast<int>(told.size()), host().byte, host().band, comm);
  if (of == nullptr) return false;
  if (result != kSuccess || all[0] == 0 || all[1] != 0) {
    of->exchanges = Exchanges::refused;
    of->exchange_memory = {};
    return false;
  }
  said = {.says = static_cast<unsigned char>(~all[3]), .sizes = static_cast<unsigned char>(~all[4])};
  if (!said.gains()) {
    settle(*asking, said);
    return false;
  }
  of->exchanges = Exchanges::agreed;
  if (all[2] != 0) result = agree_on_boards(job, comm, *of);
  return true;
}

std::size_t size_class(std::int64_t bytes) {
  const auto binary = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0))));
  return static_cast<std::size_t>(std::clamp((binary - 11) / 2, 0, static_cast<int>(Askings::kSizes) - 1));
}

std::size_t kind_of(MpiUse use, std::int64_t bytes) { return Askings::number(use, size_class(bytes)); }

bool asks(const CommOf& of, MpiUse use) { return use != MpiUse::bcast || of.board.get() != nullptr || of.places.size() <= kMostOfBcast; }

// A program may take turns between blocks that gain and others.
void settle(Asking& asking, const Said& said) {
  constexpr int kWithHope = 4;
  const auto longest = static_cast<std::size_t>(std::max(static_cast<int>(std::bit_width(unsigned{said.sizes})), 1) - 1);
  const int most = std::min(kMostUnasked.at(longest), asking.hope > 0 ? kWithHope : kMostUnasked.front());
  const bool gained = said.gains();
  asking.patience = static_cast<std::uint16_t>(gained ? 0 : std::clamp(asking.patience * 2, 1, most));
  asking.unasked = asking.patience;
  asking.gained = gained;
  asking.hope = gained ? Asking::kHopes : static_cast<std::uint8_t>(std::max(asking.hope - 1, 0));
}

}  // namespace lacuna::mpi::detail
