#include "lacuna/nic/verbs/device.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace lacuna::nic::verbs {
namespace {

constexpr int kMostGids = 256;
// Looked for above what a device promises; a work request of mlx5 has 1024 bytes, 61 entries
constexpr int kMostSge = 128;
constexpr int kMostInline = 1024;  // bytes
constexpr int kDepth = 4096;       // work requests of one queue: more than methods ask for

class List {
 public:
  explicit List(const Library& library) : library_(library), devices_(library.get_device_list(&count_)) {}
  ~List() {
    if (devices_ != nullptr) library_.free_device_list(devices_);
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  [[nodiscard]] std::span<ibv_device*> devices() const {
    return devices_ == nullptr ? std::span<ibv_device*>() : std::span(devices_, static_cast<std::size_t>(count_));
  }

 private:
  const Library& library_;
  int count_ = 0;
  ibv_device** devices_;
};

std::string gid_text(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
  return text.data();
}

// Version 2 before 1, which no router passes on; within one, addresses that reach further before those of the link, and
// IPv4's, which exist where somebody set the network up, first.
int merit(const ibv_gid_entry& entry) {
  const std::uint8_t* raw = entry.gid.raw;
  const bool ipv4 = std::all_of(raw, raw + 10, [](std::uint8_t byte) { return byte == 0; }) && raw[10] == 0xff && raw[11] == 0xff;
  const bool of_link = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
  const int version = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 4 : 0;
  return version + (ipv4 ? 2 : of_link ? 0 : 1);
}

// The largest of least..most that works, if `least` does; works(n) for n means works for less.
template <class Works>
int largest(int least, int most, const Works& works) {
  while (least < most) {
    const int middle = least + (most - least + 1) / 2;
    if (works(middle)) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return least;
}

}  // namespace

std::string Port::text() const {
  if (!ethernet())
    return fmt::format("InfiniBand, LID {}{}, MTU {}", attributes.lid, gid_index < 0 ? "" : fmt::format(", GID {}", gid_index),
                       mtu_bytes());
  return fmt::format("RoCE, GID {} ({}), MTU {}", gid_index, gid_text(gid), mtu_bytes());
}

Result<std::vector<std::string>> Device::names(const Library& library) {
  std::vector<std::string> names;
  const List list(library);
  for (ibv_device* device : list.devices()) names.emplace_back(library.get_device_name(device));
  return names;
}

Result<std::unique_ptr<Device>> Device::open(const Library& library, std::string_view name) {
  const Settings settings = LACUNA_TRY(Settings::from_environment());
  const List list(library);
  if (list.devices().empty())
    return base::fail(
        base::Code::unsupported,
        "no RDMA device: `ibv_devices` lists what the kernel has; its driver has to be loaded, and ibverbs-providers installed");
  std::vector<std::string> refused;
  for (ibv_device* candidate : list.devices()) {
    const std::string called = library.get_device_name(candidate);
    if (!name.empty() && name != called) continue;
    std::unique_ptr<Device> device(new Device(library, settings, called));
    LACUNA_TRY(device->open_context(candidate));
    Result<void> usable = device->find_port();
    if (usable) usable = device->choose_gid();
    if (usable) usable = device->find_features();
    if (usable) usable = device->probe();
    if (usable) return device;
    if (!name.empty()) return std::unexpected(usable.error());
    refused.push_back(usable.error().message);
  }
  if (!name.empty())
    return base::fail(base::Code::invalid_argument,
                      fmt::format("no RDMA device \"{}\"; there are: {}", name, fmt::join(LACUNA_TRY(names(library)), ", ")));
  return base::fail(base::Code::unsupported, fmt::format("no RDMA device can be used: {}", fmt::join(refused, "; ")));
}

Result<void> Device::open_context(ibv_device* device) {
  if (!library_.mlx5) {
    no_keys_ = library_.mlx5.error().message;
  } else if (!(*library_.mlx5)->is_supported(device)) {
    no_keys_ = "it is no mlx5 device";
  } else {
    context_.reset(open_with_devx(**library_.mlx5, device));
    if (context_) {
      mlx5_ = *library_.mlx5;
    } else {
      no_keys_ = fmt::format("its kernel has no DEVX: {}", std::strerror(errno));
    }
  }
  if (!context_) context_.reset(library_.open_device(device));
  if (!context_) return std::unexpected(base::system_error(fmt::format("opening RDMA device {}", name_), errno));
  domain_.reset(library_.alloc_pd(context()));
  if (!domain_) return std::unexpected(base::system_error(fmt::format("ibv_alloc_pd of {}", name_), errno));
  if (library_.query_device(context(), &attributes_) != 0)
    return std::unexpected(base::system_error(fmt::format("ibv_query_device of {}", name_), errno));
  return {};
}

Result<void> Device::find_port() {
  const int first = settings_.port.value_or(1);
  const int last = settings_.port.value_or(attributes_.phys_port_cnt);
  for (int number = first; number <= last; ++number) {
    auto attributes = zeroed<ibv_port_attr>();
    // Through the function, which fills an older struct, a prefix of today's.
    if (library_.query_port(context(), static_cast<std::uint8_t>(number), reinterpret_cast<_compat_ibv_port_attr*>(&attributes)) != 0)
      continue;
    if (attributes.state != IBV_PORT_ACTIVE) continue;
    port_.number = static_cast<std::uint8_t>(number);
    port_.attributes = attributes;
    port_.mtu = attributes.active_mtu;
    if (settings_.mtu) {
      const int wanted = *settings_.mtu;
      if (!std::has_single_bit(static_cast<unsigned>(wanted)) || wanted > port_.mtu_bytes())
        return base::fail(base::Code::invalid_argument, fmt::format("LACUNA_VERBS_MTU={}; port {} of {} takes a power of 2 up to {}",
                                                                    wanted, number, name_, port_.mtu_bytes()));
      port_.mtu = static_cast<ibv_mtu>(std::countr_zero(static_cast<unsigned>(wanted)) - 7);
    }
    return {};
  }
  return base::fail(base::Code::unsupported,
                    fmt::format("no port of {} is up{} (`rdma link` shows them)", name_,
                                settings_.port ? fmt::format(" or is number {}, which LACUNA_VERBS_PORT wants", first) : ""));
}

bool Device::port_is_up() const {
  auto attributes = zeroed<ibv_port_attr>();
  return library_.query_port(context(), port_.number, reinterpret_cast<_compat_ibv_port_attr*>(&attributes)) == 0 &&
         attributes.state == IBV_PORT_ACTIVE;
}

Result<void> Device::choose_gid() {
  std::array<ibv_gid_entry, kMostGids> table{};
  const ssize_t found = library_.query_gid_table(context(), table.data(), table.size(), 0, sizeof table[0]);
  if (found < 0) return std::unexpected(base::system_error(fmt::format("the GID table of {}", name_), static_cast<int>(-found)));
  const ibv_gid_entry* best = nullptr;
  for (const ibv_gid_entry& entry : std::span(table).first(static_cast<std::size_t>(found))) {
    if (entry.port_num != port_.number) continue;
    if (settings_.gid ? std::cmp_equal(entry.gid_index, *settings_.gid) : best == nullptr || merit(entry) > merit(*best)) best = &entry;
  }
  if (settings_.gid && best == nullptr)
    return base::fail(base::Code::invalid_argument,
                      fmt::format("LACUNA_VERBS_GID={}; port {} of {} has no such GID (`rdma_gids` or `ibv_devinfo -v` list them)",
                                  *settings_.gid, port_.number, name_));
  if (best == nullptr) {
    if (!port_.ethernet()) return {};
    return base::fail(base::Code::unsupported,
                      fmt::format("port {} of {} has no GID: its network device needs an address", port_.number, name_));
  }
  // In a fabric with LIDs a GID is needed only across subnets.
  if (!port_.ethernet() && !settings_.gid && port_.attributes.lid != 0) return {};
  port_.gid_index = static_cast<int>(best->gid_index);
  port_.gid = best->gid;
  return {};
}

// Windows of type 2, either kind of which ours are: bound to a queue pair, and to its domain. Paging on demand is asked
// for, since it costs at each first touch.
Result<void> Device::find_features() {
  constexpr unsigned kWindows = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  if ((attributes_.device_cap_flags & kWindows) != 0 && attributes_.max_mw > 0) {
    limits_.windows = attributes_.max_mw;
    usual_access_ |= IBV_ACCESS_MW_BIND;
  }
  if (!settings_.on_demand) return {};
  constexpr std::uint32_t kOperations = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
  const ibv_odp_caps caps = library_.on_demand(context());
  if ((caps.general_caps & IBV_ODP_SUPPORT) == 0 || (caps.per_transport_caps.rc_odp_caps & kOperations) != kOperations)
    return base::fail(base::Code::unsupported,
                      fmt::format("LACUNA_VERBS_ODP=1; {} has no on-demand paging for all of send, receive, write and read", name_));
  usual_access_ |= IBV_ACCESS_ON_DEMAND;
  if (mlx5_ != nullptr) {
    mlx5_ = nullptr;
    no_keys_ = "LACUNA_VERBS_ODP=1, and nobody has tried indirect keys with on-demand paging";
  }
  return {};
}

Owned<ibv_qp> Device::create_queue_pair(ibv_cq* queue, const ibv_qp_cap& cap) const {
  if (mlx5_ != nullptr) return {create_binding_pair(*mlx5_, context(), domain(), queue, cap), library_.destroy_qp};
  auto wanted = zeroed<ibv_qp_init_attr>();
  wanted.send_cq = wanted.recv_cq = queue;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = cap;
  return {library_.create_qp(domain(), &wanted), library_.destroy_qp};
}

// Queue pairs that are made for nothing but to see whether they can be.
Result<void> Device::probe() {
  const Owned<ibv_cq> queue(library_.create_cq(context(), 4, nullptr, nullptr, 0), library_.destroy_cq);
  if (!queue) return std::unexpected(base::system_error(fmt::format("ibv_create_cq of {}", name_), errno));
  const auto works = [&](int sge, int inlined, int depth) {
    return create_queue_pair(queue.get(), {.max_send_wr = static_cast<std::uint32_t>(depth),
                                           .max_recv_wr = static_cast<std::uint32_t>(depth),
                                           .max_send_sge = static_cast<std::uint32_t>(sge),
                                           .max_recv_sge = static_cast<std::uint32_t>(sge),
                                           .max_inline_data = static_cast<std::uint32_t>(inlined)}) != nullptr;
  };
  if (mlx5_ != nullptr && (!works(1, 0, 1) || !Keys(*mlx5_, domain()).create(1))) {
    no_keys_ = fmt::format("it makes none: {}", std::strerror(errno));
    mlx5_ = nullptr;
  }
  if (!works(1, 0, 1)) return std::unexpected(base::system_error(fmt::format("ibv_create_qp of {}", name_), errno));
  limits_.max_sge = largest(1, kMostSge, [&](int sge) { return works(sge, 0, 1); });
  limits_.max_inline = largest(0, kMostInline, [&](int bytes) { return works(limits_.max_sge, bytes, 1); });
  limits_.max_sge_rd = std::min(limits_.max_sge, attributes_.max_sge_rd > 0 ? attributes_.max_sge_rd : attributes_.max_sge);
  // How many depends on how long they are. One is ours (QueuePair::beat).
  const int depth = largest(2, std::min(kDepth, std::max(2, attributes_.max_qp_wr)),
                            [&](int n) { return works(limits_.max_sge, limits_.max_inline, n); });
  limits_.max_send_wr = limits_.max_recv_wr = depth - 1;
  limits_.max_cqe = attributes_.max_cqe;
  limits_.max_message_bytes = port_.attributes.max_msg_sz;
  limits_.remote_segments = 1;
  if (mlx5_ != nullptr) {
    limits_.indirect = limits_of_keys(static_cast<std::uint32_t>(limits_.max_inline), attributes_.max_mr);
    limits_.indirect.note = fmt::format("{}: through mlx5dv; not run on hardware", name_);
  } else {
    limits_.indirect.note = fmt::format("{}: {}", name_, no_keys_);
  }
  limits_.emulated = is_emulated(name_, attributes_);
  limits_.pins = (usual_access_ & IBV_ACCESS_ON_DEMAND) == 0;
  limits_.paths = {
      {Path::wire, true, true, false, Mover::device, port_.mtu_bytes(), fmt::format("{}, port {}: {}", name_, port_.number, port_.text())}};
  return {};
}

}  // namespace lacuna::nic::verbs
