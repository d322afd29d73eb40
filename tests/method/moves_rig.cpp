#include "tests/method/moves_rig.hpp"

#include <algorithm>

namespace lacuna::test {

using corpus::Case;
using layout::Layout;
using method::Role;

Case pair(std::string name, Layout send, Layout receive) {
  const auto span = [](const Layout& l) { return std::max<std::int64_t>(1, l.true_lower_bound() + l.true_extent()); };
  Case result{std::move(name), send, receive};
  result.send_span = span(send);
  result.receive_span = span(receive);
  return result;
}

Layout irregular(std::uint64_t seed, std::int64_t total, std::int64_t most) {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;
  std::int64_t at = 5;
  for (std::int64_t left = total; left > 0;) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const std::int64_t length = std::min<std::int64_t>(left, 1 + static_cast<std::int64_t>(seed >> 33) % (seed >> 60 == 0 ? most : 50));
    offsets.push_back(at);
    lengths.push_back(length);
    at += length + static_cast<std::int64_t>(seed >> 50) % 9;
    left -= length;
  }
  for (std::size_t i = offsets.size() / 2; i-- > 0;) {  // typemap order is not address order
    std::swap(offsets[i], offsets[offsets.size() - 1 - i]);
    std::swap(lengths[i], lengths[lengths.size() - 1 - i]);
  }
  return Layout::blocks(offsets, lengths).value();
}

base::Result<Arrays> Arrays::make(nic::Context& context, const Case& c, int rank) {
  const std::int64_t span = rank == 0 ? c.send_span : c.receive_span;
  nic::Buffer buffer = LACUNA_TRY(context.allocate(static_cast<std::size_t>(span + 2 * measure::kGuard)));
  measure::lay_pattern(buffer.bytes());
  nic::Region region = LACUNA_TRY(context.register_memory(buffer.bytes(), {}));
  std::byte* base = buffer.data() + measure::kGuard;
  return Arrays{std::move(buffer), std::move(region), base, measure::CheckedRanges(c.receive, c.receive_span)};
}

std::string move_verified(const method::Method& method, method::Notify notify, method::Endpoint& endpoint, const Case& c,
                          const Arrays& arrays, std::uint64_t first, std::uint64_t times, int rank, nic::Bootstrap& bootstrap,
                          measure::Mailbox& mailbox) {
  const auto made =
      method::make(method, rank == 0 ? Role::sender : Role::receiver, endpoint, {c.send, c.receive, notify}, {&arrays.region});
  // What lands in staging has nobody who unpacks it if nobody is told; both ends must agree that it cannot be done.
  const bool agreed = LACUNA_END_TRY(swap(bootstrap, static_cast<bool>(made)));
  if (!made || !agreed) {
    const bool stages = method.name == "gather_write" || method.name == "pack_write";
    if (stages && notify == method::Notify::none && !c.receive.contiguous_bytes()) return {};
    return made ? "the other end refused" : made.error().text();
  }
  method::Operation& operation = **made;
  for (std::uint64_t seed = first; seed < first + times; ++seed) {
    const std::vector<std::byte> stream = measure::stream_of(seed, c.send.size());
    if (rank == 0) measure::write_stream(c.send, arrays.base, stream);
    nic::Hello mine;
    mine.bytes = LACUNA_END_TRY(endpoint.prepare(operation, arrays.base, kMoveTimeout)).encode();
    const nic::Hello theirs = LACUNA_END_TRY(bootstrap.exchange(mine, kMoveTimeout));
    LACUNA_END_TRY(operation.start(arrays.base, LACUNA_END_TRY(method::Target::decode(theirs.bytes))));
    LACUNA_END_TRY(endpoint.run(operation, kMoveTimeout));
    // Who is told nothing polls, for paths that need this CPU, until the other end says that it is done.
    if (method.uninformed(rank == 0 ? Role::sender : Role::receiver, notify)) LACUNA_END_TRY(mailbox.receive<std::uint64_t>(&endpoint));
    if (method.uninformed(rank == 0 ? Role::receiver : Role::sender, notify)) LACUNA_END_TRY(mailbox.send(seed));
    if (rank == 1) {
      std::string wrong = measure::examine(c.receive, arrays.base, arrays.windows, stream);
      if (!wrong.empty()) return wrong;
    }
    LACUNA_END_TRY(barrier(bootstrap));
  }
  return {};
}

}  // namespace lacuna::test
