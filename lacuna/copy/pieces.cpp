// Pieces: lists of places that no layout describes, as a NIC's checked keys are, given to the kernels of lists.
#include <utility>

#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/kernels.hpp"

namespace lacuna::copy {

void Pieces::move() {
  const std::size_t count = std::exchange(count_, 0);
  if (count == 0) return;
  const std::int64_t first = starts_[1];
  if (count == 1) {
    copy_block(to_, from_, first, false);
  } else if (even_) {
    const Kernel kernel = kernel_for({.from = Access::list64, .to = Access::list64, .length = first});
    const Move move{.length = first,
                    .count = static_cast<std::int64_t>(count),
                    .from = {.offsets = from_offsets_.data()},
                    .to = {.offsets = to_offsets_.data()}};
    kernel.run(move, from_, to_);
  } else {
    irregular_kernel().move({.count = static_cast<std::int64_t>(count), .offsets = from_offsets_.data(), .starts = starts_.data()},
                            to_offsets_.data(), from_, to_);
  }
}

}  // namespace lacuna::copy
