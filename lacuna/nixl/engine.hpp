// engine: the class that NIXL calls. It hides NIXL's statuses and pointers: what fails below is a line of the log that
// says what to do, and a status.
#pragma once

#include <memory>
#include <string>

#include "lacuna/nixl/agent.hpp"
#include "lacuna/nixl/interface.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

/// What createBackend() may be given, with what holds without.
[[nodiscard]] nixl_b_params_t usual_parameters();
/// What NIXL gets when it loads the library.
[[nodiscard]] nixlBackendPlugin& plugin();

class Engine final : public nixlBackendEngine {
 public:
  /// works() says whether it could be made; NIXL reads the same by a function of its own.
  explicit Engine(const nixlBackendInitParams& given);
  ~Engine() override;
  [[nodiscard]] bool works() const { return !initErr; }

  bool supportsRemote() const override { return true; }
  bool supportsLocal() const override { return true; }
  bool supportsNotif() const override { return true; }
  nixl_mem_list_t getSupportedMems() const override { return {DRAM_SEG}; }

  nixl_status_t registerMem(const nixlBlobDesc& memory, const nixl_mem_t& kind, nixlBackendMD*& made) override;
  nixl_status_t deregisterMem(nixlBackendMD* memory) override;
  nixl_status_t getPublicData(const nixlBackendMD* memory, std::string& out) const override;
  nixl_status_t loadLocalMD(nixlBackendMD* memory, nixlBackendMD*& made) override;
  nixl_status_t loadRemoteMD(const nixlBlobDesc& memory, const nixl_mem_t& kind, const std::string& agent, nixlBackendMD*& made) override;
  nixl_status_t unloadMD(nixlBackendMD* memory) override;

  nixl_status_t getConnInfo(std::string& out) const override;
  nixl_status_t loadRemoteConnInfo(const std::string& agent, const std::string& info) override;
  nixl_status_t connect(const std::string& agent) override;
  nixl_status_t disconnect(const std::string& agent) override;

  nixl_status_t prepXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote,
                         const std::string& agent, nixlBackendReqH*& handle, const nixlBackendOptionalArgs* more) const override;
  nixl_status_t postXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote,
                         const std::string& agent, nixlBackendReqH*& handle, const nixlBackendOptionalArgs* more) const override;
  nixl_status_t checkXfer(nixlBackendReqH* handle) const override;
  nixl_status_t releaseReqH(nixlBackendReqH* handle) const override;
  nixl_status_t estimateXferCost(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote,
                                 const std::string& agent, nixlBackendReqH* const& handle, std::chrono::microseconds& duration,
                                 std::chrono::microseconds& margin, nixl_cost_t& method, const nixlAgentOptionalArgs* more) const override;

  nixl_status_t getNotifs(notif_list_t& out) override;
  nixl_status_t genNotif(const std::string& agent, const std::string& text) const override;

 private:
  template <class Work>
  nixl_status_t done(std::string_view call, const Work& work) const noexcept;
  Result<void> begin(const nixlBackendInitParams& given);
  Result<nixl_status_t> outcome(Transfer& transfer) const;

  std::unique_ptr<Agent> agent_;
};

}  // namespace lacuna::nixl
