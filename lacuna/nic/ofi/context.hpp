// One process's end of a provider.
#pragma once

#include <mutex>
#include <vector>

#include <poll.h>

#include "lacuna/nic/ofi/attendant.hpp"
#include "lacuna/nic/ofi/completion_queue.hpp"
#include "lacuna/nic/ofi/regions.hpp"
#include "lacuna/nic/ofi/said.hpp"
#include "lacuna/nic/real.hpp"

namespace lacuna::nic::ofi {

class Context final : public RealContext {
 public:
  static Result<std::unique_ptr<nic::Context>> create(std::unique_ptr<Provider> provider, const OpenOptions& options);
  Context(std::unique_ptr<Provider> provider, Limits limits);

  [[nodiscard]] std::string_view nic_name() const override { return name_; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<Buffer> allocate(std::size_t bytes) override;
  Result<Region> register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind) override;
  Result<IndirectKey> create_indirect_key(int entries) override;
  Result<std::unique_ptr<nic::CompletionQueue>> create_completion_queue(int entries) override;
  Result<std::unique_ptr<nic::QueuePair>> connect(Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                  const QueuePairOptions& options) override;
  int poll(nic::CompletionQueue& queue, std::span<Completion> completions) override;
  Result<void> wait(std::int64_t deadline) override;

  // For queues and queue pairs.
  /// What the program calls holds this; other than for a thread that answers peers it locks nothing.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> used() const {
    return attendant_ == nullptr ? std::unique_lock<std::recursive_mutex>() : attendant_->used();
  }
  [[nodiscard]] const Provider& provider() const { return *provider_; }
  [[nodiscard]] Regions& regions() { return regions_; }
  /// What a peer that asks for a key is told, which will use it by way of this end's endpoint.
  [[nodiscard]] Said describe(std::uint32_t key, fid_ep& endpoint);
  void enroll(CompletionQueue& queue);
  void withdraw(CompletionQueue& queue);
  void enroll(QueuePair& pair) { pairs_.push_back(&pair); }
  void withdraw(QueuePair& pair) { std::erase(pairs_, &pair); }
  std::uint32_t next_number() { return ++numbers_; }

  // For the thread that answers peers, which holds its own lock.
  void answer() {
    for (CompletionQueue* queue : queues_) queue->progress();
  }
  /// The files that are readable once there may be something in a queue. False: there may be already.
  bool watch(std::vector<pollfd>& files) const;

 protected:
  void free(std::span<std::byte> bytes) override { unmap_pages(bytes); }
  /// A peer that was told the key is asked to let go of it; for a second, which the log then says.
  void deregister(std::uint32_t lkey) override;
  void destroy_indirect_key(std::uint32_t /*key*/) override {}

 private:
  Result<void> attend();
  void sleep(std::int64_t until);
  void look(std::int64_t time);

  std::unique_ptr<Provider> provider_;
  Limits limits_;
  std::string name_;
  Regions regions_;
  std::vector<CompletionQueue*> queues_;
  std::vector<QueuePair*> pairs_;
  std::uint32_t numbers_ = 0;
  std::int64_t next_look_ = 0;
  std::uint64_t polls_ = 0;
  std::unique_ptr<Attendant> attendant_;  // first of all to go
};

}  // namespace lacuna::nic::ofi
