#include "tools/handover/handover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tools/handover/posting.hpp"

namespace lacuna::handover {
namespace {

using method::Method;
using method::Role;

constexpr int kPlans = 5;  // of which the median counts

// One rank's end of one stream.
struct End {
  const Stream* stream = nullptr;
  Role role = Role::sender;
  int peer = 0;
  Bytes told, heard;  // the wire forms of the own layout and the peer's
  method::Transfer transfer;
  std::unique_ptr<method::Endpoint> endpoint;
  std::unique_ptr<method::Operation> operation;
  method::Target offer, peers;
  bool done = false;
};

template <class T>
T value_of(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

class Rank {
 public:
  Rank(Crew& crew, nic::Context& context, nic::RegisteredBuffer memory, bool fault)
      : crew_(crew), context_(context), memory_(std::move(memory)), fault_(fault) {}

  // Layouts, told and heard. In the order of all streams, so that nobody waits in a circle.
  Result<void> plan(const std::vector<Stream>& streams, Outcome& outcome) {
    for (const Stream& stream : streams) {
      if (stream.sender != crew_.rank() && stream.receiver != crew_.rank()) continue;
      End end{.stream = &stream, .role = stream.sender == crew_.rank() ? Role::sender : Role::receiver};
      end.peer = end.role == Role::sender ? stream.receiver : stream.sender;
      const Cache& cache = end.role == Role::sender ? stream.src : stream.dst;
      std::vector<double> making;
      Layout own;
      for (int i = 0; i < kPlans; ++i) {
        const std::int64_t began = cpu_ns();
        own = LACUNA_TRY(cache.layout());
        making.push_back(static_cast<double>(cpu_ns() - began));
      }
      end.told = layout::encode(own);
      end.heard = LACUNA_TRY(crew_.swap(end.peer, end.told));
      std::vector<double> telling;
      Layout other;
      for (int i = 0; i < kPlans; ++i) {
        const std::int64_t began = cpu_ns();
        const Bytes again = layout::encode(own);
        other = LACUNA_TRY(layout::decode(end.heard));
        telling.push_back(static_cast<double>(cpu_ns() - began));
      }
      const double mine[] = {median(making), median(telling)};
      const Bytes theirs = LACUNA_TRY(crew_.swap(end.peer, std::as_bytes(std::span(mine))));
      double others[2] = {0, 0};
      std::memcpy(others, theirs.data(), std::min(theirs.size(), sizeof others));
      if (ends_.empty()) {
        outcome.layout_ns = mine[0] + others[0];
        outcome.wire_ns = mine[1] + others[1];
        outcome.wire_bytes = std::ssize(end.told) + std::ssize(end.heard);
      }
      LACUNA_TRY(renew(end));
      ends_.push_back(std::move(end));
    }
    for (const End& end : ends_) {
      if (end.role == Role::sender) fill(end.stream->src, memory_.buffer.bytes(), end.stream->first_head);
    }
    return {};
  }

  [[nodiscard]] const std::vector<End>& ends() const { return ends_; }

  Result<void> connect(nic::Path path) {
    for (End& end : ends_) {
      end.operation.reset();
      end.endpoint = LACUNA_TRY(method::Endpoint::connect(context_, crew_.peer(end.peer), path));
      // An endpoint's, for all that it packs: no plan shall pay for its pages
      LACUNA_TRY(end.endpoint->staging(end.transfer.src.size()));
    }
    return {};
  }

  // Everybody's refusal, or nothing if all can.
  Result<std::string> agree(std::string refusal) {
    for (const Bytes& said : LACUNA_TRY(crew_.gather(bytes_of(refusal)))) {
      if (!said.empty()) return text_of(said);
    }
    return std::string();
  }

  Result<Row> move(const Method& method, const Wanted& wanted) {
    Row row{.method = std::string(method.name), .path = {}};
    for (End& end : ends_) {
      end.operation.reset();
      LACUNA_TRY(renew(end));
      end.transfer.notify = method.one_sided() ? method::Notify::flag : method::Notify::none;
    }
    const std::int64_t began = cpu_ns();
    Result<void> made;
    for (End& end : ends_) {
      if (made) made = make(method, end);
    }
    const auto planning = static_cast<double>(cpu_ns() - began);
    row.refusal = LACUNA_TRY(agree(made ? "" : made.error().text()));
    if (!row.refusal.empty()) return row;
    for (const Bytes& said : LACUNA_TRY(crew_.gather(bytes_of(planning)))) row.plan_ns += value_of<double>(said);
    for (End& end : ends_) {
      const Bytes target = LACUNA_TRY(crew_.swap(end.peer, end.offer.encode()));
      end.peers = LACUNA_TRY(method::Target::decode(target));
    }
    std::vector<double> times;
    for (int i = 0; i <= wanted.repeats; ++i) {
      const bool looked_at = i == 0 || i == wanted.repeats;
      const std::int64_t ns = LACUNA_TRY(once(looked_at));
      if (i > 0) times.push_back(static_cast<double>(ns) / 1e3);
      if (looked_at && row.wrong.empty()) row.wrong = LACUNA_TRY(agree(look()));
    }
    row.transfer_us = median(times);
    for (End& end : ends_) end.operation.reset();
    return row;
  }

 private:
  [[nodiscard]] bool receives() const {
    return std::ranges::any_of(ends_, [](const End& end) { return end.role == Role::receiver; });
  }

  // Layouts that nobody has planned with: what is found out about a layout stays with it.
  static Result<void> renew(End& end) {
    Layout own = LACUNA_TRY(layout::decode(end.told));
    Layout other = LACUNA_TRY(layout::decode(end.heard));
    if (end.role == Role::receiver) std::swap(own, other);
    end.transfer = {std::move(own), std::move(other)};
    return {};
  }

  Result<void> make(const Method& method, End& end) {
    // What is packed and unpacked by a CPU is prepared here, as the first copy would.
    if (method.exposes == method::Exposes::nothing) copy::prepare(end.role == Role::sender ? end.transfer.src : end.transfer.dst);
    end.operation = LACUNA_TRY(method::make(method, end.role, *end.endpoint, end.transfer, {&memory_.region}));
    end.offer = LACUNA_TRY(end.endpoint->prepare(*end.operation, memory_.buffer.data(), kTimeout));
    return {};
  }

  // One transfer of all streams; from the first start to the last end.
  Result<std::int64_t> once(bool fresh) {
    if (fresh && receives()) fill_gaps(memory_.buffer.bytes());
    const auto start = [&](Role role) -> Result<void> {
      for (End& end : ends_) {
        end.done = false;
        if (end.role == role) LACUNA_TRY(end.operation->start(memory_.buffer.data(), end.peers));
      }
      return {};
    };
    LACUNA_TRY(start(Role::receiver));
    LACUNA_TRY(crew_.meet());
    std::int64_t times[2] = {base::now_ns(), 0};
    LACUNA_TRY(start(Role::sender));
    LACUNA_TRY(finish());
    times[1] = base::now_ns();
    if (!ends_.empty() && receives()) times[0] = std::numeric_limits<std::int64_t>::max();
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = 0;
    for (const Bytes& said : LACUNA_TRY(crew_.gather(std::as_bytes(std::span(times))))) {
      const auto theirs = value_of<std::array<std::int64_t, 2>>(said);
      first = std::min(first, theirs[0]);
      last = std::max(last, theirs[1]);
    }
    return last - first;
  }

  Result<void> finish() {
    const std::int64_t deadline = context_.now() + kTimeout;
    for (;;) {
      bool open = false;
      bool moved = false;
      for (End& end : ends_) {
        if (end.done) continue;
        end.done = LACUNA_TRY(end.operation->progress());
        open = open || !end.done;
        moved = end.endpoint->poll() > 0 || moved || end.done;
        if (const base::Error* fault = end.endpoint->qp().fault(); fault != nullptr && !end.done) return std::unexpected(*fault);
      }
      if (!open) return {};
      if (!moved) LACUNA_TRY(context_.wait(deadline));
    }
  }

  // What is wrong with what this rank received.
  std::string look() {
    if (!receives()) return {};
    std::vector<Placed> placed;
    for (const End& end : ends_) placed.push_back({&end.stream->dst, end.stream->first_head});
    if (fault_) memory_.buffer.data()[placed.front().cache->address(0, 0, 0, 0)] ^= std::byte{1};
    const std::string wrong = check(placed, memory_.buffer.bytes());
    return wrong.empty() ? wrong : fmt::format("rank {}: {}", crew_.rank(), wrong);
  }

  Crew& crew_;
  nic::Context& context_;
  nic::RegisteredBuffer memory_;
  bool fault_;
  std::vector<End> ends_;
};

bool among(const std::vector<std::string>& wanted, std::string_view name) {
  return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
}

std::int64_t pieces_of(const Layout& src, const Layout& dst) {
  std::int64_t count = 0;
  Result<layout::Intersection> pieces = layout::Intersection::of(src, dst);
  while (pieces && !pieces->done()) {
    pieces->next();
    ++count;
  }
  return count;
}

// What posting takes rank 0, for each block of its first stream.
double posting_of(const Method& method, const Stream& stream, std::span<std::byte> memory, std::int64_t blocks) {
  if (!sender_posts(method)) return -1;
  const auto transfer = [&]() -> Result<method::Transfer> {
    const method::Notify notify = method.one_sided() ? method::Notify::flag : method::Notify::none;
    return method::Transfer{LACUNA_TRY(stream.src.layout()), LACUNA_TRY(stream.dst.layout()), notify};
  };
  // Addresses of a receiver that nobody touches.
  const std::span<std::byte> there(reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44),
                                   static_cast<std::size_t>(stream.dst.memory_bytes));
  const Posting posting = measure_posting(method, transfer, memory, there, kPlans);
  return posting.refusal.empty() ? posting.post_ns / static_cast<double>(blocks) : -1;
}

}  // namespace

bool Outcome::sound() const {
  const bool moved = std::ranges::any_of(rows, [](const Row& row) { return row.refusal.empty(); });
  return moved && std::ranges::all_of(rows, [](const Row& row) { return row.wrong.empty(); });
}

Result<Outcome> hand_over(Crew& crew, nic::Context& context, const std::vector<Stream>& streams, const Wanted& wanted, bool fault) {
  std::int64_t memory_bytes = 1;
  for (const Stream& stream : streams) {
    if (stream.sender == crew.rank()) memory_bytes = std::max(memory_bytes, stream.src.memory_bytes);
    if (stream.receiver == crew.rank()) memory_bytes = std::max(memory_bytes, stream.dst.memory_bytes);
  }
  nic::RegisteredBuffer memory = LACUNA_TRY(nic::RegisteredBuffer::create(context, memory_bytes));
  const std::span<std::byte> bytes = memory.buffer.bytes();
  Rank rank(crew, context, std::move(memory), fault);
  Outcome outcome;
  LACUNA_TRY(rank.plan(streams, outcome));
  std::int64_t own_blocks = 1;
  for (const Stream& stream : streams) outcome.bytes += stream.src.what.bytes();
  if (crew.rank() == 0) {
    const method::Transfer& transfer = rank.ends().front().transfer;
    own_blocks = pieces_of(transfer.src, transfer.dst);
    for (const Stream& stream : streams) outcome.blocks += pieces_of(LACUNA_TRY(stream.src.layout()), LACUNA_TRY(stream.dst.layout()));
    outcome.src = transfer.src.describe();
    outcome.dst = transfer.dst.describe();
    outcome.layout_ns /= static_cast<double>(own_blocks);
    outcome.wire_ns /= static_cast<double>(own_blocks);
  }
  std::vector<double> posting(method::methods().size(), -1);
  for (std::size_t i = 0; crew.rank() == 0 && wanted.posting && i < posting.size(); ++i) {
    if (among(wanted.methods, method::methods()[i].name)) posting[i] = posting_of(method::methods()[i], streams[0], bytes, own_blocks);
  }
  LACUNA_TRY(crew.meet());
  for (const nic::PathInfo& path : context.limits().paths) {
    if (!path.available || !among(wanted.paths, nic::path_name(path.path))) continue;
    LACUNA_TRY(rank.connect(path.path));
    for (std::size_t i = 0; i < posting.size(); ++i) {
      const Method& method = method::methods()[i];
      if (!among(wanted.methods, method.name)) continue;
      Row row = LACUNA_TRY(rank.move(method, wanted));
      row.path = nic::path_name(path.path);
      row.post_ns = posting[i];
      row.plan_ns /= static_cast<double>(std::max<std::int64_t>(1, outcome.blocks));
      if (row.transfer_us > 0) row.gigabytes = static_cast<double>(outcome.bytes) / row.transfer_us / 1e3;
      outcome.rows.push_back(std::move(row));
    }
  }
  return outcome;
}

}  // namespace lacuna::handover
