// Exchanges by boards: what ranks tell one another, and blocks that fit.
#include <algorithm>
#include <array>
#include <cstring>

#include "lacuna/mpi/messages/exchange.hpp"
#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi::detail {
namespace {

// Bytes of a block, up to which packing all of it and then unpacking all of it takes less than a stream, whose receiver
// unpacks while its sender packs.
constexpr std::int64_t kMostLaid = 8 << 10;

// Which of two blocks between the same ranks is which, only the host knows: each block to a neighbor has a number.
// `make`: this rank's board; `memory` has room for what the ranks tell one another, `numbers` for one of each block
// from a neighbor. The board is empty on all ranks if it is on one.
int find_boards(Job& job, Comm comm, const CommOf& of, const Neighbors* neighbors, std::span<std::byte> memory, std::vector<int>& numbers,
                BoardUse& board, const auto& make) {
  const Host& h = host();
  int rank = 0;
  h.Comm_rank(comm, &rank);
  constexpr int kBytes = sizeof(Board::Place);
  static_assert(sizeof(Board::Place) <= sizeof(Slot));
  auto* const places = reinterpret_cast<Board::Place*>(memory.data());
  const std::size_t outs = neighbors != nullptr ? neighbors->out.size() : 0;
  Board::Place mine;
  try {
    const auto lock = job.enter();
    std::vector<int> locals;
    locals.reserve(of.places.size());
    for (const RankPlace& place : of.places) locals.push_back(place.local);
    board = make(std::move(locals), static_cast<std::size_t>(rank), outs);
    if (board.get() != nullptr) mine = board.get()->place();
  } catch (const std::bad_alloc&) {
    mine = {};  // which the others are told
  }
  const auto withdrawn = [&](int result) {
    if (board.get() != nullptr) board.get()->withdraw();
    board = {};
    return result;
  };
  if (const int result = h.Allgather(&mine, kBytes, h.byte, places, kBytes, h.byte, comm); result != kSuccess) return withdrawn(result);
  unsigned char reaches = 0, all = 0;
  try {
    const auto lock = job.enter();
    reaches = board.get() != nullptr && job.boards->reach(*board.get(), std::span(places, of.places.size())) ? 1 : 0;
  } catch (const std::bad_alloc&) {
    reaches = 0;
  }
  int result = h.Allreduce(&reaches, &all, 1, h.byte, h.band, comm);
  if (result == kSuccess && all != 0 && neighbors != nullptr) {
    auto* const told = reinterpret_cast<int*>(memory.data());
    for (std::size_t i = 0; i < outs; ++i) told[i] = static_cast<int>(i);
    result = h.Neighbor_alltoall(told, sizeof(int), h.byte, numbers.data(), sizeof(int), h.byte, comm);
  }
  return result == kSuccess && all != 0 ? result : withdrawn(result);
}

}  // namespace

int agree_on_boards(Job& job, Comm comm, CommOf& of) {
  const Neighbors* const neighbors = of.neighbors && of.neighbors->has_ranks ? &*of.neighbors : nullptr;
  return find_boards(job, comm, of, neighbors, of.exchange_memory, of.neighbor_blocks, of.board,
                     [&](std::vector<int> locals, std::size_t rank, std::size_t blocks) {
                       if (neighbors != nullptr) of.neighbor_blocks.resize(neighbors->in.size() + 1);
                       return job.boards->make(std::move(locals), rank, blocks, !Mutex::multiple());
                     });
}

bool agree_on_standing(Job& job, Comm comm, const CommOf& of, Standing& standing, std::span<std::byte> memory, std::vector<int> numbers,
                       int& result) {
  BoardUse board;
  const Neighbors* const neighbors = standing.pattern().neighbors();
  result =
      find_boards(job, comm, of, neighbors, memory, numbers, board, [&](std::vector<int> locals, std::size_t rank, std::size_t blocks) {
        return job.boards->make_standing(std::move(locals), rank, blocks, standing.room());
      });
  const bool all = board.get() != nullptr;
  standing.use(std::move(board), std::move(numbers));
  return all;
}

