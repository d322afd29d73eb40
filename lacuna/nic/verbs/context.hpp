// One process's end of an RDMA device.
#pragma once

#include <deque>
#include <unordered_map>

#include "lacuna/nic/real.hpp"
#include "lacuna/nic/verbs/device.hpp"

namespace lacuna::nic::verbs {

class QueuePair;
class Context;

class CompletionQueue final : public nic::CompletionQueue {
 public:
  static constexpr int kReserve = 64;  // completions of our own that a queue has room for besides
  CompletionQueue(Context& context, Owned<ibv_cq> queue);
  ~CompletionQueue() override;
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  [[nodiscard]] bool overrun() const override { return overrun_; }
  [[nodiscard]] ibv_cq* get() const { return queue_.get(); }
  void lost() { overrun_ = true; }
  /// Room for the completion of a request of our own; false: not now.
  bool reserve() {
    if (reserved_ == kReserve) return false;
    ++reserved_;
    return true;
  }
  void release() { --reserved_; }
  /// Completions that were taken out of the device's queue and wait for whoever polls.
  std::deque<Completion>& ready() { return ready_; }

 private:
  Context& context_;
  Owned<ibv_cq> queue_;
  std::deque<Completion> ready_;
  int reserved_ = 0;
  bool overrun_ = false;
};

class Context final : public RealContext {
 public:
  static Result<std::unique_ptr<nic::Context>> create(std::unique_ptr<Device> device, const OpenOptions& options);
  Context(std::unique_ptr<Device> device, Owned<ibv_comp_channel> events, Limits limits);
  ~Context() override;

  [[nodiscard]] std::string_view nic_name() const override { return name_; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<Buffer> allocate(std::size_t bytes) override;
  Result<Region> register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind) override;
  Result<IndirectKey> create_indirect_key(int entries) override;
  Result<MemoryWindow> create_window() override;
  Result<std::unique_ptr<nic::CompletionQueue>> create_completion_queue(int entries) override;
  Result<std::unique_ptr<nic::QueuePair>> connect(Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                  const QueuePairOptions& options) override;
  int poll(nic::CompletionQueue& queue, std::span<Completion> completions) override;
  Result<void> wait(std::int64_t deadline) override;

  // For queues and queue pairs.
  [[nodiscard]] const Device& device() const { return *device_; }
  void enroll(CompletionQueue& queue) { queues_.push_back(&queue); }
  void withdraw(CompletionQueue& queue) { std::erase(queues_, &queue); }
  void enroll(QueuePair& pair);
  void withdraw(QueuePair& pair);
  [[nodiscard]] Keys* keys() { return keys_ ? &*keys_ : nullptr; }
  /// Whether it is the next key of a window.
  [[nodiscard]] bool window(std::uint32_t key) const { return windows_.contains(key >> kVariantBits); }
  [[nodiscard]] static bool same_window(std::uint32_t one, std::uint32_t other) { return one >> kVariantBits == other >> kVariantBits; }
  /// What a device would not see, or take for something else. Errors: invalid_argument.
  [[nodiscard]] Result<void> check_window(const Binding& binding) const;
  /// Fills in what a bind request says; the binding was checked.
  void describe_window(const Binding& binding, ibv_send_wr& request);
  /// The bind request is posted: the next one begins from its key.
  void bound_window(const Binding& binding) { windows_.find(binding.key >> kVariantBits)->second->rkey = binding.key; }

 protected:
  void free(std::span<std::byte> bytes) override { unmap_pages(bytes); }
  void deregister(std::uint32_t lkey) override { regions_.erase(lkey); }
  void destroy_indirect_key(std::uint32_t key) override;
  std::uint32_t next_window_key(std::uint32_t key) override { return ibv_inc_rkey(key); }
  void destroy_window(std::uint32_t key) override { windows_.erase(key >> kVariantBits); }

 private:
  static constexpr int kVariantBits = 8;  // of a key, that its owner may choose (ibv_inc_rkey(3))
  void sleep(std::int64_t until);
  void reap(CompletionQueue& queue);
  void take_events();
  void look(std::int64_t time);

  std::unique_ptr<Device> device_;
  Owned<ibv_comp_channel> events_;
  Limits limits_;
  std::string name_;
  std::unordered_map<std::uint32_t, Owned<ibv_mr>> regions_;  // by lkey
  std::unordered_map<std::uint32_t, Owned<ibv_mw>> windows_;  // by key without its variant
  std::optional<Keys> keys_;
  std::vector<CompletionQueue*> queues_;
  std::unordered_map<std::uint32_t, QueuePair*> pairs_;  // by number
  bool armed_ = false;                                   // completions from now on are told
  std::int64_t next_look_ = 0;
  std::uint64_t polls_ = 0;
};

}  // namespace lacuna::nic::verbs
