// What happens to requests that were posted.
#include "tests/support/mlx5/fabric.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

namespace lacuna::test::mlx5 {
namespace {

constexpr std::size_t kMostReadSge = 30;  // what the device promises, which reads are held to
constexpr int kDeepest = 4;               // keys that name keys (ConnectX-5)
constexpr int kStepsUntilRnr = 200;       // of one attempt with a peer that has posted no receive
constexpr std::uint64_t kScattered = 64;  // bytes of a message that a completion has room for

using What = Work::What;

std::uint64_t bytes_of(std::span<const ibv_sge> list) {
  std::uint64_t bytes = 0;
  for (const ibv_sge& sge : list) bytes += sge.length;
  return bytes;
}

}  // namespace

Fabric& Fabric::get() {
  static Fabric fabric;
  return fabric;
}

void Fabric::fetch(const Piece& piece, std::vector<std::byte>& stream) {
  const std::size_t before = stream.size();
  if (piece.pinned < 0) {
    stream.insert(stream.end(), piece.at, piece.at + piece.bytes);
    return;
  }
  stream.resize(before + piece.bytes);
  pins->fetch(piece.pinned, piece.at, std::span(stream).subspan(before));
}

// A word that somebody may be polling comes at once.
void Fabric::put(const Piece& piece, const std::byte* from) {
  if (piece.pinned >= 0) {
    pins->put(piece.pinned, piece.at, {from, piece.bytes});
    return;
  }
  if (piece.bytes != sizeof(std::uint64_t) || reinterpret_cast<std::uintptr_t>(piece.at) % sizeof(std::uint64_t) != 0) {
    std::copy_n(from, piece.bytes, piece.at);  // also nothing from nowhere
    return;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(piece.at), word, __ATOMIC_RELEASE);
}

void Fabric::complete(ibv_cq* held, const ibv_wc& wc, std::uint64_t sequence) {
  Queue& queue = queues.at(held);
  if (std::cmp_greater_equal(queue.entries.size(), queue.cq.cqe)) {
    violations.emplace_back("a completion queue overran");
    return;
  }
  queue.entries.push_back({wc, sequence});
  if (!std::exchange(queue.armed, false) || queue.cq.channel == nullptr) return;
  Channel& channel = channels.at(queue.cq.channel);
  channel.ready.push_back(held);
  const std::uint64_t one = 1;
  if (write(channel.channel.fd, &one, sizeof one) != sizeof one) violations.emplace_back("no event");
}

bool Fabric::resolve(const ibv_pd* domain, std::uint32_t key, std::uint64_t addr, std::uint64_t bytes, unsigned need, int depth,
                     Pieces& pieces) const {
  if (const auto region = regions.find(key); region != regions.end()) {
    const ibv_mr& mr = region->second.mr;
    const auto begin = reinterpret_cast<std::uint64_t>(mr.addr);
    if (mr.pd != domain || (region->second.access & need) != need || addr < begin || bytes > mr.length || addr - begin > mr.length - bytes)
      return false;
    pieces.push_back({reinterpret_cast<std::byte*>(addr), bytes, region->second.pinned});
    return true;
  }
  const auto found = mkeys.find(key);
  if (found == mkeys.end() || depth == kDeepest) return false;
  const Mkey& mkey = found->second;
  if (mkey.domain != domain || !mkey.bound || (mkey.access & need) != need) return false;
  // As the device walks it: entry by entry, round by round.
  std::uint64_t skip = addr;
  const auto take = [&](std::uint64_t at, std::uint64_t length, std::uint32_t lkey) {
    const std::uint64_t passed = std::min(skip, length);
    skip -= passed;
    const std::uint64_t part = std::min(bytes, length - passed);
    bytes -= part;
    return part == 0 || resolve(domain, lkey, at + passed, part, need, depth + 1, pieces);
  };
  for (const ibv_sge& sge : mkey.list) {
    if (bytes == 0) break;
    if (!take(sge.addr, sge.length, sge.lkey)) return false;
  }
  std::uint64_t of_round = 0;
  for (const mlx5dv_mr_interleaved& one : mkey.interleaved) of_round += static_cast<std::uint16_t>(one.bytes_count);
  const std::uint64_t first = of_round == 0 ? mkey.repeat : skip / of_round;
  skip -= mkey.repeat == 0 ? 0 : std::min<std::uint64_t>(first, mkey.repeat) * of_round;
  for (std::uint64_t round = first; round < mkey.repeat && bytes > 0; ++round) {
    for (const mlx5dv_mr_interleaved& one : mkey.interleaved) {
      const std::uint64_t stride = static_cast<std::uint16_t>(one.bytes_count + one.bytes_skip);
      if (!take(one.addr + round * stride, static_cast<std::uint16_t>(one.bytes_count), one.lkey)) return false;
    }
  }
  return bytes == 0;
}

bool Fabric::resolve(const ibv_pd* domain, std::span<const ibv_sge> list, unsigned need, Pieces& pieces) const {
  return std::ranges::all_of(list, [&](const ibv_sge& sge) { return resolve(domain, sge.lkey, sge.addr, sge.length, need, 0, pieces); });
}

// Which end gets on first is nobody's promise.
void Fabric::step() {
  if (random_.below(2) == 0) {
    for (auto& [number, pair] : pairs) advance(pair);
  } else {
    for (auto& [number, pair] : std::views::reverse(pairs)) advance(pair);
  }
}

void Fabric::advance(Pair& pair) {
  if (pair.state != IBV_QPS_RTS) return;
  std::int64_t most = random_.between(1, 4);
  bool reading = false;
  for (Work& work : pair.sends) {
    if (pair.state != IBV_QPS_RTS) break;
    if (work.state == Work::State::done) continue;
    if (work.state == Work::State::waiting) {
      if (most-- == 0 || (reading && (work.flags & IBV_SEND_FENCE) != 0) || !run(pair, work)) break;
    } else if (work.delay-- == 0) {
      const auto peer = pairs.find(pair.remote);
      if (peer == pairs.end() || peer->second.state == IBV_QPS_ERR) {
        end(pair, work, IBV_WC_RETRY_EXC_ERR);
      } else {
        transfer(pair, work, peer->second);
      }
    }
    reading |= work.state == Work::State::reading;
  }
  report(pair);
}

// Completions in the order of the requests.
void Fabric::report(Pair& pair) {
  while (!pair.sends.empty() && pair.sends.front().state == Work::State::done) {
    const Work& work = pair.sends.front();
    if (work.status != IBV_WC_SUCCESS || (work.flags & IBV_SEND_SIGNALED) != 0) {
      auto wc = nic::verbs::zeroed<ibv_wc>();
      wc.wr_id = work.wr_id;
      wc.status = work.status;
      wc.opcode = work.what == What::bind ? static_cast<ibv_wc_opcode>(MLX5DV_WC_UMR) : IBV_WC_SEND;
      wc.qp_num = pair.extended.qp_base.qp_num;
      complete(pair.extended.qp_base.send_cq, wc, work.sequence);
    }
    pair.sends.pop_front();
  }
}

void Fabric::end(Pair& pair, Work& work, ibv_wc_status status) {
  work.state = Work::State::done;
  work.status = status;
  if (status != IBV_WC_SUCCESS) flush(pair);
}

void Fabric::fail(Pair& pair) {
  flush(pair);
  report(pair);
}

// Nothing is taken out of the send queue, in which the caller may be.
void Fabric::flush(Pair& pair) {
  pair.state = IBV_QPS_ERR;
  for (Work& work : pair.sends) {
    if (work.state == Work::State::done) continue;
    work.state = Work::State::done;
    work.status = IBV_WC_WR_FLUSH_ERR;
  }
  for (; !pair.receives.empty(); pair.receives.pop_front()) {
    auto wc = nic::verbs::zeroed<ibv_wc>();
    wc.wr_id = pair.receives.front().wr_id;
    wc.status = IBV_WC_WR_FLUSH_ERR;
    wc.qp_num = pair.extended.qp_base.qp_num;
    complete(pair.extended.qp_base.recv_cq, wc, 0);
  }
}

// A responder that refuses goes into error itself, and its owner is told.
void Fabric::blame(Pair& peer) {
  fail(peer);
  Open& open = opens.at(peer.extended.qp_base.context);
  auto event = nic::verbs::zeroed<ibv_async_event>();
  event.event_type = IBV_EVENT_QP_ACCESS_ERR;
  event.element.qp = &peer.extended.qp_base;
  open.events.push_back(event);
}

bool Fabric::run(Pair& pair, Work& work) {
  if (work.what == What::bind || work.what == What::invalidate) {
    const auto found = mkeys.find(work.rkey);
    if (found == mkeys.end() || found->second.domain != pair.extended.qp_base.pd) {
      end(pair, work, IBV_WC_MW_BIND_ERR);
      return true;
    }
    Mkey& mkey = found->second;
    mkey.bound = work.what == What::bind;
    mkey.access = work.binding.access;
    mkey.list = work.binding.list;
    mkey.interleaved = work.binding.interleaved;
    mkey.repeat = work.binding.repeat;
    end(pair, work, IBV_WC_SUCCESS);
    return true;
  }
  const auto found = pairs.find(pair.remote);
  if (found == pairs.end() || found->second.state == IBV_QPS_ERR) {
    end(pair, work, IBV_WC_RETRY_EXC_ERR);
    return true;
  }
  Pair& peer = found->second;
  if (peer.state != IBV_QPS_RTS && peer.state != IBV_QPS_RTR) return false;
  if (work.what == What::read) {
    if (work.list.size() > kMostReadSge) {
      end(pair, work, IBV_WC_LOC_QP_OP_ERR);
      return true;
    }
    work.state = Work::State::reading;
    work.delay = static_cast<int>(random_.below(6));
    return true;
  }
  if (work.what == What::write) {
    transfer(pair, work, peer);
    return true;
  }
  return deliver(pair, work, peer);
}

// What moves between this end and memory that the request names.
void Fabric::transfer(Pair& pair, Work& work, Pair& peer) {
  const bool read = work.what == What::read;
  const std::uint64_t bytes = work.inlined ? work.inlined->size() : bytes_of(work.list);
  Pieces ours;
  Pieces theirs;
  if (!work.inlined && !resolve(pair.extended.qp_base.pd, work.list, read ? IBV_ACCESS_LOCAL_WRITE : 0, ours)) {
    end(pair, work, IBV_WC_LOC_PROT_ERR);
    return;
  }
  const unsigned need = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  if (bytes > 0 && !resolve(peer.extended.qp_base.pd, work.rkey, work.remote_addr, bytes, need, 0, theirs)) {
    end(pair, work, IBV_WC_REM_ACCESS_ERR);
    blame(peer);
    return;
  }
  const Pieces& sources = read ? theirs : ours;
  const Pieces& sinks = read ? ours : theirs;
  std::vector<std::byte> stream;
  if (work.inlined) stream = *work.inlined;
  for (const Piece& piece : work.inlined ? Pieces() : sources) fetch(piece, stream);
  std::uint64_t at = 0;
  for (const Piece& piece : sinks) {
    put(piece, stream.data() + at);
    at += piece.bytes;
  }
  end(pair, work, IBV_WC_SUCCESS);
}

// What takes a receive of the peer.
bool Fabric::deliver(Pair& pair, Work& work, Pair& peer) {
  std::vector<std::byte> stream;
  Pieces ours;
  if (work.inlined) stream = *work.inlined;
  if (!work.inlined && !resolve(pair.extended.qp_base.pd, work.list, 0, ours)) {
    end(pair, work, IBV_WC_LOC_PROT_ERR);
    return true;
  }
  if (peer.receives.empty()) {
    if (++work.attempts < kStepsUntilRnr * (pair.rnr_retry + 1) || pair.rnr_retry == 7) return false;
    end(pair, work, IBV_WC_RNR_RETRY_EXC_ERR);
    return true;
  }
  const Receive receive = peer.receives.front();
  auto wc = nic::verbs::zeroed<ibv_wc>();
  wc.wr_id = receive.wr_id;
  wc.qp_num = peer.extended.qp_base.qp_num;
  wc.imm_data = work.imm;
  const auto conclude = [&](ibv_wc_status theirs, ibv_wc_status ours) {
    wc.status = theirs;
    peer.receives.pop_front();
    complete(peer.extended.qp_base.recv_cq, wc, 0);
    end(pair, work, ours);
    if (theirs != IBV_WC_SUCCESS) fail(peer);
    return true;
  };
  if (work.what == What::write_imm) {
    wc.byte_len = static_cast<std::uint32_t>(work.inlined ? work.inlined->size() : bytes_of(work.list));
    wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    wc.wc_flags = IBV_WC_WITH_IMM;
    transfer(pair, work, peer);
    return work.status != IBV_WC_SUCCESS || conclude(IBV_WC_SUCCESS, IBV_WC_SUCCESS);
  }
  Pieces theirs;
  for (const Piece& piece : ours) fetch(piece, stream);
  wc.byte_len = static_cast<std::uint32_t>(stream.size());
  wc.opcode = IBV_WC_RECV;
  if (stream.size() > bytes_of(receive.list)) return conclude(IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
  // Only what arrives is looked at.
  std::vector<ibv_sge> used;
  std::uint64_t left = stream.size();
  for (ibv_sge sge : receive.list) {
    sge.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(sge.length, left));
    left -= sge.length;
    if (sge.length > 0) used.push_back(sge);
  }
  const bool indirect = std::ranges::any_of(used, [&](const ibv_sge& sge) { return mkeys.contains(sge.lkey); });
  const bool spoiled = peer.scatters_to_cqe && indirect && stream.size() <= kScattered;
  if (spoiled) violations.emplace_back("a short message went through its completion to the address of an indirect key");
  if (spoiled || !resolve(peer.extended.qp_base.pd, used, IBV_ACCESS_LOCAL_WRITE, theirs))
    return conclude(IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
  std::uint64_t at = 0;
  for (const Piece& piece : theirs) {
    put(piece, stream.data() + at);
    at += piece.bytes;
  }
  return conclude(IBV_WC_SUCCESS, IBV_WC_SUCCESS);
}

}  // namespace lacuna::test::mlx5
