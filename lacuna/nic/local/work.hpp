// Copied work requests, in a ring: a request is built in its place and never moves.
#pragma once

#include <array>
#include <memory>

#include "lacuna/nic/local/inbox.hpp"
#include "lacuna/nic/local/keys.hpp"

namespace lacuna::nic::local {

inline constexpr int kMaxInline = 256;

struct Work {
  std::uint64_t wr_id = 0;
  Opcode opcode = Opcode::send;
  bool signaled = true;
  bool fence = false;
  bool inlined = false;
  std::uint32_t sges = 0;
  std::uint32_t rkey = 0;
  std::uint32_t imm_data = 0;
  std::uint64_t remote_addr = 0;
  std::uint64_t total = 0;     // bytes of the sg_list
  std::uint64_t sequence = 0;  // its number among the requests of its queue, from 1 on
  std::uint64_t moved = 0;     // of total
  std::uint64_t end = 0;       // slots: how many were filled once its last was
  std::unique_ptr<PreparedBinding> binding;
  std::array<Sge, kMaxSge> sg_list;
  std::array<std::byte, kMaxInline> inline_bytes;

  [[nodiscard]] std::span<const Sge> list() const { return {sg_list.data(), sges}; }
  [[nodiscard]] bool on_keys() const { return opcode == Opcode::bind || opcode == Opcode::invalidate; }
  [[nodiscard]] bool takes_receive() const { return opcode == Opcode::send || opcode == Opcode::write_imm; }
  /// Appends the checked memory behind bytes [from, from + bytes) of this end's list, as resolve() does.
  std::optional<std::uint64_t> local(const Keys& keys, std::uint64_t from, std::uint64_t bytes, std::uint32_t rights, std::size_t most,
                                     std::vector<Extent>& extents) const {
    if (!inlined) return resolve(keys, list(), from, bytes, rights, most, extents);
    if (bytes > 0) extents.push_back({reinterpret_cast<std::uint64_t>(inline_bytes.data()) + from, bytes, kNotShared});
    return bytes;
  }
};

class WorkQueue {
 public:
  explicit WorkQueue(int capacity) : ring_(static_cast<std::size_t>(capacity)) {}
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] Work& operator[](std::size_t i) { return ring_[(first_ + i) % ring_.size()]; }
  [[nodiscard]] Work& front() { return ring_[first_]; }
  /// The next place, at the back; it holds what was there before.
  Work& push() {
    if (size_ == 0) first_ = 0;  // a queue that runs empty stays in the same, warm places
    return (*this)[size_++];
  }
  void pop() {
    first_ = (first_ + 1) % ring_.size();
    --size_;
  }

 private:
  std::vector<Work> ring_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace lacuna::nic::local
