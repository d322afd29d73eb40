// ground: memory whose pages go back to the system as soon as a piece of it is given back, so that a late access ends
// the process, and whose addresses are soon used again, by the same story the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace lacuna::simulate {

class Ground {
 public:
  Ground();
  ~Ground();
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;
  /// Zeros. Empty: there is no room.
  [[nodiscard]] std::span<std::byte> take(std::size_t bytes);
  void give_back(std::span<std::byte> bytes);
  /// How often that was.
  [[nodiscard]] std::int64_t given_back() const { return given_back_; }

 private:
  std::byte* begin_ = nullptr;
  std::map<std::size_t, std::size_t> free_;  // offset, and pages' bytes
  std::int64_t given_back_ = 0;
};

}  // namespace lacuna::simulate
