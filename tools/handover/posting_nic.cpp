#include "tools/handover/posting_nic.hpp"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace lacuna::handover {

class PostingQueue;

namespace {

using nic::Result;

// A request as a driver writes it: a header, and then as many entries.
struct Header {
  std::uint64_t wr_id;
  std::uint64_t remote_addr;
  std::uint32_t rkey;
  std::uint32_t sges;
  std::uint32_t bytes;  // of inline data, in the place of the entries
  nic::Opcode opcode;
  bool signaled;
  bool inlined;
};
static_assert(sizeof(Header) == 32);

class Completions final : public nic::CompletionQueue {
 public:
  [[nodiscard]] bool overrun() const override { return false; }
  std::vector<PostingQueue*> queues;
  std::deque<nic::Completion> done;
};

}  // namespace

class PostingQueue final : public nic::QueuePair {
 public:
  PostingQueue(PostingNic& nic, Completions& completions, const nic::QueuePairOptions& options)
      : nic_(nic), completions_(completions), options_(options) {
    const auto each = sizeof(Header) + std::max<std::size_t>(static_cast<std::size_t>(nic.limits().max_sge) * sizeof(nic::Sge), 256);
    ring_.resize(static_cast<std::size_t>(options.max_send_wr) * each);
    completions_.queues.push_back(this);
  }
  ~PostingQueue() override { std::erase(completions_.queues, this); }
  PostingQueue(const PostingQueue&) = delete;
  PostingQueue& operator=(const PostingQueue&) = delete;

  [[nodiscard]] std::uint32_t number() const override { return 1; }
  [[nodiscard]] nic::Path path() const override { return options_.path; }
  [[nodiscard]] const nic::Limits& limits() const override { return nic_.limits(); }
  [[nodiscard]] const base::Error* fault() const override { return nullptr; }
  Result<void> post_recv(const nic::RecvRequest&) override {
    return base::fail(base::Code::unsupported, "the posting NIC takes no receives");
  }

  Result<void> post_chain(std::span<const nic::SendRequest> chain) override {
    if (posted_ + static_cast<int>(chain.size()) > options_.max_send_wr)
      return base::fail(base::Code::limit, "the posting NIC's send queue is full");
    for (const nic::SendRequest& request : chain) {
      if (std::cmp_greater(request.sg_list.size(), nic_.limits().max_sge))
        return base::fail(base::Code::limit, "a list longer than the posting NIC takes");
      if (request.opcode == nic::Opcode::bind) bind(*request.binding);
      Header header{request.wr_id,  request.remote_addr, request.rkey,       static_cast<std::uint32_t>(request.sg_list.size()), 0,
                    request.opcode, request.signaled,    request.inline_data};
      if (request.inline_data) header.bytes = request.sg_list.empty() ? 0 : request.sg_list[0].length;
      std::memcpy(ring_.data() + used_, &header, sizeof header);
      used_ += sizeof header;
      if (request.inline_data) {
        if (header.bytes > 0) std::memcpy(ring_.data() + used_, reinterpret_cast<const void*>(request.sg_list[0].addr), header.bytes);
        used_ += (header.bytes + 15) / 16 * 16;
      } else {
        for (const nic::Sge& sge : request.sg_list) {
          std::memcpy(ring_.data() + used_, &sge, sizeof sge);
          used_ += sizeof sge;
        }
      }
      if (request.signaled) signaled_.push_back({.wr_id = request.wr_id, .opcode = request.opcode, .qp_num = 1});
      ++posted_;
    }
    return {};
  }

  // Everything that was posted is done. Reading the queue is the device's work, not the CPU's, so it is not done for
  // nothing.
  void complete() {
    for (std::size_t at = 0; nic_.moves && at < used_;) {
      Header header;
      std::memcpy(&header, ring_.data() + at, sizeof header);
      at += sizeof header;
      carry_out(header, ring_.data() + at);
      at += header.inlined ? (header.bytes + 15) / 16 * 16 : header.sges * sizeof(nic::Sge);
    }
    completions_.done.insert(completions_.done.end(), signaled_.begin(), signaled_.end());
    signaled_.clear();
    used_ = 0;
    posted_ = 0;
  }

 private:
  void bind(const nic::Binding& binding) {
    PostingNic::Binding& kept = nic_.bindings_[binding.key];
    kept.list.assign(binding.list.begin(), binding.list.end());
    kept.strided.assign(binding.strided.begin(), binding.strided.end());
    kept.repeat = binding.repeat;
    std::int64_t bytes = std::ssize(ring_);
    for (const auto& [key, held] : nic_.bindings_)
      bytes += static_cast<std::int64_t>(held.list.size() * sizeof(nic::Sge) + held.strided.size() * sizeof(nic::Strided));
    nic_.most_bytes_ = std::max(nic_.most_bytes_, bytes);
  }

