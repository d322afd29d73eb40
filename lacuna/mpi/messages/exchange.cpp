#include "lacuna/mpi/messages/exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi::detail {
namespace {

constexpr std::int64_t kYieldAfter = 50'000;  // ns
constexpr int kSpinsPerLook = 64;
constexpr int kMostUnasked = 256;
// ns without memory to take what was offered, after which it is given up
constexpr std::int64_t kInVain = 10'000'000'000;

// Whether this rank can take part in exchanges: it knows the communicator, and will know when it is gone.
bool prepare(CommOf& of) try {
  of.exchange_memory.resize(Exchange::memory_for(of.places.size()));
  return of.kept && !of.of_host;
} catch (const std::bad_alloc&) {
  return false;
}

CommOf* find(Job& job, Comm comm) try { return job.comms->find(comm); } catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace

CommOf* agreed(Job& job, Comm comm, int& result) {
  using Exchanges = CommOf::Exchanges;
  CommOf* const of = find(job, comm);
  if (of != nullptr && of->exchanges != Exchanges::unknown) return of->exchanges == Exchanges::agreed ? of : nullptr;
  if (!Comms::has_one_group(comm) || job.comms->refuses(comm)) return nullptr;
  const unsigned char mine = of != nullptr && prepare(*of) ? 1 : 0;
  if (mine == 0) job.comms->refuse(comm);
  unsigned char all = 0;
  result = host().Allreduce(&mine, &all, 1, host().byte, host().band, comm);
  const bool agrees = result == kSuccess && all != 0;
  if (of == nullptr) return nullptr;
  of->exchanges = agrees ? Exchanges::agreed : Exchanges::refused;
  if (!agrees) of->exchange_memory = {};
  return agrees ? of : nullptr;
}

std::size_t Exchange::memory_for(std::size_t ranks) {
  constexpr std::size_t kCounts = 2 * sizeof(Count), kRequests = 2 * sizeof(protocol::Request*), kArrays = 7;
  return ranks * (2 * sizeof(Slot) + kRequests + 1 + kCounts) + kArrays * alignof(std::max_align_t);
}

bool Exchange::ask(bool understood, int& result) {
  began_ = job_.report.on() ? base::now_ns() : 0;
  host().Comm_rank(comm_, &rank_);
  offers_.resize(static_cast<std::size_t>(size_));
  takes_.resize(offers_.size());
  wanted_.resize(offers_.size());
  tells_.resize(offers_.size());
  told_.resize(offers_.size());
  const auto has_gaps = [](const Block& part) { return part.bytes > 0 && !part.type->contiguous(part.count); };
  const bool gains = std::ranges::any_of(out, has_gaps) || std::ranges::any_of(in, has_gaps);
  // The receiver's datatype is not known. Mostly it is that of what comes from there.
  const auto prefers = [&](const Block& part) {
    return part.bytes > 0 && job_.ways.choose(MpiUse::alltoallw, *part.type.get(), part.count) == MpiWay::offered;
  };
  const auto offers = [&](std::size_t i) { return prefers(out[i]) || (i < in.size() && has_gaps(in[i]) && prefers(in[i])); };
  unsigned char all = understood ? 0 : Slot::refuses;
  for (std::size_t i = 0; understood && i < out.size(); ++i) {
    const int local = of_.places[i].local;
    if (std::cmp_equal(i, rank_) || out[i].bytes == 0) continue;
    if (gains && local >= 0 && offers(i)) {
      offers_[i] = offer(i, local);
      if (offers_[i] != nullptr) {
        all |= Slot::offers_some;
        continue;
      }
    }
    all |= Slot::has_rest;
  }
  for (Slot& slot : tells_) slot.says |= all;
  result = host().Alltoall(tells_.data(), sizeof(Slot), host().byte, told_.data(), sizeof(Slot), host().byte, comm_);
  if (result != kSuccess) return false;
  for (const Slot& slot : told_) all |= slot.says;
  has_rest_ = (all & Slot::has_rest) != 0;
  const bool some = (all & (Slot::offers_some | Slot::refuses)) == Slot::offers_some;
  of_.patience = some ? 0 : std::clamp(of_.patience * 2, 1, kMostUnasked);
  of_.unasked = of_.patience;
  return some;
}

// Null: it cannot be offered now.
protocol::Request* Exchange::offer(std::size_t i, int local) try {
  const auto lock = job_.enter();
  Descriptor descriptor;
  base::Result<protocol::Request*> made = job_.ranks->offer(out[i].base, out[i].layout, local, protocol::Behind::no, descriptor.ticket);
  if (!made) return nullptr;
  descriptor.bytes = static_cast<std::uint64_t>(out[i].bytes);
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
  for (std::size_t i = 0; i < told_.size(); ++i) {
    if (std::cmp_equal(i, rank_) || (told_[i].says & Slot::offers) == 0) continue;
    const std::optional<Descriptor> descriptor = Descriptor::decode(told_[i].said.data(), job_.nonce);
    if (!descriptor || descriptor->is_inter_node() || i >= in.size() || std::cmp_less(in[i].bytes, descriptor->bytes)) {
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
      tell("MPI_Alltoallw", begun.error());
      error_ = begun.error().code == base::Code::out_of_memory ? kErrNoMem : kErrOther;
    }
  }
  return !some_wanted_;
}

void Exchange::copy_own() {
  const auto i = static_cast<std::size_t>(rank_);
  if (i >= out.size() || i >= in.size() || out[i].bytes == 0) return;
  if (out[i].bytes != in[i].bytes) {
    error_ = kErrTruncate;
    return;
  }
  try {
    if (!copy::transpack(out[i].layout, out[i].base, in[i].layout, in[i].base)) error_ = kErrTruncate;
  } catch (const std::bad_alloc&) {  // packing and unpacking want no memory
    std::array<std::byte, 4096> some;
    const auto step = static_cast<std::int64_t>(some.size());
    for (std::int64_t at = 0; at < out[i].bytes; at += step) {
      const std::int64_t bytes = std::min(step, out[i].bytes - at);
      copy::pack(out[i].layout, out[i].base, at, bytes, some.data());
      copy::unpack(in[i].layout, in[i].base, at, bytes, some.data());
    }
  }
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
      tell("MPI_Alltoallw", ended->error());
      error_ = ended->error().code == base::Code::truncated ? kErrTruncate : kErrOther;
    }
  }
  return done;
}

