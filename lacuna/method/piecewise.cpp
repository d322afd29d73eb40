#include "lacuna/method/piecewise.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lacuna::method {
namespace {

constexpr int kAtOnce = 32;  // pieces: 768 bytes, which stay in the L1 cache

// layout::Intersection, some pieces at a time: a strip is what is left of a part of a form, so that the next run is an
// addition, or a look at a list, and cursors are asked only where a part ends. One by one, two cursors' steps take
// longer than all else that a request costs.
class Pieces {
 public:
  Pieces(const Layout& src, const Layout& dst) : src_(src), dst_(dst) {}
  void rewind() {
    src_.rewind();
    dst_.rewind();
  }
  [[nodiscard]] bool done() const { return src_.rest.length == 0 && src_.next == src_.strip.count && src_.cursor.done(); }
  // The next pieces, as many as there are and fit, of at most `most` bytes each; how many.
  std::size_t take(std::span<layout::Piece> pieces, std::int64_t most) {
    std::size_t found = 0;
    for (; found < pieces.size(); ++found) {
      if (src_.rest.length == 0) src_.fill();
      if (dst_.rest.length == 0) dst_.fill();
      const std::int64_t length = std::min({src_.rest.length, dst_.rest.length, most});
      if (length == 0) break;
      pieces[found] = {src_.rest.offset, dst_.rest.offset, length};
      src_.rest = {src_.rest.offset + length, src_.rest.length - length};
      dst_.rest = {dst_.rest.offset + length, dst_.rest.length - length};
    }
    return found;
  }

 private:
  struct PieceCursor {
    explicit PieceCursor(const Layout& layout) : cursor(layout) {}
    void rewind() {
      cursor.seek(0);
      strip = {};
      next = 0;
      rest = {};
    }
    void fill() {
      if (next == strip.count) {
        strip = cursor.next(layout::kMaxBytes);
        next = 0;
        if (strip.count == 0) return;
      }
      rest = strip.run(next++);
    }
    layout::Cursor cursor;
    layout::Strip strip{};
    std::int64_t next = 0;  // of the strip's runs
    layout::Run rest{};     // of the run before that
  };
  PieceCursor src_, dst_;
};

class Sender final : public Initiator {
 public:
  Sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, int chain, Pieces pieces)
      : Initiator(endpoint, transfer.src, memory, std::move(notice), chain), pieces_(std::move(pieces)) {}

 private:
  Result<void> begin() override {
    pieces_.rewind();
    return Initiator::begin();
  }
  [[nodiscard]] bool exhausted() const override { return pieces_.done(); }
  Result<bool> add_next(Chain& chain, int room) override {
    std::array<layout::Piece, kAtOnce> pieces;
    const auto most = static_cast<std::size_t>(std::min(room, kAtOnce));
    const std::size_t found = pieces_.take(std::span(pieces).first(most), largest_message(endpoint_.limits()));
    const auto base = reinterpret_cast<std::uint64_t>(base_);
    for (const layout::Piece& piece : std::span(pieces).first(found)) {
      chain.add_write({base + static_cast<std::uint64_t>(piece.src), static_cast<std::uint32_t>(piece.length), region_->lkey()},
                      remote(0).addr + static_cast<std::uint64_t>(piece.dst), remote(0).rkey);
    }
    return true;
  }

  Pieces pieces_;
};

}  // namespace

Made make_piecewise(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory, int chain) {
  if (role == Role::receiver) return Landing::make_in_place(endpoint, transfer, memory);
  return std::make_unique<Sender>(endpoint, transfer, memory, LACUNA_TRY(Notice::create(endpoint, transfer.notify)), chain,
                                  Pieces(transfer.src, transfer.dst));
}

void piecewise_cost_items(CostItems& cost_items, const nic::Limits& limits, int chain) {
  const double pieces = std::max(cost_items.pair().pieces, messages_of(cost_items.pair().bytes(), limits));
  cost_items.haul({.requests = pieces, .doorbells = std::ceil(pieces / chain), .gathers = pieces, .scatters = pieces, .pieces = pieces});
}

}  // namespace lacuna::method
