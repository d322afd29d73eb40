// Posting: by ibv_post_send, and by the builders of ibv_wr_post(3) and mlx5dv_wr_post(3).
#include <cerrno>
#include <cstring>
#include <utility>

#include "tests/support/mlx5/posting.hpp"

namespace lacuna::test::mlx5 {
namespace {

using What = Work::What;
using Lock = std::lock_guard<std::mutex>;

constexpr std::uint32_t kEntriesWithoutInline = 4;

std::uint32_t entries_inline(const Pair& pair) { return std::max(kEntriesWithoutInline, (pair.cap.max_inline_data + 4) / 16); }

std::vector<std::byte> gather(std::size_t count, const auto& buffer_of) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const std::byte> buffer = buffer_of(i);
    bytes.insert(bytes.end(), buffer.begin(), buffer.end());
  }
  return bytes;
}

// Nothing of it, if something does not fit.
int enqueue(Pair& pair, std::vector<Work> chain) {
  if (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_ERR) return EINVAL;
  if (pair.posted - pair.retired + chain.size() > pair.cap.max_send_wr) return ENOMEM;
  for (Work& work : chain) {
    if (work.list.size() > pair.cap.max_send_sge) return EINVAL;
    if (work.inlined && work.inlined->size() > pair.cap.max_inline_data) return EINVAL;
  }
  for (Work& work : chain) {
    work.sequence = ++pair.posted;
    pair.sends.push_back(std::move(work));
  }
  if (pair.state == IBV_QPS_ERR) Fabric::get().fail(pair);
  return 0;
}

Work* begin(ibv_qp_ex* held, What what) {
  Fabric& fabric = Fabric::get();
  Pair& pair = fabric.pair(held);
  if (!pair.building) fabric.violations.emplace_back("a request outside of ibv_wr_start and ibv_wr_complete");
  Work work;
  work.what = what;
  work.wr_id = held->wr_id;
  work.flags = held->wr_flags;
  pair.built.push_back(std::move(work));
  return &pair.built.back();
}

void remote(Work* work, std::uint32_t rkey, std::uint64_t addr) {
  work->rkey = rkey;
  work->remote_addr = addr;
}

void start(ibv_qp_ex* held) {
  const Lock lock(Fabric::get().mutex);
  Pair& pair = Fabric::get().pair(held);
  if (std::exchange(pair.building, true)) Fabric::get().violations.emplace_back("ibv_wr_start within ibv_wr_start");
}

int complete(ibv_qp_ex* held) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  Pair& pair = fabric.pair(held);
  if (!std::exchange(pair.building, false)) fabric.violations.emplace_back("ibv_wr_complete without ibv_wr_start");
  std::vector<Work> built = std::exchange(pair.built, {});
  if (const int refused = std::exchange(pair.refused, 0); refused != 0) return refused;
  fabric.calls.push_back({Call::What::complete, 0, static_cast<std::uint32_t>(built.size())});
  return enqueue(pair, std::move(built));
}

void set_sge_list(ibv_qp_ex* held, std::size_t count, const ibv_sge* list) {
  const Lock lock(Fabric::get().mutex);
  Fabric::get().pair(held).built.back().list.assign(list, list + count);
}

void set_inline_data_list(ibv_qp_ex* held, std::size_t count, const ibv_data_buf* list) {
  const Lock lock(Fabric::get().mutex);
  Fabric::get().pair(held).built.back().inlined =
      gather(count, [&](std::size_t i) { return std::span(static_cast<const std::byte*>(list[i].addr), list[i].length); });
}

// What both kinds of bindings must heed; the first thing that is wrong is told by ibv_wr_complete.
void bind(mlx5dv_qp_ex* held, mlx5dv_mkey* key, unsigned access, std::uint32_t entries, std::uint32_t taken, Mkey what) {
  Fabric& fabric = Fabric::get();
  Pair& pair = fabric.pair(held);
  Work* work = begin(&pair.extended, What::bind);
  work->rkey = key->lkey;
  work->binding = std::move(what);
  work->binding.access = access;
  const auto mkey = fabric.mkeys.find(key->lkey);
  const auto refuse = [&](int error) {
    if (pair.refused == 0) pair.refused = error;
  };
  if (!pair.binds || (work->flags & IBV_SEND_INLINE) == 0) refuse(EOPNOTSUPP);
  if (mkey == fabric.mkeys.end()) {
    refuse(EINVAL);
  } else if (taken > mkey->second.most || taken > entries_inline(pair)) {
    refuse(ENOMEM);
  }
  if (entries == 0) refuse(EINVAL);
}

void mr_list(mlx5dv_qp_ex* held, mlx5dv_mkey* key, std::uint32_t access, std::uint16_t count, ibv_sge* list) {
  const Lock lock(Fabric::get().mutex);
  Mkey what;
  what.list.assign(list, list + count);
  bind(held, key, access, count, count, std::move(what));
  Fabric::get().calls.push_back({Call::What::mr_list, key->lkey, count});
}

