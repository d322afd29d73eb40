#include "lacuna/mpi/inter_node/rdma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lacuna/mpi/host/host.hpp"
#include "lacuna/mpi/host/machine.hpp"
#include "lacuna/mpi/host/pause.hpp"
#include "lacuna/mpi/inter_node/private_comm.hpp"
#include "lacuna/mpi/inter_node/tags.hpp"

namespace lacuna::mpi {

using base::Result;

namespace {

constexpr const char* kVerbs = "verbs";
constexpr std::int64_t kTimeout = 10'000'000'000;  // ns, for another end that is setting itself up

base::Error call_failed(const char* call) { return {base::Code::io, std::string("MPI_") + call + " failed"}; }

// Two ranks of the world tell one another what connects them. Neither waits for one that does not speak. What the host
// may still send when one has given up is kept in `unsent`.
class HostBootstrap final : public nic::Bootstrap {
 public:
  HostBootstrap(Comm comm, int rank, Rdma::Unsent& unsent) : comm_(comm), rank_(rank), unsent_(unsent) {}

  Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override {
    if (!mine.files.empty()) return base::fail(base::Code::unsupported, "a device whose ends need the same machine");
    if (mine.bytes.size() > kMost)
      return base::fail(base::Code::limit, fmt::format("{} bytes to say; there may be {}", mine.bytes.size(), kMost));
    nic::Hello theirs;
    theirs.bytes.resize(kMost);
    std::vector<std::byte> said = mine.bytes;
    unsent_.reserve(unsent_.size() + 1);
    Request in = host().no_request, out = host().no_request;
    if (told_by([&] { return host().Irecv(theirs.bytes.data(), kMost, host().byte, rank_, kTag, comm_, &in); }) != kSuccess)
      return std::unexpected(call_failed("Irecv"));
    Status status{};
    Result<void> ended = base::fail(base::Code::io, "");
    try {
      if (told_by([&] { return host().Isend(said.data(), static_cast<int>(said.size()), host().byte, rank_, kTag, comm_, &out); }) !=
          kSuccess) {
        out = host().no_request;
        ended = std::unexpected(call_failed("Isend"));
      } else {
        ended = wait(in, out, status, base::now_ns() + timeout_ns);
      }
    } catch (const std::bad_alloc&) {
      give_up(in, out, std::move(said));
      throw;
    }
    give_up(in, out, std::move(said));
    if (!ended) return std::unexpected(ended.error());
    theirs.bytes.resize(static_cast<std::size_t>(bytes_of(status)));
    return theirs;
  }

 private:
  static constexpr int kMost = 4096, kTag = ChunkTags::kForInit;

  Result<void> wait(Request& in, Request& out, Status& status, std::int64_t deadline) {
    for (int rounds = 0; in != host().no_request || out != host().no_request; pause(rounds)) {
      for (Request* one : {&in, &out}) {
        int over = 0;
        if (*one != host().no_request && told_by([&] { return host().Test(one, &over, one == &in ? &status : ignored()); }) != kSuccess)
          return std::unexpected(call_failed("Test"));
      }
      if (base::now_ns() >= deadline && in != host().no_request)
        return base::fail(base::Code::timeout, fmt::format("rank {} does not answer", rank_));
      if (base::now_ns() >= deadline && out != host().no_request)
        return base::fail(base::Code::timeout, fmt::format("rank {} takes no answer", rank_));
    }
    return {};
  }
  // Of what is under way still, the receive ends here. The send cannot be ended: the host reads what was said for as
  // long as it likes.
  void give_up(Request& in, Request& out, std::vector<std::byte> said) {
    if (in != host().no_request) {
      host().Cancel(&in);
      host().Wait(&in, ignored());
    }
    if (out == host().no_request) return;
    host().Request_free(&out);
    unsent_.push_back(std::move(said));
  }

  Comm comm_;
  int rank_;
  Rdma::Unsent& unsent_;
};

class Leaving final : public OutgoingMessage {
 public:
  explicit Leaving(std::unique_ptr<protocol::Rget::Out> out) : out_(std::move(out)) {}
  void pack(const Layout& layout, const std::byte* base, bool /*all*/) override {
    if (gone_) return;
    gone_ = true;
    const Result<void> packed = out_->pack(layout, base);
    if (packed) return;
    base::log(base::Level::error, "MPI send: " + packed.error().text());
    error_ = kErrOther;
  }
  [[nodiscard]] bool packed() const override { return gone_; }
  [[nodiscard]] bool gone() const override { return gone_; }
  [[nodiscard]] int error() const override { return error_; }
  [[nodiscard]] bool by_device() const override { return true; }

 private:
  std::unique_ptr<protocol::Rget::Out> out_;
  bool gone_ = false;
  int error_ = kSuccess;
};

class Coming final : public IncomingMessage {
 public:
  explicit Coming(std::unique_ptr<protocol::Rget::In> in) : in_(std::move(in)) {}
  bool move() override {
    const Result<bool> done = in_->step();
    if (done) return *done;
    base::log(base::Level::error, "MPI receive: " + done.error().text());
    error_ = kErrOther;
    return true;
  }
  [[nodiscard]] int error() const override { return error_; }
  [[nodiscard]] bool by_device() const override { return true; }

