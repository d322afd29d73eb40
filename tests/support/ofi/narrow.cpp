#include "tests/support/ofi/narrow.hpp"

#include "lacuna/nic/ofi/context.hpp"
#include "tests/support/ofi/bound.hpp"

namespace lacuna::test::ofi {
namespace {

using nic::ofi::Info;
using nic::ofi::Library;

const Library* whole = nullptr;

int narrow_getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
                   fi_info** found) {
  const Info wanted(whole->dupinfo(hints), whole->freeinfo);
  if (wanted->tx_attr->msg_order != 0) return -FI_ENODATA;
  wanted->domain_attr->mr_mode &= ~FI_MR_VIRT_ADDR;  // offsets
  const int error = whole->getinfo(version, node, service, flags, wanted.get(), found);
  for (fi_info* one = error == 0 ? *found : nullptr; one != nullptr; one = one->next) {
    one->domain_attr->cq_data_size = sizeof(std::uint32_t);
    one->domain_attr->mr_mode |= FI_MR_PROV_KEY | FI_MR_ENDPOINT | FI_MR_LOCAL;
    one->tx_attr->iov_limit = one->tx_attr->rma_iov_limit = one->rx_attr->iov_limit = 1;
  }
  return error;
}

int narrow_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  const int error = whole->fabric(attributes, fabric, context);
  if (error == 0) bind_registrations(**fabric);
  return error;
}

}  // namespace

base::Result<std::unique_ptr<nic::Context>> open_narrow(const nic::OpenOptions& options) {
  static const base::Result<const Library*> loaded = Library::load();
  if (!loaded) return std::unexpected(loaded.error());
  static const Library narrow = [] {
    whole = *loaded;
    Library copy = **loaded;
    copy.getinfo = &narrow_getinfo;
    copy.fabric = &narrow_fabric;
    return copy;
  }();
  return nic::ofi::Context::create(LACUNA_TRY(nic::ofi::Provider::open(narrow, "tcp")), options);
}

}  // namespace lacuna::test::ofi
