// The tables of functions: devices, what is made on them, and completion queues.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lacuna/nic/verbs/context.hpp"
#include "tests/support/mlx5/posting.hpp"

namespace lacuna::test::mlx5 {
namespace {

using Lock = std::lock_guard<std::mutex>;
using nic::verbs::zeroed;

constexpr int kWqeRoom = 832;  // bytes that a work request has for entries or inline data, beside its heads
constexpr int kMostGather = 30;
constexpr std::uint32_t kDepth = 32768;  // units of 64 bytes of a send queue
constexpr std::uint32_t kHeads = 192;    // of a work request, whatever is in it
constexpr std::uint32_t kMostReceiveSge = 32;

struct Devices {
  std::array<ibv_device, 2> all{};
  std::array<ibv_device*, 3> list{};
  Devices() {
    std::strcpy(all[0].name, kDevice);
    std::strcpy(all[1].name, kOtherDevice);
    list = {all.data(), &all[1], nullptr};
  }
  static Devices& get() {
    static Devices devices;
    return devices;
  }
};

template <class T>
T* refuse(int error) {
  errno = error;
  return nullptr;
}

int poll_cq(ibv_cq* held, int most, ibv_wc* done) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  fabric.step();
  Queue& queue = fabric.queues.at(held);
  int found = 0;
  for (; found < most && !queue.entries.empty(); queue.entries.pop_front()) {
    const auto& [wc, sequence] = queue.entries.front();
    done[found++] = wc;
    const auto pair = fabric.pairs.find(wc.qp_num);
    if (pair != fabric.pairs.end()) pair->second.retired = std::max(pair->second.retired, sequence);
  }
  return found;
}

int req_notify_cq(ibv_cq* held, int /*solicited*/) {
  const Lock lock(Fabric::get().mutex);
  Fabric::get().queues.at(held).armed = true;
  return 0;
}

ibv_context* open_device(ibv_device* device) {
  const Lock lock(Fabric::get().mutex);
  auto* key = new ibv_context(zeroed<ibv_context>());
  key->device = device;
  key->async_fd = eventfd(0, EFD_CLOEXEC);
  key->ops.poll_cq = poll_cq;
  key->ops.req_notify_cq = req_notify_cq;
  key->ops.post_send = post_send;
  key->ops.post_recv = post_recv;
  Fabric::get().opens[key];
  return key;
}

int close_device(ibv_context* context) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  const bool used = std::ranges::any_of(fabric.domains, [&](const auto& one) { return one.second.context == context; });
  if (used) fabric.violations.emplace_back("a device was closed before its protection domain");
  close(context->async_fd);
  fabric.opens.erase(context);
  delete context;
  return 0;
}

int query_device(ibv_context* /*context*/, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->phys_port_cnt = 1;
  attributes->max_qp_wr = kDepth;
  attributes->max_sge = attributes->max_sge_rd = kMostGather;
  attributes->max_cqe = 1 << 20;
  attributes->max_mr = 1 << 20;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  return 0;
}

