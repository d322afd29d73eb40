#include "lacuna/nixl/engine.hpp"

#include <fmt/format.h>

#include <charconv>

namespace lacuna::nixl {
namespace {

using base::Code;

constexpr const char* kNic = "nic";
constexpr const char* kHost = "host";
constexpr const char* kTimeout = "timeout_s";
constexpr const char* kWait = "wait_s";
constexpr const char* kConnections = "connections";

nixl_status_t status_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
    case Code::overflow:
    case Code::truncated: return NIXL_ERR_INVALID_PARAM;
    case Code::malformed: return NIXL_ERR_MISMATCH;
    case Code::unsupported: return NIXL_ERR_NOT_SUPPORTED;
    case Code::permission: return NIXL_ERR_NOT_ALLOWED;
    case Code::peer_lost: return NIXL_ERR_REMOTE_DISCONNECT;
    default: return NIXL_ERR_BACKEND;
  }
}

template <class Number>
Result<void> read(const std::string& name, const std::string& value, Number& number) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc() && end == value.data() + value.size()) return {};
  return base::fail(Code::invalid_argument, fmt::format("{} is \"{}\"; it is a number", name, value));
}

Result<Settings> settings_of(const nixl_b_params_t& given) {
  Settings settings;
  for (const auto& [name, value] : given) {
    if (name == kNic) settings.nic = value;
    if (name == kHost) settings.host = value;
    if (name == kTimeout) LACUNA_TRY(read(name, value, settings.timeout_s));
    if (name == kWait) LACUNA_TRY(read(name, value, settings.wait_s));
    if (name == kConnections) LACUNA_TRY(read(name, value, settings.connections));
  }
  return settings;
}

Result<void> check_host(nixl_mem_t kind) {
  if (kind == DRAM_SEG) return {};
  return base::fail(Code::unsupported, "LACUNA moves memory of the host (DRAM) only");
}

Transfer* transfer_of(nixlBackendReqH* handle) { return static_cast<Transfer*>(handle); }

}  // namespace

nixl_b_params_t usual_parameters() {
  const Settings usual;
  return {{kNic, ""},
          {kHost, ""},
          {kTimeout, fmt::format("{}", usual.timeout_s)},
          {kWait, fmt::format("{}", usual.wait_s)},
          {kConnections, fmt::format("{}", usual.connections)}};
}

// No exception crosses the edge: memory may be short, and that is said.
template <class Work>
nixl_status_t Engine::done(std::string_view call, const Work& work) const noexcept {
  nixl_status_t status = NIXL_ERR_BACKEND;
  contained(call, [&] {
    if (agent_ == nullptr) return;
    const Result<nixl_status_t> result = work();
    status = result ? *result : status_of(result.error().code);
    if (!result) base::log(base::Level::error, fmt::format("NIXL agent {}: {}: {}", localAgent, call, result.error().text()));
  });
  return status;
}

Engine::Engine(const nixlBackendInitParams& given) : nixlBackendEngine(given) {
  if (const Result<void> begun = begin(given); !begun) {
    base::log(base::Level::error, fmt::format("NIXL agent {}: createBackend: {}", localAgent, begun.error().text()));
    initErr = true;
  }
}

Result<void> Engine::begin(const nixlBackendInitParams& given) {
  agent_ = LACUNA_TRY(Agent::create(given.localAgent, LACUNA_TRY(settings_of(*given.customParams))));
  return {};
}

Engine::~Engine() = default;

// --- memory ----------------------------------------------------------------------------------------------------------