void Exchange::move_on(std::int64_t now, std::int64_t& since) {
  const auto lock = job_.enter();
  const bool moved = job_.ranks->progress();
  poll_receives(job_);
  poll_orphans(job_);
  if (since == 0 || moved) since = now;
  if (now - since <= job_.patience_ns) return;
  for (protocol::Request* offered : offers_) {
    if (offered == nullptr) continue;
    // Only memory is wanting: its receiver makes room
    if (const base::Result<void> left = job_.ranks->leave(offered); !left) since = now;
  }
}

int Exchange::finish() {
  copy_own();
  std::int64_t since = 0;
  for (int spins = 1;; ++spins) {
    std::int64_t now = 0;
    try {
      {
        const auto lock = job_.enter();
        if (look()) break;
      }
      if (spins % kSpinsPerLook != 0) {
        base::cpu_relax();
        continue;
      }
      now = base::now_ns();
      move_on(now, since);
    } catch (const std::bad_alloc&) {
      now = base::now_ns();  // nothing has moved
    }
    if (job_.crowded || now - since > kYieldAfter) sched_yield();
  }
  for (std::size_t i = 0; began_ != 0 && i < out.size(); ++i) {
    const std::int64_t took = base::now_ns() - began_;
    const auto peer = static_cast<int>(i);
    if ((tells_[i].says & Slot::offers) != 0)
      job_.report.count(MessageReport::Way::exchanged_out, out[i].type.get(), out[i].count, peer, out[i].bytes, took);
    if ((told_[i].says & Slot::offers) != 0)
      job_.report.count(MessageReport::Way::exchanged_in, in[i].type.get(), in[i].count, peer, in[i].bytes, took);
  }
  return error_ == kSuccess ? kSuccess : raise(Call::message, comm_, error_);
}

// What nobody was told of.
Exchange::~Exchange() {
  const auto lock = job_.enter();
  for (protocol::Request* offered : offers_) {
    if (offered != nullptr) job_.ranks->cancel(offered);
  }
}

}  // namespace lacuna::mpi::detail
