// Names, owners, and the table of NICs. A new NIC is one folder and one line here.
#include "lacuna/nic/nic.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "lacuna/nic/devices.hpp"
#include "lacuna/nic/local/local.hpp"
#include "lacuna/nic/model/model.hpp"
#include "lacuna/nic/ofi/ofi.hpp"
#include "lacuna/nic/verbs/verbs.hpp"
#include "lacuna/nic/world.hpp"

namespace lacuna::nic {
namespace {

struct Driver {
  std::string_view name;
  Result<std::unique_ptr<Context>> (*open)(std::string_view device, const OpenOptions&);
};
constexpr Driver kDrivers[] = {
    {"local", [](std::string_view, const OpenOptions& options) { return local::open(options); }},
    {"verbs", &verbs::open},
    {"ofi", &ofi::open},
};

constexpr std::array<std::string_view, 4> kPaths{"mapped", "slots", "kernel", "wire"};

}  // namespace

std::string_view path_name(Path path) { return kPaths.at(static_cast<std::size_t>(path)); }

std::optional<Path> path_from_name(std::string_view name) {
  const auto found = std::ranges::find(kPaths, name);
  if (found == kPaths.end()) return std::nullopt;
  return static_cast<Path>(found - kPaths.begin());
}

std::string_view opcode_name(Opcode opcode) {
  static constexpr std::array<std::string_view, 8> names{"send", "write", "write_imm", "read", "bind", "invalidate", "recv", "recv_imm"};
  return names.at(static_cast<std::size_t>(opcode));
}

std::string_view status_name(Status status) {
  switch (status) {
    case Status::success: return "success";
    case Status::loc_len_err: return "loc_len_err";
    case Status::loc_qp_op_err: return "loc_qp_op_err";
    case Status::loc_prot_err: return "loc_prot_err";
    case Status::wr_flush_err: return "wr_flush_err";
    case Status::mw_bind_err: return "mw_bind_err";
    case Status::rem_inv_req_err: return "rem_inv_req_err";
    case Status::rem_access_err: return "rem_access_err";
    case Status::rem_op_err: return "rem_op_err";
    case Status::retry_exc_err: return "retry_exc_err";
    case Status::rnr_retry_exc_err: return "rnr_retry_exc_err";
    case Status::general_err: return "general_err";
  }
  return "unknown";
}

const PathInfo* Limits::path(Path which) const {
  const auto found = std::ranges::find(paths, which, &PathInfo::path);
  return found == paths.end() ? nullptr : &*found;
}

std::string IndirectLimits::refusal() const {
  return note.empty() ? "this device has no indirect keys" : fmt::format("this device has no indirect keys ({})", note);
}

Buffer::~Buffer() {
  if (context_ != nullptr) context_->free(bytes_);
}

Region::~Region() {
  if (context_ != nullptr) context_->deregister(lkey_);
}

bool Region::revoke(std::int64_t wait_ns) { return context_ == nullptr || context_->revoke(lkey_, wait_ns); }

Result<RegisteredBuffer> RegisteredBuffer::create(Context& context, std::int64_t bytes, Rights rights) {
  RegisteredBuffer result;
  result.buffer = LACUNA_TRY(context.allocate(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))));
  result.region = LACUNA_TRY(context.register_memory(result.buffer.bytes(), rights));
  return result;
}

IndirectKey::~IndirectKey() {
  if (context_ != nullptr) context_->destroy_indirect_key(key_);
}

MemoryWindow::~MemoryWindow() {
  if (context_ != nullptr) context_->destroy_window(key_);
}

std::uint32_t MemoryWindow::next_key() { return key_ = context_->next_window_key(key_); }

std::vector<std::string> nic_names() {
  std::vector<std::string> names;
  for (const Driver& driver : kDrivers) names.emplace_back(driver.name);
  return names;
}

Result<std::unique_ptr<Context>> open(std::string_view name, const OpenOptions& options) {
  const std::size_t colon = std::min(name.find(':'), name.size());
  const std::string_view device = name.substr(std::min(colon + 1, name.size()));
  for (const Driver& driver : kDrivers) {
    if (driver.name != name.substr(0, colon) || (colon < name.size() && driver.name == "local")) continue;
    return driver.open(device, options);
  }
  return base::fail(base::Code::invalid_argument, fmt::format("no NIC \"{}\"; this build has: {}", name, fmt::join(nic_names(), ", ")));
}

Result<std::unique_ptr<Context>> open_usual(bool other_machines) {
  const char* usual = std::getenv("LACUNA_NIC");
  if (usual != nullptr && *usual != '\0') return open(usual);
  if (!other_machines) return open("local");
  Result<std::unique_ptr<Context>> device = open("verbs");
  if (device) return device;
  Result<std::unique_ptr<Context>> provider = open("ofi");
  if (provider) return provider;
  return base::fail(base::Code::unsupported,
                    fmt::format("this machine has no NIC that reaches others. NIC verbs: {}. NIC ofi: {}. LACUNA_NIC names another one",
                                device.error().message, provider.error().message));
}

Devices describe_devices() { return verbs::describe(); }
Providers describe_providers() { return ofi::describe(); }

Result<std::unique_ptr<World>> simulate(const WorldOptions& options) { return model::simulate(options); }

}  // namespace lacuna::nic