void mr_interleaved(mlx5dv_qp_ex* held, mlx5dv_mkey* key, std::uint32_t access, std::uint32_t repeat, std::uint16_t count,
                    mlx5dv_mr_interleaved* list) {
  const Lock lock(Fabric::get().mutex);
  Mkey what;
  what.interleaved.assign(list, list + count);
  what.repeat = repeat;
  bind(held, key, access, count, count + 1U, std::move(what));
  Fabric::get().calls.push_back({Call::What::mr_interleaved, key->lkey, count, repeat});
}

}  // namespace

void fill_builders(Pair& pair) {
  ibv_qp_ex& x = pair.extended;
  x.wr_start = start;
  x.wr_complete = complete;
  x.wr_set_sge_list = set_sge_list;
  x.wr_set_inline_data_list = set_inline_data_list;
  x.wr_send = [](ibv_qp_ex* held) {
    const Lock lock(Fabric::get().mutex);
    begin(held, What::send);
  };
  x.wr_rdma_write = [](ibv_qp_ex* held, std::uint32_t rkey, std::uint64_t addr) {
    const Lock lock(Fabric::get().mutex);
    remote(begin(held, What::write), rkey, addr);
  };
  x.wr_rdma_write_imm = [](ibv_qp_ex* held, std::uint32_t rkey, std::uint64_t addr, __be32 imm) {
    const Lock lock(Fabric::get().mutex);
    Work* work = begin(held, What::write_imm);
    remote(work, rkey, addr);
    work->imm = imm;
  };
  x.wr_rdma_read = [](ibv_qp_ex* held, std::uint32_t rkey, std::uint64_t addr) {
    const Lock lock(Fabric::get().mutex);
    remote(begin(held, What::read), rkey, addr);
  };
  x.wr_local_inv = [](ibv_qp_ex* held, std::uint32_t key) {
    const Lock lock(Fabric::get().mutex);
    begin(held, What::invalidate)->rkey = key;
    Fabric::get().calls.push_back({Call::What::local_inv, key});
  };
  pair.special.wr_mr_list = mr_list;
  pair.special.wr_mr_interleaved = mr_interleaved;
}

int post_send(ibv_qp* held, ibv_send_wr* first, ibv_send_wr** refused) {
  const Lock lock(Fabric::get().mutex);
  Fabric& fabric = Fabric::get();
  Pair& pair = fabric.pair(held);
  if (pair.building) fabric.violations.emplace_back("ibv_post_send within ibv_wr_start");
  for (ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
    Work work;
    work.wr_id = wr->wr_id;
    work.flags = wr->send_flags;
    int error = 0;
    switch (wr->opcode) {
      case IBV_WR_SEND: work.what = What::send; break;
      case IBV_WR_RDMA_WRITE: work.what = What::write; break;
      case IBV_WR_RDMA_WRITE_WITH_IMM: work.what = What::write_imm; break;
      case IBV_WR_RDMA_READ: work.what = What::read; break;
      case IBV_WR_LOCAL_INV: work.what = What::invalidate; break;
      default: error = EINVAL;
    }
    if (work.what == What::invalidate) {
      work.rkey = wr->invalidate_rkey;
      fabric.calls.push_back({Call::What::local_inv, work.rkey});
    } else {
      remote(&work, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
      work.imm = wr->imm_data;
      const std::span<const ibv_sge> list(wr->sg_list, static_cast<std::size_t>(wr->num_sge));
      if ((work.flags & IBV_SEND_INLINE) != 0) {
        work.inlined =
            gather(list.size(), [&](std::size_t i) { return std::span(reinterpret_cast<const std::byte*>(list[i].addr), list[i].length); });
      } else {
        work.list.assign(list.begin(), list.end());
      }
    }
    if (error == 0) {
      std::vector<Work> chain;
      chain.push_back(std::move(work));
      error = enqueue(pair, std::move(chain));
    }
    if (error != 0) {
      *refused = wr;
      return error;
    }
  }
  return 0;
}

int post_recv(ibv_qp* held, ibv_recv_wr* first, ibv_recv_wr** refused) {
  const Lock lock(Fabric::get().mutex);
  Pair& pair = Fabric::get().pair(held);
  for (ibv_recv_wr* wr = first; wr != nullptr; wr = wr->next) {
    if (pair.receives.size() >= pair.cap.max_recv_wr || std::cmp_greater(wr->num_sge, pair.cap.max_recv_sge)) {
      *refused = wr;
      return ENOMEM;
    }
    pair.receives.push_back({wr->wr_id, {wr->sg_list, wr->sg_list + wr->num_sge}});
  }
  if (pair.state == IBV_QPS_ERR) Fabric::get().fail(pair);
  return 0;
}

}  // namespace lacuna::test::mlx5
