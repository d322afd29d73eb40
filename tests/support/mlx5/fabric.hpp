// The fake's insides: what exists, and what happens to it. One lock for all.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "tests/support/mlx5/fake.hpp"
#include "tests/support/mlx5/pins.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test::mlx5 {

struct Region {
  ibv_mr mr{};
  unsigned access = 0;
  int pinned = -1;  // of pins
};

struct Mkey {
  mlx5dv_mkey names{};
  ibv_pd* domain = nullptr;
  std::uint32_t most = 0;  // entries
  bool bound = false;
  unsigned access = 0;
  std::vector<ibv_sge> list;
  std::vector<mlx5dv_mr_interleaved> interleaved;
  std::uint32_t repeat = 0;
};

struct Work {
  enum class State { waiting, reading, done };
  enum class What { send, write, write_imm, read, bind, invalidate };
  std::uint64_t wr_id = 0;
  std::uint64_t sequence = 0;
  What what = What::send;
  unsigned flags = 0;
  std::vector<ibv_sge> list;
  std::optional<std::vector<std::byte>> inlined;
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;  // of bind and invalidate, the key
  std::uint32_t imm = 0;
  Mkey binding;  // what it will be
  State state = State::waiting;
  ibv_wc_status status = IBV_WC_SUCCESS;
  int delay = 0;
  int attempts = 0;
};

struct Receive {
  std::uint64_t wr_id = 0;
  std::vector<ibv_sge> list;
};

struct Queue {
  ibv_cq cq{};
  struct Entry {
    ibv_wc wc;
    std::uint64_t sequence;  // of a send; 0 of a receive
  };
  std::deque<Entry> entries;
  bool armed = false;
};

struct Pair {
  ibv_qp_ex extended{};  // its qp_base is what callers hold
  mlx5dv_qp_ex special{};
  ibv_qp_cap cap{};
  bool binds = false;           // was created for keys
  bool scatters_to_cqe = true;  //
  ibv_qp_state state = IBV_QPS_RESET;
  std::uint32_t remote = 0;
  int rnr_retry = 0;
  std::deque<Work> sends;
  std::deque<Receive> receives;
  std::uint64_t posted = 0, retired = 0;
  // Between ibv_wr_start and ibv_wr_complete.
  bool building = false;
  std::vector<Work> built;
  int refused = 0;
};

struct Channel {
  ibv_comp_channel channel{};
  std::deque<ibv_cq*> ready;
};

struct Open {
  ibv_context context{};
  std::deque<ibv_async_event> events;
};

class Fabric {
 public:
  static Fabric& get();

  std::mutex mutex;
  std::map<std::uint32_t, Region> regions;  // by key
  std::map<std::uint32_t, Mkey> mkeys;
  std::map<std::uint32_t, Pair> pairs;
  std::map<const void*, std::uint32_t> numbers;  // of pairs, by all that callers may hold
  std::map<const ibv_cq*, Queue> queues;
  std::map<const ibv_pd*, ibv_pd> domains;
  std::map<const void*, Channel> channels;
  std::map<const ibv_context*, Open> opens;
  std::vector<Call> calls;
  std::vector<std::string> violations;
  std::unique_ptr<Pins> pins;  // where registering pins

  std::uint32_t next_key() { return ++keys_ << 8; }
  std::uint32_t next_number() { return ++numbers_; }
  Pair& pair(const void* held) { return pairs.at(numbers.at(held)); }
  /// A little of what is posted happens.
  void step();
  /// Fails what is posted, and what will be.
  void fail(Pair& pair);
  void complete(ibv_cq* queue, const ibv_wc& wc, std::uint64_t sequence);

 private:
  struct Piece {
    std::byte* at;
    std::uint64_t bytes;
    int pinned;
  };
  using Pieces = std::vector<Piece>;
  bool resolve(const ibv_pd* domain, std::uint32_t key, std::uint64_t addr, std::uint64_t bytes, unsigned need, int depth,
               Pieces& pieces) const;
  bool resolve(const ibv_pd* domain, std::span<const ibv_sge> list, unsigned need, Pieces& pieces) const;
  void fetch(const Piece& piece, std::vector<std::byte>& stream);
  void put(const Piece& piece, const std::byte* from);
  void advance(Pair& pair);
  /// False: not yet.
  bool run(Pair& pair, Work& work);
  bool deliver(Pair& pair, Work& work, Pair& peer);
  void transfer(Pair& pair, Work& work, Pair& peer);
  void end(Pair& pair, Work& work, ibv_wc_status status);
  void flush(Pair& pair);
  void blame(Pair& peer);
  void report(Pair& pair);

  std::uint32_t keys_ = 0x100;
  std::uint32_t numbers_ = 0x10;
  support::Random random_{17};
};

}  // namespace lacuna::test::mlx5
