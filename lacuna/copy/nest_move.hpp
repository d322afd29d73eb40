// nest_move: a nest and the way that was found for it, made once and used often.
//
//   dense along different loops      ─▶ tiles (crossing.hpp), or a permutation of bytes (shuffles.hpp), if faster
//   short elements along one loop    ─▶ a permutation of bytes, if that is faster than rows
//   else                             ─▶ rows of blocks (kernels.hpp)
#pragma once

#include <optional>
#include <string>

#include "lacuna/copy/nest.hpp"
#include "lacuna/copy/shuffles.hpp"

namespace lacuna::copy {

/// Bytes of an element: longer ones are as fast one by one as by permutations of bytes.
inline constexpr std::int64_t kLongestShuffled = 8;

class NestMove {
 public:
  /// Throws std::bad_alloc.
  explicit NestMove(const Nest& nest);

  /// `stream`: the destination is in no cache. Stores that passed the caches by are done when this returns.
  void move(const std::byte* from, std::byte* to, bool stream) const;

  [[nodiscard]] const Nest& nest() const { return nest_; }
  [[nodiscard]] bool is_permuted() const { return shuffles_.has_value(); }
  /// Which loops are tiled and how, or which permutation there is.
  [[nodiscard]] std::string describe() const;

 private:
  Nest nest_;
  std::optional<Shuffles> shuffles_;
};

}  // namespace lacuna::copy