int add_standing(Job& job, Comm comm, std::unique_ptr<Operation> operation, Request* request) {
  operation->receives = operation->persistent = true;
  operation->active = false;
  operation->comm = comm;
  const auto lock = job.enter();
  const int result = host().Send_init(nullptr, 0, host().byte, kProcNull, 0, comm, request);
  if (result == kSuccess) job.operations.add(*request, std::move(operation));
  return result;
}

// Whether a block goes by the board, and where. One that all others get lies there once.
bool Exchange::lay(std::size_t i, const Block& block) {
  if (board_ == nullptr || (!job_.crowded && block.bytes > kMostLaid)) return false;
  if (!pattern_.one_for_all() || laid_ == 0) {
    if (block.bytes > board_->room_bytes() - laid_) return false;
    at_[i] = static_cast<std::uint32_t>(laid_);
    laid_ += Board::lines(block.bytes);
  }
  tells_[i].says = Slot::offers | Slot::on_board;
  return true;
}

// Packs a block, if it goes by the board, and says where it is.
void Exchange::describe(std::size_t i, Note& note) {
  const Slot& slot = tells_[i];
  const Block* const block = out_block(i);
  note.says |= slot.says;
  if ((slot.says & Slot::on_board) != 0 && block != nullptr) {
    const std::size_t lies = pattern_.one_for_all() ? 0 : i;
    note.at = at_[lies];
    note.bytes = block->bytes;
    if (std::exchange(packed_[lies], 1) != 0) return;
    pack_onto(*board_, note.at, *block);
  } else if ((slot.says & Slot::offers) != 0) {
    std::memcpy(note.offer.data(), slot.said.data(), slot.said.size());
  }
}

// What one rank gets.
void Exchange::show(int rank, const Said& all) {
  Note& note = board_->note_for(static_cast<std::size_t>(rank));
  note.says = all.says;
  note.sizes = all.sizes;
  note.order = order_;
  if (const Neighbors* const neighbors = pattern_.neighbors(); neighbors != nullptr) {
    for (std::size_t i = 0; i < neighbors->destinations.size(); ++i) {
      if (neighbors->destinations[i] != rank) continue;
      Note& of_block = board_->note_of(board_->rank(), i);
      of_block.says = 0;
      describe(i, of_block);
    }
  } else if (const int i = pattern_.block_to(rank); i >= 0) {
    describe(static_cast<std::size_t>(i), note);
  }
  board_->tell(static_cast<std::size_t>(rank));
}

// What was laid on the board is unpacked: if it turns out that the host moves everything, that puts the same bytes
// there.
void Exchange::take_from_board(std::size_t i, int rank, const Note& note) {
  Slot& slot = told_[i];
  slot.says = base::read_once(note.says);
  if ((slot.says & Slot::offers) == 0) return;
  if ((slot.says & Slot::on_board) == 0) {
    std::memcpy(slot.said.data(), note.offer.data(), slot.said.size());
    return;
  }
  if (!unpack_from(*board_, rank, note, in_block(i))) error_ = kErrTruncate;
}

// What one rank has said.
void Exchange::hear(int rank, const Note& note) {
  const auto from = static_cast<std::size_t>(rank);
  if (const Neighbors* const neighbors = pattern_.neighbors(); neighbors != nullptr) {
    for (std::size_t i = 0; i < neighbors->sources.size(); ++i) {
      const auto number = static_cast<std::size_t>(of_.neighbor_blocks[i]);
      if (neighbors->sources[i] == rank && board_->has_note(from, number)) take_from_board(i, rank, board_->note_of(from, number));
    }
  } else if (const int i = pattern_.block_from(rank); i >= 0) {
    take_from_board(static_cast<std::size_t>(i), rank, note);
  }
}

