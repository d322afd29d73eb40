#include "lacuna/mpi/messages/exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi::detail {
namespace {

constexpr std::int64_t kYieldAfter = 50'000;  // ns
constexpr int kSpinsPerLook = 64, kYieldsPerLook = 4;
// ns without memory to take what was offered, after which it is given up
constexpr std::int64_t kInVain = 10'000'000'000;

}  // namespace

std::optional<Pattern> pattern_of(Collective kind, int root, Comm comm, const CommOf& of) {
  int rank = 0;
  const auto size = static_cast<int>(of.places.size());
  const Neighbors* const neighbors = of.neighbors ? &*of.neighbors : nullptr;
  const bool knows_them = neighbors != nullptr && neighbors->has_ranks;
  if (root < 0 || root >= size || (of_neighbors(kind) && !knows_them)) return std::nullopt;
  host().Comm_rank(comm, &rank);
  return Pattern(kind, root, rank, size, of_neighbors(kind) ? neighbors : nullptr);
}

std::int64_t bytes_of(Job& job, Datatype type, Count count) {
  if (count <= 0 || count > layout::kMaxBytes) return -1;
  std::int64_t size = job.types.whole_bytes(type);
  if (size == 0) {
    const Type* const seen = job.types.seen(type);
    size = seen != nullptr ? seen->size() : size_of(type);
  }
  std::int64_t bytes = 0;
  return size < 0 || __builtin_mul_overflow(size, count, &bytes) ? -1 : bytes;
}

std::size_t Exchange::memory_for(std::size_t blocks) {
  constexpr std::size_t kSide = sizeof(Slot) + sizeof(protocol::Request*) + sizeof(Count) + sizeof(Aint), kArrays = 12;
  return std::max<std::size_t>(blocks, 1) * (2 * kSide + 3 + sizeof(std::uint32_t)) + kArrays * alignof(std::max_align_t);
}

// Offers blocks, `each` one or those that gain; says what the ranks have to know of that.
unsigned char Exchange::offer_all(bool each) {
  // The receiver's datatype is not known. Mostly it is that of what comes from there.
  const bool some = each || std::ranges::any_of(out, has_gaps) || std::ranges::any_of(in, has_gaps);
  const auto pays = [&](const Block& to, const Block* back) { return prefers(to) || (back != nullptr && gains(*back)); };
  unsigned char all = 0;
  for (std::size_t i = 0; i < offers_.size(); ++i) {
    const Block* const block = out_block(i);
    const int to = pattern_.to(static_cast<int>(i));
    if (block == nullptr || !block->moves || block->bytes == 0 || std::cmp_equal(i, pattern_.own_out())) continue;
    const int local = to >= 0 ? of_.places[static_cast<std::size_t>(to)].local : -1;
    if (some && local >= 0 && (each || pays(*block, in_block(i))) && !lay(i, *block)) offers_[i] = offer(i, *block, local);
    all |= (tells_[i].says & Slot::offers) != 0 ? Slot::offers_some : Slot::has_rest;
  }
  return all;
}

void Exchange::begin() {
  began_ = job_.report.on() ? base::now_ns() : 0;
  const auto outs = static_cast<std::size_t>(pattern_.outs()), ins = static_cast<std::size_t>(pattern_.ins());
  offers_.resize(outs);
  takes_.resize(ins);
  wanted_.resize(ins);
  tells_.resize(std::max<std::size_t>(outs, 1));
  told_.resize(std::max<std::size_t>(ins, 1));
  at_.resize(outs);
  packed_.resize(outs);
  awaited_.resize(of_.places.size());
}

bool Exchange::ask(bool understood, Asking& asking, int& result) {
  begin();
  offers_each_ = std::exchange(asking.next, Ordered::nothing) == Ordered::offer;
  Said all = looks(understood);
  if (board_ != nullptr) {
    all = tell_by_board(all);
  } else {
    all = all_with_all(pattern_.kind()) ? tell_all(all, result) : tell_some(all, result);
  }
  if (raised_) result = error_;
  if (result != kSuccess) return false;
  has_rest_ = (all.says & Slot::has_rest) != 0;
  if (!offers_each_ && order_.next == Ordered::nothing) settle(asking, all);
  if (board_ != nullptr) obey(asking);
  return all.gains();
}

Said Exchange::looks(bool understood) const {
  Said said{.says = static_cast<unsigned char>(understood ? 0 : Slot::refuses)};
  for (const std::vector<Block>* side : {&out, &in}) {
    for (const Block& block : *side) {
      said.sizes |= static_cast<unsigned char>(1U << size_class(block.moves ? block.bytes : 0));
      if (understood && gains(block)) said.says |= Slot::offers_some;
    }
  }
  return said;
}

