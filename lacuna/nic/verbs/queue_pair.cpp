#include "lacuna/nic/verbs/queue_pair.hpp"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "lacuna/nic/checks.hpp"

namespace lacuna::nic::verbs {
namespace {

// wr_id of ours: a request's number within its queue, which queue, and whether nobody above asked for it.
constexpr std::uint64_t kRecv = std::uint64_t{1} << 63;
constexpr std::uint64_t kBeat = std::uint64_t{1} << 62;

static_assert(sizeof(Sge) == sizeof(ibv_sge) && offsetof(Sge, addr) == offsetof(ibv_sge, addr) &&
              offsetof(Sge, length) == offsetof(ibv_sge, length) && offsetof(Sge, lkey) == offsetof(ibv_sge, lkey));
ibv_sge* as_verbs(std::span<const Sge> list) { return reinterpret_cast<ibv_sge*>(const_cast<Sge*>(list.data())); }

ibv_wr_opcode opcode_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::write: return IBV_WR_RDMA_WRITE;
    case Opcode::write_imm: return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Opcode::read: return IBV_WR_RDMA_READ;
    case Opcode::bind: return IBV_WR_BIND_MW;
    case Opcode::invalidate: return IBV_WR_LOCAL_INV;
    default: return IBV_WR_SEND;
  }
}

Status status_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS: return Status::success;
    case IBV_WC_LOC_LEN_ERR: return Status::loc_len_err;
    case IBV_WC_LOC_QP_OP_ERR: return Status::loc_qp_op_err;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR: return Status::loc_prot_err;
    case IBV_WC_WR_FLUSH_ERR: return Status::wr_flush_err;
    case IBV_WC_MW_BIND_ERR: return Status::mw_bind_err;
    case IBV_WC_REM_INV_REQ_ERR: return Status::rem_inv_req_err;
    case IBV_WC_REM_ACCESS_ERR: return Status::rem_access_err;
    case IBV_WC_REM_OP_ERR: return Status::rem_op_err;
    case IBV_WC_RETRY_EXC_ERR: return Status::retry_exc_err;
    case IBV_WC_RNR_RETRY_EXC_ERR: return Status::rnr_retry_exc_err;
    default: return Status::general_err;
  }
}

}  // namespace

std::string cause_of(const ibv_wc& done, const Context& context) {
  const Device& device = context.device();
  const Settings& settings = device.settings();
  // Nothing left this end: how a driver says so differs.
  if ((done.status == IBV_WC_RETRY_EXC_ERR || done.status == IBV_WC_LOC_QP_OP_ERR) && !device.port_is_up())
    return fmt::format("port {} of {} is down (`rdma link` shows it)", device.port().number, device.name());
  switch (done.status) {
    case IBV_WC_RETRY_EXC_ERR:
      return fmt::format(
          "the peer does not answer: it is gone, or not reachable from {} port {} ({}); LACUNA_VERBS_GID chooses another GID, "
          "LACUNA_VERBS_TIMEOUT={} and LACUNA_VERBS_RETRIES={} say how long it is waited for",
          device.name(), device.port().number, device.port().text(), settings.timeout, settings.retries);
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return fmt::format("the peer has posted no receive, also after {} further attempts (LACUNA_VERBS_RNR_RETRIES)", settings.rnr_retries);
    case IBV_WC_REM_ACCESS_ERR:
      return "the peer's memory may not be reached so: a wrong or old rkey, bytes outside its region, or a right that it does not give";
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return "this end's memory may not be reached so: a wrong or old lkey, bytes outside its region, or a right that it does not give";
    case IBV_WC_LOC_QP_OP_ERR:
      return "this end could not execute a request (Soft-RoCE says so, too, of a wrong lkey, of a receive that is too short or outside its "
             "region, and of a network device that goes down)";
    case IBV_WC_MW_BIND_ERR: return "a window or an indirect key could not be bound: it is bound already, or its region does not allow it";
    case IBV_WC_LOC_LEN_ERR: return "a receive is shorter than what arrived, or a message longer than the device takes";
    case IBV_WC_REM_INV_REQ_ERR:
      return "the peer could not take the request: its receive is shorter than the message, or it takes none of this kind";
    case IBV_WC_REM_OP_ERR: return "the peer failed while it executed the request";
    case IBV_WC_WR_FLUSH_ERR: return "the queue pair went into error: the peer closed the connection, or the device gave up";
    default: return fmt::format("{} (vendor's code {:#x})", device.library().wc_status_str(done.status), done.vendor_err);
  }
}

QueuePair::QueuePair(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Owned<ibv_qp> pair)
    : context_(context),
      queue_(queue),
      options_(options),
      limits_(context.limits()),
      pair_(std::move(pair)),
      sends_(static_cast<std::size_t>(options.max_send_wr)),
      recvs_(static_cast<std::size_t>(options.max_recv_wr)) {
  context_.enroll(*this);
}

QueuePair::~QueuePair() {
  if (beating_) queue_.release();
  context_.withdraw(*this);
}

