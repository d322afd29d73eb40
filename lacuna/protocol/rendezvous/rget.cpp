#include "lacuna/protocol/rendezvous/rget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

namespace lacuna::protocol {
namespace {

constexpr std::size_t kBuffersInSlab = 8;
constexpr std::size_t kAtOnce = 16;  // completions
constexpr std::uint64_t kHello = 0x6c61'6375'6e61'2121;
constexpr std::int64_t kLeastMemory = 64 << 10;

// wr_id: the peer, and above it the buffer of a READ, counted from 1; a word has none.
constexpr int kPeerBits = 32;

std::int64_t parts_of(std::int64_t bytes) { return (bytes + Rget::kPart - 1) / Rget::kPart; }

// What both ends tell one another once their queue pairs are connected.
struct Introduction {
  std::uint64_t addr = 0;
  std::uint32_t rkey = 0;
  std::uint32_t works = 0;
};

Result<Introduction> swap(nic::Bootstrap& bootstrap, const Introduction& mine, std::int64_t timeout_ns) {
  nic::Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  const nic::Hello answer = LACUNA_TRY(bootstrap.exchange(hello, timeout_ns));
  Introduction theirs;
  if (answer.bytes.size() != sizeof theirs) return base::fail(base::Code::malformed, "an introduction of another length");
  std::memcpy(&theirs, answer.bytes.data(), sizeof theirs);
  return theirs;
}

}  // namespace

// --- all of them -----------------------------------------------------------------------------------------------------

Rget::Rget(std::unique_ptr<nic::Context> context, nic::Path path, std::size_t peers, int depth)
    : context_(std::move(context)), path_(path), depth_(depth), kept_(64), peers_(peers) {}

Rget::~Rget() = default;

Result<std::unique_ptr<Rget>> Rget::create(std::unique_ptr<nic::Context> context, nic::Path path, int peers) {
  const nic::Limits& limits = context->limits();
  const nic::PathInfo* const info = limits.path(path);
  if (info == nullptr || !info->available || !info->passive_target)
    return base::fail(base::Code::unsupported,
                      fmt::format("{} has no path {} to memory of a peer whose CPU is elsewhere{}", context->nic_name(),
                                  nic::path_name(path), info == nullptr ? "" : " (" + info->note + ")"));
  constexpr int kSpare = 64;  // what a NIC keeps for itself
  const int depth = std::min({kMostDepth, limits.max_send_wr, (limits.max_cqe - kSpare) / std::max(peers, 1)});
  if (depth < kLeastDepth)
    return base::fail(base::Code::limit,
                      fmt::format("{} peers with {} requests each; {} has queues for {} requests, and completions for {}", peers,
                                  kLeastDepth, context->nic_name(), limits.max_send_wr, limits.max_cqe));
  std::unique_ptr<Rget> made(new Rget(std::move(context), path, static_cast<std::size_t>(peers), depth));
  nic::Context& own = *made->context_;
  const auto boards = static_cast<std::int64_t>(sizeof(Board)) * peers;
  made->boards_ = LACUNA_TRY(nic::RegisteredBuffer::create(own, boards, {.remote_read = false}));
  made->words_ = LACUNA_TRY(nic::RegisteredBuffer::create(own, boards, {.remote_write = false, .remote_read = false}));
  made->queue_ = LACUNA_TRY(own.create_completion_queue(depth * peers));
  return made;
}

Rget::Board& Rget::board(int peer) const { return reinterpret_cast<Board*>(boards_.buffer.data())[peer]; }

Result<void> Rget::connect(int number, nic::Bootstrap& bootstrap, std::int64_t timeout_ns) {
  Peer& other = peer(number);
  other.qp = LACUNA_TRY(context_->connect(bootstrap, *queue_, {.path = path_, .max_send_wr = depth_, .max_recv_wr = 1}));
  const Board& own = board(number);
  Introduction mine{.addr = reinterpret_cast<std::uint64_t>(&own), .rkey = boards_.region.rkey()};
  const auto attempt = [&]() -> Result<void> {
    const Introduction theirs = LACUNA_TRY(swap(bootstrap, mine, timeout_ns));
    other.board_addr = theirs.addr;
    other.board_rkey = theirs.rkey;
    if (!tell(number, offsetof(Board, hello), kHello, true)) return std::unexpected(*other.lost);
    return greet(other, own, timeout_ns);
  };
  const Result<void> tried = attempt();
  mine.works = tried ? 1 : 0;
  const Result<Introduction> theirs = swap(bootstrap, mine, timeout_ns);
  Result<void> result = tried;
  if (result && !theirs) result = std::unexpected(theirs.error());
  if (result && theirs->works == 0) result = base::fail(base::Code::peer_lost, "the peer saw no word of this end");
  if (!result) lose(other, result.error());
  return result;
}

// Until the peer's word is here, and ours there.
Result<void> Rget::greet(Peer& other, const Board& own, std::int64_t timeout_ns) {
  const std::int64_t deadline = context_->now() + timeout_ns;
  for (;;) {
    reap();
    if (other.lost) return std::unexpected(*other.lost);
    if (context_->load_flag(&own.hello) == kHello && other.outstanding == 0) return {};
    LACUNA_TRY(context_->wait(deadline));
  }
}

bool Rget::reaches(int number) const {
  const Peer& other = peers_[static_cast<std::size_t>(number)];
  return other.qp != nullptr && !other.lost && other.qp->fault() == nullptr;
}

void Rget::lose(Peer& other, base::Error error) {
  if (!other.lost) other.lost = std::move(error);
}

void Rget::reap() {
  std::array<nic::Completion, kAtOnce> done;
  for (int found = 1; found > 0;) {
    found = context_->poll(*queue_, done);
    for (const nic::Completion& one : std::span(done).first(static_cast<std::size_t>(found))) {
      Peer& other = peers_[one.wr_id & ((std::uint64_t{1} << kPeerBits) - 1)];
      if (other.qp == nullptr) continue;  // closed meanwhile
      --other.outstanding;
      const bool good = one.status == nic::Status::success;
      if (const std::uint64_t landed = one.wr_id >> kPeerBits; landed > 0) {
        ReadBuffer& buffer = buffers_[landed - 1];
        buffer.state = !buffer.wanted ? ReadBuffer::State::free : good ? ReadBuffer::State::here : ReadBuffer::State::failed;
      }
      if (!good)
        lose(other, other.qp->fault() != nullptr ? *other.qp->fault()
                                                 : base::Error{base::Code::transfer, std::string(nic::status_name(one.status))});
    }
  }
}

// Without its queue pair a peer that was lost reads and writes nothing here, and nothing that was asked of it comes any
// more.
void Rget::close(int number) {
  Peer& other = peer(number);
  lose(other, other.qp->fault() != nullptr ? *other.qp->fault() : base::Error{base::Code::peer_lost, "the connection is gone"});
  other.qp.reset();
  other.outstanding = 0;
  for (ReadBuffer& buffer : buffers_) {
    if (buffer.state == ReadBuffer::State::reading && buffer.peer == number)
      buffer.state = buffer.wanted ? ReadBuffer::State::failed : ReadBuffer::State::free;
  }
}

void Rget::progress() {
  reap();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].qp != nullptr && !reaches(static_cast<int>(i))) close(static_cast<int>(i));
  }
  std::erase_if(waiting_, [&](Waiting& one) {
    const std::size_t slot = one.number % kSlots;
    Peer& other = peer(one.peer);
    if (other.qp != nullptr && context_->load_flag(&board(one.peer).taken[slot]) != one.number) return false;
    other.used[slot] = false;
    give_back(std::move(one.memory));
    return true;
  });
}

