// What libfabric's providers are, and whether this NIC can use them.
#include <algorithm>

#include "lacuna/nic/ofi/ofi.hpp"
#include "lacuna/nic/ofi/provider.hpp"

namespace lacuna::nic::ofi {

Providers describe() {
  Providers found;
  const Result<const Library*> loaded = Library::load();
  if (!loaded) {
    found.none = loaded.error().message;
    return found;
  }
  const Library& library = **loaded;
  fi_info* all = nullptr;
  if (library.getinfo(kVersion, nullptr, nullptr, 0, nullptr, &all) != 0) all = nullptr;
  const Info list(all, library.freeinfo);
  for (const fi_info* one = all; one != nullptr; one = one->next) {
    const std::string name = one->fabric_attr->prov_name;
    const std::string nic = "ofi:" + name;
    if (std::ranges::find(found.list, nic, &ProviderInfo::nic) != found.list.end()) continue;
    const Result<std::unique_ptr<Provider>> provider = Provider::open(library, name);
    if (provider && (*provider)->name() != name) continue;  // that one is in the list, too
    ProviderInfo& info = found.list.emplace_back(ProviderInfo{.nic = nic, .emulated = in_software(name)});
    if (!provider) {
      info.refusal = provider.error().message;
      continue;
    }
    info.connected = (*provider)->connected();
    info.ordered = (*provider)->ordered();
    info.limits = (*provider)->limits();
  }
  if (found.list.empty()) found.none = "libfabric has no provider here: `fi_info` lists what it has";
  return found;
}

}  // namespace lacuna::nic::ofi
