// multi_write: one write, one post, for each piece that is contiguous on both sides; it lands where it belongs. Nobody
// copies, and the target's CPU does nothing but see the flag.
#include "lacuna/method/methods.hpp"
#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {
namespace {

class Sender final : public WriteSender {
 public:
  Sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Flag flag, layout::Intersection pieces)
      : WriteSender(endpoint, transfer, memory, std::move(flag)), pieces_(std::move(pieces)) {}

 private:
  void rewind() override { pieces_.seek(0); }
  [[nodiscard]] bool exhausted() const override { return pieces_.done(); }
  Result<void> post_next() override {
    const layout::Piece piece = pieces_.next(largest_write(endpoint_.limits()));
    const nic::Sge list = sge({piece.src, piece.length});
    return write({&list, 1}, target_.addr + static_cast<std::uint64_t>(piece.dst), target_.rkey, final_write());
  }

  layout::Intersection pieces_;
};

class Receiver final : public Operation {
 public:
  Receiver(Endpoint& endpoint, Transfer transfer, const Memory& memory, Flag flag)
      : Operation(endpoint), transfer_(std::move(transfer)), flag_(std::move(flag)) {
    layout_ = &transfer_.dst;
    region_ = memory.region;
  }
  [[nodiscard]] Target target(std::byte* base) const override {
    return {reinterpret_cast<std::uint64_t>(base), region_->rkey(), flag_.rkey(), flag_.addr()};
  }
  Result<void> begin() override { return flag_.count(), Result<void>{}; }
  Result<bool> progress() override { return transfer_.notify == Notify::none || flag_.raised(endpoint_.context()); }

 private:
  Transfer transfer_;
  Flag flag_;
};

}  // namespace

Made multi_write_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  layout::Intersection pieces = LACUNA_TRY(layout::Intersection::of(transfer.src, transfer.dst));
  return std::make_unique<Sender>(endpoint, transfer, memory, LACUNA_TRY(Flag::create(endpoint.context())), std::move(pieces));
}

Made multi_write_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return std::make_unique<Receiver>(endpoint, transfer, memory, LACUNA_TRY(Flag::create(endpoint.context())));
}

}  // namespace lacuna::method
