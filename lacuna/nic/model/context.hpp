// context: a simulated process's end of its NIC. Every call of the seam charges the process's clock.
#pragma once

#include <deque>
#include <map>
#include <tuple>

#include "lacuna/nic/model/device.hpp"
#include "lacuna/nic/model/schedule.hpp"
#include "lacuna/nic/world.hpp"

namespace lacuna::nic::model {

class Connection;
class Context;
class Hub;

class CompletionQueue final : public nic::CompletionQueue {
 public:
  explicit CompletionQueue(int entries) : entries_(static_cast<std::size_t>(entries)) {}
  [[nodiscard]] bool overrun() const override { return overrun_; }
  void push(const std::shared_ptr<Connection>& owner, std::uint64_t sequence, const Completion& completion, Time now);
  bool pop(Completion& completion);
  void attach(const std::shared_ptr<Connection>& connection) { connections_.push_back(connection); }

 private:
  struct Entry {
    std::weak_ptr<Connection> owner;
    std::uint64_t sequence;
    Completion completion;
  };
  std::size_t entries_;
  bool overrun_ = false;
  std::deque<Entry> queue_;
  std::vector<std::weak_ptr<Connection>> connections_;
};

/// What all simulated processes share.
struct Shared {
  Shared(Profile p, const WorldOptions& options)
      : profile(std::move(p)), schedule(options.ranks), moves_bytes(options.moves_bytes), ranks_per_node(options.ranks_per_node) {
    for (int rank = 0; rank < options.ranks; rank += ranks_per_node) nics.emplace_back(profile);
    hubs.resize(static_cast<std::size_t>(options.ranks));
    profile.limits.sharing = std::min(ranks_per_node, options.ranks);
  }
  Profile profile;
  Schedule schedule;
  bool moves_bytes;
  int ranks_per_node;
  std::deque<Device> nics;                                                  ///< one of each node
  std::unordered_map<std::uint64_t, std::weak_ptr<Connection>> connecting;  ///< by what their ends tell one another
  std::uint64_t connections = 0;
  std::vector<Hub*> hubs;  ///< by rank; null: it has none, or none any more
  int hubs_made = 0;
  /// Ends that wait for the other one: whose, with whom, and the line
  std::map<std::tuple<int, int, int>, std::weak_ptr<Connection>> lines;
};

class Context final : public nic::Context {
 public:
  Context(Shared& shared, int rank)
      : shared_(shared),
        rank_(rank),
        device_(shared.nics[static_cast<std::size_t>(rank / shared.ranks_per_node)]),
        memory_(device_.keys()) {}

  [[nodiscard]] std::string_view nic_name() const override { return "model"; }
  [[nodiscard]] const Limits& limits() const override { return profile().limits; }
  Result<Buffer> allocate(std::size_t bytes) override;
  Result<Region> register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind) override;
  Result<IndirectKey> create_indirect_key(int entries) override;
  Result<std::unique_ptr<nic::CompletionQueue>> create_completion_queue(int entries) override;
  Result<std::unique_ptr<nic::QueuePair>> connect(Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                  const QueuePairOptions& options) override;
  Result<std::unique_ptr<nic::Hub>> create_hub(nic::CompletionQueue& queue, const QueuePairOptions& options) override;
  int poll(nic::CompletionQueue& queue, std::span<Completion> completions) override;
  void pack(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out,
            copy::Caching caching) override;
  void unpack(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in,
              copy::Caching caching) override;
  Result<void> transpack(const layout::Layout& src, const std::byte* src_base, const layout::Layout& dst, std::byte* dst_base) override;
  std::uint64_t load_flag(const std::uint64_t* flag) override;
  [[nodiscard]] std::int64_t now() override { return clock() / 1000; }
  Result<void> wait(std::int64_t deadline) override;
  [[nodiscard]] std::int64_t busy_ns() override { return (clock() - schedule().idle(rank_)) / 1000; }

  // For connections.
  [[nodiscard]] const Profile& profile() const { return shared_.profile; }
  [[nodiscard]] Schedule& schedule() const { return shared_.schedule; }
  [[nodiscard]] Shared& shared() const { return shared_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] Device& device() { return device_; }
  [[nodiscard]] Memory& memory() { return memory_; }
  [[nodiscard]] const Memory& memory() const { return memory_; }
  [[nodiscard]] World::Usage& usage() { return usage_; }
  /// Errors: as connect(), of what has to do with this end alone.
  [[nodiscard]] Result<void> check_queues(const QueuePairOptions& options) const;
  [[nodiscard]] std::uint32_t next_number() { return ++numbers_; }
  [[nodiscard]] Time clock() const { return schedule().clock(rank_); }
  void charge(Time time) { schedule().charge(rank_, time); }
  /// Before this process looks or acts. Nothing that another one does reaches it faster than a packet flies; but NICs
  /// that are shared take what is asked for in the order of its times.
  void settle() { schedule().settle(rank_, shared_.ranks_per_node == 1 ? profile().nic.flight : 0); }

 protected:
  void free(std::span<std::byte> bytes) override;
  void deregister(std::uint32_t key) override;
  void destroy_indirect_key(std::uint32_t key) override {
    settle();
    memory_.remove(key);
  }

 private:
  [[nodiscard]] std::int64_t pages(std::size_t bytes) const;

  Shared& shared_;
  int rank_;
  Device& device_;  // of all processes of the node
  Memory memory_;
  std::unordered_map<std::uint32_t, std::size_t> registered_;      // bytes of each region
  std::unordered_map<const std::uint64_t*, std::uint64_t> flags_;  // as they were last seen
  std::uint32_t numbers_ = 0;
  World::Usage usage_;
};

}  // namespace lacuna::nic::model
