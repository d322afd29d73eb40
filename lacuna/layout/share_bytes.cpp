// Do two strided arrays have a byte in common? They do if a sum of multiples of their strides comes near enough to the
// distance between them. A search over the multiples, the largest stride first, ends early where the rest of the sum is
// out of reach, or no multiple of the smaller strides' common divisor.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "lacuna/layout/canonical.hpp"

namespace lacuna::layout {
namespace {

constexpr std::int64_t kMostSteps = 1 << 20;  // of the search: a few ms

// 0, stride, ... last times stride.
struct Multiples {
  std::int64_t stride;
  std::int64_t last;
};

// Whether a sum of one of each multiples lies in [low, high].
class Search {
 public:
  Search(std::vector<Multiples> all, std::int64_t low, std::int64_t high) : all_(std::move(all)), low_(low), high_(high) {}

  Result<bool> found() {
    absorb();
    reach_.assign(all_.size() + 1, 0);
    divisor_.assign(all_.size() + 1, 0);
    for (std::size_t k = 0; k < all_.size(); ++k) {
      reach_[k + 1] = reach_[k] + all_[k].stride * all_[k].last;
      divisor_[k + 1] = std::gcd(divisor_[k], all_[k].stride);
    }
    const bool answer = search(all_.size(), low_, high_);
    if (answer || steps_ <= kMostSteps) return answer;
    return base::fail(base::Code::limit,
                      fmt::format("cannot tell whether the two views share a byte: their {} strides have no order that decides it within "
                                  "{} steps; copy through a third array that lies elsewhere",
                                  all_.size(), kMostSteps));
  }

 private:
  // Multiples that are no farther apart than the interval is wide leave no hole: the interval gets wider instead. Equal
  // strides become one.
  void absorb() {
    std::ranges::sort(all_, {}, &Multiples::stride);
    std::vector<Multiples> left;
    for (const Multiples& one : all_) {
      if (left.empty() && one.stride <= high_ - low_ + 1) {
        low_ -= one.stride * one.last;
      } else if (!left.empty() && left.back().stride == one.stride) {
        left.back().last += one.last;
      } else {
        left.push_back(one);
      }
    }
    all_ = std::move(left);
  }

  // Of the first `k`, which are the smaller ones.
  bool search(std::size_t k, std::int64_t low, std::int64_t high) {
    low = std::max<std::int64_t>(low, 0);
    high = std::min(high, reach_[k]);
    if (low > high) return false;
    if (k == 0) return true;  // 0 is within
    if (high / divisor_[k] * divisor_[k] < low) return false;
    if (k == 1) return true;
    const auto [stride, last] = all_[k - 1];
    const std::int64_t first = low <= reach_[k - 1] ? 0 : (low - reach_[k - 1] + stride - 1) / stride;
    const std::int64_t end = std::min(last, high / stride);
    for (std::int64_t n = first; n <= end; ++n) {
      if (++steps_ > kMostSteps) return false;
      if (search(k - 1, low - n * stride, high - n * stride)) return true;
    }
    return false;
  }

  std::vector<Multiples> all_;  // the smallest stride first
  std::int64_t low_;
  std::int64_t high_;
  std::vector<std::int64_t> reach_;    // of the first k: their largest sum
  std::vector<std::int64_t> divisor_;  // their strides' greatest common divisor
  std::int64_t steps_ = 0;
};

// Adds an array's strides as multiples that only count up. How far its element at the lowest address is from the first
// one; or, of an array that is subtracted, how far the one at the highest address is. Errors: overflow.
Result<std::int64_t> add_strides(const StridedArray& array, bool subtracted, std::vector<Multiples>& all) {
  std::int64_t turned = 0;
  std::int64_t total = array.item_bytes;
  if (total > kMaxBytes) return base::fail(base::Code::overflow, fmt::format("an element of {} bytes, more than 2^60", total));
  for (std::size_t d = 0; d < array.shape.size(); ++d) {
    const std::int64_t stride = array.strides[d];
    const std::int64_t last = array.shape[d] - 1;
    std::int64_t reach = 0;
    if (!base::mul(stride, last, reach) || reach > kMaxBytes || reach < -kMaxBytes || std::abs(reach) > kMaxBytes - total) {
      return base::fail(base::Code::overflow,
                        fmt::format("dimension {}: {} elements of {} bytes, {} bytes apart: the array spans more than 2^60 bytes", d,
                                    array.shape[d], array.item_bytes, stride));
    }
    if (reach == 0) continue;
    total += std::abs(reach);
    all.push_back({std::abs(stride), last});
    if ((stride < 0) != subtracted) turned += reach;
  }
  return turned;
}

}  // namespace

Result<bool> share_bytes(const StridedArray& a, const StridedArray& b, std::int64_t distance) {
  for (const StridedArray* array : {&a, &b}) {
    if (array->shape.size() != array->strides.size()) {
      return base::fail(base::Code::invalid_argument,
                        fmt::format("a shape of {} dimensions, but {} strides", array->shape.size(), array->strides.size()));
    }
    if (array->item_bytes <= 0 || std::ranges::any_of(array->shape, [](std::int64_t n) { return n <= 0; })) return false;
  }
  if (distance > 2 * kMaxBytes || distance < -2 * kMaxBytes) return false;
  std::vector<Multiples> all;
  const std::int64_t turned_a = LACUNA_TRY(add_strides(a, false, all));
  const std::int64_t turned_b = LACUNA_TRY(add_strides(b, true, all));
  // An element of `a` begins at turned_a + multiples, one of `b` at distance + turned_b - multiples.
  const std::int64_t apart = distance + turned_b - turned_a;
  return Search(std::move(all), apart - a.item_bytes + 1, apart + b.item_bytes - 1).found();
}

}  // namespace lacuna::layout
