// interface: the binary interface between NIXL and a plug-in, as this project declares it. NIXL's packages have no
// headers, so nothing of NIXL is compiled in: this file says in which order the functions stand in the table of virtual
// functions, which fields objects have, and which numbers stand for what. The names are NIXL's, so that the tables of
// its own plug-ins can be compared with this one, function by function (tests/python/nixl/test_nixl_interface.py).
//
// Where the facts come from: the tables of libplugin_POSIX.so and libplugin_UCX.so of nixl-cu12 1.5.1, and the
// declarations in ai-dynamo/nixl, which are the same from 1.1.0 on. NIXL refuses a plug-in of another
// kApiVersion. Objects of the standard library cross this edge: both sides need the new ABI of libstdc++
// (_GLIBCXX_USE_CXX11_ABI=1). No exception crosses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming): NIXL's names

enum nixl_mem_t { DRAM_SEG, VRAM_SEG, BLK_SEG, OBJ_SEG, FILE_SEG };
enum nixl_xfer_op_t { NIXL_READ, NIXL_WRITE };
enum class nixl_cost_t { ANALYTICAL_BACKEND };
enum nixl_status_t {
  NIXL_IN_PROG = 1,
  NIXL_SUCCESS = 0,
  NIXL_ERR_NOT_POSTED = -1,
  NIXL_ERR_INVALID_PARAM = -2,
  NIXL_ERR_BACKEND = -3,
  NIXL_ERR_NOT_FOUND = -4,
  NIXL_ERR_MISMATCH = -5,
  NIXL_ERR_NOT_ALLOWED = -6,
  NIXL_ERR_REPOST_ACTIVE = -7,
  NIXL_ERR_NOT_SUPPORTED = -9,
  NIXL_ERR_REMOTE_DISCONNECT = -10,
};

using nixl_b_params_t = std::unordered_map<std::string, std::string>;
using nixl_mem_list_t = std::vector<nixl_mem_t>;
using notif_list_t = std::vector<std::pair<std::string, std::string>>;  // the agent, what it says
using nixl_query_resp_t = std::optional<nixl_b_params_t>;

struct nixlBasicDesc {
  std::uintptr_t addr;
  std::size_t len;
  std::uint64_t devId;
};

struct nixlBlobDesc : nixlBasicDesc {
  std::string metaInfo;
};

// What a plug-in keeps with memory: NIXL gives it back with each descriptor of that memory.
class nixlBackendMD {
 public:
  explicit nixlBackendMD(bool is_private) : isPrivateMD(is_private) {}
  virtual ~nixlBackendMD() = default;

 protected:
  bool isPrivateMD;
};

struct nixlMetaDesc : nixlBasicDesc {
  nixlBackendMD* metadataP;
};
struct nixlRemoteMetaDesc;

// Plug-ins only read lists, which NIXL makes: of the virtual functions there is the place of their table alone.
template <class Desc>
class nixlDescList {
 public:
  nixlDescList() = default;
  virtual ~nixlDescList() = default;
  nixlDescList(const nixlDescList&) = default;
  nixlDescList& operator=(const nixlDescList&) = default;

  nixl_mem_t type = DRAM_SEG;
  std::vector<Desc> descs;
};
using nixl_meta_dlist_t = nixlDescList<nixlMetaDesc>;

class nixlBackendReqH {
 public:
  nixlBackendReqH() = default;
  virtual ~nixlBackendReqH() = default;
  nixlBackendReqH(const nixlBackendReqH&) = delete;
  nixlBackendReqH& operator=(const nixlBackendReqH&) = delete;
};

struct nixlBackendOptionalArgs {
  std::string notifMsg;
  bool hasNotif = false;
  std::string customParam;
};
struct nixlAgentOptionalArgs;

struct nixlBackendInitParams {
  std::string localAgent;
  std::string type;
  nixl_b_params_t* customParams = nullptr;
  bool enableProgTh = false;
  std::uint64_t pthrDelay = 0;
  int syncMode = 0;
  bool enableTelemetry_ = false;
};

struct nixlTelemetryEvent {
  std::uint32_t eventType_;
  std::uint64_t value_;
};

