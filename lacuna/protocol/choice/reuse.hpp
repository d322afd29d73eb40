// reuse: when memory that is used again is worth registering. For one message it seldom is: copying its bytes takes
// less than telling the NIC of their memory. The tenth message from the same memory would have been sooner had the
// first one registered it, but at the first message the tenth is not known. So each message that is copied notes what
// it would have saved in registered memory, and once that comes to what registering costs, the next one registers.
// However often the memory is used, that costs, by what is expected of the messages, at most twice what would have been
// best: so does renting skis until the rent comes to their price (Karlin and others, "Competitive Snoopy Caching",
// Algorithmica 3, 1988).
//
// Where the memory is found unregistered afterwards (the sender's is another one each time, or was freed), registering
// was in vain, and the price doubles. Nothing is timed here, so this is no trial (lacuna/guide/trial.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "lacuna/layout/layout.hpp"

namespace lacuna::protocol {

class Reuse {
 public:
  class Account {
   public:
    Account() = default;
    Account(std::uintptr_t base, const layout::Digest& src, const layout::Digest& dst) : base_(base), src_(src), dst_(dst) {}
    /// What messages since the last registration would have saved in registered memory, as far as it counts.
    [[nodiscard]] double saved_ns() const { return ns_ / static_cast<double>(1U << in_vain_); }
    /// One more, which would have saved so much.
    void copied(double saves_ns) { ns_ += saves_ns; }
    /// The memory of both ends is registered for this one, and stays so.
    void registers() {
      ns_ = 0;
      in_vain_ = std::min(in_vain_ + 1, kMostInVain);
    }
    /// It was found so.
    void found() { in_vain_ = 0; }

   private:
    friend class Reuse;
    static constexpr std::uint32_t kMostInVain = 16;
    std::uintptr_t base_ = 0;
    layout::Digest src_, dst_;
    double ns_ = 0;
    std::uint32_t in_vain_ = 0;
  };

  /// Of messages of these layouts into memory at `base`. Holds until the next call: what was not asked for the longest
  /// may be forgotten then.
  Account& of(const void* base, const layout::Digest& src, const layout::Digest& dst) {
    const auto at = reinterpret_cast<std::uintptr_t>(base);
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: neighbours go to other sets
    Set& set = sets_[((at ^ src.low ^ std::rotl(dst.low, 32)) * golden) >> (64 - kSetBits)];
    for (std::size_t i = 0; i < set.size(); ++i) {
      const bool found = set[i].base_ == at && set[i].src_ == src && set[i].dst_ == dst;
      if (!found && i + 1 < set.size()) continue;
      std::rotate(set.begin(), set.begin() + static_cast<std::ptrdiff_t>(i), set.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      if (!found) set.front() = Account(at, src, dst);
      break;
    }
    return set.front();
  }

 private:
  static constexpr int kSetBits = 7;
  using Set = std::array<Account, 4>;  // those asked for last come first
  std::array<Set, 1U << kSetBits> sets_;
};

}  // namespace lacuna::protocol