int query_port(ibv_context* /*context*/, std::uint8_t /*number*/, _compat_ibv_port_attr* given) {
  auto* attributes = reinterpret_cast<ibv_port_attr*>(given);
  attributes->state = IBV_PORT_ACTIVE;
  attributes->max_mtu = attributes->active_mtu = IBV_MTU_4096;
  attributes->max_msg_sz = 1 << 30;
  attributes->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

ssize_t query_gid_table(ibv_context* /*context*/, ibv_gid_entry* entries, std::size_t /*most*/, std::uint32_t /*flags*/,
                        std::size_t /*size*/) {
  entries[0] = {};
  entries[0].gid_index = 3;
  entries[0].port_num = 1;
  entries[0].gid_type = IBV_GID_TYPE_ROCE_V2;
  entries[0].gid.raw[10] = entries[0].gid.raw[11] = 0xff;
  entries[0].gid.raw[12] = 10;
  return 1;
}

int get_async_event(ibv_context* context, ibv_async_event* event) {
  const Lock lock(Fabric::get().mutex);
  std::deque<ibv_async_event>& events = Fabric::get().opens.at(context).events;
  if (events.empty()) {
    errno = EAGAIN;
    return -1;
  }
  *event = events.front();
  events.pop_front();
  return 0;
}

ibv_pd* alloc_pd(ibv_context* context) {
  const Lock lock(Fabric::get().mutex);
  auto* key = new ibv_pd{context, 0};
  Fabric::get().domains[key] = *key;
  return key;
}

int dealloc_pd(ibv_pd* domain) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  const bool used = std::ranges::any_of(fabric.regions, [&](const auto& one) { return one.second.mr.pd == domain; }) ||
                    std::ranges::any_of(fabric.mkeys, [&](const auto& one) { return one.second.domain == domain; }) ||
                    std::ranges::any_of(fabric.pairs, [&](const auto& one) { return one.second.extended.qp_base.pd == domain; });
  if (used) fabric.violations.emplace_back("a protection domain was given back before what is in it");
  fabric.domains.erase(domain);
  delete domain;
  return 0;
}

ibv_mr* reg_mr(ibv_pd* domain, void* addr, std::size_t length, std::uint64_t /*iova*/, unsigned access) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  if ((access & IBV_ACCESS_REMOTE_WRITE) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return refuse<ibv_mr>(EINVAL);
  int pinned = -1;
  if (fabric.pins != nullptr) {
    const auto done = fabric.pins->pin({static_cast<std::byte*>(addr), length});
    if (!done) return refuse<ibv_mr>(done.error().code == base::Code::limit ? ENOMEM : EFAULT);
    pinned = *done;
  }
  const std::uint32_t key = fabric.next_key();
  Region& region = fabric.regions[key];
  region.mr = {.context = domain->context, .pd = domain, .addr = addr, .length = length, .handle = 0, .lkey = key, .rkey = key};
  region.access = access & ~static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
  region.pinned = pinned;
  return &region.mr;
}

int dereg_mr(ibv_mr* mr) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  if (const int pinned = fabric.regions.at(mr->lkey).pinned; pinned >= 0) fabric.pins->unpin(pinned);
  fabric.regions.erase(mr->lkey);
  return 0;
}

ibv_comp_channel* create_comp_channel(ibv_context* context) {
  const Lock lock(Fabric::get().mutex);
  auto* key = new ibv_comp_channel{context, eventfd(0, EFD_CLOEXEC), 0};
  Fabric::get().channels[key].channel = *key;
  return key;
}

int destroy_comp_channel(ibv_comp_channel* channel) {
  const Lock lock(Fabric::get().mutex);
  close(channel->fd);
  Fabric::get().channels.erase(channel);
  delete channel;
  return 0;
}

int get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** context) {
  const Lock lock(Fabric::get().mutex);
  std::deque<ibv_cq*>& ready = Fabric::get().channels.at(channel).ready;
  std::uint64_t count = 0;
  if (ready.empty()) {
    if (read(channel->fd, &count, sizeof count) < 0) errno = EAGAIN;
    return -1;
  }
  *queue = ready.front();
  *context = nullptr;
  ready.pop_front();
  return 0;
}

ibv_cq* create_cq(ibv_context* context, int entries, void* /*user*/, ibv_comp_channel* channel, int /*vector*/) {
  const Lock lock(Fabric::get().mutex);
  auto* key = new ibv_cq(zeroed<ibv_cq>());
  key->context = context;
  key->channel = channel;
  key->cqe = entries;
  Queue& queue = Fabric::get().queues[key];
  queue.cq.cqe = entries;
  queue.cq.channel = channel;
  return key;
}

int destroy_cq(ibv_cq* held) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  const bool used = std::ranges::any_of(fabric.pairs, [&](const auto& one) { return one.second.extended.qp_base.send_cq == held; });
  if (used) return EBUSY;
  for (auto& [key, channel] : fabric.channels) std::erase(channel.ready, held);
  fabric.queues.erase(held);
  delete held;
  return 0;
}

