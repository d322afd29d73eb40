// libfabric as a table of functions. It is loaded at run time, and a test may put other functions here. All else goes
// through the tables of libfabric's objects.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <memory>

#include "lacuna/base/base.hpp"

namespace lacuna::nic::ofi {

struct Library {
  decltype(&::fi_getinfo) getinfo;
  decltype(&::fi_freeinfo) freeinfo;
  decltype(&::fi_dupinfo) dupinfo;
  decltype(&::fi_fabric) fabric;
  decltype(&::fi_strerror) strerror;
  decltype(&::fi_version) version;

  /// Once for a process. Errors: unsupported (it is not installed, or too old).
  static base::Result<const Library*> load();
};

/// What libfabric made, which fi_close() ends.
struct Close {
  template <class T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
template <class T>
using Owned = std::unique_ptr<T, Close>;

/// A list of fi_info, or one.
using Info = std::unique_ptr<fi_info, decltype(&::fi_freeinfo)>;

/// libfabric's words for what `call` returned, which is negative. Errors: by the number: out_of_memory, permission,
/// unsupported, limit, io.
[[nodiscard]] base::Error failure(const Library& library, std::string_view call, long returned);

}  // namespace lacuna::nic::ofi
