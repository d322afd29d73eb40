#include "lacuna/nic/ofi/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "lacuna/nic/ofi/provider.hpp"

namespace lacuna::nic::ofi {
namespace {

constexpr const char* kFile = "libfabric.so.1";

// Never closed: its providers may have threads.
base::Result<Library> load_once() {
  void* file = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr)
    return base::fail(base::Code::unsupported, fmt::format("NIC ofi needs libfabric ({}); Debian's package is libfabric1", dlerror()));
  const char* missing = nullptr;
  const auto find = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(dlsym(file, name));
    if (function == nullptr) missing = name;
  };
  Library library{};
  find(library.getinfo, "fi_getinfo");
  find(library.freeinfo, "fi_freeinfo");
  find(library.dupinfo, "fi_dupinfo");
  find(library.fabric, "fi_fabric");
  find(library.strerror, "fi_strerror");
  find(library.version, "fi_version");
  if (missing != nullptr) return base::fail(base::Code::unsupported, fmt::format("{} has no {}", kFile, missing));
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
