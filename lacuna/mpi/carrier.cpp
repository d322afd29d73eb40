#include "lacuna/mpi/carrier.hpp"

#include <algorithm>
#include <string>

#include "lacuna/base/base.hpp"
#include "lacuna/copy/copy.hpp"

namespace lacuna::mpi {
namespace {

constexpr std::size_t kAhead = 8;                  // chunks on the way while the next is packed, and receives posted ahead
constexpr std::int64_t kRoom = 256 << 20;          // of packed bytes, as long as nobody took them
constexpr std::int64_t kStandsAfter = 20'000'000;  // ns
constexpr std::int64_t kLook = 1'000'000;  // ns: what a look counts for at most; between two of them the program may have been elsewhere
constexpr int kTags = 32768;               // that every MPI has at least; 0 is for what is said in MPI_Init (rdma.cpp)

bool test(Chunk& chunk, int& error) {
  int over = 0;
  Status status{};
  const int said = host().Test(&chunk.request, &over, &status);
  if (said != kSuccess) error = said;
  return said != kSuccess || over != 0;
}

}  // namespace

// --- leaving ---------------------------------------------------------------------------------------------------------

void ChunksOut::pack(const Layout& layout, const std::byte* base, bool all) {
  while (packed_ < bytes_ && error_ == kSuccess && (all || chunks_.size() < kAhead)) {
    const std::int64_t bytes = std::min(chunk_, bytes_ - packed_);
    Chunk chunk{.request = {}, .memory = carrier_.bounces_.take(bytes), .at = packed_, .bytes = bytes};
    if (chunk.memory.data() == nullptr) {
      if (all || chunks_.empty()) fail(kErrNoMem, "no memory for a chunk");  // else there is room again when one of them has gone
      return;
    }
    copy::pack(layout, base, packed_, bytes, chunk.memory.data(), copy::Caching::kept);
    const int error = host().Isend(chunk.memory.data(), static_cast<int>(bytes), host().byte, to_, tag_, carrier_.comm_, &chunk.request);
    if (error != kSuccess) return fail(error, "MPI_Isend of a chunk failed");
    packed_ += bytes;
    carrier_.under_way_ += bytes;
    chunks_.push_back(std::move(chunk));
    reap();
  }
}

void ChunksOut::fail(int error, const char* what) {
  base::log(base::Level::error, std::string("MPI send: ") + what);
  error_ = error == kErrNoMem ? error : kErrOther;
}

void ChunksOut::reap() {
  bool moved = false;
  int error = kSuccess;
  while (!chunks_.empty() && test(chunks_.front(), error)) {
    if (error != kSuccess && error_ == kSuccess) fail(error, "MPI_Test of a chunk failed");
    carrier_.under_way_ -= chunks_.front().bytes;
    chunks_.pop_front();
    moved = true;
  }
  const std::int64_t now = base::now_ns();
  waited_ = moved || looked_ == 0 ? 0 : waited_ + std::min(now - looked_, kLook);
  looked_ = now;
}

bool ChunksOut::stands() const { return waited_ > kStandsAfter; }

// --- arriving --------------------------------------------------------------------------------------------------------

void ChunksIn::ask() {
  while (asked_ < bytes_ && chunks_.size() < kAhead && error_ == kSuccess) {
    Chunk chunk{.request = {}, .memory = {}, .at = asked_, .bytes = std::min(chunk_, bytes_ - asked_)};
    std::byte* to = into_.straight == nullptr || asked_ + chunk.bytes > into_.capacity ? nullptr : into_.straight + asked_;
    if (to == nullptr) {
      chunk.memory = carrier_.bounces_.take(chunk.bytes);
      to = chunk.memory.data();
      if (to == nullptr) {
        if (chunks_.empty()) error_ = kErrNoMem;
        return;
      }
    }
    error_ = host().Irecv(to, static_cast<int>(chunk.bytes), host().byte, from_, tag_, carrier_.comm_, &chunk.request);
    if (error_ != kSuccess) return;
    asked_ += chunk.bytes;
    chunks_.push_back(std::move(chunk));
  }
}

bool ChunksIn::move() {
  while (!chunks_.empty() && test(chunks_.front(), error_)) {
    const Chunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    const std::int64_t wanted = std::min(chunk.bytes, into_.capacity - chunk.at);
    ask();  // first, so that the host has it while we unpack
    if (chunk.memory.data() != nullptr && wanted > 0 && error_ == kSuccess)
      copy::unpack(into_.layout, into_.base, chunk.at, wanted, chunk.memory.data(), copy::Caching::kept);
    here_ += chunk.bytes;
  }
  return here_ == bytes_ || (error_ != kSuccess && chunks_.empty());
}

// --- all of them -----------------------------------------------------------------------------------------------------

std::unique_ptr<Carrier> Carrier::create(Bounces& bounces, int own_rank, const std::vector<Place>& places) {
  Comm comm{};
  if (host().Comm_dup(host().world, &comm) != kSuccess) return nullptr;
  int size = 0;
  host().Comm_size(comm, &size);
  std::unique_ptr<Carrier> made(new Carrier(bounces, comm));
  made->tags_.resize(static_cast<std::size_t>(size));
  made->rdma_ = Rdma::create(comm, own_rank, places, made->unsent_);
  return made;
}

std::unique_ptr<Departing> Carrier::depart(int to, std::int64_t bytes, std::int64_t chunk, bool bounded, Descriptor::Far& far) {
  progress();
  if (rdma_ != nullptr) {
    if (std::unique_ptr<Departing> made = rdma_->depart(to, bytes, far); made != nullptr) return made;
  }
  if (bounded && under_way_ + bytes > kRoom) return nullptr;
  int& last = tags_.at(static_cast<std::size_t>(to));
  last = last % (kTags - 1) + 1;
  far = {.number = last, .chunk = static_cast<std::int32_t>(chunk)};
  return std::make_unique<ChunksOut>(*this, to, last, bytes, chunk);
}

base::Result<std::unique_ptr<Arriving>> Carrier::arrive(int from, const Descriptor::Far& far, std::int64_t bytes, Destination into) {
  if (far.by_device != 0 && rdma_ != nullptr) return rdma_->arrive(from, far, bytes, into);
  if (far.by_device != 0 || from < 0 || static_cast<std::size_t>(from) >= tags_.size() || bytes <= 0 || far.chunk <= 0 || far.number < 1 ||
      far.number >= kTags)
    return base::fail(base::Code::malformed, "a message from another node that no rank sends");
  return std::make_unique<ChunksIn>(*this, from, far.number, far.chunk, bytes, std::move(into));
}

void Carrier::progress() {
  std::erase_if(left_, [](const std::unique_ptr<Departing>& one) {
    one->reap();
    return one->gone();
  });
}

void Carrier::end() {
  meet(false);  // whoever is here asks for nothing any more
  const auto goes = [](const std::unique_ptr<Departing>& one) { return one->error() == kSuccess; };
  while (std::ranges::any_of(left_, goes)) {
    progress();
    drop();
  }
  meet(true);
  host().Comm_free(&comm_);
}

void Carrier::meet(bool drops) {
  Chunk barrier;
  int error = host().Ibarrier(comm_, &barrier.request);
  while (error == kSuccess && !test(barrier, error)) {
    progress();
    if (drops) drop();
  }
}

// A chunk that nobody asks for: the message was too long for its receive, and the host told of that without us.
void Carrier::drop() {
  int found = 0, bytes = 0;
  Status status{};
  if (host().Iprobe(kAnySource, kAnyTag, comm_, &found, &status) != kSuccess || found == 0) return;
  bytes = static_cast<int>(bytes_of(status));
  const Bounce nowhere = bounces_.take(bytes);
  if (nowhere.data() == nullptr) return;  // at another look
  host().Recv(nowhere.data(), bytes, host().byte, status.source, status.tag, comm_, ignored());
}

}  // namespace lacuna::mpi