// NIXL reads the fields by inline functions of its own, so their order counts as that of the virtual functions does.
class nixlBackendEngine {
 public:
  explicit nixlBackendEngine(const nixlBackendInitParams& given)
      : backendType(given.type),
        customParams(*given.customParams),
        localAgent(given.localAgent),
        enableTelemetry_(given.enableTelemetry_) {}
  nixlBackendEngine(const nixlBackendEngine&) = delete;
  nixlBackendEngine& operator=(const nixlBackendEngine&) = delete;
  virtual ~nixlBackendEngine() = default;

  virtual bool supportsRemote() const = 0;
  virtual bool supportsLocal() const = 0;
  virtual bool supportsNotif() const = 0;
  virtual nixl_mem_list_t getSupportedMems() const = 0;
  virtual nixl_status_t registerMem(const nixlBlobDesc& memory, const nixl_mem_t& kind, nixlBackendMD*& made) = 0;
  virtual nixl_status_t deregisterMem(nixlBackendMD* memory) = 0;
  virtual nixl_status_t connect(const std::string& agent) = 0;
  virtual nixl_status_t disconnect(const std::string& agent) = 0;
  virtual nixl_status_t unloadMD(nixlBackendMD* memory) = 0;
  virtual nixl_status_t prepXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote,
                                 const std::string& agent, nixlBackendReqH*& handle, const nixlBackendOptionalArgs* more) const = 0;
  virtual nixl_status_t postXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote,
                                 const std::string& agent, nixlBackendReqH*& handle, const nixlBackendOptionalArgs* more) const = 0;
  virtual nixl_status_t checkXfer(nixlBackendReqH* handle) const = 0;
  virtual nixl_status_t releaseReqH(nixlBackendReqH* handle) const = 0;
  virtual nixl_status_t prepMemView(const nixlDescList<nixlRemoteMetaDesc>& /*remote*/, void*& /*view*/,
                                    const nixlBackendOptionalArgs* /*more*/) const {
    return NIXL_ERR_NOT_SUPPORTED;
  }
  virtual nixl_status_t prepMemView(const nixl_meta_dlist_t& /*local*/, void*& /*view*/, const nixlBackendOptionalArgs* /*more*/) const {
    return NIXL_ERR_NOT_SUPPORTED;
  }
  virtual void releaseMemView(void* /*view*/) const {}
  virtual nixl_status_t getPublicData(const nixlBackendMD* memory, std::string& out) const = 0;
  virtual nixl_status_t getConnInfo(std::string& out) const = 0;
  virtual nixl_status_t loadRemoteConnInfo(const std::string& agent, const std::string& info) = 0;
  virtual nixl_status_t loadRemoteMD(const nixlBlobDesc& memory, const nixl_mem_t& kind, const std::string& agent,
                                     nixlBackendMD*& made) = 0;
  virtual nixl_status_t loadLocalMD(nixlBackendMD* memory, nixlBackendMD*& made) = 0;
  virtual nixl_status_t getNotifs(notif_list_t& out) = 0;
  virtual nixl_status_t genNotif(const std::string& agent, const std::string& text) const = 0;
  virtual nixl_status_t queryMem(const nixlDescList<nixlBlobDesc>& /*memory*/, std::vector<nixl_query_resp_t>& /*out*/) const {
    return NIXL_ERR_NOT_SUPPORTED;
  }
  virtual nixl_status_t estimateXferCost(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote,
                                         const std::string& agent, nixlBackendReqH* const& handle, std::chrono::microseconds& duration,
                                         std::chrono::microseconds& margin, nixl_cost_t& method,
                                         const nixlAgentOptionalArgs* more) const = 0;

 private:
  std::string backendType;
  nixl_b_params_t customParams;
  std::vector<nixlTelemetryEvent> telemetryEvents_;
  std::mutex telemetryEventsMutex_;

 protected:
  bool initErr = false;
  const std::string localAgent;
  const bool enableTelemetry_;
};

// What nixl_plugin_init() answers with.
struct nixlBackendPlugin {
  int api_version;
  nixlBackendEngine* (*create_engine)(const nixlBackendInitParams* given);
  void (*destroy_engine)(nixlBackendEngine* engine);
  const char* (*get_plugin_name)();
  const char* (*get_plugin_version)();
  nixl_b_params_t (*get_backend_options)();
  nixl_mem_list_t (*get_backend_mems)();
};

// NOLINTEND(readability-identifier-naming)

namespace lacuna::nixl {
inline constexpr int kApiVersion = 1;
}  // namespace lacuna::nixl
