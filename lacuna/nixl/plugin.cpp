// The two functions that NIXL looks up in libplugin_LACUNA.so.
#include <memory>
#include <new>

#include "lacuna/base/base.hpp"
#include "lacuna/nixl/engine.hpp"
#include "lacuna/nixl/interface.hpp"

using lacuna::nixl::Engine;

extern "C" {

__attribute__((visibility("default"))) nixlBackendPlugin* nixl_plugin_init();
__attribute__((visibility("default"))) void nixl_plugin_fini();

nixlBackendPlugin* nixl_plugin_init() {
  static nixlBackendPlugin plugin{
      .api_version = lacuna::nixl::kApiVersion,
      .create_engine = [](const nixlBackendInitParams* given) noexcept -> nixlBackendEngine* {
        try {
          return std::make_unique<Engine>(*given).release();
        } catch (const std::exception& failure) {  // memory is short
          lacuna::base::log(lacuna::base::Level::error, failure.what());
          return nullptr;
        }
      },
      .destroy_engine = [](nixlBackendEngine* engine) { delete engine; },
      .get_plugin_name = [] { return "LACUNA"; },
      .get_plugin_version = [] { return lacuna::base::version().data(); },
      .get_backend_options = [] { return lacuna::nixl::usual_parameters(); },
      .get_backend_mems = [] { return nixl_mem_list_t{DRAM_SEG}; },
  };
  return &plugin;
}

void nixl_plugin_fini() {}
}