// Each rank begins with the one behind it, so that not all read one board at once.
Said Exchange::tell_by_board(Said all) {
  const auto size = static_cast<int>(of_.places.size()), rank = pattern_.rank();
  const bool each = !all_with_all(pattern_.kind());
  board_->begin();
  if (order_.next == Ordered::leave) all.says |= Slot::leaves;
  if ((all.says & (Slot::refuses | Slot::leaves)) == 0) {
    const unsigned char offered = offer_all(each);
    all.says = each ? static_cast<unsigned char>((all.says & Slot::offers_some) | (offered & Slot::has_rest)) : offered;
  }
  for (int step = 1; step < size; ++step) show((rank + step) % size, all);
  if ((all.says & Slot::offers_some) != 0) copy_own();
  std::ranges::fill(awaited_, 1);
  awaited_[static_cast<std::size_t>(rank)] = 0;
  return hear_all(all);
}

// Waits for those that are awaited.
Said Exchange::hear_all(Said all) {
  const auto size = static_cast<int>(of_.places.size()), rank = pattern_.rank();
  std::int64_t since = 0;
  auto left = std::ranges::count(awaited_, 1);
  for (int spins = 1; left > 0; ++spins) {
    const auto before = left;
    for (int step = 1; step < size; ++step) {
      const int other = (rank + size - step) % size;
      unsigned char& awaited = awaited_[static_cast<std::size_t>(other)];
      const Note* const note = awaited != 0 ? board_->hear(static_cast<std::size_t>(other)) : nullptr;
      if (note == nullptr) continue;
      awaited = 0;
      --left;
      all.add(note->says, note->sizes);
      if (other == 0) order_ = base::read_once(note->order);
      hear(other, *note);
    }
    if (left > 0 && left == before) lose(await(job_, comm_, offers_, spins, since));
    if (raised_) break;
  }
  return all;
}

// A rank of the communicator has died, as the host tells, and some wait for it, or have heard all in time. So its
// boards are not used again: all calls are the host's, which tells of the death in each. What was offered stays for
// those that take it; where there is no memory for that, they get an error.
void Exchange::lose(int error) {
  if (error == kSuccess) return;
  error_ = error;
  raised_ = true;
  of_.exchanges = CommOf::Exchanges::refused;
  try {
    const auto lock = job_.enter();
    for (protocol::Request*& offered : offers_) {
      if (offered == nullptr || !job_.ranks->leave(offered)) continue;
      if (job_.ranks->test(offered)) offered = nullptr;
    }
  } catch (const std::bad_alloc&) {
    return;
  }
}

bool Exchange::passes(const Pattern& pattern, const CommOf& of, const Asking& asking, std::int64_t bytes, bool crowded) {
  const Board* const board = of.board.get();
  if (board == nullptr || !asking.gained || !board->has_part() || all_with_all(pattern.kind()) || bytes <= 0) return false;
  if (bytes > (crowded ? Board::kPartRoom : std::min(kMostLaid, Board::kPartRoom))) return false;
  const auto blocks = pattern.kind() == Collective::scatter ? static_cast<std::int64_t>(of.places.size()) : 1;
  return Board::lines(bytes) * blocks <= Board::kPartRoom;
}

void Exchange::pass(bool understood) {
  begin();
  board_->begin_part();
  if (understood) offer_all(true);
  if (!understood) error_ = kErrNoMem;
  const Said all{.says = static_cast<unsigned char>(understood ? 0 : Slot::refuses)};
  const auto size = static_cast<int>(of_.places.size()), rank = pattern_.rank();
  for (int step = 1; step < size; ++step) {
    const int other = (rank + step) % size;
    if (pattern_.block_to(other) >= 0) show(other, all);
    awaited_[static_cast<std::size_t>(other)] = pattern_.block_from(other) >= 0 ? 1 : 0;
  }
  if (understood) copy_own();
  if ((hear_all(all).says & Slot::refuses) != 0 && error_ == kSuccess) error_ = kErrOther;
}

}  // namespace lacuna::mpi::detail
