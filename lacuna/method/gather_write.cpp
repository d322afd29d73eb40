// gather_write: the NIC gathers the source's runs, as many as a list takes, into writes that land one behind the other
// in a contiguous place; the target's CPU unpacks from there, unless its layout is contiguous.
#include "lacuna/method/methods.hpp"
#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {
namespace {

class Sender final : public WriteSender {
 public:
  Sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Flag flag)
      : WriteSender(endpoint, transfer, memory, std::move(flag)), runs_(transfer.src) {}

 private:
  void rewind() override { runs_.seek(0); }
  [[nodiscard]] bool exhausted() const override { return runs_.done(); }
  Result<void> post_next() override {
    list_.clear();
    const std::int64_t from = runs_.position();
    const std::int64_t most = largest_write(endpoint_.limits());
    while (!runs_.done() && std::ssize(list_) < endpoint_.limits().max_sge && runs_.position() - from < most)
      list_.push_back(sge(runs_.next_run(most - (runs_.position() - from))));
    return write(list_, target_.addr + static_cast<std::uint64_t>(from), target_.rkey, final_write());
  }

  layout::Cursor runs_;
  std::vector<nic::Sge> list_;
};

class Receiver final : public Operation {
 public:
  Receiver(Endpoint& endpoint, Transfer transfer, const Memory& memory, Flag flag, Staging landing)
      : Operation(endpoint), transfer_(std::move(transfer)), flag_(std::move(flag)), landing_(std::move(landing)) {
    layout_ = &transfer_.dst;
    region_ = memory.region;
  }
  [[nodiscard]] Target target(std::byte* base) const override {
    if (staged()) return {landing_.region.addr(), landing_.region.rkey(), flag_.rkey(), flag_.addr()};
    return {reinterpret_cast<std::uint64_t>(base + transfer_.dst.true_lower_bound()), region_->rkey(), flag_.rkey(), flag_.addr()};
  }
  Result<void> begin() override { return flag_.count(), Result<void>{}; }
  Result<bool> progress() override {
    if (transfer_.notify == Notify::flag && !flag_.raised(endpoint_.context())) return false;
    if (staged()) endpoint_.context().unpack(transfer_.dst, base_, 0, transfer_.dst.size(), landing_.buffer.data());
    return true;
  }

 private:
  [[nodiscard]] bool staged() const { return landing_.buffer.size() != 0; }

  Transfer transfer_;
  Flag flag_;
  Staging landing_;  // empty if the destination is contiguous
};

}  // namespace

Made gather_write_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return std::make_unique<Sender>(endpoint, transfer, memory, LACUNA_TRY(Flag::create(endpoint.context())));
}

Made gather_write_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  const bool in_place = transfer.dst.contiguous_bytes() && reachable(endpoint, *memory.region);
  if (!in_place && transfer.notify == Notify::none) {
    return base::fail(base::Code::unsupported,
                      "gather_write: without a notification the destination must be contiguous, since nobody would unpack");
  }
  Staging landing;
  if (!in_place) landing = LACUNA_TRY(Staging::create(endpoint.context(), transfer.dst.size()));
  return std::make_unique<Receiver>(endpoint, transfer, memory, LACUNA_TRY(Flag::create(endpoint.context())), std::move(landing));
}

}  // namespace lacuna::method
