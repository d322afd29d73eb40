// One process's end of the local NIC.
#pragma once

#include <deque>
#include <map>

#include "lacuna/nic/local/arena.hpp"
#include "lacuna/nic/local/keys.hpp"

namespace lacuna::nic::local {

class QueuePair;

// What a process has mapped of a peer: once, however many queue pairs lead there.
struct PeerMemory {
  std::int64_t process = 0;
  base::Fd pidfd;  // readable once the peer is dead
  SharedMemory arena;
  SharedMemory keys;
};

class CompletionQueue final : public nic::CompletionQueue {
 public:
  explicit CompletionQueue(int entries) : entries_(entries) {}
  void push(const Completion& completion) { queue_.push_back(completion); }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  Completion pop() {
    const Completion first = queue_.front();
    queue_.pop_front();
    return first;
  }
  // A queue pair attaches with the number of requests that it may have outstanding. There is room for all, so the queue cannot overrun.
  /// Errors: limit.
  [[nodiscard]] Result<void> check_room(int requests) const;
  void attach(QueuePair& qp, int requests);
  void detach(QueuePair& qp, int requests);
  [[nodiscard]] std::span<QueuePair* const> queue_pairs() const { return queue_pairs_; }

 private:
  int entries_;
  int promised_ = 0;
  std::deque<Completion> queue_;
  std::vector<QueuePair*> queue_pairs_;
};

class Context final : public nic::Context {
 public:
  static Result<std::unique_ptr<nic::Context>> create(const OpenOptions& options);
  Context(Arena arena, KeyTable keys, Limits limits);

  [[nodiscard]] std::string_view nic_name() const override { return "local"; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<Buffer> allocate(std::size_t bytes) override;
  Result<Region> register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind) override;
  Result<std::unique_ptr<nic::CompletionQueue>> create_completion_queue(int entries) override;
  Result<std::unique_ptr<nic::QueuePair>> connect(Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                  const QueuePairOptions& options) override;
  int poll(nic::CompletionQueue& queue, std::span<Completion> completions) override;
  void pack(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out) override;
  void unpack(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in) override;
  Result<void> transpack(const layout::Layout& src, const std::byte* src_base, const layout::Layout& dst, std::byte* dst_base) override;
  std::uint64_t load_flag(const std::uint64_t* flag) override { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
  [[nodiscard]] std::int64_t now() override { return base::now_ns(); }
  Result<void> wait(std::int64_t deadline) override;
  [[nodiscard]] std::int64_t busy_ns() override;

  // For queue pairs.
  [[nodiscard]] const SharedMemory& keys() const { return keys_.memory(); }
  void enroll(QueuePair& qp) { queue_pairs_.push_back(&qp); }
  void withdraw(QueuePair& qp) { std::erase(queue_pairs_, &qp); }
  std::uint32_t next_number() { return ++numbers_; }
  /// This CPU does something for communication from now on.
  void busy() {
    if (idle_since_ != 0) end_idle();
  }

 protected:
  void free(std::span<std::byte> bytes) override { arena_.free(bytes); }
  void deregister(std::uint32_t key) override;

 private:
  void end_idle();
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

  std::int64_t created_;
  std::int64_t idle_since_ = 0;
  std::int64_t idle_total_ = 0;
  std::int64_t next_look_ = 0;
  std::uint64_t waits_ = 0;  // in a row
  std::uint64_t polls_ = 0;
};

}  // namespace lacuna::nic::local
