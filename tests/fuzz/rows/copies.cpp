// Layouts themselves: the kernels of every instruction set that this CPU has, against the naive walk over the same
// layouts.
#include "lacuna/copy/copy.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"
#include "tests/fuzz/rows/rows.hpp"

namespace lacuna::fuzz {
namespace {

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

// A planted fault: what is longer than a vector loses its last byte.
void unpack_without_tail(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in) {
  constexpr std::int64_t vector = 64;  // bytes
  copy::unpack(layout, base, position, length > vector ? length - 1 : length, in);
}

Verdict judge(const Bytes& input, bool planted) {
  const std::uint64_t seed = seed_of(input);
  std::string wrong;
  for (const InstructionSet& set : sets()) {
    if (!copy_test::use(set) || !copy_test::twin_of(set).empty()) continue;
    Dice dice(seed);
    dice.receive = seed % 3 != 0;
    const Recipe recipe = copy_test::drawn(dice);
    testing::AssertionResult right = copy_test::moves(recipe, seed, planted ? unpack_without_tail : copy_test::unpack_rightly);
    if (right) right = copy_test::check_pair(seed);
    if (right) continue;
    wrong = std::string(set.name) + ": " + right.message();
    break;
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
