// Layouts themselves: the kernels of every instruction set that this CPU has, against the naive walk over the same
// layouts.
#include <array>
#include <vector>

#include "lacuna/copy/copy.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"
#include "tests/fuzz/rows/rows.hpp"

namespace lacuna::fuzz {
namespace {

using copy_test::Copies;
using copy_test::Dice;
using copy_test::InstructionSet;
using copy_test::Recipe;

// The sets that this CPU and this build have.
std::vector<InstructionSet> sets() {
  std::vector<InstructionSet> all = copy_test::instruction_sets();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::erase_if(all, [](const InstructionSet& set) { return std::string_view(set.name) == "AVX3" || set.best == 0; });
#endif
  return all;
}

// Planted faults: of what is longer than a vector the last byte is not copied. One of the three at a time.
constexpr std::int64_t kVector = 64;  // bytes
std::int64_t without_tail(std::int64_t length) { return length > kVector ? length - 1 : length; }

void pack_without_tail(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out) {
  copy::pack(layout, base, position, without_tail(length), out);
}
void unpack_without_tail(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in) {
  copy::unpack(layout, base, position, without_tail(length), in);
}
bool transpack_without_tail(const layout::Layout& from, const std::byte* source, const layout::Layout& to, std::byte* target) {
  std::vector<std::byte> packed(static_cast<std::size_t>(from.size()));
  copy::pack(from, source, 0, from.size(), packed.data());
  copy::unpack(to, target, 0, without_tail(to.size()), packed.data());
  return true;
}

// What is wrong, of one layout, and of two.
std::string wrong_with(const InstructionSet& set, std::uint64_t seed, const Copies& copies) {
  Dice dice(seed);
  dice.receive = seed % 3 != 0;
  const Recipe recipe = copy_test::drawn(dice);
  testing::AssertionResult right = copy_test::moves(recipe, seed, copies);
  if (right) right = copy_test::check_pair(seed, copies);
  return right ? "" : std::string(set.name) + ": " + right.message();
}

// All of the planted faults have to be seen.
std::string seen_of_planted(const InstructionSet& set, std::uint64_t seed) {
  std::array<Copies, 3> faults{copy_test::kRight, copy_test::kRight, copy_test::kRight};
  faults[0].pack = pack_without_tail;
  faults[1].unpack = unpack_without_tail;
  faults[2].transpack = transpack_without_tail;
  std::string wrong;
  for (const Copies& fault : faults) {
    wrong = wrong_with(set, seed, fault);
    if (wrong.empty()) break;
  }
  return wrong;
}

Verdict judge(const Bytes& input, bool planted) {
  const std::uint64_t seed = seed_of(input);
  std::string wrong;
  for (const InstructionSet& set : sets()) {
    if (!copy_test::use(set) || !copy_test::twin_of(set).empty()) continue;
    wrong = planted ? seen_of_planted(set, seed) : wrong_with(set, seed, copy_test::kRight);
    if (!wrong.empty()) break;
  }
  (void)copy_test::use({"", 0});
  return {.taken = true, .wrong = wrong};
}

}  // namespace

Fuzzer copy_kernels() {
  return {.name = "copy_kernels",
          .what = "layouts of any structure: the kernels of all instruction sets against the naive walk",
          .smoke = 1'500,
          .least_taken = 1,
          .draw = draw_seed,
          .judge = judge};
}

}  // namespace lacuna::fuzz