nixl_status_t Engine::registerMem(const nixlBlobDesc& memory, const nixl_mem_t& kind, nixlBackendMD*& made) {
  return done("registerMem", [&]() -> Result<nixl_status_t> {
    LACUNA_TRY(check_host(kind));
    made = LACUNA_TRY(agent_->registrations().add(memory.addr, memory.len));
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::deregisterMem(nixlBackendMD* memory) {
  return done("deregisterMem", [&]() -> Result<nixl_status_t> {
    const std::unique_ptr<LocalMemory> ended(dynamic_cast<LocalMemory*>(memory));
    if (ended == nullptr) return base::fail(Code::invalid_argument, "this is not memory that was registered");
    LACUNA_TRY(agent_->withdraw(ended->token));
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::getPublicData(const nixlBackendMD* memory, std::string& out) const {
  return done("getPublicData", [&]() -> Result<nixl_status_t> {
    const auto* local = dynamic_cast<const LocalMemory*>(memory);
    if (local == nullptr) return base::fail(Code::invalid_argument, "this is not memory that was registered");
    out = encode(local->token);
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::loadLocalMD(nixlBackendMD* memory, nixlBackendMD*& made) {
  return done("loadLocalMD", [&]() -> Result<nixl_status_t> {
    const auto* local = dynamic_cast<const LocalMemory*>(memory);
    if (local == nullptr) return base::fail(Code::invalid_argument, "this is not memory that was registered");
    made = std::make_unique<RemoteMemory>(reinterpret_cast<std::uint64_t>(local->base), local->bytes, local->token).release();
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::loadRemoteMD(const nixlBlobDesc& memory, const nixl_mem_t& kind, const std::string& agent, nixlBackendMD*& made) {
  return done("loadRemoteMD", [&]() -> Result<nixl_status_t> {
    LACUNA_TRY(check_host(kind));
    const Token token = LACUNA_TRY(decode_token(memory.metaInfo));
    if (memory.len == 0 || memory.len > static_cast<std::uint64_t>(layout::kMaxBytes) || memory.addr > UINT64_MAX - memory.len)
      return base::fail(Code::malformed, fmt::format("agent {} tells of {} bytes at {:#x}", agent, memory.len, memory.addr));
    made = std::make_unique<RemoteMemory>(memory.addr, static_cast<std::int64_t>(memory.len), token).release();
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::unloadMD(nixlBackendMD* memory) {
  return done("unloadMD", [&]() -> Result<nixl_status_t> {
    const std::unique_ptr<RemoteMemory> ended(dynamic_cast<RemoteMemory*>(memory));
    if (ended == nullptr) return base::fail(Code::invalid_argument, "this is not memory that was loaded");
    agent_->forget(ended->token);
    return NIXL_SUCCESS;
  });
}

// --- connections -----------------------------------------------------------------------------------------------------

nixl_status_t Engine::getConnInfo(std::string& out) const {
  return done("getConnInfo", [&]() -> Result<nixl_status_t> {
    out = agent_->address();
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::loadRemoteConnInfo(const std::string& agent, const std::string& info) {
  return done("loadRemoteConnInfo", [&]() -> Result<nixl_status_t> {
    LACUNA_TRY(agent_->learn(agent, info));
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::connect(const std::string& agent) {
  return done("connect", [&]() -> Result<nixl_status_t> {
    const std::shared_ptr<Attempt> attempt = LACUNA_TRY(agent_->reach(agent));
    if (const auto made = attempt->outcome(agent_->soon())) LACUNA_TRY(*made);
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::disconnect(const std::string& agent) {
  return done("disconnect", [&]() -> Result<nixl_status_t> {
    agent_->leave(agent);
    return NIXL_SUCCESS;
  });
}

// --- transfers -------------------------------------------------------------------------------------------------------

nixl_status_t Engine::prepXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote,
                               const std::string& agent, nixlBackendReqH*& handle, const nixlBackendOptionalArgs* /*more*/) const {
  return done("prepXfer", [&]() -> Result<nixl_status_t> {
    LACUNA_TRY(check_host(local.type));
    LACUNA_TRY(check_host(remote.type));
    std::vector<Part> parts = LACUNA_TRY(parts_of(local, remote));
    LACUNA_TRY(check_destinations(parts, operation == NIXL_WRITE));
    const bool writes = operation == NIXL_WRITE;
    auto transfer = std::make_unique<Transfer>(LACUNA_TRY(agent_->reach(agent)), writes, std::move(parts));
    agent_->called();
    LACUNA_TRY(agent_->beginnings().prepare(*transfer, agent_->soon()));
    handle = transfer.release();
    return NIXL_SUCCESS;
  });
}

// A program in a loop of calls keeps the thread away: then its calls serve the peers too.
Result<nixl_status_t> Engine::outcome(Transfer& transfer) const {
  const auto over = agent_->beginnings().check(transfer);
  if (!over) {
    agent_->step();
    return NIXL_IN_PROG;
  }
  LACUNA_TRY(*over);
  return NIXL_SUCCESS;
}

nixl_status_t Engine::postXfer(const nixl_xfer_op_t& /*operation*/, const nixl_meta_dlist_t& /*local*/, const nixl_meta_dlist_t& /*remote*/,
                               const std::string& /*agent*/, nixlBackendReqH*& handle, const nixlBackendOptionalArgs* more) const {
  return done("postXfer", [&]() -> Result<nixl_status_t> {
    if (handle == nullptr) return base::fail(Code::invalid_argument, "the transfer was not prepared");
    Transfer& transfer = *transfer_of(handle);
    const bool notify = more != nullptr && more->hasNotif;
    agent_->called();
    LACUNA_TRY(agent_->beginnings().post(transfer, notify ? std::optional(more->notifMsg) : std::nullopt));
    return outcome(transfer);
  });
}

nixl_status_t Engine::checkXfer(nixlBackendReqH* handle) const {
  return done("checkXfer", [&]() -> Result<nixl_status_t> {
    if (handle == nullptr) return base::fail(Code::invalid_argument, "the transfer was not prepared");
    agent_->called();
    return outcome(*transfer_of(handle));
  });
}

// NIXL asks once, and if the transfer is under way a second time, whose answer it does not look at: the memory may be
// gone after that.
nixl_status_t Engine::releaseReqH(nixlBackendReqH* handle) const {
  return done("releaseReqH", [&]() -> Result<nixl_status_t> {
    Transfer* transfer = transfer_of(handle);
    if (transfer == nullptr) return NIXL_SUCCESS;
    if (agent_->beginnings().forget(*transfer)) {
      delete transfer;
      return NIXL_SUCCESS;
    }
    const Connection::Wish wish = transfer->connection->release(*transfer);
    if (wish.busy) {
      if (!wish.again) return NIXL_ERR_REPOST_ACTIVE;
      base::log(base::Level::warn, fmt::format("NIXL agent {}: a transfer is released while it is under way: the connection to agent {} "
                                               "ends with it. Wait until checkXfer() says that it is over",
                                               localAgent, transfer->connection->shown()));
    }
    if (!transfer->connection->end(*transfer, agent_->soon()))
      base::log(base::Level::error, fmt::format("NIXL agent {}: agent {} is stopped in the middle of a transfer that is released: it may "
                                                "still reach the memory",
                                                localAgent, transfer->connection->shown()));
    delete transfer;
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::estimateXferCost(const nixl_xfer_op_t& /*operation*/, const nixl_meta_dlist_t& /*local*/,
                                       const nixl_meta_dlist_t& /*remote*/, const std::string& /*agent*/, nixlBackendReqH* const& handle,
                                       std::chrono::microseconds& duration, std::chrono::microseconds& margin, nixl_cost_t& method,
                                       const nixlAgentOptionalArgs* /*more*/) const {
  return done("estimateXferCost", [&]() -> Result<nixl_status_t> {
    if (handle == nullptr) return base::fail(Code::invalid_argument, "the transfer was not prepared");
    const Transfer& transfer = *transfer_of(handle);
    if (!agent_->beginnings().is_ready(transfer)) return base::fail(Code::timeout, "the agent has not answered yet");
    const Estimate expected = LACUNA_TRY(transfer.connection->estimate(transfer));
    const auto microseconds = [](double ns) {
      return std::chrono::ceil<std::chrono::microseconds>(std::chrono::duration<double, std::nano>(ns));
    };
    duration = microseconds(expected.ns);
    margin = microseconds(expected.margin_ns);
    method = nixl_cost_t::ANALYTICAL_BACKEND;
    return NIXL_SUCCESS;
  });
}

// --- notifications ---------------------------------------------------------------------------------------------------

nixl_status_t Engine::getNotifs(notif_list_t& out) {
  return done("getNotifs", [&]() -> Result<nixl_status_t> {
    agent_->called();
    agent_->step();
    out = agent_->inbox().take();
    return NIXL_SUCCESS;
  });
}

nixl_status_t Engine::genNotif(const std::string& agent, const std::string& text) const {
  return done("genNotif", [&]() -> Result<nixl_status_t> {
    const std::shared_ptr<Attempt> attempt = LACUNA_TRY(agent_->reach(agent));
    if (const auto made = attempt->outcome(agent_->soon())) LACUNA_TRY(*made);
    LACUNA_TRY(attempt->notify(text));
    return NIXL_SUCCESS;
  });
}

}  // namespace lacuna::nixl
