// What the devices of this machine are, and whether they are made of anything.
#include <fmt/format.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lacuna/nic/verbs/device.hpp"
#include "lacuna/nic/verbs/verbs.hpp"

namespace lacuna::nic::verbs {
namespace {

namespace fs = std::filesystem;

// Vendors that the kernel's drivers in software name (RXE_VENDOR_ID, SIW_VENDOR_ID); Soft-RoCE named none before Linux
// 5.8.
constexpr std::array<std::uint32_t, 3> kNobody{0xffffff, 0x626d74, 0};

fs::path folder_of(std::string_view name) { return fs::path("/sys/class/infiniband") / name; }

// The kernel's driver of what the device sits on; a device in software sits on nothing.
std::string driver_of(std::string_view name) {
  std::error_code error;
  const fs::path driver = fs::read_symlink(folder_of(name) / "device" / "driver", error);
  return error ? "" : driver.filename().string();
}

// libibverbs' own function for this, in its header, needs the library at link time.
bool pages_on_demand(ibv_context* context) {
  const verbs_context* extended = verbs_get_ctx_op(context, query_device_ex);
  if (extended == nullptr) return false;
  auto attributes = zeroed<ibv_device_attr_ex>();
  if (extended->query_device_ex(context, nullptr, &attributes, sizeof attributes) != 0) return false;
  return (attributes.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0;
}

std::string windows_of(const ibv_device_attr& attributes) {
  if (attributes.max_mw <= 0) return "";
  std::string kinds = (attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0 ? "1" : "";
  const auto add = [&](const char* kind) { kinds += (kinds.empty() ? "" : ", ") + std::string(kind); };
  if ((attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A) != 0) add("2A");
  if ((attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0) add("2B");
  return kinds;
}

std::string state_of(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN: return "down";
    case IBV_PORT_INIT: return "init";
    case IBV_PORT_ARMED: return "armed";
    case IBV_PORT_ACTIVE: return "active";
    case IBV_PORT_ACTIVE_DEFER: return "active, deferred";
    default: return fmt::format("state {}", static_cast<int>(state));
  }
}

int mtu_bytes(ibv_mtu mtu) { return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : 0; }

std::vector<DeviceInfo::Port> ports_of(const Library& library, ibv_context* context, int count) {
  std::vector<DeviceInfo::Port> ports;
  for (int number = 1; number <= count; ++number) {
    auto port = zeroed<ibv_port_attr>();
    if (library.query_port(context, static_cast<std::uint8_t>(number), reinterpret_cast<_compat_ibv_port_attr*>(&port)) != 0) continue;
    const char* link = port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
    ports.push_back({number, state_of(port.state), link, mtu_bytes(port.active_mtu), mtu_bytes(port.max_mtu), port.lid});
  }
  return ports;
}

Limits advertised(const ibv_device_attr& attributes) {
  Limits limits;
  limits.max_sge = attributes.max_sge;
  limits.max_sge_rd = attributes.max_sge_rd;
  limits.max_send_wr = limits.max_recv_wr = attributes.max_qp_wr;
  limits.max_cqe = attributes.max_cqe;
  return limits;
}

void describe_opened(const Library& library, const std::string& name, ibv_context* context, DeviceInfo& info) {
  auto attributes = zeroed<ibv_device_attr>();
  if (library.query_device(context, &attributes) == 0) {
    info.advertised = advertised(attributes);
    info.firmware = std::string(attributes.fw_ver, strnlen(attributes.fw_ver, sizeof attributes.fw_ver));
    info.emulated = is_emulated(name, attributes);
    info.windows = windows_of(attributes);
    info.on_demand_paging = pages_on_demand(context);
    info.ports = ports_of(library, context, attributes.phys_port_cnt);
  }
  const Result<std::unique_ptr<Device>> usable = Device::open(library, name);
  if (!usable) {
    info.refusal = usable.error().message;
    info.no_umr = "it cannot be used";
    return;
  }
  info.probed = (*usable)->limits();
  info.advertised.max_message_bytes = (*usable)->port().attributes.max_msg_sz;
  info.connection = fmt::format("port {}: {}", (*usable)->port().number, (*usable)->port().text());
  if (info.probed.indirect.keys == 0)
    info.no_umr = info.driver == "mlx5_core" ? fmt::format("{} offers none", name) : fmt::format("{} is no mlx5 device", name);
}

}  // namespace

bool is_emulated(std::string_view name, const ibv_device_attr& attributes) {
  std::error_code error;
  const fs::path folder = folder_of(name);
  if (fs::exists(folder, error) && !fs::exists(folder / "device", error)) return true;  // it sits on no bus
  return std::ranges::find(kNobody, attributes.vendor_id) != kNobody.end();
}

Devices describe() {
  Devices found;
  const Result<const Library*> library = Library::load();
  if (!library) {
    found.none = library.error().message;
    return found;
  }
  int count = 0;
  ibv_device** list = (*library)->get_device_list(&count);
  for (int i = 0; i < count; ++i) {
    const std::string name = (*library)->get_device_name(list[i]);
    DeviceInfo& info = found.list.emplace_back();
    info.nic = "verbs:" + name;
    info.driver = driver_of(name);
    const Owned<ibv_context> context((*library)->open_device(list[i]), (*library)->close_device);
    if (context) {
      describe_opened(**library, name, context.get(), info);
    } else {
      info.refusal = base::system_error(fmt::format("opening RDMA device {}", name), errno).message;
      info.no_umr = "it cannot be opened";
    }
  }
  if (list != nullptr) (*library)->free_device_list(list);
  if (found.list.empty())
    found.none = "no RDMA device: `ibv_devices` lists what the kernel has; its driver has to be loaded, and ibverbs-providers installed";
  return found;
}

}  // namespace lacuna::nic::verbs