 private:
  std::unique_ptr<protocol::Rget::In> in_;
  int error_ = kSuccess;
};

// Which device, if any.
std::unique_ptr<nic::Context> open() {
  const char* said = std::getenv("LACUNA_MPI_NIC");
  const std::string_view name = said == nullptr ? "" : said;
  if (name == "off") return nullptr;
  base::Result<std::unique_ptr<nic::Context>> opened = open_device(name.empty() ? kVerbs : said);
  if (!opened) {
    // Most machines have none, and nobody asked.
    base::log(name.empty() ? base::Level::debug : base::Level::warn,
              "MPI messages between nodes go without RDMA: " + opened.error().text());
    return nullptr;
  }
  if (!(*opened)->limits().emulated || !name.empty()) return std::move(*opened);
  base::log(base::Level::debug, fmt::format("{} is a device in software; LACUNA_MPI_NIC={} takes it all the same", (*opened)->nic_name(),
                                            (*opened)->nic_name()));
  return nullptr;
}

constexpr const char* kNoMemory = "MPI messages between nodes go without RDMA: no memory";

// In MPI_Init the others wait for what this rank says, so nothing is thrown. Null: there is none, or no memory for it.
std::unique_ptr<protocol::Rget> endpoint(int others) try {
  if (others > Rdma::kMostPeers) {
    base::log(base::Level::info, fmt::format("MPI messages between nodes go without RDMA: {} ranks on other nodes; it takes up to {}",
                                             others, Rdma::kMostPeers));
    return nullptr;
  }
  std::unique_ptr<nic::Context> device = open();
  if (device == nullptr) return nullptr;
  base::Result<std::unique_ptr<protocol::Rget>> made = protocol::Rget::create(std::move(device), nic::Path::wire, std::max(others, 1));
  if (made) return std::move(*made);
  base::log(base::Level::warn, "MPI messages between nodes go without RDMA: " + made.error().text());
  return nullptr;
} catch (const std::bad_alloc&) {
  base::log(base::Level::warn, kNoMemory);
  return nullptr;
}

}  // namespace

bool Rdma::meet(int number, int own_rank, int rank, nic::Bootstrap& bootstrap) try {
  const base::Result<void> connected = rget_->connect(number, bootstrap, kTimeout);
  if (!connected) {
    base::log(base::Level::warn,
              fmt::format("MPI messages between ranks {} and {} go without RDMA: {}", own_rank, rank, connected.error().text()));
  }
  return connected.has_value();
} catch (const std::bad_alloc&) {
  base::log(base::Level::warn, kNoMemory);
  return false;
}

bool Rdma::connect(Comm world, int own_rank, const std::vector<RankPlace>& places, Unsent& unsent) {
  const auto others = static_cast<int>(std::ranges::count_if(places, [](const RankPlace& place) { return place.remote >= 0; }));
  rget_ = endpoint(others);
  const std::int32_t mine = rget_ != nullptr ? 1 : 0;
  host().Allgather(&mine, sizeof mine, host().byte, have_.data(), sizeof mine, host().byte, world);
  if (rget_ == nullptr) return false;

  // Pairs of ranks in one order for all, so that nobody waits in a circle.
  int number = 0;
  bool any = false;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank].remote < 0 || have_[rank] == 0) continue;
    const int to = static_cast<int>(rank);
    HostBootstrap bootstrap(world, to, unsent);
    if (meet(number, own_rank, to, bootstrap)) {
      peers_[rank] = number;
      any = true;
    }
    ++number;
  }
  return any;
}

int Rdma::peer(int rank) const {
  return rank >= 0 && static_cast<std::size_t>(rank) < peers_.size() ? peers_[static_cast<std::size_t>(rank)] : -1;
}

std::unique_ptr<OutgoingMessage> Rdma::begin_outgoing(int to, std::int64_t bytes, Descriptor::InterNode& head) {
  const int who = peer(to);
  if (who < 0 || !rget_->reaches(who)) return nullptr;
  base::Result<std::unique_ptr<protocol::Rget::Out>> offered = rget_->offer(who, bytes);
  if (!offered) {
    base::log(base::Level::debug, "MPI send: " + offered.error().text());
    return nullptr;
  }
  const protocol::Rget::Ticket ticket = (*offered)->ticket();
  head = {.by_device = 1, .number = static_cast<std::int32_t>(ticket.number), .chunk = 0, .rkey = ticket.rkey, .addr = ticket.addr};
  return std::make_unique<Leaving>(std::move(*offered));
}

base::Result<std::unique_ptr<IncomingMessage>> Rdma::begin_incoming(int from, const Descriptor::InterNode& head, std::int64_t bytes,
                                                                    const Destination& into) {
  const int who = peer(from);
  if (who < 0) return base::fail(base::Code::malformed, fmt::format("a message that a device of rank {} is said to have", from));
  const protocol::Rget::Ticket ticket{.addr = head.addr, .rkey = head.rkey, .number = static_cast<std::uint32_t>(head.number)};
  return std::make_unique<Coming>(LACUNA_TRY(rget_->accept(who, ticket, bytes, into.layout, into.base, into.capacity)));
}

}  // namespace lacuna::mpi