ibv_qp* create(ibv_pd* domain, ibv_cq* queue, const ibv_qp_cap& cap, bool binds, bool scatters_to_cqe) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  const auto room = static_cast<std::uint32_t>(kWqeRoom);
  if (16 * cap.max_send_sge > room || cap.max_recv_sge > kMostReceiveSge || cap.max_inline_data + 4 > room) return refuse<ibv_qp>(EINVAL);
  const std::uint32_t units = (kHeads + std::max(16 * cap.max_send_sge, cap.max_inline_data + 4) + 63) / 64;
  if (std::bit_ceil(units * cap.max_send_wr) > kDepth) return refuse<ibv_qp>(EINVAL);
  const std::uint32_t number = fabric.next_number();
  Pair& pair = fabric.pairs[number];
  pair.extended.qp_base.context = domain->context;
  pair.extended.qp_base.pd = domain;
  pair.extended.qp_base.send_cq = pair.extended.qp_base.recv_cq = queue;
  pair.extended.qp_base.qp_num = number;
  pair.extended.qp_base.qp_type = IBV_QPT_RC;
  pair.cap = cap;
  pair.binds = binds;
  pair.scatters_to_cqe = scatters_to_cqe;
  if (binds) fill_builders(pair);
  fabric.numbers[&pair.extended.qp_base] = number;
  fabric.numbers[&pair.special] = number;
  return &pair.extended.qp_base;
}

// Which transitions there are, and what they need (ibv_modify_qp(3)).
int modify_qp(ibv_qp* held, ibv_qp_attr* attributes, int mask) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  Pair& pair = fabric.pair(held);
  const auto move = [&](ibv_qp_state from, int needs) {
    if (pair.state != from || (mask & needs) != needs) return EINVAL;
    pair.state = attributes->qp_state;
    return 0;
  };
  if ((mask & IBV_QP_RNR_RETRY) != 0) pair.rnr_retry = attributes->rnr_retry;
  if ((mask & IBV_QP_DEST_QPN) != 0) pair.remote = attributes->dest_qp_num;
  switch (attributes->qp_state) {
    case IBV_QPS_INIT: return move(IBV_QPS_RESET, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
      return move(IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                    IBV_QP_MIN_RNR_TIMER);
    case IBV_QPS_RTS:
      return move(IBV_QPS_RTR,
                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    case IBV_QPS_ERR: fabric.fail(pair); return 0;
    default: return EINVAL;
  }
}

int destroy_qp(ibv_qp* held) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  const std::uint32_t number = fabric.numbers.at(held);
  Pair& pair = fabric.pairs.at(number);
  // Its completions are gone with it.
  for (auto& [key, queue] : fabric.queues)
    std::erase_if(queue.entries, [&](const Queue::Entry& entry) { return entry.wc.qp_num == number; });
  for (auto& [key, open] : fabric.opens) std::erase_if(open.events, [&](const ibv_async_event& event) { return event.element.qp == held; });
  fabric.numbers.erase(&pair.special);
  fabric.numbers.erase(held);
  fabric.pairs.erase(number);
  return 0;
}

mlx5dv_mkey* create_mkey(mlx5dv_mkey_init_attr* wanted) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  if (wanted->create_flags != MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT || wanted->max_entries == 0) return refuse<mlx5dv_mkey>(EINVAL);
  const std::uint32_t key = fabric.next_key();
  Mkey& mkey = fabric.mkeys[key];
  wanted->max_entries = static_cast<std::uint16_t>((wanted->max_entries + 3) / 4 * 4);
  mkey.names = {key, key};
  mkey.domain = wanted->pd;
  mkey.most = wanted->max_entries;
  fabric.calls.push_back({Call::What::create_mkey, key, mkey.most});
  return &mkey.names;
}

int destroy_mkey(mlx5dv_mkey* mkey) {
  const Lock lock(Fabric::get().mutex);
  const std::uint32_t key = mkey->lkey;
  Fabric::get().calls.push_back({Call::What::destroy_mkey, key});
  Fabric::get().mkeys.erase(key);
  return 0;
}

