// One opened provider: its fabric and domain, what it takes and promises, and what of that this NIC needs.
#pragma once

#include <string>

#include "lacuna/nic/nic.hpp"
#include "lacuna/nic/ofi/library.hpp"

namespace lacuna::nic::ofi {

/// Of libfabric's interface; what Lacuna asks for is in every version since.
inline constexpr std::uint32_t kVersion = FI_VERSION(1, 11);
/// Entries of one list; libfabric's providers of today take 8 at most.
inline constexpr int kMostSge = 16;

class Provider {
 public:
  /// Errors: as ofi::open.
  static Result<std::unique_ptr<Provider>> open(const Library& library, std::string_view name);

  [[nodiscard]] const Library& library() const { return library_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] fi_info& info() const { return *info_; }
  [[nodiscard]] fid_fabric* fabric() const { return fabric_.get(); }
  [[nodiscard]] fid_domain* domain() const { return domain_.get(); }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// Endpoints that are connected (FI_EP_MSG), as a queue pair is.
  [[nodiscard]] bool connected() const { return info_->ep_attr->type == FI_EP_MSG; }
  /// Whether a message and a write become visible in the order in which they were posted, so that several may be under
  /// way; else one is at a time.
  [[nodiscard]] bool ordered() const { return ordered_; }
  /// Whether a completion queue may have a file to sleep on. With one rxm of libfabric 1.17 ends in a segmentation
  /// fault at the next fi_trywait(), once an endpoint was closed (tests/support/ofi/faults/closed_endpoint.c).
  [[nodiscard]] bool wakes() const { return !name_.ends_with("ofi_rxm"); }
  /// What may not be asked of a message without bytes. Provider shm of libfabric 1.17 never answers whether such a one
  /// was delivered where it cannot use CMA, and holds back all behind it (tests/support/ofi/faults/empty_message.c).
  [[nodiscard]] std::uint64_t unanswered_when_empty() const { return name_ == "shm" ? FI_DELIVERY_COMPLETE : 0; }
  /// Whether a completion has room for an immediate and the length of its write; else the length is said apart.
  [[nodiscard]] bool tells_lengths() const { return info_->domain_attr->cq_data_size >= sizeof(std::uint64_t); }
  [[nodiscard]] bool asks_for(int mr_mode) const { return (info_->domain_attr->mr_mode & mr_mode) != 0; }

 private:
  Provider(const Library& library, Info info, bool ordered);
  Result<void> open_domain();
  void find_limits();

  const Library& library_;
  std::string name_;
  Info info_;
  bool ordered_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Limits limits_;
};

/// What this NIC asks of a provider; `name` may be empty.
[[nodiscard]] Info hints(const Library& library, std::string_view name, fi_ep_type type, bool ordered);
/// Why this NIC cannot use what a provider offers; empty if it can.
[[nodiscard]] std::string why_not(const fi_info& info);
/// A provider in software: what it takes says nothing about hardware.
[[nodiscard]] bool in_software(std::string_view name);

}  // namespace lacuna::nic::ofi
