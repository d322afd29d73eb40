// One opened device: which port, GID and MTU its connections use, what it promises, and what it was found to take.
#pragma once

#include <memory>

#include "lacuna/nic/nic.hpp"
#include "lacuna/nic/verbs/library.hpp"
#include "lacuna/nic/verbs/settings.hpp"

namespace lacuna::nic::verbs {

// What libibverbs made, with the function that ends it.
template <class T>
using Owned = std::unique_ptr<T, int (*)(T*)>;

struct Port {
  std::uint8_t number = 1;
  ibv_port_attr attributes = zeroed<ibv_port_attr>();
  int gid_index = -1;  // -1: an InfiniBand port that is reached by its LID
  ibv_gid gid{};
  ibv_mtu mtu = IBV_MTU_1024;

  [[nodiscard]] bool ethernet() const { return attributes.link_layer == IBV_LINK_LAYER_ETHERNET; }
  [[nodiscard]] int mtu_bytes() const { return 128 << mtu; }
  /// "RoCE, GID 1 (::ffff:10.0.0.1), MTU 1024".
  [[nodiscard]] std::string text() const;
};

class Device {
 public:
  /// Errors: as verbs::open.
  static Result<std::unique_ptr<Device>> open(const Library& library, std::string_view name);
  /// What its devices are called. Errors: unsupported.
  static Result<std::vector<std::string>> names(const Library& library);

  [[nodiscard]] const Library& library() const { return library_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ibv_context* context() const { return context_.get(); }
  [[nodiscard]] ibv_pd* domain() const { return domain_.get(); }
  [[nodiscard]] const ibv_device_attr& attributes() const { return attributes_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const Port& port() const { return port_; }
  /// Whether it is now.
  [[nodiscard]] bool port_is_up() const;
  /// What queue pairs were found to take: sge above what the device promises too, inline data, of which it promises
  /// nothing.
  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// A queue pair for nothing else but `queue`; null with errno set.
  [[nodiscard]] Owned<ibv_qp> create_queue_pair(ibv_cq* queue, const ibv_qp_cap& cap) const;
  /// Of an mlx5 device whose indirect keys can be used; null of others.
  [[nodiscard]] const Mlx5* mlx5() const { return mlx5_; }
  /// Of regions, besides the rights that are asked for (ibv_reg_mr(3)).
  [[nodiscard]] unsigned usual_access() const { return usual_access_; }

 private:
  Device(const Library& library, const Settings& settings, std::string name)
      : library_(library),
        settings_(settings),
        name_(std::move(name)),
        context_(nullptr, library.close_device),
        domain_(nullptr, library.dealloc_pd) {}
  /// With indirect keys, if the device has them.
  Result<void> open_context(ibv_device* device);
  Result<void> find_port();
  Result<void> choose_gid();
  Result<void> find_features();
  Result<void> probe();

  const Library& library_;
  Settings settings_;
  std::string name_;
  Owned<ibv_context> context_;
  Owned<ibv_pd> domain_;
  const Mlx5* mlx5_ = nullptr;
  std::string no_keys_;  // why not
  unsigned usual_access_ = 0;
  ibv_device_attr attributes_{};
  Port port_;
  Limits limits_;
};

/// Whether a device is one in software (info.cpp).
[[nodiscard]] bool is_emulated(std::string_view name, const ibv_device_attr& attributes);

}  // namespace lacuna::nic::verbs