bool Rget::tell(int to, std::uint64_t offset, std::uint64_t word, bool waits) {
  Peer& other = peer(to);
  while (other.outstanding >= depth_ && !other.lost && waits) {
    reap();
    base::cpu_relax();
  }
  if (other.lost || other.outstanding >= depth_) return false;
  // Two words of one place are of one message, the later as good as the earlier: so the place may be written anew while
  // a device reads it.
  std::byte* const from = words_.buffer.data() + static_cast<std::size_t>(to) * sizeof(Board) + offset;
  std::memcpy(from, &word, sizeof word);
  const nic::Sge sge = words_.sge(from - words_.buffer.data(), sizeof word);
  const bool fits = std::cmp_greater_equal(other.qp->limits().max_inline, sizeof word);
  const Result<void> posted = other.qp->post_send({.wr_id = static_cast<std::uint64_t>(to),
                                                   .opcode = nic::Opcode::write,
                                                   .sg_list = {&sge, 1},
                                                   .remote_addr = other.board_addr + offset,
                                                   .rkey = other.board_rkey,
                                                   .inline_data = fits});
  if (!posted) {
    lose(other, posted.error());
    return false;
  }
  ++other.outstanding;
  return true;
}

bool Rget::read(int from, std::size_t buffer, std::uint64_t addr, std::uint32_t rkey, std::int64_t bytes) {
  Peer& other = peer(from);
  if (other.lost || other.outstanding >= depth_ / 2) return false;  // words go first
  nic::Sge sge = buffers_[buffer].sge;
  sge.length = static_cast<std::uint32_t>(bytes);
  const Result<void> posted = other.qp->post_send({.wr_id = static_cast<std::uint64_t>(from) | (buffer + 1) << kPeerBits,
                                                   .opcode = nic::Opcode::read,
                                                   .sg_list = {&sge, 1},
                                                   .remote_addr = addr,
                                                   .rkey = rkey});
  if (!posted) {
    lose(other, posted.error());
    return false;
  }
  ++other.outstanding;
  buffers_[buffer].state = ReadBuffer::State::reading;
  buffers_[buffer].peer = from;
  return true;
}

