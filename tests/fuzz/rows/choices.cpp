// What ends of a transfer tell one another: where data lies, and by which method it goes.
#include <algorithm>

#include "lacuna/guide/guide.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/rows/rows.hpp"

namespace lacuna::fuzz {
namespace {

// What is decoded is encoded as it came, up to bytes that mean nothing. A planted fault: to a part more.
template <class Decode, class Encode>
Verdict again(const Bytes& input, bool planted, const Decode& decode, const Encode& encode) {
  auto decoded = decode(as_bytes(input));
  if (!decoded) return {.taken = false, .wrong = decoded.error().code == base::Code::malformed ? "" : decoded.error().text()};
  std::vector<std::byte> wire = encode(*decoded);
  if (planted) wire.push_back(std::byte{0});
  auto twice = decode(wire);
  if (wire.size() != input.size() || !twice || encode(*twice) != wire) return {.taken = true, .wrong = "what it means is not what came"};
  return {.taken = true, .wrong = {}};
}

Bytes draw_target(Random& random) {
  static const std::vector<Bytes> seeds = [] {
    std::vector<Bytes> made;
    method::Target target;
    for (std::uint32_t i = 0; i < 4; ++i) {
      made.push_back(text_of(target.encode()));
      target.parts.push_back({0x7000'0000'1000U * i, i});
    }
    return made;
  }();
  return mutated(random, seeds);
}

Verdict judge_target(const Bytes& input, bool planted) {
  return again(input, planted, method::Target::decode, [](const method::Target& target) { return target.encode(); });
}

Bytes draw_way(Random& random) {
  static const std::vector<Bytes> seeds = [] {
    std::vector<Bytes> made;
    for (const method::Method& method : method::methods()) {
      for (const method::Notify notify : method.notifies) made.push_back(text_of(guide::Way{&method, nic::Path::wire, notify}.encode()));
    }
    return made;
  }();
  return mutated(random, seeds);
}

Verdict judge_way(const Bytes& input, bool planted) {
  const Verdict verdict = again(input, planted, guide::Way::decode, [](const guide::Way& way) {
    const auto wire = way.encode();
    return std::vector<std::byte>(wire.begin(), wire.end());
  });
  if (!verdict.taken) return verdict;
  const guide::Way way = *guide::Way::decode(as_bytes(input));
  const bool known = std::ranges::find(way.method->notifies, way.notify) != way.method->notifies.end() && way.path <= nic::Path::wire;
  return known ? verdict : Verdict{.taken = true, .wrong = "a way that no method has"};
}

}  // namespace

Fuzzer method_target() {
  return {.name = "method_target",
          .what = "where a peer's data lies: addresses and keys of a transfer",
          .smoke = 500'000,
          .least_taken = 0.1,
          .draw = draw_target,
          .judge = judge_target};
}
Fuzzer guide_way() {
  return {.name = "guide_way",
          .what = "the method and path that a peer has chosen",
          .smoke = 500'000,
          .least_taken = 0.1,
          .draw = draw_way,
          .judge = judge_way};
}

}  // namespace lacuna::fuzz