Result<std::unique_ptr<QueuePair>> QueuePair::create(Context& context, CompletionQueue& queue, const QueuePairOptions& options) {
  const Device& device = context.device();
  const Limits& limits = context.limits();
  // Bind requests need the device's whole room inline, also where a caller's limit is below it.
  const int inlined = device.mlx5() != nullptr ? device.limits().max_inline : limits.max_inline;
  // One that says that this end lives
  const ibv_qp_cap cap{.max_send_wr = static_cast<std::uint32_t>(options.max_send_wr) + 1,
                       .max_recv_wr = static_cast<std::uint32_t>(options.max_recv_wr),
                       .max_send_sge = static_cast<std::uint32_t>(limits.max_sge),
                       .max_recv_sge = static_cast<std::uint32_t>(limits.max_sge),
                       .max_inline_data = static_cast<std::uint32_t>(inlined)};
  Owned<ibv_qp> pair = device.create_queue_pair(queue.get(), cap);
  if (!pair) {
    return base::fail(errno == ENOMEM ? base::Code::out_of_memory : base::Code::limit,
                      fmt::format("{} makes no queue pair of {} sends and {} receives with {} sge and {} bytes inline each: {}",
                                  device.name(), cap.max_send_wr, cap.max_recv_wr, limits.max_sge, inlined, std::strerror(errno)));
  }
  return std::make_unique<QueuePair>(context, queue, options, std::move(pair));
}

Result<void> QueuePair::post_chain(std::span<const SendRequest> chain) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    LACUNA_TRY(check(chain[i]));
    if (chain[i].opcode != Opcode::bind || binds_key(chain[i])) continue;
    const auto same = [&](const SendRequest& other) {
      return other.opcode == Opcode::bind && Context::same_window(other.binding->key, chain[i].binding->key);
    };
    if (std::ranges::any_of(chain.first(i), same)) return base::fail(base::Code::invalid_argument, "a chain that binds a window twice");
  }
  LACUNA_TRY(check_room(sends_posted_ - sends_retired_, chain.size(), options_.max_send_wr, "send"));
  if (chain.empty()) return {};
  context_.busy();
  const std::uint64_t before = sends_posted_;
  chain_.resize(std::max(chain_.size(), chain.size()));
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const SendRequest& request = chain[i];
    const std::uint64_t sequence = ++sends_posted_;
    sends_[sequence % sends_.size()] = {request.wr_id, request.opcode};
    ibv_send_wr& wr = chain_[i] = work_request(request);
    wr.wr_id = sequence;
    wr.next = i + 1 < chain.size() ? &chain_[i + 1] : nullptr;
  }
  const bool binds_keys = std::ranges::any_of(chain, [&](const SendRequest& request) { return binds_key(request); });
  ibv_send_wr* refused = chain_.data();
  const int error = binds_keys ? post_by_builders(chain) : ibv_post_send(pair_.get(), chain_.data(), &refused);
  if (error == 0) {
    for (const SendRequest& request : chain) {
      if (request.opcode == Opcode::bind && !binds_key(request)) context_.bound_window(*request.binding);
    }
    return {};
  }
  sends_posted_ = refused == nullptr ? before : refused->wr_id - 1;
  const base::Error refusal{base::Code::io,
                            fmt::format("posting {} requests on {}: {}", chain.size(), context_.device().name(), std::strerror(error))};
  // What stands before it in the chain is posted: there is no way back for this queue pair.
  if (sends_posted_ != before) fail(refusal);
  return std::unexpected(refusal);
}

bool QueuePair::binds_key(const SendRequest& request) const {
  return request.opcode == Opcode::bind && !context_.window(request.binding->key);
}

