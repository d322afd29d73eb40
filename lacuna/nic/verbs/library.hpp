// libibverbs as a table of functions. It is loaded at run time: a program that uses no device needs none of it, and a
// test may put other functions here. What verbs.h calls through a context's own table (post, poll) is not among them.
#pragma once

#include <infiniband/verbs.h>

#include <cstring>

#include "lacuna/base/base.hpp"
#include "lacuna/nic/verbs/mlx5.hpp"

namespace lacuna::nic::verbs {

/// A bit of one of libibverbs' sets of flags, or none.
constexpr unsigned bit(bool wanted, unsigned flag) { return wanted ? flag : 0; }

/// One of libibverbs' structs, all of it zero: also its enums, some of which have no such value.
template <class T>
T zeroed() {
  T all;
  std::memset(&all, 0, sizeof all);
  return all;
}

struct Library {
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_name) get_device_name;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port;
  decltype(&::_ibv_query_gid_table) query_gid_table;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  // The one that leaves out what a kernel does not know of IBV_ACCESS_OPTIONAL_RANGE
  decltype(&::ibv_reg_mr_iova2) reg_mr_iova2;
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_wc_status_str) wc_status_str;
  /// Of ibv_query_device_ex, which verbs.h calls through the context, too; none if the driver does not know it.
  ibv_odp_caps (*on_demand)(ibv_context*);
  Result<const Mlx5*> mlx5 = base::fail(base::Code::unsupported, "mlx5dv was not loaded");

  /// Once for a process. Errors: unsupported (it is not installed, or too old: the function that is missing is named).
  static base::Result<const Library*> load();
};

}  // namespace lacuna::nic::verbs