// --- memory ----------------------------------------------------------------------------------------------------------

Result<Rget::Memory> Rget::take(std::int64_t bytes) {
  const auto size_class = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max(bytes, kLeastMemory) - 1)));
  if (auto& kept = kept_[size_class]; !kept.empty()) {
    Memory memory = std::move(kept.back());
    kept.pop_back();
    return memory;
  }
  const std::int64_t size = std::int64_t{1} << size_class;
  for (auto& kept : kept_) {
    while (held_ + size > kRoom && !kept.empty()) {
      held_ -= static_cast<std::int64_t>(kept.back().buffer.buffer.size());
      kept.pop_back();
    }
  }
  if (held_ + size > kRoom)
    return base::fail(base::Code::limit, fmt::format("{} bytes beside {} that wait to be read; there is room for {}", bytes, held_, kRoom));
  Memory made{.buffer = LACUNA_TRY(nic::RegisteredBuffer::create(*context_, size, {.remote_write = false})), .size_class = size_class};
  held_ += size;
  return made;
}

void Rget::give_back(Memory memory) noexcept {
  try {
    kept_[memory.size_class].push_back(std::move(memory));
  } catch (const std::bad_alloc&) {
    held_ -= static_cast<std::int64_t>(memory.buffer.buffer.size());
  }
}

Result<std::size_t> Rget::take_buffer() {
  const auto found =
      std::ranges::find_if(buffers_, [](const ReadBuffer& buffer) { return buffer.state == ReadBuffer::State::free && !buffer.wanted; });
  std::size_t which = static_cast<std::size_t>(found - buffers_.begin());
  if (found == buffers_.end()) {
    slabs_.push_back(LACUNA_TRY(nic::RegisteredBuffer::create(*context_, kPart * static_cast<std::int64_t>(kBuffersInSlab),
                                                              {.remote_write = false, .remote_read = false})));
    for (std::size_t i = 0; i < kBuffersInSlab; ++i) {
      const std::int64_t offset = kPart * static_cast<std::int64_t>(i);
      buffers_.push_back({.data = slabs_.back().buffer.data() + offset, .sge = slabs_.back().sge(offset, kPart)});
    }
  }
  buffers_[which].wanted = true;
  return which;
}

void Rget::release(std::size_t buffer) {
  buffers_[buffer].wanted = false;
  if (buffers_[buffer].state != ReadBuffer::State::reading) buffers_[buffer].state = ReadBuffer::State::free;
}

// --- leaving ---------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Rget::Out>> Rget::offer(int to, std::int64_t bytes) {
  progress();
  Peer& other = peer(to);
  if (other.lost) return std::unexpected(*other.lost);
  if (!reaches(to)) return base::fail(base::Code::peer_lost, "no connection");
  std::uint32_t number = other.last;
  do ++number;
  while ((number == 0 || other.used[number % kSlots]) && number != other.last + kSlots);
  if (number == 0 || other.used[number % kSlots])
    return base::fail(base::Code::limit, fmt::format("{} messages wait to be taken; there may be no more", kSlots));
  auto out = std::make_unique<Out>(*this, to, number, bytes);
  out->own_.front().memory = LACUNA_TRY(take(bytes));
  other.last = number;
  out->used_ = other.used[number % kSlots] = true;
  return out;
}

