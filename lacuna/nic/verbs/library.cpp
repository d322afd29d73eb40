#include "lacuna/nic/verbs/library.hpp"

#include <fmt/format.h>

#include "lacuna/nic/functions.hpp"

namespace lacuna::nic::verbs {
namespace {

constexpr const char* kFile = "libibverbs.so.1";

ibv_odp_caps on_demand(ibv_context* context) {
  auto attributes = zeroed<ibv_device_attr_ex>();
  const verbs_context* extended = verbs_get_ctx_op(context, query_device_ex);
  if (extended == nullptr || extended->query_device_ex(context, nullptr, &attributes, sizeof attributes) != 0) return {};
  return attributes.odp_caps;
}

base::Result<Library> load_once() {
  Functions functions(kFile);
  if (!functions.reason().empty())
    return base::fail(base::Code::unsupported,
                      fmt::format("RDMA devices need rdma-core's libibverbs ({}); Debian's package is libibverbs1, with drivers in "
                                  "ibverbs-providers",
                                  functions.reason()));
  Library library{};
  functions.find(library.get_device_list, "ibv_get_device_list");
  functions.find(library.free_device_list, "ibv_free_device_list");
  functions.find(library.get_device_name, "ibv_get_device_name");
  functions.find(library.open_device, "ibv_open_device");
  functions.find(library.close_device, "ibv_close_device");
  functions.find(library.query_device, "ibv_query_device");
  functions.find(library.query_port, "ibv_query_port");
  functions.find(library.query_gid_table, "_ibv_query_gid_table");
  functions.find(library.get_async_event, "ibv_get_async_event");
  functions.find(library.ack_async_event, "ibv_ack_async_event");
  functions.find(library.alloc_pd, "ibv_alloc_pd");
  functions.find(library.dealloc_pd, "ibv_dealloc_pd");
  functions.find(library.reg_mr_iova2, "ibv_reg_mr_iova2");
  functions.find(library.dereg_mr, "ibv_dereg_mr");
  functions.find(library.create_comp_channel, "ibv_create_comp_channel");
  functions.find(library.destroy_comp_channel, "ibv_destroy_comp_channel");
  functions.find(library.create_cq, "ibv_create_cq");
  functions.find(library.destroy_cq, "ibv_destroy_cq");
  functions.find(library.get_cq_event, "ibv_get_cq_event");
  functions.find(library.ack_cq_events, "ibv_ack_cq_events");
  functions.find(library.create_qp, "ibv_create_qp");
  functions.find(library.modify_qp, "ibv_modify_qp");
  functions.find(library.destroy_qp, "ibv_destroy_qp");
  functions.find(library.wc_status_str, "ibv_wc_status_str");
  if (functions.missing() != nullptr)
    return base::fail(base::Code::unsupported, fmt::format("{} has no {}; Lacuna needs rdma-core 33 or newer", kFile, functions.missing()));
  library.on_demand = on_demand;
  library.mlx5 = Mlx5::load();
  return library;
}

}  // namespace

base::Result<const Library*> Library::load() {
  static const base::Result<Library> loaded = load_once();
  if (!loaded) return std::unexpected(loaded.error());
  return &*loaded;
}

}  // namespace lacuna::nic::verbs
