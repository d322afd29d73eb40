// A sealed memory file, mapped. It has no name, so nothing is left behind however its processes end; it is sealed
// against shrinking and growing, so a peer that holds it cannot make our accesses fault.
#pragma once

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic::local {

class SharedMemory {
 public:
  enum class Access { read, write };

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  /// A new file of `bytes` zeros (sparse: pages cost memory once touched), mapped for writing.
  static Result<SharedMemory> create(const char* name, std::size_t bytes);
  /// A peer's file. Errors: malformed if it is not sealed or not of `bytes`.
  static Result<SharedMemory> map(base::Fd file, std::size_t bytes, Access access);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Result<base::Fd> share() const;             ///< a duplicate of the file, to be sent to a peer
  [[nodiscard]] Result<std::uint64_t> identity() const;     ///< the inode: equal for all mappings of one file
  [[nodiscard]] int number() const { return file_.get(); }  ///< of the file, in this process
  void close_file() { file_ = base::Fd(); }                 ///< what is mapped stays
  void discard(std::byte* from, std::size_t bytes);         ///< gives whole pages back; they read as zeros again

 private:
  void swap(SharedMemory& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  base::Fd file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace lacuna::nic::local
