// The edge between NIXL and the plug-in: where each function stands in the table, and where each field lies.
// tests/python/nixl/test_nixl_interface.py compares the same list of functions with NIXL's own plug-ins.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "lacuna/nixl/engine.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

// By the C++ ABI of Itanium, which GCC and Clang follow: a pointer to a virtual function is its place in the table, in
// bytes, plus one. Two destructors come first.
template <class Function>
std::size_t place_of(Function function) {
  std::uintptr_t place = 0;
  std::memcpy(&place, &function, sizeof place);
  return (place - 1) / sizeof(void*) - 2;
}

TEST(NixlInterface, FunctionsStandInThisOrder) {
  using E = nixlBackendEngine;
  using OfRemote = nixl_status_t (E::*)(const nixlDescList<nixlRemoteMetaDesc>&, void*&, const nixlBackendOptionalArgs*) const;
  using OfLocal = nixl_status_t (E::*)(const nixl_meta_dlist_t&, void*&, const nixlBackendOptionalArgs*) const;
  const std::vector<std::pair<std::string, std::size_t>> places{
      {"supportsRemote", place_of(&E::supportsRemote)},
      {"supportsLocal", place_of(&E::supportsLocal)},
      {"supportsNotif", place_of(&E::supportsNotif)},
      {"getSupportedMems", place_of(&E::getSupportedMems)},
      {"registerMem", place_of(&E::registerMem)},
      {"deregisterMem", place_of(&E::deregisterMem)},
      {"connect", place_of(&E::connect)},
      {"disconnect", place_of(&E::disconnect)},
      {"unloadMD", place_of(&E::unloadMD)},
      {"prepXfer", place_of(&E::prepXfer)},
      {"postXfer", place_of(&E::postXfer)},
      {"checkXfer", place_of(&E::checkXfer)},
      {"releaseReqH", place_of(&E::releaseReqH)},
      {"prepMemView", place_of(static_cast<OfRemote>(&E::prepMemView))},
      {"prepMemView", place_of(static_cast<OfLocal>(&E::prepMemView))},
      {"releaseMemView", place_of(&E::releaseMemView)},
      {"getPublicData", place_of(&E::getPublicData)},
      {"getConnInfo", place_of(&E::getConnInfo)},
      {"loadRemoteConnInfo", place_of(&E::loadRemoteConnInfo)},
      {"loadRemoteMD", place_of(&E::loadRemoteMD)},
      {"loadLocalMD", place_of(&E::loadLocalMD)},
      {"getNotifs", place_of(&E::getNotifs)},
      {"genNotif", place_of(&E::genNotif)},
      {"queryMem", place_of(&E::queryMem)},
      {"estimateXferCost", place_of(&E::estimateXferCost)},
  };
  std::ifstream list(LACUNA_SOURCE_DIR "/tests/nixl/functions.txt");
  std::string name;
  for (std::size_t i = 0; i < places.size(); ++i) {
    ASSERT_TRUE(list >> name);
    EXPECT_EQ(name, places[i].first);
    EXPECT_EQ(places[i].second, i) << name;
  }
  EXPECT_FALSE(list >> name) << name;
}

TEST(NixlInterface, FieldsLieWhereNixlReadsThem) {
  EXPECT_EQ(sizeof(nixlBasicDesc), 24U);
  EXPECT_EQ(sizeof(nixlMetaDesc), 32U);
  EXPECT_EQ(sizeof(nixlBlobDesc), 24U + sizeof(std::string));
  EXPECT_EQ(sizeof(nixl_meta_dlist_t), 16U + sizeof(std::vector<int>));
  EXPECT_EQ(sizeof(nixlBackendMD), 16U);
  EXPECT_EQ(sizeof(nixlBackendReqH), 8U);
  EXPECT_EQ(sizeof(nixlTelemetryEvent), 16U);
  EXPECT_EQ(sizeof(nixlBackendOptionalArgs), 2 * sizeof(std::string) + 8);
  EXPECT_EQ(sizeof(nixlBackendInitParams), 2 * sizeof(std::string) + 32);
  EXPECT_EQ(sizeof(nixlBackendPlugin), 56U);
  EXPECT_EQ(sizeof(nixlBackendEngine),
            8 + 2 * sizeof(std::string) + sizeof(nixl_b_params_t) + sizeof(std::vector<int>) + sizeof(std::mutex) + 16);
}

TEST(NixlInterface, ThePluginSaysWhatItIs) {
  nixlBackendPlugin& plugin = nixl::plugin();
  EXPECT_EQ(plugin.api_version, 1);
  EXPECT_STREQ(plugin.get_plugin_name(), "LACUNA");
  EXPECT_EQ(plugin.get_plugin_version(), base::version());
  EXPECT_EQ(plugin.get_backend_mems(), nixl_mem_list_t{DRAM_SEG});
  nixl_b_params_t parameters = plugin.get_backend_options();
  EXPECT_EQ(parameters.size(), 5U);
  const nixlBackendInitParams given{.localAgent = "a", .type = "LACUNA", .customParams = &parameters};
  nixlBackendEngine* const engine = plugin.create_engine(&given);
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->supportsLocal() && engine->supportsRemote() && engine->supportsNotif());
  plugin.destroy_engine(engine);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