  void carry_out(const Header& header, const std::byte* body) {
    if (header.opcode != nic::Opcode::write && header.opcode != nic::Opcode::write_imm) return;
    from_.clear();
    to_.clear();
    std::uint64_t total = header.bytes;
    if (header.inlined) {
      from_.emplace_back(const_cast<std::byte*>(body), header.bytes);
    } else {
      for (std::uint32_t i = 0; i < header.sges; ++i) {
        nic::Sge sge;
        std::memcpy(&sge, body + i * sizeof sge, sizeof sge);
        nic_.each_piece(sge.lkey, sge.addr, sge.length, from_);
        total += sge.length;
      }
    }
    nic_.each_piece(header.rkey, header.remote_addr, total, to_);
    std::size_t target = 0;
    std::size_t within = 0;
    for (std::span<std::byte> source : from_) {
      while (!source.empty()) {
        const std::size_t bytes = std::min(source.size(), to_[target].size() - within);
        std::memcpy(to_[target].data() + within, source.data(), bytes);
        source = source.subspan(bytes);
        within += bytes;
        if (within == to_[target].size()) {
          ++target;
          within = 0;
        }
      }
    }
  }

  PostingNic& nic_;
  Completions& completions_;
  nic::QueuePairOptions options_;
  std::vector<std::byte> ring_;
  std::size_t used_ = 0;
  int posted_ = 0;
  std::vector<nic::Completion> signaled_;
  std::vector<std::span<std::byte>> from_, to_;
};

std::int64_t cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

PostingNic::PostingNic() {
  limits_.max_sge = limits_.max_sge_rd = 30;
  limits_.max_inline = 220;
  limits_.max_send_wr = limits_.max_recv_wr = 1 << 15;
  limits_.max_cqe = 1 << 20;
  limits_.max_message_bytes = std::int64_t{1} << 30;
  limits_.indirect = {.keys = 16384, .entries = 65536, .inline_entries = 52, .strided_entries = 51, .stride = 65535, .note = {}};
  limits_.paths = {{nic::Path::wire, true, true, false, nic::Mover::device, 4096, ""}};
}

Result<nic::Buffer> PostingNic::allocate(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const std::size_t whole = (bytes + page - 1) / page * page;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(page, whole));
  if (memory == nullptr) return base::fail(base::Code::out_of_memory, "no memory for the posting NIC's buffer");
  std::memset(memory, 0, whole);
  return nic::Buffer(*this, {memory, bytes});
}

void PostingNic::free(std::span<std::byte> bytes) { std::free(bytes.data()); }

Result<nic::Region> PostingNic::register_memory(std::span<std::byte> bytes, nic::Rights, nic::MemoryKind kind) {
  ++keys_;
  return nic::Region(*this, bytes, keys_, keys_, kind, true);
}

Result<nic::IndirectKey> PostingNic::create_indirect_key(int entries) { return nic::IndirectKey(*this, ++keys_, entries); }

Result<std::unique_ptr<nic::CompletionQueue>> PostingNic::create_completion_queue(int) { return std::make_unique<Completions>(); }

Result<std::unique_ptr<nic::QueuePair>> PostingNic::connect(nic::Bootstrap&, nic::CompletionQueue& queue,
                                                            const nic::QueuePairOptions& options) {
  return std::make_unique<PostingQueue>(*this, static_cast<Completions&>(queue), options);
}

int PostingNic::poll(nic::CompletionQueue& queue, std::span<nic::Completion> completions) {
  auto& all = static_cast<Completions&>(queue);
  if (all.done.empty()) {
    for (PostingQueue* pair : all.queues) pair->complete();
  }
  int n = 0;
  for (; n < static_cast<int>(completions.size()) && !all.done.empty(); ++n) {
    completions[static_cast<std::size_t>(n)] = all.done.front();
    all.done.pop_front();
  }
  return n;
}

Result<void> PostingNic::wait(std::int64_t deadline) {
  if (now() <= deadline) return {};
  return base::fail(base::Code::timeout, "nothing happened on the posting NIC");
}

void PostingNic::each_piece(std::uint32_t key, std::uint64_t addr, std::uint64_t bytes, std::vector<std::span<std::byte>>& pieces) const {
  const auto found = bindings_.find(key);
  if (found == bindings_.end()) {  // a region: its addresses are the memory's
    if (bytes > 0) pieces.emplace_back(reinterpret_cast<std::byte*>(addr), bytes);
    return;
  }
  std::uint64_t start = 0;  // of an entry in the stream behind the key
  const auto take = [&](std::uint64_t at, std::uint64_t length) {
    const std::uint64_t from = std::max(addr, start);
    const std::uint64_t to = std::min(addr + bytes, start + length);
    if (from < to) pieces.emplace_back(reinterpret_cast<std::byte*>(at + (from - start)), to - from);
    start += length;
  };
  for (const nic::Sge& sge : found->second.list) take(sge.addr, sge.length);
  for (std::uint32_t round = 0; round < found->second.repeat; ++round) {
    for (const nic::Strided& entry : found->second.strided) take(entry.addr + std::uint64_t{round} * entry.stride, entry.bytes);
  }
}

}  // namespace lacuna::handover
