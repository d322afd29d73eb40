// with WRONG: no matching .*function for call to .*unpack
// Layouts and copies, as a program of a user has them.
#include <array>
#include <cstdint>
#include <lacuna.hpp>
#include <utility>
#include <vector>

using lacuna::Layout;

int main() {
  const std::array<std::int64_t, 2> two{0, 1};
  const Layout number = Layout::bytes(8);
  const std::array<Layout, 2> members{number, Layout::vector(2, 1, 4, number)};
  const std::array<lacuna::Distribution, 2> spread{lacuna::Distribution::block, lacuna::Distribution::cyclic};
  const std::array<std::int64_t, 2> blocks{lacuna::default_block, 1};
  std::vector<Layout> all{Layout::contiguous(2, number),
                          Layout::hvector(2, 1, 64, number),
                          Layout::indexed(two, two, number),
                          Layout::hindexed(two, two, number),
                          Layout::indexed_block(1, two, number),
                          Layout::hindexed_block(1, two, number),
                          Layout::structure(two, two, members),
                          Layout::subarray(two, two, two, number, lacuna::Order::fortran),
                          Layout::darray(4, 0, two, spread, blocks, two, number),
                          Layout::resized(number, 0, 64),
                          Layout::blocks(two, two),
                          Layout::paged(16, two),
                          Layout::strided(8, two, two),
                          Layout::decode(number.encode()),
                          Layout::of(two),
                          number.slice(0, 4)};
  const Layout copy = all.front();
  copy.prepare();
  std::vector<double> from(8), to(8);
  lacuna::pack(copy, from.data(), 0, copy.size(), to.data());
  lacuna::unpack(copy, to.data(), 0, copy.size(), from.data());
  lacuna::transpack(copy, from.data(), copy, to.data());
  lacuna::transpack(from, to);
  lacuna::Team team(2);
  team.pack(copy, from.data(), 0, copy.size(), to.data());
  team.unpack(copy, to.data(), 0, copy.size(), from.data());
  team.transpack(copy, from.data(), copy, to.data());
  std::vector<std::byte> packed(8 * sizeof(double));
  lacuna::pack(from, packed);
#ifdef WRONG  // what is unpacked into must not be const
  lacuna::unpack(lacuna::pack(from), std::as_const(to));
#else
  lacuna::unpack(lacuna::pack(from), to);
#endif
  return copy.describe().empty() || copy.explain().empty() || copy.overlaps() || copy.same_runs(number) ||
                 copy.lower_bound() + copy.extent() + copy.true_lower_bound() + copy.true_extent() + copy.run_count() < 0
             ? 1
             : 0;
}
