// What NIC ofi says where a provider is missing, what it takes from a peer before it trusts it, and what its parts do.
// The other tests of this folder run on it with LACUNA_TEST_NIC=ofi:tcp.
#include <algorithm>
#include <cstring>

#include "lacuna/nic/devices.hpp"
#include "lacuna/nic/ofi/provider.hpp"
#include "lacuna/nic/ofi/remote_keys.hpp"
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::ofi::RemoteKeys;
using nic::ofi::RemoteRegion;
using nic::ofi::Said;

#define LACUNA_NEEDS_TCP() \
  if (const auto opened_ = nic::open("ofi:tcp"); !opened_) GTEST_SKIP() << opened_.error().text()

TEST(Ofi, WithoutAProviderItSaysWhatIsMissing) {
  const auto opened = nic::open("ofi:carrier-pigeon");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, base::Code::unsupported);
  EXPECT_TRUE(opened.error().message.contains("no provider \"carrier-pigeon\"") || opened.error().message.contains("libfabric1"))
      << opened.error().text();
}

TEST(Ofi, NamesItsProviderAndSaysWhatItLacks) {
  LACUNA_NEEDS_TCP();
  const auto context = nic::open("ofi:tcp").value();
  EXPECT_EQ(context->nic_name(), "ofi:tcp");
  EXPECT_TRUE(context->limits().emulated);
  EXPECT_GE(context->limits().max_sge, 1);
  ASSERT_EQ(context->limits().paths.size(), 1U);
  EXPECT_FALSE(context->limits().paths.front().passive_target);
  const auto key = context->create_indirect_key(4);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, base::Code::unsupported);
  EXPECT_TRUE(key.error().message.contains("ofi:tcp: libfabric has none")) << key.error().text();
  EXPECT_FALSE(context->create_window());
}

// A thread answers peers where a provider can wake one; where it cannot, the path says so.
TEST(Ofi, SaysWhetherAThreadAnswers) {
  LACUNA_NEEDS_TCP();
  const nic::OpenOptions attended{.attended = true};
  const auto tcp = nic::open("ofi:tcp", attended).value();
  EXPECT_TRUE(tcp->limits().paths.front().passive_target);
  EXPECT_TRUE(tcp->limits().paths.front().note.contains("a thread of this process answers")) << tcp->limits().paths.front().note;
  const auto rxm = nic::open("ofi:tcp;ofi_rxm", attended);
  if (!rxm) GTEST_SKIP() << rxm.error().text();
  EXPECT_FALSE((*rxm)->limits().paths.front().passive_target);
  EXPECT_TRUE((*rxm)->limits().paths.front().note.contains("no file")) << (*rxm)->limits().paths.front().note;
}

// What `lacuna info` shows.
TEST(Ofi, DescribesItsProviders) {
  const nic::Providers providers = nic::describe_providers();
  EXPECT_EQ(providers.list.empty(), !providers.none.empty()) << providers.none;
  for (const nic::ProviderInfo& provider : providers.list) {
    SCOPED_TRACE(provider.nic);
    const auto opened = nic::open(provider.nic);
    ASSERT_EQ(opened.has_value(), provider.refusal.empty()) << provider.refusal;
    if (opened) {
      EXPECT_EQ((*opened)->limits().max_sge, provider.limits.max_sge);
    }
  }
}

// --- introductions ---------------------------------------------------------------------------------------------------

// Changes what one end hears first.
class Tampered final : public nic::Bootstrap {
 public:
  Tampered(nic::Bootstrap& real, std::function<void(std::vector<std::byte>&)> spoil) : real_(real), spoil_(std::move(spoil)) {}
  base::Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override {
    nic::Hello theirs = LACUNA_TRY(real_.exchange(mine, timeout_ns));
    if (std::exchange(first_, false)) spoil_(theirs.bytes);
    return theirs;
  }

