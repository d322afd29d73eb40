#include "lacuna/nic/ofi/provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace lacuna::nic::ofi {
namespace {

// The queues are this NIC's own: what a provider does not take now is tried again. 1024 is more than methods ask for.
constexpr int kDepth = 1024;
constexpr int kMostInline = 256;                              // bytes, which a request keeps
constexpr int kMostCompletions = 1 << 16;                     // of one completion queue
constexpr std::int64_t kMostMessage = std::int64_t{1} << 31;  // as on devices of RDMA

// A write behind a message, a write or a read, and a message behind any, take effect after it.
constexpr std::uint64_t kOrder = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RAW;

constexpr std::array<std::string_view, 5> kSoftware{"tcp", "sockets", "udp", "net", "shm"};

}  // namespace

bool in_software(std::string_view name) { return std::ranges::find(kSoftware, name.substr(0, name.find(';'))) != kSoftware.end(); }

Info hints(const Library& library, std::string_view name, fi_ep_type type, bool ordered) {
  Info wanted(library.dupinfo(nullptr), library.freeinfo);
  if (!wanted) return wanted;
  wanted->caps = FI_MSG | FI_RMA;
  wanted->mode = FI_CONTEXT | FI_CONTEXT2;
  wanted->ep_attr->type = type;
  wanted->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  wanted->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  wanted->domain_attr->threading = FI_THREAD_DOMAIN;
  wanted->domain_attr->resource_mgmt = FI_RM_ENABLED;
  if (ordered) wanted->tx_attr->msg_order = wanted->rx_attr->msg_order = kOrder;
  if (!name.empty()) wanted->fabric_attr->prov_name = strndup(name.data(), name.size());  // fi_freeinfo() frees this
  return wanted;
}

std::string why_not(const fi_info& info) {
  const std::string_view name = info.fabric_attr->prov_name;
  if (name.ends_with("ofi_rxd")) return "transfers stop on it, in Lacuna's tests with libfabric 1.17";
  if (info.domain_attr->cq_data_size < sizeof(std::uint32_t))
    return fmt::format("its completions carry {} bytes; an immediate takes 4", info.domain_attr->cq_data_size);
  if (info.domain_attr->mr_key_size > sizeof(std::uint64_t)) return "its keys are longer than 8 bytes";
  if (info.ep_attr->msg_prefix_size != 0) return "its messages need a prefix in the user's memory";
  if (info.tx_attr->iov_limit < 1 || info.tx_attr->rma_iov_limit < 1 || info.rx_attr->iov_limit < 1) return "it takes no lists";
  return {};
}

Provider::Provider(const Library& library, Info info, bool ordered)
    : library_(library), name_(info->fabric_attr->prov_name), info_(std::move(info)), ordered_(ordered) {}

Result<std::unique_ptr<Provider>> Provider::open(const Library& library, std::string_view name) {
  std::string refused;
  for (const fi_ep_type type : {FI_EP_MSG, FI_EP_RDM}) {
    for (const bool ordered : {true, false}) {
      const Info wanted = hints(library, name, type, ordered);
      if (!wanted) return base::fail(base::Code::out_of_memory, "fi_allocinfo");
      fi_info* found = nullptr;
      if (library.getinfo(kVersion, nullptr, nullptr, 0, wanted.get(), &found) != 0) continue;
      const Info list(found, library.freeinfo);
      for (const fi_info* one = found; one != nullptr; one = one->next) {
        const std::string_view called = one->fabric_attr->prov_name;
        if (const std::string why = why_not(*one); !why.empty()) {
          if (refused.find(called) == std::string::npos) refused += fmt::format("; {}: {}", called, why);
          continue;
        }
        Info taken(library.dupinfo(one), library.freeinfo);
        if (!taken) return base::fail(base::Code::out_of_memory, "fi_dupinfo");
        std::unique_ptr<Provider> provider(new Provider(library, std::move(taken), ordered));
        LACUNA_TRY(provider->open_domain());
        provider->find_limits();
        return provider;
      }
    }
  }
  return base::fail(base::Code::unsupported,
                    fmt::format("libfabric has no provider {}with messages and remote memory access here{} (`fi_info` lists what it has)",
                                name.empty() ? "" : fmt::format("\"{}\" ", name), refused));
}

Result<void> Provider::open_domain() {
  fid_fabric* fabric = nullptr;
  if (const int error = library_.fabric(info_->fabric_attr, &fabric, nullptr); error != 0)
    return std::unexpected(failure(library_, fmt::format("fi_fabric of {}", name_), error));
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  if (const int error = fi_domain(fabric, info_.get(), &domain, nullptr); error != 0)
    return std::unexpected(failure(library_, fmt::format("fi_domain of {}", name_), error));
  domain_.reset(domain);
  return {};
}

void Provider::find_limits() {
  const auto least = [](std::size_t one, std::size_t other, int most) {
    return static_cast<int>(std::min({one, other, static_cast<std::size_t>(most)}));
  };
  limits_.max_sge = limits_.max_sge_rd = least(info_->tx_attr->iov_limit, info_->rx_attr->iov_limit, kMostSge);
  limits_.max_inline = least(info_->tx_attr->inject_size, kMostInline, kMostInline);
  limits_.max_send_wr = limits_.max_recv_wr = kDepth;
  limits_.max_cqe = kMostCompletions;
  limits_.max_message_bytes = static_cast<std::int64_t>(std::min<std::size_t>(info_->ep_attr->max_msg_size, kMostMessage));
  limits_.indirect.note = fmt::format("ofi:{}: libfabric has none", name_);
  limits_.emulated = in_software(name_);
  const Mover mover = limits_.emulated ? Mover::both : Mover::device;
  const std::string where = info_->domain_attr->name == nullptr ? "" : fmt::format(", {}", info_->domain_attr->name);
  limits_.paths = {{Path::wire, true, false, false, mover, 0,
                    fmt::format("libfabric's {}{}; the target's CPU answers the first use of a key", name_, where)}};
}

}  // namespace lacuna::nic::ofi
