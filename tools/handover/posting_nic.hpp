// A NIC that takes requests and moves nothing unless it is told to: what planning and posting cost the CPU, apart from
// any transfer. On a device that moves bytes itself the CPU is free once it has written its requests; on one machine,
// where a CPU does the device's work, the two cannot be told apart by a clock. Here a post writes a request into a
// queue as a driver would (a header of 32 bytes and 16 for each entry of its list, as mlx5 has them; a binding's
// entries too), a poll completes all that were posted.
//
// That the requests are the right ones shows when `moves` is set: then a poll carries them out, byte by byte as they
// were written into the queue, in the memory of this process. Both ends are of one context and one thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "lacuna/nic/nic.hpp"

namespace lacuna::handover {

/// CPU time of this thread: what others do on the machine meanwhile is not in it, but for the caches that they share.
[[nodiscard]] std::int64_t cpu_ns();

class PostingNic final : public nic::Context {
 public:
  /// Of limits like a ConnectX's (docs/design/model.md), unless others are given.
  PostingNic();
  explicit PostingNic(nic::Limits limits) : limits_(std::move(limits)) {}
  bool moves = false;

  [[nodiscard]] std::string_view nic_name() const override { return "posting"; }
  [[nodiscard]] const nic::Limits& limits() const override { return limits_; }
  nic::Result<nic::Buffer> allocate(std::size_t bytes) override;
  nic::Result<nic::Region> register_memory(std::span<std::byte> bytes, nic::Rights rights, nic::MemoryKind kind) override;
  nic::Result<nic::IndirectKey> create_indirect_key(int entries) override;
  nic::Result<std::unique_ptr<nic::CompletionQueue>> create_completion_queue(int entries) override;
  /// The peer is nobody: requests name memory of this process. `bootstrap` is not used.
  nic::Result<std::unique_ptr<nic::QueuePair>> connect(nic::Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                       const nic::QueuePairOptions& options) override;
  int poll(nic::CompletionQueue& queue, std::span<nic::Completion> completions) override;
  void pack(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out,
            copy::Caching caching) override {
    copy::pack(layout, base, position, length, out, caching);
  }
  void unpack(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in,
              copy::Caching caching) override {
    copy::unpack(layout, base, position, length, in, caching);
  }
  nic::Result<void> transpack(const layout::Layout& src, const std::byte* src_base, const layout::Layout& dst,
                              std::byte* dst_base) override {
    return copy::transpack(src, src_base, dst, dst_base);
  }
  std::uint64_t load_flag(const std::uint64_t* flag) override { return *flag; }
  [[nodiscard]] std::int64_t now() override { return cpu_ns(); }
  nic::Result<void> wait(std::int64_t deadline) override;
  [[nodiscard]] std::int64_t busy_ns() override { return 0; }

  /// Bytes that all queues, completions and bindings held at most: the device's own memory, not the library's.
  [[nodiscard]] std::int64_t most_bytes() const { return most_bytes_; }

 protected:
  void free(std::span<std::byte> bytes) override;
  void deregister(std::uint32_t) override {}
  void destroy_indirect_key(std::uint32_t key) override { bindings_.erase(key); }

 private:
  friend class PostingQueue;
  struct Binding {
    std::vector<nic::Sge> list;
    std::vector<nic::Strided> strided;
    std::uint32_t repeat = 0;
  };
  /// Memory behind `bytes` of a key from `addr` on, piece by piece.
  void each_piece(std::uint32_t key, std::uint64_t addr, std::uint64_t bytes, std::vector<std::span<std::byte>>& pieces) const;

  nic::Limits limits_;
  std::uint32_t keys_ = 0;
  std::map<std::uint32_t, Binding> bindings_;
  std::int64_t most_bytes_ = 0;
};

/// A Bootstrap for it: nobody is at the other end.
class Nobody final : public nic::Bootstrap {
 public:
  nic::Result<nic::Hello> exchange(const nic::Hello&, std::int64_t) override { return nic::Hello(); }
};

}  // namespace lacuna::handover
