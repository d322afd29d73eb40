#include "lacuna/nic/verbs/mlx5.hpp"

#include <fmt/format.h>

#include "lacuna/nic/functions.hpp"

#include <algorithm>
#include <cerrno>

#include "lacuna/nic/verbs/library.hpp"

namespace lacuna::nic::verbs {
namespace {

constexpr const char* kFile = "libmlx5.so.1";
constexpr std::uint32_t kEntryBytes = 16;             // of a key's entry in a work request
constexpr std::uint32_t kGroup = 4;                   // entries come in groups of 64 bytes
constexpr std::uint32_t kMostPiece = (1U << 31) - 1;  // bytes of an entry of a list
constexpr std::int64_t kMostStride =
    // 16 bits in the work request, 32 in mlx5dv_mr_interleaved: a larger one would be cut in silence
    0xffff;
constexpr int kMostKeys = 1 << 14;                  // more than methods hold
constexpr std::uint32_t kEntriesWithoutInline = 4;  // mlx5dv_wr_post(3)

Result<Mlx5> load_once() {
  Functions functions(kFile);
  if (!functions.reason().empty())
    return base::fail(base::Code::unsupported,
                      fmt::format("its keys need rdma-core's {} ({}); Debian's package is ibverbs-providers", kFile, functions.reason()));
  Mlx5 mlx5{};
  functions.find(mlx5.is_supported, "mlx5dv_is_supported");
  functions.find(mlx5.open_device, "mlx5dv_open_device");
  functions.find(mlx5.create_qp, "mlx5dv_create_qp");
  functions.find(mlx5.qp_to_qp_ex, "ibv_qp_to_qp_ex");
  functions.find(mlx5.qp_ex_from_ibv_qp_ex, "mlx5dv_qp_ex_from_ibv_qp_ex");
  functions.find(mlx5.create_mkey, "mlx5dv_create_mkey");
  functions.find(mlx5.destroy_mkey, "mlx5dv_destroy_mkey");
  if (functions.missing() != nullptr)
    return base::fail(base::Code::unsupported, fmt::format("{} has no {}; rdma-core 33 or newer has", kFile, functions.missing()));
  return mlx5;
}

int access_of(const Rights& rights) {
  return static_cast<int>(bit(rights.local_write || rights.remote_write, IBV_ACCESS_LOCAL_WRITE) |
                          bit(rights.remote_write, IBV_ACCESS_REMOTE_WRITE) | bit(rights.remote_read, IBV_ACCESS_REMOTE_READ));
}

}  // namespace

Result<const Mlx5*> Mlx5::load() {
  static const Result<Mlx5> loaded = load_once();
  if (!loaded) return std::unexpected(loaded.error());
  return &*loaded;
}

ibv_context* open_with_devx(const Mlx5& mlx5, ibv_device* device) {
  mlx5dv_context_attr attributes{.flags = MLX5DV_CONTEXT_FLAGS_DEVX, .comp_mask = 0};
  return mlx5.open_device(device, &attributes);
}

ibv_qp* create_binding_pair(const Mlx5& mlx5, ibv_context* context, ibv_pd* domain, ibv_cq* queue, const ibv_qp_cap& cap) {
  auto wanted = zeroed<ibv_qp_init_attr_ex>();
  wanted.send_cq = wanted.recv_cq = queue;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = cap;
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  wanted.pd = domain;
  wanted.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                          IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
  // A short message would be put into its completion, and from there to the entry's address, which of an indirect key
  // is none (mlx5dv_create_qp(3)).
  auto special = zeroed<mlx5dv_qp_init_attr>();
  special.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
  special.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
  special.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED;
  return mlx5.create_qp(context, &wanted, &special);
}

IndirectLimits limits_of_keys(std::uint32_t max_inline_data, int max_mr) {
  // Inline data has a header of 4 bytes, which a binding has not. One entry is the head of those with strides.
  const std::uint32_t inlined = std::max(kEntriesWithoutInline, (max_inline_data + 4) / kEntryBytes / kGroup * kGroup);
  const int entries = static_cast<int>(inlined);
  return {.keys = std::min(kMostKeys, max_mr),
          .entries = entries,
          .inline_entries = entries,
          .strided_entries = entries - 1,
          .stride = kMostStride};
}

Result<std::uint32_t> Keys::create(int entries) {
  // One more for the head of strided entries, and whole groups.
  const auto room = (static_cast<std::uint32_t>(entries) + 1 + kGroup - 1) / kGroup * kGroup;
  mlx5dv_mkey_init_attr wanted{
      .pd = domain_, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = static_cast<std::uint16_t>(room)};
  Key key{{mlx5_.create_mkey(&wanted), mlx5_.destroy_mkey}, entries};
  if (!key.mkey) return std::unexpected(base::system_error(fmt::format("mlx5dv_create_mkey of {} entries", room), errno));
  if (key.mkey->lkey != key.mkey->rkey)
    return base::fail(base::Code::unsupported, "an indirect key with another lkey than rkey, which mlx5 never made");
  list_.reserve(room);  // not between ibv_wr_start and ibv_wr_complete
  interleaved_.reserve(room);
  const std::uint32_t number = key.mkey->lkey;
  keys_.insert_or_assign(number, std::move(key));
  return number;
}

int Keys::room(std::uint32_t key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? 0 : found->second.entries;
}

Result<void> Keys::check(const Binding& binding) const {
  if (room(binding.key) == 0)
    return base::fail(base::Code::invalid_argument,
                      fmt::format("a binding of key {:#x}, which is no indirect key of this context", binding.key));
  const auto entry = [&](std::uint32_t bytes, std::uint32_t lkey) -> Result<void> {
    // mlx5 takes a length of 0 for 2 GiB.
    if (bytes == 0) return base::fail(base::Code::invalid_argument, "an entry of 0 bytes in a binding");
    if (bytes > kMostPiece)
      return base::fail(base::Code::limit, fmt::format("an entry of {} bytes; an indirect key takes {}", bytes, kMostPiece));
    if (room(lkey) != 0)
      return base::fail(base::Code::invalid_argument, "an indirect key as an entry of another; entries have regions' keys");
    return {};
  };
  for (const Sge& sge : binding.list) LACUNA_TRY(entry(sge.length, sge.lkey));
  for (const Strided& strided : binding.strided) LACUNA_TRY(entry(strided.bytes, strided.lkey));
  if (binding.list.empty() && binding.strided.empty()) return base::fail(base::Code::invalid_argument, "a binding of no entries");
  return {};
}

void Keys::write(ibv_qp_ex* pair, const Binding& binding) {
  mlx5dv_qp_ex* special = mlx5_.qp_ex_from_ibv_qp_ex(pair);
  mlx5dv_mkey* mkey = keys_.find(binding.key)->second.mkey.get();
  const auto access = static_cast<std::uint32_t>(access_of(binding.rights));
  if (binding.repeat == 0) {
    list_.clear();
    for (const Sge& sge : binding.list) list_.push_back({sge.addr, sge.length, sge.lkey});
    mlx5dv_wr_mr_list(special, mkey, access, static_cast<std::uint16_t>(list_.size()), list_.data());
    return;
  }
  interleaved_.clear();
  for (const Strided& strided : binding.strided)
    interleaved_.push_back(
        {.addr = strided.addr, .bytes_count = strided.bytes, .bytes_skip = strided.stride - strided.bytes, .lkey = strided.lkey});
  mlx5dv_wr_mr_interleaved(special, mkey, access, binding.repeat, static_cast<std::uint16_t>(interleaved_.size()), interleaved_.data());
}

}  // namespace lacuna::nic::verbs
