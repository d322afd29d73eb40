// unlucky: a NIC of the model's to which things happen (luck.hpp). A Context between the library and the model's:
//
//   protocol ──▶ Unlucky ──▶ model
//                 │ completions come later, those of a connection in their order
//                 │ calls take longer; registrations and posts are refused; the process has no CPU; its clock jumps
//                 └ the process dies: its connections end, and whatever it still calls says so
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "lacuna/nic/nic.hpp"
#include "tests/simulate/luck.hpp"

namespace lacuna::simulate {

/// What happened, over all ranks.
struct Happened {
  std::int64_t late = 0, slow = 0, stalls = 0, unready = 0, jumps = 0, no_keys = 0, slow_keys = 0, no_posts = 0, lies = 0, deaths = 0;
  [[nodiscard]] std::int64_t faults() const {
    return late + slow + stalls + unready + jumps + no_keys + slow_keys + no_posts + lies + deaths;
  }
  void add(const Happened& other);
};

class Unlucky final : public nic::Context {
 public:
  /// What it names outlives it.
  Unlucky(nic::Context& inside, const Luck& luck, std::uint64_t seed, int rank, Fate& fate);
  ~Unlucky() override;
  Unlucky(const Unlucky&) = delete;
  Unlucky& operator=(const Unlucky&) = delete;

  [[nodiscard]] bool dead() const { return dead_; }
  [[nodiscard]] bool hung() const { return hung_; }
  [[nodiscard]] const Happened& happened() const { return happened_; }
  /// Something is refused, and the process may die, only once all processes are here,
  void begin() { ++fate_.begun; }
  /// to here; later nothing happens at all.
  void end() { luck_ = {}; }

  [[nodiscard]] std::string_view nic_name() const override { return inside_.nic_name(); }
  [[nodiscard]] const nic::Limits& limits() const override { return inside_.limits(); }
  nic::Result<nic::Buffer> allocate(std::size_t bytes) override;
  nic::Result<nic::Region> register_memory(std::span<std::byte> bytes, nic::Rights rights, nic::MemoryKind kind) override;
  nic::Result<nic::IndirectKey> create_indirect_key(int entries) override;
  nic::Result<nic::MemoryWindow> create_window() override { return inside_.create_window(); }
  nic::Result<std::unique_ptr<nic::CompletionQueue>> create_completion_queue(int entries) override;
  nic::Result<std::unique_ptr<nic::QueuePair>> connect(nic::Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                       const nic::QueuePairOptions& options) override;
  nic::Result<std::unique_ptr<nic::Hub>> create_hub(nic::CompletionQueue& queue, const nic::QueuePairOptions& options) override;
  int poll(nic::CompletionQueue& queue, std::span<nic::Completion> completions) override;
  void pack(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out,
            copy::Caching caching) override {
    inside_.pack(layout, base, position, length, out, caching);
  }
  void unpack(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in,
              copy::Caching caching) override {
    inside_.unpack(layout, base, position, length, in, caching);
  }
  nic::Result<void> transpack(const layout::Layout& src, const std::byte* src_base, const layout::Layout& dst,
                              std::byte* dst_base) override {
    return inside_.transpack(src, src_base, dst, dst_base);
  }
  std::uint64_t load_flag(const std::uint64_t* flag) override { return inside_.load_flag(flag); }
  [[nodiscard]] std::int64_t now() override;
  nic::Result<void> wait(std::int64_t deadline) override;
  [[nodiscard]] std::int64_t busy_ns() override { return inside_.busy_ns(); }
  /// Nanoseconds of virtual time, which never jump.
  [[nodiscard]] std::int64_t time() { return inside_.now(); }
  /// The process dies now, if it has not before.
  void kill() {
    if (!dead_) die();
  }
  /// So long this process makes no call.
  void work(std::int64_t ns);
  /// Whether nonsense is to follow now.
  bool wants_to_lie() { return !dead_ && fate_.all_begun() && happens(luck_.lies, 1000); }
  /// It follows.
  void lies();

 protected:  // all that could be freed is the inside's
  void free(std::span<std::byte> /*bytes*/) override {}
  void deregister(std::uint32_t /*lkey*/) override {}
  void destroy_indirect_key(std::uint32_t /*key*/) override {}

 private:
  inline static const base::Error kDead{base::Code::peer_lost, "this process died"};
  class Queue;
  class Pair;
  class Hub;
  /// A call of the NIC. False: the process is dead.
  bool call();
  bool happens(int of, int among) { return of > 0 && random_.below(among) < of; }
  void die();
  /// A send was posted.
  void sent();
  nic::Result<void> gone() const;
  /// A post of this process: an error, if that is refused.
  nic::Result<void> may_post();
  /// It takes longer, and is refused perhaps.
  nic::Result<void> may_register(std::string_view what);
  nic::Result<void> refuse(base::Code code, std::string_view what);
  void unready();
  nic::Context& inside_;
  Luck luck_;
  support::Random random_;
  int rank_;
  Fate& fate_;
  Happened happened_;
  std::int64_t calls_ = 0, jumped_ns_ = 0;
  bool missed_ = false;  // what came while this process had no CPU
  bool dead_ = false, hung_ = false;
  // In the order in which they were made, which their addresses do not have
  std::vector<Pair*> pairs_;
  std::vector<Hub*> hubs_;
  std::vector<Queue*> queues_;
};

}  // namespace lacuna::simulate
