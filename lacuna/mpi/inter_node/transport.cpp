#include "lacuna/mpi/inter_node/transport.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/base/base.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/mpi/host/pause.hpp"
#include "lacuna/mpi/inter_node/private_comm.hpp"

namespace lacuna::mpi {
namespace {

// Chunks on the way while the next is packed, and receives posted ahead
constexpr std::size_t kAhead = 8;
constexpr std::int64_t kRoom = 256 << 20;          // of packed bytes, as long as nobody took them
constexpr std::int64_t kStandsAfter = 20'000'000;  // ns
// ns: what a look counts for at most; between two of them the program may have been elsewhere
constexpr std::int64_t kLook = 1'000'000;
constexpr std::int64_t kInVain = 10'000'000'000;  // ns without memory for a chunk, after which the message is given up

bool test(Chunk& chunk, int& error) {
  int over = 0;
  Status status{};
  const int said = told_by([&] { return host().Test(&chunk.request, &over, &status); });
  if (said != kSuccess) error = said;
  return said != kSuccess || over != 0;
}

// Behind the others, before the host knows of it. Null: there is no memory.
template <class Chunks>
Chunk* add(Chunks& chunks, Chunk chunk) try {
  return &chunks.emplace_back(std::move(chunk));
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace

// --- leaving ---------------------------------------------------------------------------------------------------------

OutgoingChunks::OutgoingChunks(InterNodeTransport& transport, int to, std::int64_t bytes, std::int64_t chunk, bool behind)
    : transport_(transport), to_(to), bytes_(bytes), chunk_(chunk) {
  const auto count = static_cast<std::size_t>((bytes + chunk - 1) / chunk);
  for (const std::size_t wanted = behind ? count : 1; free_.size() < wanted;) {
    free_.push_back({.request = {}, .memory = transport.bounces_.take(std::min(chunk, bytes))});
    if (free_.back().memory.data() == nullptr) throw std::bad_alloc();
  }
}

void OutgoingChunks::pack(const Layout& layout, const std::byte* base, bool all) {
  while (packed_ < bytes_ && error_ == kSuccess && (all || chunks_.size() < kAhead)) {
    if (free_.empty()) {
      Bounce memory = transport_.bounces_.take(chunk_);
      // Until one has gone
      if (memory.data() == nullptr || add(free_, {.request = {}, .memory = std::move(memory)}) == nullptr) return;
    }
    Chunk& chunk = free_.front();
    chunk.bytes = std::min(chunk_, bytes_ - packed_);
    copy::pack(layout, base, packed_, chunk.bytes, chunk.memory.data(), copy::Caching::kept);
    const int error = told_by([&] {
      return host().Isend(chunk.memory.data(), static_cast<int>(chunk.bytes), host().byte, to_, tag_, transport_.comm_, &chunk.request);
    });
    if (error != kSuccess) return fail(error, "MPI send: MPI_Isend of a chunk failed");
    packed_ += chunk.bytes;
    transport_.under_way_ += chunk.bytes;
    chunks_.splice(chunks_.end(), free_, free_.begin());
    reap();
  }
}

void OutgoingChunks::fail(int error, const char* what) {
  error_ = error == kErrNoMem ? error : kErrOther;
  base::log(base::Level::error, what);
}

void OutgoingChunks::reap() {
  bool moved = false;
  int error = kSuccess;
  while (!chunks_.empty() && test(chunks_.front(), error)) {
    if (error != kSuccess && error_ == kSuccess) fail(error, "MPI send: MPI_Test of a chunk failed");
    transport_.under_way_ -= chunks_.front().bytes;
    free_.splice(free_.begin(), chunks_, chunks_.begin());
    moved = true;
  }
  const std::int64_t now = base::now_ns();
  waited_ = moved || looked_ == 0 ? 0 : waited_ + std::min(now - looked_, kLook);
  looked_ = now;
}

bool OutgoingChunks::stands() const { return waited_ > kStandsAfter; }

// --- incoming --------------------------------------------------------------------------------------------------------

// Whether the next chunk is here, of which the receive cannot take all. Only then memory is taken for it, whatever a
// peer says of its length; and the host never has to cut it off: Open MPI 4.1 and 5 break where they cut off long
// messages over TCP.
bool IncomingChunks::too_long_is_here(std::int64_t bytes) {
  int found = 0;
  Status status{};
  error_ = told_by([&] { return host().Iprobe(from_, tag_, transport_.comm_, &found, &status); });
  if (error_ != kSuccess || found == 0) return false;
  if (bytes_of(status) != bytes) error_ = kErrOther;
  return error_ == kSuccess;
}

void IncomingChunks::ask() {
  while (asked_ < bytes_ && chunks_.size() < kAhead && error_ == kSuccess) {
    const std::int64_t bytes = std::min(chunk_, bytes_ - asked_);
    const std::int64_t wanted = std::clamp<std::int64_t>(into_.capacity - asked_, 0, bytes);
    if (wanted < bytes && !too_long_is_here(bytes)) return;
    std::byte* to = into_.straight == nullptr || wanted < bytes ? nullptr : into_.straight + asked_;
    Bounce memory;
    if (to == nullptr) {
      memory = transport_.bounces_.take(bytes);
      to = memory.data();
    }
    Chunk* const chunk = to == nullptr
                             ? nullptr
                             : add(chunks_, {.request = {}, .memory = std::move(memory), .at = asked_, .bytes = bytes, .wanted = wanted});
    if (chunk == nullptr) {
      if (!chunks_.empty()) return;  // once a chunk has come
      const std::int64_t now = base::now_ns();
      if (in_vain_since_ == 0) in_vain_since_ = now;
      if (now - in_vain_since_ > kInVain) error_ = kErrNoMem;
      return;
    }
    error_ =
        told_by([&] { return host().Irecv(to, static_cast<int>(bytes), host().byte, from_, tag_, transport_.comm_, &chunk->request); });
    if (error_ != kSuccess) return chunks_.pop_back();
    in_vain_since_ = 0;
    asked_ += bytes;
  }
}

// What is posted, and may never come; one that has failed may be posted still.
void IncomingChunks::take_back() {
  for (Chunk& chunk : chunks_) {
    if (chunk.request == host().no_request) continue;
    host().Cancel(&chunk.request);
    host().Wait(&chunk.request, ignored());
  }
  chunks_.clear();
}

bool IncomingChunks::move() {
  if (chunks_.empty()) ask();
  while (error_ == kSuccess && !chunks_.empty() && test(chunks_.front(), error_)) {
    if (error_ != kSuccess) break;
    const Chunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    // First, so that the host has it while we unpack
    ask();
    if (chunk.memory.data() != nullptr && chunk.wanted > 0 && error_ == kSuccess) {
      if (into_.straight != nullptr) {
        copy::block(into_.straight + chunk.at, chunk.memory.data(), chunk.wanted);
      } else {
        copy::unpack(into_.layout, into_.base, chunk.at, chunk.wanted, chunk.memory.data(), copy::Caching::kept);
      }
    }
    here_ += chunk.bytes;
  }
  if (error_ != kSuccess) take_back();
  if (here_ == bytes_ && error_ == kSuccess) transport_.tags_.give_back(from_, tag_);
  return here_ == bytes_ || error_ != kSuccess;
}

// --- all of them -----------------------------------------------------------------------------------------------------

bool InterNodeTransport::connect(int own_rank, const std::vector<RankPlace>& places) {
  if (host().Comm_dup(host().world, &comm_) != kSuccess) return false;
  hear_errors(comm_);
  if (!rdma_->connect(comm_, own_rank, places, unsent_)) rdma_.reset();
  return true;
}

std::unique_ptr<OutgoingMessage> InterNodeTransport::begin_outgoing(int to, std::int64_t bytes, std::int64_t chunk, protocol::Behind behind,
                                                                    Descriptor::InterNode& head) {
  progress();
  if (rdma_ != nullptr) {
    if (std::unique_ptr<OutgoingMessage> made = rdma_->begin_outgoing(to, bytes, head); made != nullptr) return made;
  }
  if (behind != protocol::Behind::always && under_way_ + bytes > kRoom) return nullptr;
  auto made = std::make_unique<OutgoingChunks>(*this, to, bytes, chunk, behind != protocol::Behind::no);
  const int tag = tags_.take(to);
  if (tag == ChunkTags::kNone) return nullptr;
  made->begin(tag);
  head = {.number = tag, .chunk = static_cast<std::int32_t>(chunk)};
  return made;
}

base::Result<std::unique_ptr<IncomingMessage>> InterNodeTransport::begin_incoming(int from, const Descriptor::InterNode& head,
                                                                                  std::int64_t bytes, Destination into) {
  if (head.by_device != 0 && rdma_ != nullptr) return rdma_->begin_incoming(from, head, bytes, into);
  if (head.by_device != 0 || from < 0 || std::cmp_greater_equal(from, ranks_) || bytes <= 0 || head.chunk <= 0 || head.chunk > bytes ||
      head.number < ChunkTags::kFirst || head.number >= ChunkTags::kNone)
    return base::fail(base::Code::malformed, "a message from another node that no rank sends");
  return std::make_unique<IncomingChunks>(*this, from, head.number, head.chunk, bytes, std::move(into));
}

void InterNodeTransport::progress() {
  for (std::unique_ptr<OutgoingMessage>* at = &left_; *at != nullptr;) {
    (*at)->reap();
    if ((*at)->gone()) {
      *at = std::move((*at)->next);
    } else {
      at = &(*at)->next;
    }
  }
}

void InterNodeTransport::end() {
  meet(false);  // whoever is here asks for nothing any more
  const auto some_go = [&] {
    const OutgoingMessage* one = left_.get();
    while (one != nullptr && one->error() != kSuccess) one = one->next.get();
    return one != nullptr;
  };
  for (int rounds = 0; some_go() || tags_.some_go(); pause(rounds)) {
    progress();
    drop();
  }
  meet(true);
  while (drop()) {  // what came before the others said so, and was not looked at: MPICH frees no communicator with it
  }
  host().Comm_free(&comm_);
}

void InterNodeTransport::meet(bool drops) {
  Chunk barrier;
  int error = told_by([&] { return host().Ibarrier(comm_, &barrier.request); });
  for (int rounds = 0; error == kSuccess && !test(barrier, error); pause(rounds)) {
    progress();
    if (drops) drop();
  }
}

// A chunk that no receive asks for: the message was too long for its receive, and the host told of that without us. Or
// tags that were given back. Whether there was one.
bool InterNodeTransport::drop() {
  int found = 0, bytes = 0;
  Status status{};
  if (host().Iprobe(kAnySource, kAnyTag, comm_, &found, &status) != kSuccess || found == 0) return false;
  bytes = static_cast<int>(bytes_of(status));
  const Bounce nowhere = bounces_.take(bytes);
  if (nowhere.data() == nullptr) return false;  // at another look
  return host().Recv(nowhere.data(), bytes, host().byte, status.source, status.tag, comm_, ignored()) == kSuccess;
}

}  // namespace lacuna::mpi
