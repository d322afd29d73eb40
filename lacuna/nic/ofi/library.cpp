#include "lacuna/nic/ofi/library.hpp"

#include <fmt/format.h>

#include "lacuna/nic/functions.hpp"
#include "lacuna/nic/ofi/provider.hpp"

namespace lacuna::nic::ofi {
namespace {

constexpr const char* kFile = "libfabric.so.1";

base::Result<Library> load_once() {
  Functions functions(kFile);
  if (!functions.reason().empty())
    return base::fail(base::Code::unsupported,
                      fmt::format("NIC ofi needs libfabric ({}); Debian's package is libfabric1", functions.reason()));
  Library library{};
  functions.find(library.getinfo, "fi_getinfo");
  functions.find(library.freeinfo, "fi_freeinfo");
  functions.find(library.dupinfo, "fi_dupinfo");
  functions.find(library.fabric, "fi_fabric");
  functions.find(library.strerror, "fi_strerror");
  functions.find(library.version, "fi_version");
  if (functions.missing() != nullptr) return base::fail(base::Code::unsupported, fmt::format("{} has no {}", kFile, functions.missing()));
  if (FI_VERSION_LT(library.version(), kVersion))
    return base::fail(base::Code::unsupported,
                      fmt::format("{} is libfabric {}.{}; Lacuna needs {}.{} or newer", kFile, FI_MAJOR(library.version()),
                                  FI_MINOR(library.version()), FI_MAJOR(kVersion), FI_MINOR(kVersion)));
  return library;
}

}  // namespace

base::Result<const Library*> Library::load() {
  static const base::Result<Library> loaded = load_once();
  if (!loaded) return std::unexpected(loaded.error());
  return &*loaded;
}

base::Error failure(const Library& library, std::string_view call, long returned) {
  const auto number = static_cast<int>(-returned);
  const auto code = [&] {
    switch (number) {
      case FI_ENOMEM: return base::Code::out_of_memory;
      case FI_EACCES:
      case FI_EPERM: return base::Code::permission;
      case FI_ENODATA:
      case FI_ENOSYS:
      case FI_EOPNOTSUPP: return base::Code::unsupported;
      case FI_EMFILE: return base::Code::limit;
      default: return base::Code::io;
    }
  };
  return {code(), fmt::format("{}: {}", call, library.strerror(number))};
}

}  // namespace lacuna::nic::ofi