// At the end of every program that uses the fake.
class NothingForbidden : public testing::Environment {
 public:
  void TearDown() override { EXPECT_EQ(violations(), std::vector<std::string>()); }
};
const auto* const kNothingForbidden = testing::AddGlobalTestEnvironment(new NothingForbidden);

}  // namespace

const nic::verbs::Library& library() {
  static const nic::verbs::Mlx5 mlx5{
      .is_supported = [](ibv_device* device) { return device == Devices::get().list[0]; },
      .open_device =
          [](ibv_device* device, mlx5dv_context_attr* wanted) {
            return wanted->flags == MLX5DV_CONTEXT_FLAGS_DEVX ? open_device(device) : refuse<ibv_context>(EINVAL);
          },
      .create_qp =
          [](ibv_context* /*context*/, ibv_qp_init_attr_ex* wanted, mlx5dv_qp_init_attr* special) {
            constexpr std::uint64_t kKeys = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED;
            constexpr unsigned kMasks = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
            if ((wanted->comp_mask & kMasks) != kMasks) return refuse<ibv_qp>(EINVAL);
            return create(wanted->pd, wanted->send_cq, wanted->cap,
                          (special->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS) != 0 && (special->send_ops_flags & kKeys) == kKeys,
                          (special->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) == 0 ||
                              (special->create_flags & MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE) == 0);
          },
      .qp_to_qp_ex = [](ibv_qp* held) { return reinterpret_cast<ibv_qp_ex*>(held); },
      .qp_ex_from_ibv_qp_ex =
          [](ibv_qp_ex* held) {
            const Lock lock(Fabric::get().mutex);
            return &Fabric::get().pair(held).special;
          },
      .create_mkey = create_mkey,
      .destroy_mkey = destroy_mkey,
  };
  static const nic::verbs::Library library{
      .get_device_list =
          [](int* count) {
            *count = 2;
            return Devices::get().list.data();
          },
      .free_device_list = [](ibv_device**) {},
      .get_device_name = [](ibv_device* device) -> const char* { return device->name; },
      .open_device = open_device,
      .close_device = close_device,
      .query_device = query_device,
      .query_port = query_port,
      .query_gid_table = query_gid_table,
      .get_async_event = get_async_event,
      .ack_async_event = [](ibv_async_event*) {},
      .alloc_pd = alloc_pd,
      .dealloc_pd = dealloc_pd,
      .reg_mr_iova2 = reg_mr,
      .dereg_mr = dereg_mr,
      .create_comp_channel = create_comp_channel,
      .destroy_comp_channel = destroy_comp_channel,
      .create_cq = create_cq,
      .destroy_cq = destroy_cq,
      .get_cq_event = get_cq_event,
      .ack_cq_events = [](ibv_cq*, unsigned) {},
      .create_qp = [](ibv_pd* domain, ibv_qp_init_attr* wanted) { return create(domain, wanted->send_cq, wanted->cap, false, true); },
      .modify_qp = modify_qp,
      .destroy_qp = destroy_qp,
      .wc_status_str = [](ibv_wc_status) -> const char* { return "a fake's status"; },
      .on_demand = [](ibv_context*) { return ibv_odp_caps{}; },
      .mlx5 = &mlx5,
  };
  return library;
}

nic::Result<std::unique_ptr<nic::Context>> open(const nic::OpenOptions& options, std::string_view device) {
  return nic::verbs::Context::create(LACUNA_TRY(nic::verbs::Device::open(library(), device)), options);
}

nic::Result<void> pin_pages() {
  const Lock lock(Fabric::get().mutex);
  if (Fabric::get().pins == nullptr) Fabric::get().pins = LACUNA_TRY(Pins::open());
  return {};
}

std::vector<Call> take_calls() {
  const Lock lock(Fabric::get().mutex);
  return std::exchange(Fabric::get().calls, {});
}

std::vector<std::string> violations() {
  const Lock lock(Fabric::get().mutex);
  return Fabric::get().violations;
}

}  // namespace lacuna::test::mlx5