// What the ranks say together: of each to each.
Said Exchange::tell_all(Said all, int& result) {
  if ((all.says & Slot::refuses) == 0) all.says = offer_all(false);
  for (Slot& slot : tells_) {
    slot.says |= all.says;
    slot.sizes = all.sizes;
  }
  result = host().Alltoall(tells_.data(), sizeof(Slot), host().byte, told_.data(), sizeof(Slot), host().byte, comm_);
  for (const Slot& slot : told_) all.add(slot.says, slot.sizes);
  return all;
}

// Of a root or of neighbors, where a rank may hear of few others: so all agree first.
Said Exchange::tell_some(Said all, int& result) {
  result = combine(comm_, all);
  if (result != kSuccess || !all.gains()) return all;
  offer_all(true);
  const Host& h = host();
  constexpr int kBytes = sizeof(Slot);
  switch (pattern_.kind()) {
    case Collective::gather: result = h.Gather(tells_.data(), kBytes, h.byte, told_.data(), kBytes, h.byte, pattern_.root(), comm_); break;
    case Collective::scatter:
    case Collective::bcast: result = h.Scatter(tells_.data(), kBytes, h.byte, told_.data(), kBytes, h.byte, pattern_.root(), comm_); break;
    default: result = h.Neighbor_alltoall(tells_.data(), kBytes, h.byte, told_.data(), kBytes, h.byte, comm_);
  }
  all.says |= Slot::has_rest;  // not every rank hears of it
  return all;
}

// Null: it cannot be offered now.
protocol::Request* Exchange::offer(std::size_t i, const Block& block, int local) try {
  const auto lock = job_.enter();
  Descriptor descriptor;
  const protocol::Behind behind = job_.crowded ? protocol::Behind::bounded : protocol::Behind::no;
  base::Result<protocol::Request*> made = job_.ranks->offer(block.base, block.layout, local, behind, descriptor.ticket);
  if (!made) return nullptr;
  // Its receiver may have no CPU while it is packed. No error: it is bounded.
  if (job_.crowded) {
    [[maybe_unused]] const base::Result<void> left = job_.ranks->leave(*made);
  }
  descriptor.bytes = static_cast<std::uint64_t>(block.bytes);
  descriptor.source = job_.local_rank;
  tells_[i].said = descriptor.say(job_.nonce);
  tells_[i].says = Slot::offers;
  return *made;
} catch (const std::bad_alloc&) {
  return nullptr;
}

base::Result<protocol::Request*> Exchange::accept(std::size_t i, const Descriptor& descriptor) try {
  return job_.ranks->accept(in[i].base, in[i].layout, descriptor.source, static_cast<std::int64_t>(descriptor.bytes), descriptor.ticket);
} catch (const std::bad_alloc&) {
  return base::fail(base::Code::out_of_memory, "no memory");
}

// Once others were told, nothing is thrown.
void Exchange::take() {
  const auto lock = job_.enter();
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (std::cmp_equal(i, pattern_.own_in()) || (told_[i].says & (Slot::offers | Slot::on_board)) != Slot::offers) continue;
    const std::optional<Descriptor> descriptor = Descriptor::decode(told_[i].said.data(), job_.nonce);
    const Block* const block = in_block(i);
    if (!descriptor || descriptor->is_inter_node() || block == nullptr || std::cmp_less(block->bytes, descriptor->bytes)) {
      error_ = kErrTruncate;
    } else {
      wanted_[i] = 1;
      some_wanted_ = true;
    }
  }
  begin_takes();
}

// What is offered, and not being taken yet. Without memory it is tried again, while what else there is goes on. Whether
// none is left.
bool Exchange::begin_takes() {
  if (!some_wanted_) return true;  // each look comes by here
  some_wanted_ = false;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (std::exchange(wanted_[i], 0) == 0) continue;
    const std::optional<Descriptor> descriptor = Descriptor::decode(told_[i].said.data(), job_.nonce);
    if (!descriptor) continue;  // take() has looked
    const base::Result<protocol::Request*> begun = accept(i, *descriptor);
    const std::int64_t now = base::now_ns();
    if (!begun && begun.error().code == base::Code::out_of_memory) {
      if (in_vain_since_ == 0) in_vain_since_ = now;
      if (now - in_vain_since_ < kInVain) {
        wanted_[i] = 1;
        some_wanted_ = true;
        continue;
      }
    }
    if (begun) {
      takes_[i] = *begun;
    } else {
      tell(name_, begun.error());
      error_ = begun.error().code == base::Code::out_of_memory ? kErrNoMem : kErrOther;
    }
  }
  return !some_wanted_;
}