Result<void> QueuePair::check(const SendRequest& request) const {
  if (request.opcode == Opcode::invalidate && !context_.window(request.rkey) &&
      (context_.keys() == nullptr || context_.keys()->room(request.rkey) == 0))
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{:#x} is neither an indirect key nor a window of this context", request.rkey));
  if (request.opcode != Opcode::bind || request.binding == nullptr) return check_send(request, limits_, 0);
  if (context_.window(request.binding->key)) return context_.check_window(*request.binding);
  if (context_.keys() == nullptr) return base::fail(base::Code::unsupported, limits_.indirect.refusal());
  LACUNA_TRY(context_.keys()->check(*request.binding));
  return check_send(request, limits_, context_.keys()->room(request.binding->key));
}

ibv_send_wr QueuePair::work_request(const SendRequest& request) {
  ibv_send_wr wr{};
  wr.sg_list = as_verbs(request.sg_list);
  wr.num_sge = static_cast<int>(request.sg_list.size());
  wr.opcode = opcode_of(request.opcode);
  // What was bound may not change while earlier reads land there.
  const bool rebinds = request.opcode == Opcode::bind || request.opcode == Opcode::invalidate;
  wr.send_flags =
      bit(request.signaled, IBV_SEND_SIGNALED) | bit(request.fence || rebinds, IBV_SEND_FENCE) | bit(request.inline_data, IBV_SEND_INLINE);
  if (request.opcode == Opcode::invalidate) {
    wr.invalidate_rkey = request.rkey;
  } else if (request.opcode == Opcode::bind) {
    if (!binds_key(request)) context_.describe_window(*request.binding, wr);
  } else {
    wr.imm_data = htobe32(request.imm_data);
    wr.wr.rdma.remote_addr = request.remote_addr;
    wr.wr.rdma.rkey = request.rkey;
  }
  return wr;
}

// Bind requests have no ibv_send_wr. If one of the chain is refused, nothing of it is posted.
int QueuePair::post_by_builders(std::span<const SendRequest> chain) {
  ibv_qp_ex* pair = context_.device().mlx5()->qp_to_qp_ex(pair_.get());
  ibv_wr_start(pair);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const ibv_send_wr& wr = chain_[i];
    pair->wr_id = wr.wr_id;
    pair->wr_flags = wr.send_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
    switch (chain[i].opcode) {
      case Opcode::bind:
        if (!binds_key(chain[i])) {
          ibv_wr_bind_mw(pair, wr.bind_mw.mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
          continue;
        }
        pair->wr_flags |= IBV_SEND_INLINE;  // the entries
        context_.keys()->write(pair, *chain[i].binding);
        continue;
      case Opcode::invalidate: ibv_wr_local_inv(pair, wr.invalidate_rkey); continue;
      case Opcode::write: ibv_wr_rdma_write(pair, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr); break;
      case Opcode::write_imm: ibv_wr_rdma_write_imm(pair, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, wr.imm_data); break;
      case Opcode::read: ibv_wr_rdma_read(pair, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr); break;
      default: ibv_wr_send(pair); break;
    }
    if (!chain[i].inline_data) {
      ibv_wr_set_sge_list(pair, chain[i].sg_list.size(), wr.sg_list);
      continue;
    }
    buffers_.clear();
    for (const Sge& sge : chain[i].sg_list) buffers_.push_back({reinterpret_cast<void*>(sge.addr), sge.length});
    ibv_wr_set_inline_data_list(pair, buffers_.size(), buffers_.data());
  }
  return ibv_wr_complete(pair);
}

Result<void> QueuePair::post_recv(const RecvRequest& request) {
  LACUNA_TRY(check_list(request.sg_list, limits_.max_sge, limits_));
  LACUNA_TRY(check_room(recvs_posted_ - recvs_retired_, 1, options_.max_recv_wr, "receive"));
  context_.busy();
  const std::uint64_t sequence = recvs_posted_ + 1;
  ibv_recv_wr wr{};
  wr.wr_id = sequence | kRecv;
  wr.sg_list = as_verbs(request.sg_list);
  wr.num_sge = static_cast<int>(request.sg_list.size());
  ibv_recv_wr* refused = nullptr;
  if (const int error = ibv_post_recv(pair_.get(), &wr, &refused); error != 0)
    return base::fail(base::Code::io, fmt::format("ibv_post_recv on {}: {}", context_.device().name(), std::strerror(error)));
  recvs_[sequence % recvs_.size()] = request.wr_id;
  recvs_posted_ = sequence;
  return {};
}

std::optional<Completion> QueuePair::take(const ibv_wc& done) {
  if (done.status != IBV_WC_SUCCESS)
    fail({done.status == IBV_WC_RETRY_EXC_ERR ? base::Code::peer_lost : base::Code::transfer, cause_of(done, context_)});
  if ((done.wr_id & kBeat) != 0) {
    beating_ = false;
    queue_.release();
    return std::nullopt;
  }
  Completion completion{.status = status_of(done.status), .qp_num = pair_->qp_num};
  const std::uint64_t sequence = done.wr_id & ~kRecv;
  if ((done.wr_id & kRecv) == 0) {
    sends_retired_ = std::max(sends_retired_, sequence);
    completion.wr_id = sends_[sequence % sends_.size()].wr_id;
    completion.opcode = sends_[sequence % sends_.size()].opcode;
    return completion;
  }
  recvs_retired_ = std::max(recvs_retired_, sequence);
  completion.wr_id = recvs_[sequence % recvs_.size()];
  completion.opcode = Opcode::recv;
  if (done.status != IBV_WC_SUCCESS) return completion;
  completion.byte_len = done.byte_len;
  if (done.opcode == IBV_WC_RECV_RDMA_WITH_IMM) completion.opcode = Opcode::recv_imm;
  if ((done.wc_flags & IBV_WC_WITH_IMM) != 0) completion.imm_data = be32toh(done.imm_data);
  return completion;
}

void QueuePair::fail(base::Error why) {
  if (fault_) return;
  fault_ = std::move(why);
  auto attributes = zeroed<ibv_qp_attr>();
  attributes.qp_state = IBV_QPS_ERR;
  context_.device().library().modify_qp(pair_.get(), &attributes, IBV_QP_STATE);  // it mostly is already
}

void QueuePair::beat() {
  if (!connected_ || fault_ || beating_ || !queue_.reserve()) return;
  ibv_send_wr wr{};
  wr.wr_id = kBeat;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  beating_ = ibv_post_send(pair_.get(), &wr, &refused) == 0;
  if (!beating_) queue_.release();
}

}  // namespace lacuna::nic::verbs
