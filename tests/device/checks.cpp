#include "tests/device/checks.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "lacuna/copy/copy.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::device_test {

using support::value;

std::shared_ptr<Device> the_device_owned() {
  const char* name = std::getenv("LACUNA_TEST_DEVICE");
  static const auto device = value(device::open(name != nullptr ? name : "emulated"));
  return device;
}

Device& the_device() {
  static const auto device = the_device_owned();
  return *device;
}

Layout bytes(std::int64_t count) { return value(Layout::bytes(count)); }

Memory::Memory(const Layout& layout, std::int64_t alignment, Random& random) {
  const std::int64_t low = layout.true_lower_bound();
  const std::int64_t high = low + layout.true_extent();
  // Offset 0 is aligned; the first byte in use is within 256 bytes of the allocation's start.
  const std::int64_t before = -low + ((low % 256) + 256) % 256 + (alignment < 16 ? alignment : 0);
  shift_ = static_cast<std::ptrdiff_t>(before);
  copy_.resize(static_cast<std::size_t>(before + high > 0 ? before + high : 1));
  for (std::byte& byte : copy_) byte = static_cast<std::byte>(random.below(256));
  memory_ = static_cast<std::byte*>(value(the_device().allocate(static_cast<std::int64_t>(copy_.size()))));
  const auto copied = the_device().copy(memory_, copy_.data(), static_cast<std::int64_t>(copy_.size()), nullptr);
  if (!copied || !the_device().wait(nullptr)) throw std::runtime_error("a copy to the device failed");
}

Memory::~Memory() { the_device().free(memory_); }

testing::AssertionResult Memory::as_expected() const {
  std::vector<std::byte> found(copy_.size());
  if (const auto copied = the_device().copy(found.data(), memory_, static_cast<std::int64_t>(found.size()), nullptr); !copied)
    return testing::AssertionFailure() << copied.error().text();
  if (const auto waited = the_device().wait(nullptr); !waited) return testing::AssertionFailure() << waited.error().text();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != copy_[i])
      return testing::AssertionFailure() << fmt::format("byte {} is {:#04x} and should be {:#04x}", static_cast<std::ptrdiff_t>(i) - shift_,
                                                        static_cast<unsigned>(found[i]), static_cast<unsigned>(copy_[i]));
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult moves(std::span<const Case> cases, std::uint64_t seed, int alignment) {
  Random random(seed);
  std::vector<device::Pair> pairs;
  std::vector<std::unique_ptr<Memory>> from;
  std::vector<std::unique_ptr<Memory>> to;
  std::vector<device::Addresses> addresses;
  for (const Case& c : cases) {
    pairs.push_back({c.from, c.to});
    from.push_back(std::make_unique<Memory>(c.from, alignment, random));
    to.push_back(std::make_unique<Memory>(c.to, alignment, random));
    addresses.push_back({from.back()->base(), to.back()->base()});
    if (const auto done = copy::reference::transpack(c.from, from.back()->expected(), c.to, to.back()->expected()); !done)
      return testing::AssertionFailure() << done.error().text();
  }
  const auto plan = device::CopyPlan::make(the_device_owned(), pairs, alignment);
  if (!plan) return testing::AssertionFailure() << plan.error().text();
  if (const auto moved = plan->move(addresses, nullptr); !moved) return testing::AssertionFailure() << moved.error().text();
  if (const auto waited = the_device().wait(nullptr); !waited) return testing::AssertionFailure() << waited.error().text();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const Memory* memory : {from[i].get(), to[i].get()}) {
      if (const auto same = memory->as_expected(); !same)
        return testing::AssertionFailure() << fmt::format("seed {}, pair {}, alignment {}, {}: ", seed, i, alignment,
                                                          memory == to[i].get() ? "to" : "from")
                                           << same.message() << "\n"
                                           << cases[i].text << "\n"
                                           << plan->describe();
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace lacuna::device_test
