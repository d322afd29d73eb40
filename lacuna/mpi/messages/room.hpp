// A vector whose memory is kept from call to call, in each thread. Else each call of thousands of requests would get
// its memory from the system, page by page.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace lacuna::mpi {

/// kWhich tells rooms of one type from another that a call has at once.
template <class T, int kWhich = 0>
class Room {
 public:
  Room() : all_(std::exchange(kept(), {})) {}  // an error handler may be here again meanwhile
  ~Room() {
    all_.clear();
    if (all_.capacity() * sizeof(T) <= kMostKept) kept() = std::move(all_);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  std::vector<T>& operator*() { return all_; }
  const std::vector<T>& operator*() const { return all_; }
  std::vector<T>* operator->() { return &all_; }
  const std::vector<T>* operator->() const { return &all_; }

 private:
  static constexpr std::size_t kMostKept = 4 << 20;  // bytes
  static std::vector<T>& kept() {
    static thread_local std::vector<T> room;
    return room;
  }
  std::vector<T> all_;
};

}  // namespace lacuna::mpi
