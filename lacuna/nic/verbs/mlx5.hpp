// Indirect keys on mlx5 devices (UMR), through mlx5dv. *Not run on hardware*: tests run it on a fake of these
// functions, which keeps their documented rules (tests/support/mlx5).
//
//   create      mlx5dv_create_mkey, in a context with DEVX
//   bind        one work request: mlx5dv_wr_mr_list or mlx5dv_wr_mr_interleaved, its entries inline (ibv_wr_post(3),
//               mlx5dv_wr_post(3))
//   invalidate  IBV_WR_LOCAL_INV
//
// What a work request holds inline is what a key takes: layouts with more pieces are given several keys by the methods.
#pragma once

#include <infiniband/mlx5dv.h>

#include <memory>
#include <unordered_map>

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic::verbs {

// The functions of libmlx5 and libibverbs that this needs, and that other functions can stand in for.
struct Mlx5 {
  decltype(&::mlx5dv_is_supported) is_supported;
  decltype(&::mlx5dv_open_device) open_device;
  decltype(&::mlx5dv_create_qp) create_qp;
  decltype(&::ibv_qp_to_qp_ex) qp_to_qp_ex;
  decltype(&::mlx5dv_qp_ex_from_ibv_qp_ex) qp_ex_from_ibv_qp_ex;
  decltype(&::mlx5dv_create_mkey) create_mkey;
  decltype(&::mlx5dv_destroy_mkey) destroy_mkey;

  /// Once for a process. Errors: unsupported (not installed, or too old).
  static Result<const Mlx5*> load();
};

/// A context in which indirect keys can be made; null with errno set if the kernel refuses DEVX.
[[nodiscard]] ibv_context* open_with_devx(const Mlx5& mlx5, ibv_device* device);

/// A queue pair that takes bind requests; null with errno set.
[[nodiscard]] ibv_qp* create_binding_pair(const Mlx5& mlx5, ibv_context* context, ibv_pd* domain, ibv_cq* queue, const ibv_qp_cap& cap);

/// What keys take on queue pairs with so much room for inline data.
[[nodiscard]] IndirectLimits limits_of_keys(std::uint32_t max_inline_data, int max_mr);

class Keys {
 public:
  Keys(const Mlx5& mlx5, ibv_pd* domain) : mlx5_(mlx5), domain_(domain) {}
  /// Errors: out_of_memory, io; with errno's words.
  Result<std::uint32_t> create(int entries);
  void destroy(std::uint32_t key) { keys_.erase(key); }
  [[nodiscard]] int count() const { return static_cast<int>(keys_.size()); }
  /// Entries of a key; 0 if it is none.
  [[nodiscard]] int room(std::uint32_t key) const;
  /// What the device would not see, or take for something else. Errors: invalid_argument, limit.
  [[nodiscard]] Result<void> check(const Binding& binding) const;
  /// Adds the bind request to those that were begun on `pair`; wr_id and wr_flags are set. The binding was checked.
  void write(ibv_qp_ex* pair, const Binding& binding);

 private:
  struct Key {
    std::unique_ptr<mlx5dv_mkey, int (*)(mlx5dv_mkey*)> mkey;
    int entries;
  };
  const Mlx5& mlx5_;
  ibv_pd* domain_;
  std::unordered_map<std::uint32_t, Key> keys_;
  std::vector<ibv_sge> list_;
  std::vector<mlx5dv_mr_interleaved> interleaved_;
};

}  // namespace lacuna::nic::verbs
