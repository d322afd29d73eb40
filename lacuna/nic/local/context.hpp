// One process's end of the local NIC.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <new>

#include "lacuna/nic/local/arena.hpp"
#include "lacuna/nic/local/keys.hpp"
#include "lacuna/nic/real.hpp"

namespace lacuna::nic::local {

class QueuePair;

// What a process has mapped of a peer: once, however many queue pairs lead there.
struct PeerMemory {
  std::int64_t process = 0;
  base::Fd pidfd;  // readable once the peer is dead
  SharedMemory arena;
  SharedMemory key_table;
  SharedMemory translations;

  [[nodiscard]] Keys keys() const { return {key_table, translations}; }
};

// Both ends' shares of a connection.
struct Wiring {
  SharedMemory mine;    // our inbox
  SharedMemory theirs;  // the peer's inbox
  std::shared_ptr<PeerMemory> peer;
};

// What a peer may still reach, though the queue pair that led it there is gone.
struct Kept {
  std::vector<SharedBuffer> memory;
  Wiring wiring;
};

// Memory that a peer may still reach, and that there is no memory to keep: it stays as long as the process does.
inline void stay_for_good(const SharedBuffer& memory) {
  alignas(SharedBuffer) std::array<std::byte, sizeof(SharedBuffer)> place;
  new (place.data()) SharedBuffer(memory);
}

class CompletionQueue final : public nic::CompletionQueue {
 public:
  explicit CompletionQueue(int entries) : entries_(static_cast<std::size_t>(entries)) {}
  ~CompletionQueue() override = default;
  [[nodiscard]] bool overrun() const override { return overrun_; }
  /// `sequence`: of the request within its queue; its place there is free once the completion was polled.
  void push(QueuePair& qp, std::uint64_t sequence, const Completion& completion);
  bool pop(Completion& completion);
  void attach(QueuePair& qp) { queue_pairs_.push_back(&qp); }
  void detach(QueuePair& qp);
  [[nodiscard]] std::span<QueuePair* const> queue_pairs() const { return queue_pairs_; }

 private:
  struct Entry {
    QueuePair* qp;  // null once it is gone
    std::uint64_t sequence;
    Completion completion;
  };
  std::size_t entries_;
  bool overrun_ = false;
  std::deque<Entry> queue_;
  std::vector<QueuePair*> queue_pairs_;
};

class Context final : public RealContext {
 public:
  static Result<std::unique_ptr<nic::Context>> create(const OpenOptions& options);
  Context(Arena arena, KeyTable keys, Limits limits);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() override;

  [[nodiscard]] std::string_view nic_name() const override { return "local"; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<Buffer> allocate(std::size_t bytes) override;
  Result<Region> register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind) override;
  Result<IndirectKey> create_indirect_key(int entries) override;
  Result<std::unique_ptr<nic::CompletionQueue>> create_completion_queue(int entries) override;
  Result<std::unique_ptr<nic::QueuePair>> connect(Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                  const QueuePairOptions& options) override;
  [[nodiscard]] Result<Card> card() const override;
  Result<std::unique_ptr<nic::QueuePair>> attach(const Card& card) override;
  int poll(nic::CompletionQueue& queue, std::span<Completion> completions) override;
  Result<void> wait(std::int64_t deadline) override;

  // For queue pairs.
  [[nodiscard]] Keys keys() const { return keys_.view(); }
  [[nodiscard]] int indirect_entries(std::uint32_t key) const { return keys_.indirect_entries(key); }
  /// Errors, as statuses: mw_bind_err.
  Status bind(const PreparedBinding& binding);
  Status invalidate(std::uint32_t key);
  /// Before enroll(), which then wants no memory; nor does keep(), of each queue pair that is enrolled.
  void make_room() {
    queue_pairs_.reserve(queue_pairs_.size() + 1);
    kept_.reserve(kept_.size() + queue_pairs_.size() + 1);
  }
  void enroll(QueuePair& qp) { queue_pairs_.push_back(&qp); }
  void withdraw(QueuePair& qp) { std::erase(queue_pairs_, &qp); }
  std::uint32_t next_number() { return ++numbers_; }
  /// What a peer may reach as long as this process lives.
  void keep_to_the_end(const SharedBuffer& memory) try { for_good_.push_back(memory); } catch (const std::bad_alloc&) {
    stay_for_good(memory);
  }
  void keep(Kept kept) { kept_.push_back(std::move(kept)); }

 protected:
  // At the end the pages stay: a peer that has mapped them would read zeros. They go with the last mapping.
  void free(std::span<std::byte> bytes) override {
    if (!ending_) arena_.free(bytes);
  }
  void deregister(std::uint32_t key) override {
    if (!ending_) take_away(key);
  }
  bool revoke(std::uint32_t key, std::int64_t wait_ns) override;
  void destroy_indirect_key(std::uint32_t key) override { take_away(key); }

 private:
  void take_away(std::uint32_t key);
  void look_for_dead_peers(std::int64_t time);
  Result<Hello> introduction(Path path, const SharedMemory& inbox) const;
  Result<std::shared_ptr<PeerMemory>> meet(Hello& hello, std::uint64_t arena_bytes);

  Arena arena_;
  KeyTable keys_;
  Limits limits_;
  std::vector<QueuePair*> queue_pairs_;
  std::map<std::uint64_t, std::weak_ptr<PeerMemory>> peers_;  // by the identity of their arena
  std::uint32_t numbers_ = 0;
  std::uint64_t cookie_;  // what a peer reads through the kernel to prove that it can

  std::int64_t next_look_ = 0;
  std::uint64_t polls_ = 0;

  std::vector<Kept> kept_;
  std::vector<SharedBuffer> for_good_;
  base::Fd spare_;  // for attach()
  bool ending_ = false;
};

}  // namespace lacuna::nic::local
