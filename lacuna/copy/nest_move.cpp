#include "lacuna/copy/nest_move.hpp"

#include <fmt/format.h>

#include "lacuna/copy/cold.hpp"
#include "lacuna/copy/crossing.hpp"
#include "lacuna/copy/kernels.hpp"
#include "lacuna/copy/walk.hpp"

namespace lacuna::copy {
namespace {

// What rows take for each byte, in cycles, on an EPYC of 2024.
constexpr double kRowCycles = 0.9;

}  // namespace

NestMove::NestMove(const Nest& nest) : nest_(nest) {
  if (nest.depth == 0 || nest.block > kLongestShuffled || nest.loops[densest(nest, &Loop::to)].from == 0) return;
  double cycles = kRowCycles / static_cast<double>(nest.block);
  bool leaves = false;  // tiles of it leave the caches in whole lines
  if (is_crossed(nest)) {
    const Crossing crossing(nest, exceeds_caches(2 * bytes_of(nest)));
    cycles = crossing.kernel().cycles;
    leaves = crossing.kernel().streams;
  }
  shuffles_ = Shuffles::of(nest, cycles);
  if (leaves && shuffles_ && !shuffles_->follows()) shuffles_.reset();
}

void NestMove::move(const std::byte* from, std::byte* to, bool stream) const {
  if (shuffles_) {
    const bool past = stream || exceeds_caches(2 * bytes_of(nest_));
    shuffles_->move(from, to, past);
    if (past) end_of_streaming();
    return;
  }
  move_nest(nest_, from, to, stream);
}

std::string NestMove::describe() const {
  const auto loops = [&] {
    std::string text;
    for (std::size_t i = nest_.depth; i-- > 0;) text += fmt::format("{}{}", nest_.loops[i].count, i > 0 ? " x " : "");
    return text;
  };
  if (shuffles_) {
    return fmt::format("loops of {}, blocks of {} B: {} B at a time, from {} windows to {} by permutations of bytes", loops(), nest_.block,
                       shuffles_->bytes(), shuffles_->terms(), shuffles_->windows());
  }
  if (!is_crossed(nest_)) return fmt::format("loops of {}, blocks of {} B, in rows", loops(), nest_.block);
  const Crossing crossing(nest_, false);
  return fmt::format("loops of {}, blocks of {} B: {}tiles of {} x {} by {}, by streaming stores where the destination is cold", loops(),
                     nest_.block, rows_suffice(nest_) != nullptr ? "in rows, or where the destination is cold " : "", crossing.tile().rows,
                     crossing.tile().columns, crossing.kernel().name);
}

}  // namespace lacuna::copy
