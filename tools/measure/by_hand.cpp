// What users do without Lacuna: a loop packs into a buffer of their own, one send, a loop unpacks. There are two such
// loops, over the elements and one memcpy for each block; people write either, and the faster one is what everything is
// compared with. The loops are plain C++ over the layout's strips, which is what a programmer who knows the layout
// would nest; they know nothing of copy's kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/measure/measure.hpp"

namespace lacuna::measure {
namespace {

using method::Endpoint;
using method::Memory;
using method::Operation;
using method::Role;
using method::Transfer;

enum class Loop { elements, memcpy };
enum class Way { pack, unpack };

template <class Element>
void move_block(std::byte* memory, std::byte* packed, std::int64_t elements, Way way) {
  auto* block = reinterpret_cast<Element*>(memory);
  auto* stream = reinterpret_cast<Element*>(packed);
  if (way == Way::pack) {
    for (std::int64_t k = 0; k < elements; ++k) stream[k] = block[k];
  } else {
    for (std::int64_t k = 0; k < elements; ++k) block[k] = stream[k];
  }
}

template <class Element>
void move_elements(const layout::Strip& strip, std::byte* base, std::byte*& packed, Way way) {
  if (strip.offsets == nullptr && strip.length == sizeof(Element)) {  // a[i * stride], as it is written for a column
    std::byte* memory = base + strip.offset;
    for (std::int64_t i = 0; i < strip.count; ++i, memory += strip.stride, packed += sizeof(Element))
      move_block<Element>(memory, packed, 1, way);
    return;
  }
  for (std::int64_t i = 0; i < strip.count; ++i) {
    const layout::Run run = strip.run(i);
    move_block<Element>(base + run.offset, packed, run.length / static_cast<std::int64_t>(sizeof(Element)), way);
    packed += run.length;
  }
}

void move_blocks(const layout::Strip& strip, std::byte* base, std::byte*& packed, Way way) {
  for (std::int64_t i = 0; i < strip.count; ++i) {
    const layout::Run run = strip.run(i);
    const auto bytes = static_cast<std::size_t>(run.length);
    way == Way::pack ? std::memcpy(packed, base + run.offset, bytes) : std::memcpy(base + run.offset, packed, bytes);
    packed += run.length;
  }
}

// The largest power of two, up to that of a double, that divides all offsets and lengths.
std::int64_t element_of(const Layout& layout) {
  std::int64_t all = sizeof(double);
  layout::Cursor cursor(layout);
  while (!cursor.done()) {
    const layout::Run run = cursor.next_run(layout::kMaxBytes);
    all |= run.offset | run.length;
  }
  return all & -all;
}

class ByHand : public Operation {
 public:
  ByHand(Endpoint& endpoint, const Layout& own, const Memory& memory, Loop loop, std::shared_ptr<const nic::RegisteredBuffer> staging)
      : Operation(endpoint, own, memory), loop_(loop), element_(element_of(own)), staging_(std::move(staging)) {}

 protected:
  void copy(Way way) {
    const std::int64_t began = endpoint_.context().now();
    std::byte* packed = staging_->buffer.data();
    layout::Cursor cursor(own_);
    while (!cursor.done()) {
      const layout::Strip strip = cursor.next(layout::kMaxBytes);
      if (loop_ == Loop::memcpy) {
        move_blocks(strip, base_, packed, way);
      } else if (element_ == 8) {
        move_elements<std::uint64_t>(strip, base_, packed, way);
      } else if (element_ == 4) {
        move_elements<std::uint32_t>(strip, base_, packed, way);
      } else {
        move_elements<std::uint8_t>(strip, base_, packed, way);
      }
    }
    counters_.bytes_copied += own_.size();
    counters_.copy_ns += endpoint_.context().now() - began;
  }
  [[nodiscard]] nic::Sge entry() const { return staging_->sge(0, own_.size()); }

 private:
  Loop loop_;
  std::int64_t element_;
  std::shared_ptr<const nic::RegisteredBuffer> staging_;
};

class Sender final : public ByHand {
 public:
  using ByHand::ByHand;
  Result<void> begin() override {
    copy(Way::pack);
    const nic::Sge list = entry();
    return send({&list, 1}, true);
  }
  Result<bool> advance() override { return sends_in_flight() == 0; }
};

class Receiver final : public ByHand {
 public:
  using ByHand::ByHand;
  Result<void> begin() override {
    const nic::Sge list = entry();
    return receive({&list, 1});
  }
  Result<bool> advance() override {
    if (receives_done() == 0) return false;
    copy(Way::unpack);
    return true;
  }
};

template <Loop loop>
Result<std::unique_ptr<Operation>> make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  const Layout& own = role == Role::sender ? transfer.src : transfer.dst;
  if (own.size() > endpoint.limits().max_message_bytes) {
    return base::fail(base::Code::limit,
                      fmt::format("one message of {} bytes; this NIC sends {}", own.size(), endpoint.limits().max_message_bytes));
  }
  auto staging = LACUNA_TRY(endpoint.staging(own.size()));
  if (role == Role::sender) return std::make_unique<Sender>(endpoint, own, memory, loop, std::move(staging));
  return std::make_unique<Receiver>(endpoint, own, memory, loop, std::move(staging));
}

constexpr std::array kTwoSided{method::Notify::none};

constexpr method::Method by_hand(std::string_view name, std::string_view summary, decltype(method::Method::make) make) {
  return {.name = name,
          .summary = summary,
          .notifies = kTwoSided,
          .initiator = Role::sender,
          .exposes = method::Exposes::nothing,
          .indirect_keys = false,
          .make = make};
}

constexpr std::array kByHand{
    by_hand("by_hand_elements", "what users write: a loop over the elements packs, one send, a loop unpacks", &make<Loop::elements>),
    by_hand("by_hand_memcpy", "what users write: a memcpy for each block packs, one send, the same unpacks", &make<Loop::memcpy>)};

}  // namespace

std::span<const method::Method> measured_methods() {
  static const std::vector<method::Method> all = [] {
    std::vector<method::Method> methods(method::methods().begin(), method::methods().end());
    methods.insert(methods.end(), kByHand.begin(), kByHand.end());
    return methods;
  }();
  return all;
}

bool is_by_hand(const method::Method& method) {
  return std::ranges::any_of(kByHand, [&](const method::Method& m) { return m.name == method.name; });
}

}  // namespace lacuna::measure
