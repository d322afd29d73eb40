#include "lacuna/mpi/messages/later.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace lacuna::mpi::detail {
namespace {

// Null: there is no memory.
std::unique_ptr<Order> make_order(const Job& job, const CommOf& of, std::size_t rank) try {
  std::vector<OrderTable*> tables;
  tables.reserve(of.places.size());
  for (std::size_t other = 0; other < of.places.size(); ++other) {
    std::byte* const there = job.inquiries->orders(other == rank ? -1 : of.places[other].local);
    if (there == nullptr) return nullptr;
    tables.push_back(reinterpret_cast<OrderTable*>(there));
  }
  return std::make_unique<Order>((of.name ^ of.identity * 0x9e37'79b9'7f4a'7c15) | 1, std::move(tables), rank);
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Once in a job.
void say_full(Job& job) {
  if (std::exchange(job.said_orders_full, true)) return;
  constexpr std::size_t kRoom = std::tuple_size_v<decltype(OrderTable::entries)>;
  base::log(base::Level::info,
            fmt::format("rank {}: collectives with requests of a communicator are the MPI's: no room was found beside those of up to {}",
                        job.world_rank, kRoom));
}

}  // namespace

// A rank that has missed a call would count others than its peers do: from then on it has no part in further orders.
CommOf* find_ordered(Job& job, Comm comm) {
  if (job.inquiries == nullptr || Mutex::multiple()) return nullptr;
  CommOf* const of = find(job, comm);
  if (of == nullptr || !of->kept) job.finds_orders = false;
  if (of == nullptr) return nullptr;
  if (of->order != nullptr) return of->order->is_there() ? of : nullptr;
  if (of->identity == 0 || of->without_order || !of->one_node || of->of_host || of->places.size() < 2) return nullptr;
  int rank = 0;
  host().Comm_rank(comm, &rank);
  if (job.finds_orders) of->order = make_order(job, *of, static_cast<std::size_t>(rank));
  of->without_order = of->order == nullptr;
  if (of->order != nullptr && !of->order->is_there()) say_full(job);
  return of->order != nullptr && of->order->is_there() ? of : nullptr;
}

namespace {

// Whether no neighbor of this rank is one twice, in either direction: then a note for each rank tells all.
bool has_pairs(CommOf& of, Comm comm) {
  if (!knows(of, comm) || !of.neighbors || !of.neighbors->has_ranks) return false;
  const auto is_twice = [](const std::vector<int>& ranks) {
    for (auto at = ranks.begin(); at != ranks.end(); ++at) {
      if (*at != kProcNull && std::find(at + 1, ranks.end(), *at) != ranks.end()) return true;
    }
    return false;
  };
  return !is_twice(of.neighbors->destinations) && !is_twice(of.neighbors->sources);
}

}  // namespace

Decision decide(Job& job, Comm comm, CommOf& of, const LaterKind& kind, bool gains) {
  Order& order = *of.order;
  if (order.board() != nullptr) job.boards->drop_asides(*order.board()->get());
  const Decision decision = order.decide([&] {
    if (!gains) return Decision::left;
    const bool ready = order.is_ready(kind.uneven, kind.of_neighbors) && order.board()->get()->has_place(order.boarded + 1);
    return ready ? Decision::board : Decision::wished;
  });
  // Ranks that never get a board are asked more and more rarely.
  constexpr std::uint8_t kMostWished = 64;
  const bool wished = decision == Decision::wished && order.wished.at(kind.number) < kMostWished;
  if (wished) ++order.wished.at(kind.number);
  if (decision == Decision::board) {
    ++order.boarded;
    order.wished.at(kind.number) = 0;
  } else if (decision == Decision::wished) {
    order.prepare(*job.boards, of.places, order.board() == nullptr && has_pairs(of, comm));
  }
  const bool gained = wished || decision == Decision::board;
  settle(order.askings[kind.number], {.says = static_cast<unsigned char>(gained ? Slot::offers_some : 0),
                                      .sizes = static_cast<unsigned char>(1U << size_class(kind.bytes))});
  return decision;
}

bool make_room_for_later(Job& job) {
  const auto lock = job.enter();
  job.operations.make_room();
  return job.idle_requests.has_one();
}

// What comes from others stays on their boards.
void refuse(const Pattern& pattern, const Order& order) {
  Board& board = *order.board()->get();
  board.begin(order.boarded);
  for (int rank = 0; rank < pattern.size(); ++rank) {
    if (rank == pattern.rank() || pattern.block_to(rank) < 0) continue;
    board.note_for(static_cast<std::size_t>(rank)).says = Note::kRefuses;
    board.tell(static_cast<std::size_t>(rank));
  }
  board.read(order.boarded);
}

bool begin_later(Job& job, Comm comm, const CommOf& of, std::unique_ptr<Operation> operation, Request* request) {
  Order& order = *of.order;
  const std::int64_t room = operation->standing->room();
  if (room > Board::kQueueRoom && !job.boards->take_aside(*order.board()->get(), order.boarded, room)) return false;
  operation->receives = true;
  operation->comm = comm;
  operation->began = job.report.on() ? base::now_ns() : 0;
  operation->state = Operation::State::moving;
  operation->taken = true;
  const auto lock = job.enter();
  *request = job.idle_requests.take();
  operation->standing->start(order.board(), order.boarded);
  job.operations.add(*request, std::move(operation));
  return true;
}

bool has_room(const Pattern& pattern, std::int64_t bytes) {
  const bool several = !pattern.one_for_all() && pattern.kind() != Collective::gather;
  return Board::lines(bytes) * (several ? pattern.size() - 1 : 1) <= Board::kQueueRoom;
}

}  // namespace lacuna::mpi::detail
