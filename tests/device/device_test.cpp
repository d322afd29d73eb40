// What a device promises beside its copies: memory that is its own, streams, plans that are kept; and how programs are
// cut.
#include <gtest/gtest.h>

#include <cstring>

#include "lacuna/device/program.hpp"
#include "tests/device/checks.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::device_test {
namespace LACUNA_TEST_FILE {
namespace {

using device::Pair;
using support::value;

bool emulated() { return the_device().card().name == "emulated"; }

void done(const base::Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().text());
}

std::vector<std::byte> read(const void* memory, std::int64_t bytes) {
  std::vector<std::byte> copy(static_cast<std::size_t>(bytes));
  done(the_device().copy(copy.data(), memory, bytes, nullptr));
  done(the_device().wait(nullptr));
  return copy;
}

TEST(DeviceMemory, IsTheDevicesAlone) {
  if (!emulated()) GTEST_SKIP() << "a GPU's memory may be mapped";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto* memory = static_cast<volatile char*>(value(the_device().allocate(64)));
  EXPECT_TRUE(the_device().owns(const_cast<char*>(memory)));
  EXPECT_DEATH((void)*memory, "");
  EXPECT_DEATH(*memory = 1, "");
  the_device().free(const_cast<char*>(memory));
}

TEST(DeviceMemory, KernelsStayWithinIt) {
  if (!emulated()) GTEST_SKIP() << "compute-sanitizer looks at this";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Pair pair{bytes(65), bytes(65)};
  void* from = value(the_device().allocate(64));
  void* to = value(the_device().allocate(65));
  const auto plan = value(device::CopyPlan::make(the_device_owned(), std::span(&pair, 1)));
  const device::Addresses addresses{from, to};
  EXPECT_DEATH(
      {
        (void)plan.move(std::span(&addresses, 1), nullptr);
        (void)the_device().wait(nullptr);
      },
      "not within an allocation");
  the_device().free(from);
  the_device().free(to);
}

TEST(DeviceMemory, MoreThanThereIs) { EXPECT_EQ(the_device().allocate(std::int64_t{1} << 50).error().code, base::Code::out_of_memory); }

// Places that take more than 32 bits.
TEST(DevicePlan, ReachesFar) {
  constexpr std::int64_t apart = (std::int64_t{1} << 31) + 4096 + 36;
  for (const std::int64_t run : {1, 4, 100, 1024}) {
    for (const std::int64_t skew : {0, 1}) {
      const Layout layout = value(Layout::hvector(3, 1, apart + skew, bytes(run)));
      auto* far = static_cast<std::byte*>(value(the_device().allocate(layout.true_extent())));
      auto* dense = static_cast<std::byte*>(value(the_device().allocate(layout.size())));
      std::vector<std::byte> data(static_cast<std::size_t>(layout.size()));
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + 1);
      done(the_device().copy(dense, data.data(), layout.size(), nullptr));
      const Pair unpack{bytes(layout.size()), layout};
      const Pair pack{layout, bytes(layout.size())};
      const device::Addresses there{dense, far};
      const device::Addresses back{far, dense};
      const auto unpacking = value(device::CopyPlan::make(the_device_owned(), std::span(&unpack, 1)));
      const auto packing = value(device::CopyPlan::make(the_device_owned(), std::span(&pack, 1)));
      done(unpacking.move(std::span(&there, 1), nullptr));
      for (std::int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(std::memcmp(read(far + i * (apart + skew), run).data(), data.data() + i * run, static_cast<std::size_t>(run)), 0);
      done(the_device().fill(dense, 0, layout.size(), nullptr));
      done(packing.move(std::span(&back, 1), nullptr));
      EXPECT_EQ(read(dense, layout.size()), data) << packing.describe();
      the_device().free(far);
      the_device().free(dense);
    }
  }
}

TEST(DevicePlan, CutsWhatHasTooManyUnits) {
  for (const std::int64_t size : {std::int64_t{1} << 31, (std::int64_t{1} << 33) + 5, std::int64_t{1} << 40}) {
    for (const int alignment : {1, 16}) {
      const Layout vector = value(Layout::hvector(size / 8, 1, 24, bytes(8)));
      for (const Pair& pair : {Pair{bytes(size), bytes(size)}, Pair{vector, bytes(vector.size())}}) {
        const auto program = value(device::compile(std::span(&pair, 1), alignment, {}));
        std::int64_t covered = 0;
        for (const device::kernel::Part& part : program.parts) {
          EXPECT_LT(part.units, 1U << 31);
          covered += part.way == device::kernel::Way::windows ? part.run : std::int64_t{part.units} * part.word;
        }
        EXPECT_EQ(covered, pair.from.size());
      }
    }
  }
}

TEST(DeviceStreams, AreInOrderAndWaitForOneAnother) {
  constexpr std::int64_t size = 1 << 16;
  void* a = value(the_device().allocate(size));
  void* b = value(the_device().allocate(size));
  device::Stream first = value(the_device().create_stream());
  device::Stream second = value(the_device().create_stream());
  device::Event event = value(the_device().create_event());
  device::Event end = value(the_device().create_event());
  const Pair pair{bytes(size), bytes(size)};
  const auto plan = value(device::CopyPlan::make(the_device_owned(), std::span(&pair, 1)));
  for (int round = 1; round < 20; ++round) {
    const device::Addresses addresses{a, b};
    done(the_device().fill(a, static_cast<std::uint8_t>(round), size, first));
    done(the_device().record(event, first));
    done(the_device().wait_in_stream(event, second));
    done(plan.move(std::span(&addresses, 1), second));
    done(the_device().record(end, second));
    EXPECT_GE(value(the_device().elapsed_us(event, end)), 0);
    done(the_device().wait(second));
    EXPECT_EQ(read(b, size), std::vector<std::byte>(size, static_cast<std::byte>(round)));
  }
  the_device().destroy_event(event);
  the_device().destroy_event(end);
  the_device().destroy_stream(first);
  the_device().destroy_stream(second);
  the_device().free(a);
  the_device().free(b);
}

// An event stands for the point that it was last recorded at when somebody began to wait.
TEST(DeviceStreams, EventsAreRecordedAgain) {
  device::Stream first = value(the_device().create_stream());
  device::Stream second = value(the_device().create_stream());
  device::Event event = value(the_device().create_event());
  for (int round = 0; round < 50; ++round) {
    done(the_device().record(event, first));
    done(the_device().wait_in_stream(event, second));
    done(the_device().record(event, second));
    done(the_device().wait_in_stream(event, first));
  }
  done(the_device().wait(second));
  done(the_device().wait(first));
  the_device().destroy_event(event);
  the_device().destroy_stream(first);
  the_device().destroy_stream(second);
}

// Plans that go while a stream still holds their moves.
TEST(DeviceCopies, MakeRoomWhenTheDeviceIsDone) {
  auto* a = static_cast<std::byte*>(value(the_device().allocate(1 << 16)));
  auto* b = static_cast<std::byte*>(value(the_device().allocate(1 << 16)));
  device::Stream stream = value(the_device().create_stream());
  device::Copies copies(the_device_owned());
  for (std::int64_t i = 0; i < 200; ++i) {
    const Layout pages = value(Layout::paged(64, std::vector<std::int64_t>{5, 3, i + 10, 900 - i, 1, 7}));
    done(copies.move({pages, bytes(pages.size())}, {a, b}, stream));
  }
  done(the_device().wait(stream));
  the_device().destroy_stream(stream);
  the_device().free(a);
  the_device().free(b);
}

// More pairs than are kept, twice; and one pair at addresses that are aligned differently.
TEST(DeviceCopies, KeepPlans) {
  auto* a = static_cast<std::byte*>(value(the_device().allocate(4096)));
  auto* b = static_cast<std::byte*>(value(the_device().allocate(4096)));
  device::Copies copies(the_device_owned());
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t size = 1; size < 80; ++size) {
      done(the_device().fill(a, static_cast<std::uint8_t>(size), 4096, nullptr));
      done(the_device().fill(b, 0, 4096, nullptr));
      done(copies.move({bytes(size), bytes(size)}, {a + size % 5, b + size % 3}, nullptr));
      const std::vector<std::byte> found = read(b, 4096);
      EXPECT_EQ(std::ranges::count(found, static_cast<std::byte>(size)), size);
      EXPECT_EQ(found[static_cast<std::size_t>(size % 3)], static_cast<std::byte>(size));
    }
  }
  const Layout twice = value(Layout::hvector(2, 1, 0, bytes(4)));
  EXPECT_EQ(copies.move({bytes(8), twice}, {a, b}, nullptr).error().code, base::Code::invalid_argument);
  the_device().free(a);
  the_device().free(b);
}

TEST(DeviceNames, SayWhatThereIs) {
  EXPECT_EQ(device::open("gpu").error().code, base::Code::invalid_argument);
  EXPECT_EQ(device::open("cuda:x").error().code, base::Code::invalid_argument);
  const auto kept = value(device::open("emulated"));
  EXPECT_EQ(value(device::open("emulated")), kept);
  const auto cards = device::cards();
  if (!cards) {
    EXPECT_EQ(cards.error().code, base::Code::unsupported);
    EXPECT_EQ(device::open("cuda:0").error().text(), cards.error().text());
  }
}

}  // namespace
}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::device_test
