// Several operations on one endpoint, one after the other: what one leaves behind does not disturb the next.
#include <gtest/gtest.h>

#include "lacuna/method/method.hpp"
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using method::Endpoint;
using method::Notify;
using method::Operation;
using method::Role;

Layout blocks() { return Layout::hvector(50, 1, 300, Layout::bytes(100).value()).value(); }
constexpr std::size_t kBytes = 50 * 300;

// One end with one buffer.
struct End {
  std::unique_ptr<nic::Context> context;
  std::unique_ptr<Endpoint> endpoint;
  nic::Buffer buffer;
  nic::Region region;

  static base::Result<End> make(nic::Bootstrap& bootstrap, nic::Path path, const nic::OpenOptions& options = {}) {
    End end;
    end.context = LACUNA_TRY(open_tested(options));
    end.endpoint = LACUNA_TRY(Endpoint::connect(*end.context, bootstrap, path));
    end.buffer = LACUNA_TRY(end.context->allocate(kBytes));
    end.region = LACUNA_TRY(end.context->register_memory(end.buffer.bytes(), {}));
    return end;
  }
  base::Result<std::unique_ptr<Operation>> operation(const char* name, Role role, Notify notify) {
    return method::make(*LACUNA_TRY(method::find(name)), role, *endpoint, {blocks(), blocks(), notify}, {&region});
  }
  base::Result<method::Target> offer(Operation& op, nic::Bootstrap& bootstrap) {
    nic::Hello mine;
    mine.bytes = LACUNA_TRY(endpoint->prepare(op, buffer.data(), kPatience)).encode();
    return method::Target::decode(LACUNA_TRY(bootstrap.exchange(mine, kPatience)).bytes);
  }
  // One transfer of bytes of `value`, checked at the receiver.
  std::string move(Operation& op, Role role, int value, nic::Bootstrap& bootstrap) {
    std::memset(buffer.data(), role == Role::sender ? value : 0, kBytes);
    const method::Target peer = LACUNA_END_TRY(offer(op, bootstrap));
    LACUNA_END_TRY(op.start(buffer.data(), peer));
    LACUNA_END_TRY(endpoint->run(op, kPatience));
    LACUNA_END_TRY(barrier(bootstrap));
    for (std::size_t i = 0; i < kBytes; ++i) {
      const auto wanted = static_cast<std::byte>(role == Role::sender || i % 300 < 100 ? value : 0);
      if (buffer.data()[i] != wanted) return "a wrong byte at " + std::to_string(i);
    }
    return {};
  }
};

class Sequences : public EveryPath {};

// The same buffer is sent from and received into, by every method in turn: a key bound for the one must not serve the
// other.
std::string to_and_fro(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  End end = LACUNA_END_TRY(End::make(bootstrap, path));
  int value = 1;
  for (const method::Method& m : method::methods()) {
    if (m.indirect_keys && end.context->limits().indirect.keys == 0) continue;
    for (int turn = 0; turn < 4; ++turn) {
      const Role role = (rank + turn) % 2 == 0 ? Role::sender : Role::receiver;
      const auto op = LACUNA_END_TRY(end.operation(m.name.data(), role, m.notifies.front()));
      const std::string wrong = end.move(*op, role, ++value, bootstrap);
      if (!wrong.empty()) return std::string(m.name) + ": " + wrong;
    }
  }
  return {};
}

// Operations that live side by side share as few keys as there are.
std::string few_keys(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  End end = LACUNA_END_TRY(End::make(bootstrap, path, {.indirect = {.keys = 1}}));
  const Role role = rank == 0 ? Role::sender : Role::receiver;
  const auto send = LACUNA_END_TRY(end.operation("umr_send", role, Notify::none));
  const auto again = LACUNA_END_TRY(end.operation("umr_send", role, Notify::none));
  const auto chunked = LACUNA_END_TRY(end.operation("umr_chunked", role, Notify::none));
  for (int i = 1; i < 4; ++i) {
    for (Operation* op : {send.get(), again.get(), chunked.get()}) {
      const std::string wrong = end.move(*op, role, i, bootstrap);
      if (!wrong.empty()) return wrong;
    }
  }
  // To a contiguous place the one key is the sender's, and one that has ended gives it to the next, although both live
  // on.
  const Layout flat = Layout::bytes(blocks().size()).value();
  std::vector<std::unique_ptr<Operation>> writes;
  for (int i = 0; i < 2; ++i) {
    writes.push_back(LACUNA_END_TRY(
        method::make(*method::find("umr_write").value(), role, *end.endpoint, {blocks(), flat, Notify::flag}, {&end.region})));
  }
  for (int i = 0; i < 4; ++i) {
    Operation& op = *writes[static_cast<std::size_t>(i % 2)];
    std::byte* base = end.buffer.data() + i % 2 * 100;  // another binding for each
    std::memset(end.buffer.data(), rank == 0 ? i + 1 : 0, kBytes);
    nic::Hello mine;
    mine.bytes = LACUNA_END_TRY(end.endpoint->prepare(op, base, kPatience)).encode();
    const auto peer = LACUNA_END_TRY(method::Target::decode(LACUNA_END_TRY(bootstrap.exchange(mine, kPatience)).bytes));
    LACUNA_END_TRY(op.start(base, peer));
    LACUNA_END_TRY(end.endpoint->run(op, kPatience));
    LACUNA_END_TRY(barrier(bootstrap));
    for (std::int64_t k = 0; rank == 1 && k < flat.size(); ++k) LACUNA_END_EXPECT(base[k] == static_cast<std::byte>(i + 1));
  }
  return {};
}

