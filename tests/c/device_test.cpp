// The C API's device memory, on the emulated device.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include <lacuna.hpp>
#include "lacuna/device/device.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {
namespace {

// Bytes of the emulated device, which C programs take from CUDA.
class Bytes {
 public:
  explicit Bytes(std::int64_t size) : device_(device::open("emulated").value()), size_(size), at_(device_->allocate(size).value()) {}
  ~Bytes() { device_->free(at_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  [[nodiscard]] void* at() const { return at_; }
  void write(const std::string& text) {
    EXPECT_TRUE(device_->copy(at_, text.data(), size_, nullptr));
    EXPECT_TRUE(device_->wait(nullptr));
  }
  [[nodiscard]] std::string read() const {
    std::string text(static_cast<std::size_t>(size_), '\0');
    EXPECT_TRUE(device_->copy(text.data(), at_, size_, nullptr));
    EXPECT_TRUE(device_->wait(nullptr));
    return text;
  }

 private:
  std::shared_ptr<device::Device> device_;
  std::int64_t size_;
  void* at_;
};

TEST(CDevice, MovesAndPlans) {
  lacuna_device* device = nullptr;
  ASSERT_EQ(lacuna_device_open("emulated", &device), LACUNA_OK) << lacuna_error_message();
  lacuna_layout* two = nullptr;
  lacuna_layout* every_other = nullptr;
  lacuna_layout* dense = nullptr;
  ASSERT_EQ(lacuna_layout_bytes(2, &two), LACUNA_OK);
  ASSERT_EQ(lacuna_layout_hvector(4, 1, 4, two, &every_other), LACUNA_OK);
  ASSERT_EQ(lacuna_layout_bytes(8, &dense), LACUNA_OK);

  Bytes a(16);
  Bytes b(8);
  a.write("ab..cd..ef..gh..");
  ASSERT_EQ(lacuna_device_move(device, every_other, a.at(), dense, b.at(), nullptr), LACUNA_OK) << lacuna_error_message();
  EXPECT_EQ(b.read(), "abcdefgh");
  EXPECT_EQ(lacuna_device_move(device, every_other, a.at(), two, b.at(), nullptr), LACUNA_ERR_INVALID_ARGUMENT);

  Bytes c(16);
  c.write("................");
  const std::array<const lacuna_layout*, 2> from{every_other, dense};
  const std::array<const lacuna_layout*, 2> to{dense, every_other};
  lacuna_device_plan* plan = nullptr;
  ASSERT_EQ(lacuna_device_plan_make(device, 2, from.data(), to.data(), 16, &plan), LACUNA_OK) << lacuna_error_message();
  Bytes d(8);
  const std::array<const void*, 2> sources{a.at(), b.at()};
  const std::array<void*, 2> targets{d.at(), c.at()};
  ASSERT_EQ(lacuna_device_plan_move(plan, sources.data(), targets.data(), nullptr), LACUNA_OK) << lacuna_error_message();
  EXPECT_EQ(d.read(), "abcdefgh");
  EXPECT_EQ(c.read(), "ab..cd..ef..gh..");
  std::array<char, 256> text{};
  EXPECT_GT(lacuna_device_plan_describe(plan, text.data(), text.size()), 0U);
  EXPECT_NE(std::strstr(text.data(), "words of 2 B"), nullptr) << text.data();

  EXPECT_EQ(lacuna_device_plan_make(device, 65, from.data(), to.data(), 16, &plan), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_device_open("gpu", &device), LACUNA_ERR_INVALID_ARGUMENT);
  lacuna_device_plan_free(plan);
  lacuna_device_free(device);
  lacuna_layout_free(two);
  lacuna_layout_free(every_other);
  lacuna_layout_free(dense);
}

TEST(HppDevice, MovesAndPlans) {
  Device device("emulated");
  const Layout every_other = Layout::hvector(4, 1, 4, Layout::bytes(2));
  const Layout dense = Layout::bytes(8);
  Bytes a(16);
  Bytes b(8);
  a.write("ab--cd--ef--gh--");
  device.move(every_other, a.at(), dense, b.at());
  EXPECT_EQ(b.read(), "abcdefgh");
  b.write("--------");
  const std::array pairs{LayoutPair{&every_other, &dense}};
  DevicePlan plan = device.plan(pairs, 2);
  plan.move(std::array<const void*, 1>{a.at()}, std::array<void*, 1>{b.at()});
  EXPECT_EQ(b.read(), "abcdefgh");
  EXPECT_FALSE(plan.describe().empty());
  EXPECT_THROW(plan.move({}, {}), Error);
  EXPECT_THROW(Device("abacus"), Error);
}

}  // namespace
}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