Result<void> Rget::Out::pack(const layout::Layout& layout, const std::byte* base) {
  offered_ = true;
  auto& [peer, number, memory] = own_.front();
  const std::uint64_t place = offsetof(Board, packed) + number % kSlots * sizeof(std::uint64_t);
  std::uint64_t parts = 0;
  for (std::int64_t at = 0; at < bytes_; at += kPart) {
    rget_.context_->pack(layout, base, at, std::min(kPart, bytes_ - at), memory.buffer.buffer.data() + at, copy::Caching::kept);
    const bool last = at + kPart >= bytes_;
    rget_.reap();
    const std::optional<base::Error>& lost = rget_.peer(peer).lost;
    if (!rget_.tell(peer, place, std::uint64_t{number} << 32 | ++parts, last) && lost) return std::unexpected(*lost);
  }
  return {};
}

Rget::Out::~Out() {
  if (!used_) return;
  if (offered_) {
    rget_.waiting_.splice(rget_.waiting_.end(), own_);
  } else {
    auto& [peer, number, memory] = own_.front();
    rget_.peer(peer).used[number % kSlots] = false;
    rget_.give_back(std::move(memory));
  }
}

// --- incoming --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Rget::In>> Rget::accept(int from, const Ticket& ticket, std::int64_t bytes, layout::Layout layout, std::byte* base,
                                               std::int64_t capacity) {
  if (ticket.number == 0 || bytes <= 0 || capacity <= 0)
    return base::fail(base::Code::malformed, fmt::format("message {} of {} bytes, to be read into {}", ticket.number, bytes, capacity));
  const Peer& other = peer(from);
  if (other.lost) return std::unexpected(*other.lost);
  if (!reaches(from)) return base::fail(base::Code::peer_lost, "no connection to the rank that offers it");
  return std::make_unique<In>(*this, from, ticket, bytes, std::move(layout), base, capacity);
}

Result<void> Rget::In::ask() {
  const std::uint64_t word = rget_.context_->load_flag(&rget_.board(peer_).packed[ticket_.number % kSlots]);
  if (word >> 32 != ticket_.number) return {};  // of the message that had the place before
  const auto there = static_cast<std::int64_t>(word & 0xffff'ffff);
  if (there > parts_of(bytes_))
    return base::fail(base::Code::malformed, fmt::format("{} parts of a message of {} bytes, {} to a part", there, bytes_, kPart));
  while (asked_ < std::min(there * kPart, wanted_) && end_ - first_ < kReads) {
    const std::size_t buffer = LACUNA_TRY(rget_.take_buffer());
    const std::int64_t bytes = std::min(kPart, wanted_ - asked_);
    if (!rget_.read(peer_, buffer, ticket_.addr + static_cast<std::uint64_t>(asked_), ticket_.rkey, bytes)) {
      rget_.release(buffer);
      break;
    }
    buffers_[end_++ % kReads] = buffer;
    asked_ += bytes;
  }
  return {};
}

Result<bool> Rget::In::step() {
  rget_.progress();
  LACUNA_TRY(ask());
  while (first_ != end_ && rget_.buffers_[first()].state == ReadBuffer::State::here) {
    const std::int64_t bytes = std::min(kPart, wanted_ - here_);
    rget_.context_->unpack(layout_, base_, here_, bytes, rget_.buffers_[first()].data, copy::Caching::kept);
    rget_.release(first());
    ++first_;
    here_ += bytes;
    LACUNA_TRY(ask());
  }
  const bool done = here_ == wanted_;
  if (done) rget_.tell(peer_, offsetof(Board, taken) + ticket_.number % kSlots * sizeof(std::uint64_t), ticket_.number, true);
  if (done) return true;
  Peer& other = rget_.peer(peer_);
  if (other.lost) return std::unexpected(*other.lost);
  if (other.qp != nullptr && other.qp->fault() != nullptr) return std::unexpected(*other.qp->fault());
  return false;
}

Rget::In::~In() {
  for (; first_ != end_; ++first_) rget_.release(first());
}

}  // namespace lacuna::protocol