void Exchange::copy_own() {
  if (pattern_.own_out() < 0 || std::exchange(own_copied_, true)) return;
  const Block* const from = out_block(static_cast<std::size_t>(pattern_.own_out()));
  const Block* const to = in_block(static_cast<std::size_t>(pattern_.own_in()));
  if (from == nullptr || to == nullptr || from->bytes == 0) return;
  if (!copy_block(*from, *to)) error_ = kErrTruncate;
}

// Whether all is done.
bool Exchange::look() {
  bool done = begin_takes();
  for (auto* list : {&offers_, &takes_}) {
    for (protocol::Request*& request : *list) {
      if (request == nullptr) continue;
      const std::optional<base::Result<protocol::Status>> ended = job_.ranks->test(request);
      if (!ended) {
        done = false;
        continue;
      }
      request = nullptr;
      if (*ended) continue;
      tell(name_, ended->error());
      error_ = ended->error().code == base::Code::truncated ? kErrTruncate : kErrOther;
    }
  }
  return done;
}

namespace {

// Nothing moves where there is no memory for it.
void move_on(Job& job, std::span<protocol::Request* const> offers, std::int64_t now, std::int64_t& since) try {
  const auto lock = job.enter();
  const bool moved = job.ranks->progress();
  poll_receives(job);
  poll_orphans(job);
  if (since == 0 || moved) since = now;
  if (now - since <= job.patience_ns) return;
  for (protocol::Request* offered : offers) {
    if (offered == nullptr) continue;
    // Only memory is wanting: its receiver makes room
    if (const base::Result<void> left = job.ranks->leave(offered); !left) since = now;
  }
} catch (const std::bad_alloc&) {
  since = now;
}

}  // namespace

int look_for_dead(Comm comm) {
  constexpr int kTag = 32767;  // every MPI has it
  int found = 0;
  return host().Iprobe(kAnySource, kTag, comm, &found, ignored());
}

// A rank may wait for a message by the host before it comes, which moves only while this one is in a call of the
// host's.
int await(Job& job, Comm comm, std::span<protocol::Request* const> offers, int spins, std::int64_t& since) {
  int told = kSuccess;
  if (spins % kSpinsPerLook != 0 && !job.crowded) {
    base::cpu_relax();
    return told;
  }
  const std::int64_t now = base::now_ns();
  if (spins % (job.crowded ? kYieldsPerLook : kSpinsPerLook) == 0) {
    move_on(job, offers, now, since);
    told = look_for_dead(comm);
  }
  if (job.crowded || now - since > kYieldAfter) sched_yield();
  return told;
}

int Exchange::finish() {
  copy_own();
  const auto is_over = [&] {
    try {
      const auto lock = job_.enter();
      return look();
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  std::int64_t since = 0;
  for (int spins = 1; !is_over(); ++spins) await(job_, comm_, offers_, spins, since);
  report();
  return error_ == kSuccess || raised_ ? error_ : raise(Call::message, comm_, error_);
}

void Exchange::report() const {
  if (began_ == 0) return;
  const std::int64_t took = base::now_ns() - began_;
  const auto count = [&](MessageReport::Way way, const Slot& slot, const Block* block, int peer) {
    if (block != nullptr && (slot.says & Slot::offers) != 0)
      job_.report.count(way, block->type.get(), block->count, peer, block->bytes, took);
  };
  for (std::size_t i = 0; i < offers_.size(); ++i)
    count(MessageReport::Way::exchanged_out, tells_[i], out_block(i), pattern_.to(static_cast<int>(i)));
  for (std::size_t i = 0; i < takes_.size(); ++i)
    count(MessageReport::Way::exchanged_in, told_[i], in_block(i), pattern_.from(static_cast<int>(i)));
}

// What no rank was told of.
Exchange::~Exchange() {
  const auto lock = job_.enter();
  if (!Mutex::multiple()) {
    out.clear();
    in.clear();
    out.swap(job_.spare_blocks[0]);
    in.swap(job_.spare_blocks[1]);
  }
  for (protocol::Request* offered : offers_) {
    if (offered != nullptr) job_.ranks->cancel(offered);
  }
}

}  // namespace lacuna::mpi::detail
