// How two queue pairs find one another: each side says where its own is and what it can do, goes through RESET, INIT,
// RTR and RTS, and says whether that worked. After that both may send.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <type_traits>

#include "lacuna/nic/checks.hpp"
#include "lacuna/nic/verbs/queue_pair.hpp"

namespace lacuna::nic::verbs {
namespace {

constexpr std::uint64_t kMagic = 0x3173'6272'6576'6c61;
constexpr std::int64_t kTimeout = 60'000'000'000;  // ns for the peer to do its part
constexpr int kMostReads = 16;                     // outstanding at once
constexpr std::uint8_t kRnrTimer = 12;             // 0.64 ms until a send is tried again
constexpr std::uint8_t kHops = 64;

struct Introduction {
  std::uint64_t magic = kMagic;
  LimitsOnWire limits;
  QueuePair::Remote end;
  std::array<char, 40> boot{};  // of the operating system: ends with the same one have the same clock
};
static_assert(std::has_unique_object_representations_v<LimitsOnWire> && std::is_trivially_copyable_v<Introduction>);

std::array<char, 40> boot_id() {
  std::array<char, 40> id{};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(id.data(), 36);
  return id;
}

Result<Introduction> introduction_of(const Hello& hello) {
  Introduction theirs;
  if (hello.bytes.size() != sizeof theirs) return base::fail(base::Code::malformed, "the peer's introduction is not one of NIC verbs");
  std::memcpy(static_cast<void*>(&theirs), hello.bytes.data(), sizeof theirs);
  if (theirs.magic != kMagic) return base::fail(base::Code::malformed, "the peer runs another version of NIC verbs");
  if (theirs.end.mtu < IBV_MTU_256 || theirs.end.mtu > IBV_MTU_4096 || theirs.end.number >> 24 != 0 ||
      theirs.end.packet_number >> 24 != 0 || theirs.end.lid > 0xffff)
    return base::fail(base::Code::malformed, "the peer's queue pair is none");
  return theirs;
}

}  // namespace

Result<void> QueuePair::modify(ibv_qp_attr& attributes, int mask, const char* state) {
  const int error = context_.device().library().modify_qp(pair_.get(), &attributes, mask);
  if (error == 0) return {};
  return base::fail(base::Code::io, fmt::format("{} does not take queue pair {} to {}: {} ({})", context_.device().name(), number(), state,
                                                std::strerror(error), context_.device().port().text()));
}

Result<void> QueuePair::connect(const Remote& remote, std::uint32_t packet_number) {
  const Device& device = context_.device();
  const Port& port = device.port();
  auto attributes = zeroed<ibv_qp_attr>();
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port.number;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  LACUNA_TRY(modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT"));

  attributes = zeroed<ibv_qp_attr>();
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = std::min(port.mtu, static_cast<ibv_mtu>(remote.mtu));
  attributes.dest_qp_num = remote.number;
  attributes.rq_psn = remote.packet_number;
  attributes.max_dest_rd_atomic = static_cast<std::uint8_t>(std::min(kMostReads, device.attributes().max_qp_rd_atom));
  attributes.min_rnr_timer = kRnrTimer;
  attributes.ah_attr.port_num = port.number;
  attributes.ah_attr.dlid = static_cast<std::uint16_t>(remote.lid);
  if (remote.has_gid != 0 && port.gid_index >= 0) {
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = remote.gid;
    attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port.gid_index);
    attributes.ah_attr.grh.hop_limit = kHops;
  }
  LACUNA_TRY(modify(
      attributes,
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
      "RTR"));

  const Settings& settings = device.settings();
  attributes = zeroed<ibv_qp_attr>();
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = static_cast<std::uint8_t>(settings.timeout);
  attributes.retry_cnt = static_cast<std::uint8_t>(settings.retries);
  attributes.rnr_retry = static_cast<std::uint8_t>(settings.rnr_retries);
  attributes.sq_psn = packet_number;
  attributes.max_rd_atomic = static_cast<std::uint8_t>(
      std::min({kMostReads, device.attributes().max_qp_init_rd_atom, static_cast<int>(std::min(remote.reads, 255U))}));
  return modify(attributes, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                "RTS");
}

Result<std::unique_ptr<nic::QueuePair>> Context::connect(Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                         const QueuePairOptions& options) {
  const PathInfo* path = limits_.path(options.path);
  if (path == nullptr) return base::fail(base::Code::unsupported, fmt::format("NIC {} has no path {}", name_, path_name(options.path)));
  LACUNA_TRY(check_depths(options, limits_, name_));
  Result<std::unique_ptr<QueuePair>> pair = QueuePair::create(*this, static_cast<CompletionQueue&>(queue), options);

  // Also who has no queue pair speaks, or the peer would wait for it.
  const Port& port = device_->port();
  Introduction mine;
  mine.limits = LimitsOnWire::of(limits_);
  mine.end = {.number = pair ? (*pair)->number() : 0,
              .packet_number = std::random_device()() & 0xff'ffff,
              .lid = port.attributes.lid,
              .mtu = static_cast<std::uint32_t>(port.mtu),
              .reads = static_cast<std::uint32_t>(std::min(kMostReads, device_->attributes().max_qp_rd_atom)),
              .has_gid = port.gid_index >= 0 ? 1U : 0U,
              .gid = port.gid};
  mine.boot = boot_id();
  Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  const Hello answer = LACUNA_TRY(bootstrap.exchange(hello, kTimeout));

  Limits limits;
  const auto attempt = [&]() -> Result<void> {
    if (!pair) return std::unexpected(pair.error());
    if (!path->available) return base::fail(base::Code::unsupported, fmt::format("path {}: {}", path_name(options.path), path->note));
    const Introduction theirs = LACUNA_TRY(introduction_of(answer));
    limits = common(limits_, LACUNA_TRY(theirs.limits.read()));
    limits.shared_clock = mine.boot[0] != 0 && mine.boot == theirs.boot;
    return (*pair)->connect(theirs.end, mine.end.packet_number);
  };
  LACUNA_TRY(agree(bootstrap, attempt(), options.path, kTimeout));
  (*pair)->open(std::move(limits));
  return std::unique_ptr<nic::QueuePair>(std::move(*pair));
}

}  // namespace lacuna::nic::verbs
