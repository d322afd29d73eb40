// with WRONG: no matching .*function for call to .*choose
// The guide and devices, as a program of a user has them; and errors, of which there is one kind.
#include <array>
#include <cstdio>
#include <lacuna.hpp>

int main() try {
  const lacuna::Layout src = lacuna::Layout::hvector(64, 1, 1000, lacuna::Layout::bytes(64));
  const lacuna::Layout dst = lacuna::Layout::bytes(64 * 64);
  lacuna::Guide guide;
#ifdef WRONG  // a number is no objective
  const lacuna::Choice choice = guide.choose(src, dst, 2);
#else
  const lacuna::Choice choice = guide.choose(src, dst, lacuna::Objective::cpu);
#endif
  lacuna::Placement placement{};
  placement.cold = 1;
  std::printf("%s over %s: %g us\n%s%s", choice.method, choice.path, choice.latency_us, guide.explain(src, dst, placement).c_str(),
              lacuna::version().c_str());
  lacuna::Device device("emulated");
  std::array<char, 64000> from{}, to{};
  device.move(src, from.data(), dst, to.data());
  const std::array pairs{lacuna::LayoutPair{&src, &dst}};
  lacuna::DevicePlan plan = device.plan(pairs, 1);
  const std::array<const void*, 1> sources{from.data()};
  const std::array<void*, 1> destinations{to.data()};
  plan.move(sources, destinations);
  return plan.describe().empty() ? 1 : 0;
} catch (const lacuna::Error& error) {
  std::fprintf(stderr, "%s (%d)\n", error.what(), error.status());
  return 1;
}
