#include "tests/interposer/drawn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "lacuna/mpi/host/cpus.hpp"
#include "tests/interposer/buffer.hpp"
#include "tests/interposer/drawn_types.hpp"

namespace lacuna::test::fake {
namespace {

using mpi::kSuccess;
using support::Random;

constexpr int kTags = 3, kExchangeTag = 100, kNoTag = 999, kCollectives = 11;
enum SendWay { kSend, kSsend, kBsend, kSendWays };
enum BegunSendWay { kIsend, kIssend, kIbsend, kSendInit, kBegunSendWays };
enum ReceiveWay { kRecv, kProbe, kMprobe, kIprobe, kImprobe, kReceiveWays };
enum BegunReceiveWay { kIrecv, kRecvInit, kBegunReceiveWays };
enum Completion { kWait, kWaitBackwards, kWaitall, kWaitany, kWaitsome, kTestall, kTestany, kTestsome, kTest, kGetStatus, kCompletions };

std::int64_t draw_bytes(Random& random) {
  static const std::vector<std::int64_t> known{0, 1, 60, 252, 253, 254, 1000, 2048, 4032, 8191, 8192, 9000, 20'000, 70'000};
  return random.one_in(2) ? random.pick(known) : random.scaled(30'000);
}

// Whether the sides of all messages of one sender, receiver, communicator and tag are begun.
bool begins(std::uint64_t seed, const DrawnMessage& message, bool send) {
  Random random(seed ^ static_cast<std::uint64_t>(((message.comm * kTags + message.tag) * 16 + message.from) * 16 + message.to) << 20);
  if (send) random.next();
  return message.from == message.to || random.one_in(2);
}

DrawnMessage draw_message(Random& random, const Drawn& program, std::uint64_t seed, int number, bool devices) {
  DrawnMessage made;
  made.comm = static_cast<int>(random.below(program.comms));
  made.tag = static_cast<int>(random.below(kTags));
  made.from = static_cast<int>(random.below(program.ranks));
  made.to = static_cast<int>(random.below(program.ranks));
  made.exchange = made.from != made.to && random.one_in(5);
  if (made.exchange) made.tag = kExchangeTag + number;
  made.send_begins = begins(seed, made, true);
  made.receive_begins = made.exchange ? made.send_begins : begins(seed, made, false);
  for (DrawnSide* side : {&made.out, &made.in}) {
    side->type = random.next();
    side->on_device = devices && random.one_in(2);
    side->freed_early = random.one_in(2);
  }
  made.out.bytes = made.in.bytes = draw_bytes(random);
  made.out.way = static_cast<int>(random.below(made.send_begins ? int{kBegunSendWays} : int{kSendWays}));
  made.in.way = static_cast<int>(random.below(made.receive_begins ? int{kBegunReceiveWays} : int{kReceiveWays}));
  if (made.exchange) made.out.way = static_cast<int>(random.below(2));  // by Sendrecv, or in place
  if (random.one_in(3)) made.in.bytes += 4 * random.below(100);
  // Whose errors are fatal: they have no communicator
  const bool matched = made.in.way == kMprobe || made.in.way == kImprobe;
  if (!made.exchange && !made.receive_begins && !matched && random.one_in(15)) made.in.bytes = made.out.bytes / 2;
  return made;
}

// A receive from anyone, or of any tag, finds its message where no other could be meant.
void draw_wildcards(Random& random, std::vector<DrawnMessage>& messages) {
  for (DrawnMessage& one : messages) {
    const auto of_same = [&](bool and_source) {
      return std::ranges::count_if(messages, [&](const DrawnMessage& other) {
        const bool there = other.to == one.to && (!and_source || other.from == one.from);
        const bool back = other.exchange && other.from == one.to && (!and_source || other.to == one.from);
        return other.comm == one.comm && (there || back);
      });
    };
    one.any_tag = !one.exchange && of_same(true) == 1 && random.one_in(2);
    one.any_source = !one.exchange && of_same(false) == 1 && random.one_in(2);
  }
}

std::uint64_t digest(const std::vector<std::byte>& bytes) {
  return mpi::digest_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// One side as it is while the program runs.
struct Live {
  DrawnType type;
  std::unique_ptr<Buffer<std::byte>> memory;
  int round = 0, message = 0, returned = kSuccess;
  bool receives = false, persistent = false, tells = true;
  Request request{};
  Status status{};
};

class Run {
 public:
  Run(const Host& mpi, int rank, const Drawn& program, const std::vector<Comm>& comms)
      : mpi_(mpi), rank_(rank), program_(program), comms_(comms) {}

  std::vector<std::string> all() {
    for (round_ = 0; round_ < static_cast<int>(program_.rounds.size()); ++round_) round();
    return std::move(lines_);
  }

 private:
  [[nodiscard]] const DrawnRound& now() const { return program_.rounds[static_cast<std::size_t>(round_)]; }
  [[nodiscard]] Comm comm(const DrawnMessage& message) const { return comms_[static_cast<std::size_t>(message.comm)]; }
  static int count(const Live& live) { return static_cast<int>(live.type.count); }

  void round() {
    const std::vector<DrawnMessage>& messages = now().messages;
    std::vector<Live> begun;
    for (const bool blocking : {false, true}) {
      for (std::size_t i = 0; i < messages.size(); ++i) {
        const DrawnMessage& message = messages[i];
        if (message.exchange && (message.from == rank_ || message.to == rank_) && message.send_begins != blocking)
          exchange(message, static_cast<int>(i), begun);
        if (message.exchange) continue;
        if (message.to == rank_ && message.receive_begins && !blocking) begin_receive(message, static_cast<int>(i), begun);
        if (message.from == rank_ && message.send_begins && !blocking) begin_send(message, static_cast<int>(i), begun);
        if (message.from == rank_ && !message.send_begins && blocking) send(message, static_cast<int>(i));
        if (message.to == rank_ && !message.receive_begins && blocking) receive(message, static_cast<int>(i));
      }
    }
    if (std::ranges::find(now().cancelled, rank_) != now().cancelled.end()) cancel();
    complete(begun);
    for (Live& live : begun) {
      if (live.persistent) mpi_.Request_free(&live.request);
      if (live.receives) tell(live);
      end(live);
    }
    if (now().collective >= 0) collective();
    Request barrier{};
    mpi_.Ibarrier(comms_[0], &barrier);
    mpi_.Wait(&barrier, mpi::ignored());
  }

  Live side(const DrawnSide& drawn, bool receives, int message) const {
    Random random(drawn.type + static_cast<std::uint64_t>(rank_));
    Live live;
    live.type = draw_type(mpi_, random, drawn.bytes);
    std::vector<std::byte> bytes(static_cast<std::size_t>(std::max<std::int64_t>(live.type.span, 1)), std::byte{0xee});
    for (std::byte& byte : bytes) {
      if (!receives) byte = static_cast<std::byte>(random.next());
    }
    live.memory = std::make_unique<Buffer<std::byte>>(drawn.on_device, std::move(bytes));
    live.round = round_;
    live.message = message;
    live.receives = receives;
    return live;
  }
  void end(Live& live) const {
    if (live.type.own) mpi_.Type_free(&live.type.type);
    live.type.own = false;
  }
  void tell(const Live& live) {
    lines_.push_back(fmt::format("round {} message {}: code {}", live.round, live.message, live.returned));
    if (live.returned != kSuccess || !live.tells) return;
    lines_.back() += fmt::format(" source {} tag {} bytes {} memory {:x}", live.status.source, live.status.tag, mpi::bytes_of(live.status),
                                 digest(live.memory->read()));
  }

  void send(const DrawnMessage& message, int number) {
    Live live = side(message.out, false, number);
    const auto call = message.out.way == kSend ? mpi_.Send : message.out.way == kSsend ? mpi_.Ssend : mpi_.Bsend;
    live.returned = call(live.memory->data(), count(live), live.type.type, message.to, message.tag, comm(message));
    live.tells = false;
    tell(live);
    end(live);
  }
  void begin_send(const DrawnMessage& message, int number, std::vector<Live>& begun) {
    Live live = side(message.out, false, number);
    const auto call = message.out.way == kIsend    ? mpi_.Isend
                      : message.out.way == kIssend ? mpi_.Issend
                      : message.out.way == kIbsend ? mpi_.Ibsend
                                                   : mpi_.Send_init;
    live.persistent = message.out.way == kSendInit;
    live.returned = call(live.memory->data(), count(live), live.type.type, message.to, message.tag, comm(message), &live.request);
    begin(std::move(live), message.out, begun);
  }
  void begin_receive(const DrawnMessage& message, int number, std::vector<Live>& begun) {
    Live live = side(message.in, true, number);
    live.persistent = message.in.way == kRecvInit;
    const auto call = live.persistent ? mpi_.Recv_init : mpi_.Irecv;
    live.returned = call(live.memory->data(), count(live), live.type.type, source(message), tag(message), comm(message), &live.request);
    begin(std::move(live), message.in, begun);
  }
  void begin(Live live, const DrawnSide& drawn, std::vector<Live>& begun) const {
    if (live.persistent && live.returned == kSuccess) live.returned = mpi_.Start(&live.request);
    if (drawn.freed_early) end(live);
    begun.push_back(std::move(live));
  }
  static int source(const DrawnMessage& message) { return message.any_source ? mpi::kAnySource : message.from; }
  static int tag(const DrawnMessage& message) { return message.any_tag ? mpi::kAnyTag : message.tag; }

  void receive(const DrawnMessage& message, int number) {
    Live live = side(message.in, true, number);
    Status probed{};
    Message matched{};
    int found = 0;
    const Comm in = comm(message);
    switch (message.in.way) {
      case kProbe: mpi_.Probe(source(message), tag(message), in, &probed); break;
      case kMprobe: mpi_.Mprobe(source(message), tag(message), in, &matched, &probed); break;
      case kIprobe:
        while (found == 0) mpi_.Iprobe(source(message), tag(message), in, &found, &probed);
        break;
      case kImprobe:
        while (found == 0) mpi_.Improbe(source(message), tag(message), in, &found, &matched, &probed);
        break;
      default: break;
    }
    const bool matches = message.in.way == kMprobe || message.in.way == kImprobe;
    live.returned = matches ? mpi_.Mrecv(live.memory->data(), count(live), live.type.type, &matched, &live.status)
                            : mpi_.Recv(live.memory->data(), count(live), live.type.type, source(message), tag(message), in, &live.status);
    tell(live);
    if (message.in.way != kRecv) lines_.back() += fmt::format(" probed {} {} {}", probed.source, probed.tag, mpi::bytes_of(probed));
    end(live);
  }

  void exchange(const DrawnMessage& message, int number, std::vector<Live>& begun) {
    const int other = message.from == rank_ ? message.to : message.from;
    const bool in_place = message.out.way == 1;
    Live out = side(message.out, false, number);
    Live in = in_place ? std::move(out) : side(message.in, true, number);
    in.receives = true;
    void* const to = in.memory->data();
    const Comm on = comm(message);
    if (message.send_begins && in_place) {
      in.returned = mpi_.Isendrecv_replace(to, count(in), in.type.type, other, message.tag, other, message.tag, on, &in.request);
    } else if (message.send_begins) {
      in.returned = mpi_.Isendrecv(out.memory->data(), count(out), out.type.type, other, message.tag, to, count(in), in.type.type, other,
                                   message.tag, on, &in.request);
    } else if (in_place) {
      in.returned = mpi_.Sendrecv_replace(to, count(in), in.type.type, other, message.tag, other, message.tag, on, &in.status);
    } else {
      in.returned = mpi_.Sendrecv(out.memory->data(), count(out), out.type.type, other, message.tag, to, count(in), in.type.type, other,
                                  message.tag, on, &in.status);
    }
    if (!message.send_begins) tell(in);
    if (!message.send_begins || message.in.freed_early) end(in);
    if (!in_place) end(out);
    if (!message.send_begins) return;
    begun.push_back(std::move(in));
    if (!in_place) kept_.push_back(std::move(out.memory));
  }

  // A receive that nothing is sent for.
  void cancel() {
    Live live = side({.type = now().seed, .bytes = 9000}, true, -1);
    int cancelled = 0;
    mpi_.Irecv(live.memory->data(), count(live), live.type.type, (rank_ + 1) % program_.ranks, kNoTag, comms_[0], &live.request);
    mpi_.Cancel(&live.request);
    mpi_.Wait(&live.request, &live.status);
    mpi_.Test_cancelled(&live.status, &cancelled);
    lines_.push_back(fmt::format("round {}: cancelled {} memory {:x}", round_, cancelled, digest(live.memory->read())));
    end(live);
  }

  void complete(std::vector<Live>& begun);
  void collective();
  int collective_of_many(const void* from, const DrawnType& out, void* to, const DrawnType& in, int root);

  const Host& mpi_;
  int rank_;
  const Drawn& program_;
  const std::vector<Comm>& comms_;
  int round_ = 0;
  std::vector<std::string> lines_;
  std::vector<std::unique_ptr<Buffer<std::byte>>> kept_;
};

void Run::complete(std::vector<Live>& begun) {
  std::vector<Request> requests;
  for (const Live& live : begun) requests.push_back(live.returned == kSuccess ? live.request : mpi_.no_request);
  const auto n = static_cast<int>(requests.size());
  std::vector<Status> statuses(requests.size()), some_statuses(requests.size());
  std::vector<int> some(requests.size());
  int left = static_cast<int>(std::ranges::count_if(begun, [](const Live& live) { return live.returned == kSuccess; }));
  const auto take = [&](int ended) {
    for (int k = 0; k < ended; ++k)
      statuses[static_cast<std::size_t>(some[static_cast<std::size_t>(k)])] = some_statuses[static_cast<std::size_t>(k)];
    left -= ended;
  };
  int flag = 0, ended = 0, index = 0;
  Status one{};
  switch (now().completion) {
    case kWaitall: mpi_.Waitall(n, requests.data(), statuses.data()); break;
    case kTestall:
      while (flag == 0) mpi_.Testall(n, requests.data(), &flag, statuses.data());
      break;
    case kWaitany:
    case kTestany:
      while (left > 0) {
        flag = 1;
        if (now().completion == kWaitany) mpi_.Waitany(n, requests.data(), &index, &one);
        if (now().completion == kTestany) mpi_.Testany(n, requests.data(), &index, &flag, &one);
        if (flag == 0) continue;
        statuses[static_cast<std::size_t>(index)] = one;
        --left;
      }
      break;
    case kWaitsome:
    case kTestsome:
      while (left > 0) {
        const auto call = now().completion == kWaitsome ? mpi_.Waitsome : mpi_.Testsome;
        call(n, requests.data(), &ended, some.data(), some_statuses.data());
        take(ended);
      }
      break;
    default:
      for (int k = 0; k < n; ++k) {
        const auto i = static_cast<std::size_t>(now().completion == kWaitBackwards ? n - 1 - k : k);
        if (begun[i].returned != kSuccess) continue;
        for (flag = 0; now().completion == kTest && flag == 0;) mpi_.Test(&requests[i], &flag, &statuses[i]);
        for (flag = 0; now().completion == kGetStatus && flag == 0;) mpi_.Request_get_status(requests[i], &flag, &one);
        if (now().completion != kTest) mpi_.Wait(&requests[i], &statuses[i]);
      }
  }
  for (std::size_t i = 0; i < begun.size(); ++i) {
    if (begun[i].returned != kSuccess) continue;
    begun[i].request = requests[i];
    begun[i].status = statuses[i];
  }
  kept_.clear();
}

// The same with a number and a place for each block, of which ranks that are no root say nothing; and with neighbors.
int Run::collective_of_many(const void* from, const DrawnType& out, void* to, const DrawnType& in, int root) {
  const auto ranks = static_cast<std::size_t>(program_.ranks);
  const std::vector<int> outs(ranks, static_cast<int>(out.count)), ins(ranks, static_cast<int>(in.count));
  std::vector<int> out_places(ranks), in_places(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    out_places[i] = static_cast<int>(i) * outs[i];
    in_places[i] = static_cast<int>(ranks - 1 - i) * ins[i];
  }
  const Comm comm = comms_[0];
  const bool here = rank_ == root;
  const auto said = [here](const std::vector<int>& all) { return here ? all.data() : nullptr; };
  switch (now().collective) {
    case 6: return mpi_.Alltoallv(from, outs.data(), out_places.data(), out.type, to, ins.data(), in_places.data(), in.type, comm);
    case 7: return mpi_.Allgatherv(from, outs[0], out.type, to, ins.data(), in_places.data(), in.type, comm);
    case 8: return mpi_.Gatherv(from, outs[0], out.type, to, said(ins), said(in_places), in.type, root, comm);
    case 9: return mpi_.Scatterv(from, said(outs), said(out_places), out.type, to, ins[0], in.type, root, comm);
    default:
      Comm ring = cart(comm, std::array{program_.ranks}, std::array{true});
      const int result = mpi_.Neighbor_alltoall(from, outs[0], out.type, to, ins[0], in.type, ring);
      mpi_.Comm_free(&ring);
      return result;
  }
}

// Blocks of one length for everyone, of datatypes that each rank draws by itself.
void Run::collective() {
  Random random(now().seed), own(now().seed + 1 + static_cast<std::uint64_t>(rank_));
  const std::int64_t bytes = draw_bytes(random);
  const int root = static_cast<int>(random.below(program_.ranks));
  const bool on_device = random.one_in(4);
  const DrawnType out = draw_type(mpi_, own, bytes), in = draw_type(mpi_, own, bytes);
  const auto room = [&](const DrawnType& type) {
    mpi::Aint low = 0, extent = 0;
    mpi_.Type_get_extent(type.type, &low, &extent);
    return static_cast<std::size_t>(extent * type.count * (program_.ranks - 1) + type.span + 1);
  };
  std::vector<std::byte> first(room(out));
  for (std::byte& byte : first) byte = static_cast<std::byte>(own.next());
  Buffer<std::byte> from(program_.devices && on_device, first), to(false, std::vector<std::byte>(room(in), std::byte{0xee}));
  const auto a = static_cast<int>(out.count), b = static_cast<int>(in.count);
  const Comm comm = comms_[0];
  int result = kSuccess;
  Request request{};
  switch (now().collective) {
    case 0: result = mpi_.Alltoall(from.data(), a, out.type, to.data(), b, in.type, comm); break;
    case 1: result = mpi_.Allgather(from.data(), a, out.type, to.data(), b, in.type, comm); break;
    case 2:
      result = mpi_.Bcast(rank_ == root ? from.data() : to.data(), rank_ == root ? a : b, rank_ == root ? out.type : in.type, root, comm);
      break;
    case 3: result = mpi_.Gather(from.data(), a, out.type, to.data(), b, in.type, root, comm); break;
    case 4: result = mpi_.Scatter(from.data(), a, out.type, to.data(), b, in.type, root, comm); break;
    case 5:
      result = mpi_.Ialltoall(from.data(), a, out.type, to.data(), b, in.type, comm, &request);
      if (result == kSuccess) mpi_.Wait(&request, mpi::ignored());
      break;
    default: result = collective_of_many(from.data(), out, to.data(), in, root);
  }
  lines_.push_back(fmt::format("round {} collective {}: code {} memory {:x}", round_, now().collective, result, digest(to.read())));
  for (DrawnType type : {out, in}) {
    if (type.own) mpi_.Type_free(&type.type);
  }
}

}  // namespace

Drawn draw(Random& random, int ranks, bool devices) {
  Drawn made{.ranks = ranks, .comms = static_cast<int>(random.between(1, 3)), .devices = devices, .rounds = {}};
  made.rounds.resize(static_cast<std::size_t>(random.between(1, 4)));
  for (DrawnRound& round : made.rounds) {
    round.seed = random.next();
    round.messages.resize(static_cast<std::size_t>(random.between(1, 12)));
    int number = 0;
    for (DrawnMessage& message : round.messages) message = draw_message(random, made, round.seed, number++, devices);
    draw_wildcards(random, round.messages);
    round.completion = static_cast<int>(random.below(kCompletions));
    for (int rank = 0; rank < ranks; ++rank) {
      if (random.one_in(6)) round.cancelled.push_back(rank);
    }
    if (random.one_in(3)) round.collective = static_cast<int>(random.below(kCollectives));
  }
  return made;
}

std::vector<std::string> run(const Host& mpi, int rank, const Drawn& program, const std::vector<Comm>& comms) {
  return Run(mpi, rank, program, comms).all();
}

}  // namespace lacuna::test::fake
