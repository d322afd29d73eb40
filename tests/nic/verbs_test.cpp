// What NIC verbs says where there is no device, or nonsense is set. With devices: `make test-rdma` runs the other tests
// of this folder on one.
#include <gtest/gtest.h>

#include <algorithm>

#include "lacuna/nic/devices.hpp"
#include "lacuna/nic/nic.hpp"
#include "lacuna/nic/verbs/library.hpp"
#include "lacuna/nic/verbs/settings.hpp"
#include "tests/support/environment.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::verbs::Settings;

TEST(Verbs, WithoutADeviceItSaysWhatIsMissing) {
  if (const auto library = nic::verbs::Library::load(); library) {
    int count = 0;
    ibv_device** devices = (*library)->get_device_list(&count);
    if (devices != nullptr) (*library)->free_device_list(devices);
    if (count > 0) GTEST_SKIP() << "this machine has RDMA devices";
  }
  for (const char* name : {"verbs", "verbs:", "verbs:rxe0"}) {
    const auto opened = nic::open(name);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, base::Code::unsupported);
    EXPECT_TRUE(opened.error().message.find("ibv_devices") != std::string::npos ||
                opened.error().message.find("libibverbs1") != std::string::npos)
        << opened.error().text();
  }
}

// What `lacuna info` shows; in the virtual machine of `make test-rdma` there is a device to be shown.
TEST(Verbs, DescribesItsDevices) {
  const nic::Devices devices = nic::describe_devices();
  EXPECT_EQ(devices.list.empty(), !devices.none.empty()) << devices.none;
  EXPECT_EQ(devices.none.find('\n'), std::string::npos);
  for (const nic::DeviceInfo& device : devices.list) {
    SCOPED_TRACE(device.nic);
    const auto opened = nic::open(device.nic);
    ASSERT_EQ(opened.has_value(), device.refusal.empty()) << device.refusal;
    if (!opened) continue;
    EXPECT_EQ((*opened)->nic_name(), device.nic);
    EXPECT_EQ((*opened)->limits().max_sge, device.probed.max_sge);
    EXPECT_EQ((*opened)->limits().emulated, device.emulated);
    EXPECT_GE(device.probed.max_sge, 1);
    EXPECT_GE(device.advertised.max_sge, 1);
    EXPECT_LE(device.probed.max_sge_rd, device.advertised.max_sge_rd);
    EXPECT_GT(device.advertised.max_message_bytes, 0);
    EXPECT_FALSE(device.connection.empty());
    EXPECT_EQ(device.no_umr.empty(), device.probed.indirect.keys > 0);
    EXPECT_TRUE(std::ranges::any_of(device.ports, [](const auto& port) { return port.state == "active" && port.active_mtu >= 256; }));
    if (!device.nic.starts_with("verbs:rxe")) continue;  // as the virtual machine calls Soft-RoCE
    EXPECT_TRUE(device.emulated);
    EXPECT_FALSE(device.on_demand_paging);
    EXPECT_NE(device.windows.find("2B"), std::string::npos);
    EXPECT_EQ(device.ports.front().link_layer, "Ethernet");
  }
}

TEST(Verbs, OnlyItTakesADevice) {
  const auto opened = nic::open("local:rxe0");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, base::Code::invalid_argument);
  EXPECT_NE(opened.error().message.find("no NIC \"local:rxe0\""), std::string::npos);
}

TEST(VerbsSettings, AreTheEnvironments) {
  const Settings usual = Settings::from_environment().value();
  EXPECT_FALSE(usual.gid || usual.mtu || usual.port);
  EXPECT_EQ(usual.rnr_retries, 7);
  const Set gid("LACUNA_VERBS_GID", "3");
  const Set mtu("LACUNA_VERBS_MTU", "1024");
  const Set timeout("LACUNA_VERBS_TIMEOUT", "14");
  const Settings set = Settings::from_environment().value();
  EXPECT_EQ(set.gid, 3);
  EXPECT_EQ(set.mtu, 1024);
  EXPECT_EQ(set.timeout, 14);
}

TEST(VerbsSettings, NonsenseIsNamed) {
  for (const char* name : {"LACUNA_VERBS_PORT", "LACUNA_VERBS_GID", "LACUNA_VERBS_MTU", "LACUNA_VERBS_TIMEOUT", "LACUNA_VERBS_RETRIES",
                           "LACUNA_VERBS_RNR_RETRIES"}) {
    for (const char* value : {"-1", "9999", "1x", "auto"}) {
      const Set set(name, value);
      const auto settings = Settings::from_environment();
      ASSERT_FALSE(settings) << name << "=" << value;
      EXPECT_EQ(settings.error().code, base::Code::invalid_argument);
      EXPECT_TRUE(settings.error().message.starts_with(std::string(name) + "=" + value + "; it takes ")) << settings.error().message;
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