 private:
  nic::Bootstrap& real_;
  std::function<void(std::vector<std::byte>&)> spoil_;
  bool first_ = true;
};

// Both ends are refused: one because of what it heard, the other because of the first.
void expect_refused(const std::string& why, const std::function<void(std::vector<std::byte>&)>& spoil) {
  const auto end = [&](int rank, nic::Bootstrap& bootstrap) -> std::string {
    Tampered tampered(bootstrap, spoil);
    const auto context = LACUNA_END_TRY(nic::open("ofi:tcp"));
    const auto queue = LACUNA_END_TRY(context->create_completion_queue(16));
    nic::Bootstrap& own = rank == 0 ? tampered : bootstrap;
    const auto pair = context->connect(own, *queue, {nic::Path::wire, 4, 4});
    if (pair) return "it connected";
    if (!pair.error().message.contains(why)) return pair.error().message;
    return {};
  };
  EXPECT_EQ(in_two_threads(end), "") << why;
}

void put(std::vector<std::byte>& bytes, std::size_t at, std::string_view text) { std::memcpy(bytes.data() + at, text.data(), text.size()); }

TEST(OfiIntroduction, SpoiltIsRefusedAtBothEnds) {
  LACUNA_NEEDS_TCP();
  expect_refused("not one of NIC ofi", [](auto& bytes) { bytes.pop_back(); });
  expect_refused("not one of NIC ofi", [](auto& bytes) { bytes.clear(); });
  expect_refused("another version", [](auto& bytes) { bytes[0] ^= std::byte{1}; });
  expect_refused("other byte order", [](auto& bytes) { std::reverse(bytes.begin(), bytes.begin() + 8); });
  expect_refused("addresses have 4 bytes", [](auto& bytes) { bytes[8] = std::byte{4}; });
  expect_refused("this end uses libfabric's tcp, the peer udp", [](auto& bytes) { put(bytes, 16, "udp"); });
  // The last thing in it is the length and the bytes of the second address
  expect_refused("addresses are none", [](auto& bytes) { put(bytes, bytes.size() - 136, "\xff\xff"); });
  expect_refused("the peer has no endpoint",
                 [](auto& bytes) { std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size()) - 272, 8, std::byte{}); });
}

// --- keys ------------------------------------------------------------------------------------------------------------

TEST(OfiRemoteKeys, TakeOnlyAnswersThatFit) {
  RemoteKeys keys;
  const Said honest{.kind = Said::tell, .key = 7, .addr = 1000, .bytes = 100, .target = 0, .rights = Said::kMayRead};
  EXPECT_EQ(keys.told(honest).error().code, base::Code::malformed);  // nothing has asked
  keys.asked(7);
  Said wide = honest;
  wide.bytes = ~std::uint64_t{0} - 500;
  EXPECT_EQ(keys.told(wide).error().code, base::Code::malformed);
  ASSERT_TRUE(keys.told(honest));
  EXPECT_EQ(keys.told(honest).error().code, base::Code::malformed);  // once is enough
}

TEST(OfiRemoteKeys, GrantTheBytesOfTheirRegionAndNoOthers) {
  const RemoteRegion region{.state = RemoteRegion::State::known, .addr = 1000, .bytes = 100, .target = 64, .rights = Said::kMayRead};
  EXPECT_TRUE(region.allows(1000, 100, Said::kMayRead));
  EXPECT_TRUE(region.allows(1099, 1, Said::kMayRead));
  EXPECT_FALSE(region.allows(1000, 100, Said::kMayWrite));
  EXPECT_FALSE(region.allows(999, 1, Said::kMayRead));
  EXPECT_FALSE(region.allows(1001, 100, Said::kMayRead));
  EXPECT_FALSE(region.allows(~std::uint64_t{0} - 8, 100, Said::kMayRead));
  EXPECT_FALSE(region.allows(1000, ~std::uint64_t{0}, Said::kMayRead));
  EXPECT_EQ(region.place(1010), 74U);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