// What a transfer at a new place needs is bound in its preparation, at either end; between start and end nothing is.
std::string bound_ahead(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  End end = LACUNA_END_TRY(End::make(bootstrap, path));
  const Role role = rank == 0 ? Role::sender : Role::receiver;
  for (const char* name : {"umr_send", "umr_write", "umr_read", "umr_chunked"}) {
    const method::Method& m = *LACUNA_END_TRY(method::find(name));
    LACUNA_END_TRY(end.endpoint->forget(end.region, kPatience));  // as if nothing had been sent from here before
    const auto op = LACUNA_END_TRY(end.operation(name, role, m.notifies.front()));
    const method::Target peer = LACUNA_END_TRY(end.offer(*op, bootstrap));
    const std::int64_t ahead = op->counters().keys_bound;
    LACUNA_END_TRY(op->start(end.buffer.data(), peer));
    LACUNA_END_TRY(end.endpoint->run(*op, kPatience));
    LACUNA_END_EXPECT(ahead > 0 && op->counters().keys_bound == ahead);
    LACUNA_END_TRY(barrier(bootstrap));
  }
  return {};
}

// A start that is refused has begun nothing: the next transfer is the next one for both ends.
std::string refused_start(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  End end = LACUNA_END_TRY(End::make(bootstrap, path));
  for (const method::Method& m : method::methods()) {
    if (m.indirect_keys && end.context->limits().indirect.keys == 0) continue;
    const Role role = rank == 0 ? Role::sender : Role::receiver;
    const auto op = LACUNA_END_TRY(end.operation(m.name.data(), role, m.notifies.front()));
    for (int i = 1; i < 4; ++i) {
      if (m.one_sided() && m.initiator == role) {
        const base::Result<void> refused = op->start(end.buffer.data(), method::Target{});
        LACUNA_END_EXPECT(!refused && refused.error().code == base::Code::malformed);
      }
      const std::string wrong = end.move(*op, role, i, bootstrap);
      if (!wrong.empty()) return std::string(m.name) + ": " + wrong;
    }
  }
  return {};
}

// Two at a time would take one another's messages: the second is refused, and may go once the first has ended or is
// gone.
std::string one_at_a_time(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  End end = LACUNA_END_TRY(End::make(bootstrap, path));
  const Role role = rank == 0 ? Role::sender : Role::receiver;
  const auto first = LACUNA_END_TRY(end.operation("pack", role, Notify::none));
  const auto second = LACUNA_END_TRY(end.operation("sgrs", role, Notify::none));
  LACUNA_END_TRY(first->start(end.buffer.data()));
  const base::Result<void> refused = second->start(end.buffer.data());
  LACUNA_END_EXPECT(!refused && refused.error().code == base::Code::invalid_argument);
  LACUNA_END_EXPECT(refused.error().message.find("use another endpoint") != std::string::npos);
  LACUNA_END_TRY(end.endpoint->run(*first, kPatience));
  LACUNA_END_TRY(barrier(bootstrap));
  return end.move(*second, role, 5, bootstrap);
}

// An operation for each transfer registers no flag for each: they take the words of those before, but for one that the
// peer may yet write, and one in use.
std::string words(nic::Path path, int rank, nic::Bootstrap& bootstrap, const nic::OpenOptions& options) {
  End end = LACUNA_END_TRY(End::make(bootstrap, path, options));
  const Role role = rank == 0 ? Role::sender : Role::receiver;
  const auto word_of = [&](Operation& op) -> base::Result<method::Target::Part> {
    return LACUNA_TRY(end.endpoint->prepare(op, end.buffer.data(), kPatience)).flag;
  };
  method::Target::Part forsaken;
  method::Target::Part kept;
  if (rank == 1) {
    const auto never = LACUNA_END_TRY(end.operation("pack_write", role, Notify::flag));
    forsaken = LACUNA_END_TRY(word_of(*never));
  }
  const auto stays = LACUNA_END_TRY(end.operation("pack_write", role, Notify::flag));
  if (rank == 1) kept = LACUNA_END_TRY(word_of(*stays));
  for (int i = 1; i < 100; ++i) {
    const auto op = LACUNA_END_TRY(end.operation(i % 2 == 1 ? "pack_write" : "scatter_read", role, Notify::flag));
    const method::Target::Part word = LACUNA_END_TRY(word_of(*op));
    const std::string wrong = end.move(*op, role, i, bootstrap);
    if (!wrong.empty()) return wrong;
    if (rank == 0 || i % 2 == 0) continue;
    LACUNA_END_EXPECT(word.addr != forsaken.addr && word.addr != kept.addr);
    LACUNA_END_EXPECT(word.rkey == kept.rkey);
  }
  return end.move(*stays, role, 100, bootstrap);
}
std::string words_inline(nic::Path path, int rank, nic::Bootstrap& bootstrap) { return words(path, rank, bootstrap, {}); }
std::string words_fetched(nic::Path path, int rank, nic::Bootstrap& bootstrap) { return words(path, rank, bootstrap, {.max_inline = 0}); }

LACUNA_ON_EVERY_PATH(Sequences, to_and_fro)
LACUNA_ON_EVERY_PATH(Sequences, words_inline)
LACUNA_ON_EVERY_PATH(Sequences, words_fetched)
LACUNA_ON_EVERY_PATH_BY_KEYS(Sequences, few_keys)
LACUNA_ON_EVERY_PATH_BY_KEYS(Sequences, bound_ahead)
LACUNA_ON_EVERY_PATH(Sequences, refused_start)
LACUNA_ON_EVERY_PATH(Sequences, one_at_a_time)
INSTANTIATE_TEST_SUITE_P(Method, Sequences, testing::ValuesIn(tested_paths()), path_test_name);

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
