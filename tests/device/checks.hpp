// The property of device::CopyPlan: it moves what copy::reference moves, and touches nothing else. On the device that
// LACUNA_TEST_DEVICE names: the emulated one, if it names none.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lacuna/device/device.hpp"
#include "tests/support/random.hpp"

namespace lacuna::device_test {

using device::Device;
using layout::Layout;
using support::Random;

/// The device of the tests; kept until the program's end.
Device& the_device();
std::shared_ptr<Device> the_device_owned();

/// Memory of the device, and a copy of what it should hold.
class Memory {
 public:
  /// For the bytes of a layout, at an address that `alignment` and no larger power of two divides (where offset 0 is);
  /// random bytes.
  Memory(const Layout& layout, std::int64_t alignment, Random& random);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Where offset 0 is, on the device and in the copy.
  [[nodiscard]] std::byte* base() const { return memory_ + shift_; }
  [[nodiscard]] std::byte* expected() { return copy_.data() + shift_; }
  /// The memory is as the copy is.
  [[nodiscard]] testing::AssertionResult as_expected() const;

 private:
  std::byte* memory_ = nullptr;
  std::ptrdiff_t shift_ = 0;
  std::vector<std::byte> copy_;
};

/// `from` and `to` are of one size; no byte of `to` occurs twice.
struct Case {
  Layout from;
  Layout to;
  std::string text;
};
/// All cases by one plan, in one launch.
[[nodiscard]] testing::AssertionResult moves(std::span<const Case> cases, std::uint64_t seed, int alignment = 16);
[[nodiscard]] inline testing::AssertionResult moves(const Case& one, std::uint64_t seed, int alignment = 16) {
  return moves(std::span(&one, 1), seed, alignment);
}

[[nodiscard]] Layout bytes(std::int64_t count);

}  // namespace lacuna::device_test
