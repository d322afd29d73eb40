// The two functions that NIXL looks up in libplugin_LACUNA.so.
#include <memory>

#include "lacuna/nixl/engine.hpp"

namespace lacuna::nixl {

nixlBackendPlugin& plugin() {
  static nixlBackendPlugin plugin{
      .api_version = kApiVersion,
      .create_engine = [](const nixlBackendInitParams* given) noexcept -> nixlBackendEngine* {
        nixlBackendEngine* made = nullptr;
        contained("createBackend", [&] { made = std::make_unique<Engine>(*given).release(); });
        return made;
      },
      .destroy_engine = [](nixlBackendEngine* engine) { delete engine; },
      .get_plugin_name = [] { return "LACUNA"; },
      .get_plugin_version = [] { return base::version().data(); },
      .get_backend_options = [] { return usual_parameters(); },
      .get_backend_mems = [] { return nixl_mem_list_t{DRAM_SEG}; },
  };
  return plugin;
}

}  // namespace lacuna::nixl

extern "C" {

__attribute__((visibility("default"))) nixlBackendPlugin* nixl_plugin_init();
__attribute__((visibility("default"))) void nixl_plugin_fini();

nixlBackendPlugin* nixl_plugin_init() { return &lacuna::nixl::plugin(); }
void nixl_plugin_fini() {}
}
