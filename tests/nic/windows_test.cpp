// Memory windows of type 2: a peer's right to a stretch of a region, from the end of a bind request to that of an
// invalidate request.
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Binding;
using nic::Opcode;
using nic::Status;

constexpr std::size_t kBytes = 1 << 16;
constexpr std::size_t kFrom = 10'000;
constexpr std::size_t kLength = 3000;

enum class Spoil { nothing, byte_before, byte_beyond, invalidated, old_key, no_right, not_bound };
constexpr std::pair<Spoil, const char*> kSpoils[] = {{Spoil::nothing, "Nothing"},        {Spoil::byte_before, "ByteBefore"},
                                                     {Spoil::byte_beyond, "ByteBeyond"}, {Spoil::invalidated, "Invalidated"},
                                                     {Spoil::old_key, "OldKey"},         {Spoil::no_right, "WithoutRight"},
                                                     {Spoil::not_bound, "NotBound"}};

constexpr bool of_bounds(Spoil spoil) { return spoil == Spoil::byte_before || spoil == Spoil::byte_beyond; }

// Rank 1 opens a window, and rank 0 writes through it.
std::string write_through(Spoil spoil, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::wire, kBytes, {}, {.remote_write = false, .remote_read = false}));
  if (rank == 0) {
    const std::uint32_t key = LACUNA_END_TRY(swap(bootstrap, std::uint32_t{0}));
    const std::uint64_t base = LACUNA_END_TRY(swap(bootstrap, std::uint64_t{0}));
    std::memset(rig.buffer.data(), 9, kLength);
    const nic::Sge source = rig.sge(0, kLength);
    const std::uint64_t at = base + kFrom + (spoil == Spoil::byte_beyond ? 1 : 0) - (spoil == Spoil::byte_before ? 1 : 0);
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&source, 1}, .remote_addr = at, .rkey = key}));
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    if (done.status != (spoil == Spoil::nothing ? Status::success : Status::rem_access_err))
      return std::string("completed with ") + std::string(status_name(done.status));
    LACUNA_END_TRY(barrier(bootstrap));
    LACUNA_END_TRY(barrier(bootstrap));
    return {};
  }
  nic::MemoryWindow window = LACUNA_END_TRY(rig.context->create_window());
  std::uint32_t key = 0;
  const nic::Sge piece = rig.sge(kFrom, kLength);
  const auto bind = [&]() -> std::string {
    const Binding binding{
        .key = window.next_key(), .rights = {.remote_write = spoil != Spoil::no_right, .remote_read = false}, .list = {&piece, 1}};
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(done.status == Status::success && done.opcode == Opcode::bind);
    key = binding.key;
    return {};
  };
  const auto invalidate = [&]() -> std::string {
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::invalidate, .rkey = key}));
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(done.status == Status::success && done.opcode == Opcode::invalidate);
    return {};
  };
  std::string wrong;
  std::uint32_t told = 0;
  if (spoil == Spoil::not_bound) {
    told = window.next_key();
  } else {
    wrong = bind();
    told = key;
  }
  if (wrong.empty() && (spoil == Spoil::invalidated || spoil == Spoil::old_key)) wrong = invalidate();
  if (wrong.empty() && spoil == Spoil::old_key) wrong = bind();
  if (!wrong.empty()) return wrong;
  LACUNA_END_TRY(swap(bootstrap, told));
  LACUNA_END_TRY(swap(bootstrap, rig.region.addr()));
  LACUNA_END_TRY(barrier(bootstrap));
  for (std::size_t i = 0; i < kBytes; ++i) {
    const bool written = spoil == Spoil::nothing && i >= kFrom && i < kFrom + kLength;
    LACUNA_END_EXPECT(rig.buffer.data()[i] == std::byte(written ? 9 : 0));
  }
  if (spoil == Spoil::nothing) {
    wrong = invalidate();
    if (!wrong.empty()) return wrong;
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

std::string refusals(int /*rank*/, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::wire, kBytes));
  nic::MemoryWindow window = LACUNA_END_TRY(rig.context->create_window());
  const nic::Sge two[] = {rig.sge(0, 8), rig.sge(100, 8)};
  const Binding pieces{.key = window.next_key(), .list = two};
  const auto posted = rig.qp->post_send({.opcode = Opcode::bind, .binding = &pieces});
  LACUNA_END_EXPECT(!posted && posted.error().message.contains("a window of 2 pieces; it takes one"));
  const nic::Sge nowhere{rig.region.addr(), 8, rig.region.lkey() + 77};
  const Binding foreign{.key = window.next_key(), .list = {&nowhere, 1}};
  const auto wrong = rig.qp->post_send({.opcode = Opcode::bind, .binding = &foreign});
  LACUNA_END_EXPECT(!wrong && wrong.error().message.contains("is no region of this context"));
  for (const nic::Sge& bad : {rig.sge(0, 0), rig.sge(kBytes - 7, 8), nic::Sge{rig.region.addr() - 1, 8, rig.region.lkey()}}) {
    const Binding outside{.key = window.next_key(), .list = {&bad, 1}};
    const auto refused = rig.qp->post_send({.opcode = Opcode::bind, .binding = &outside});
    LACUNA_END_EXPECT(!refused && refused.error().message.contains("not within its region"));
  }
  const Binding once{.key = window.next_key(), .list = {two, 1}};
  const Binding twice{.key = window.next_key(), .list = {two, 1}};
  const nic::SendRequest chain[] = {{.opcode = Opcode::bind, .binding = &once}, {.opcode = Opcode::bind, .binding = &twice}};
  const auto both = rig.qp->post_chain(chain);
  LACUNA_END_EXPECT(!both && both.error().message.contains("binds a window twice"));
  const auto regions = rig.qp->post_send({.opcode = Opcode::invalidate, .rkey = rig.region.rkey()});
  LACUNA_END_EXPECT(!regions && regions.error().message.contains("neither an indirect key nor a window"));
  LACUNA_END_EXPECT(rig.qp->fault() == nullptr);
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

#define LACUNA_NEEDS_WINDOWS()                                                           \
  if (const auto opened_ = open_tested(); !opened_ || (*opened_)->limits().windows == 0) \
  GTEST_SKIP() << (opened_ ? tested_nic() + " has no memory windows" : opened_.error().text())

TEST(MemoryWindows, AreAPeersOnlyRight_wireTwoProcesses) {
  LACUNA_NEEDS_WINDOWS();
  for (const auto& [spoil, name] : kSpoils) {
    if (of_bounds(spoil)) continue;
    EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return write_through(spoil, rank, b); }), "") << name;
  }
}
// Soft-RoCE of Linux 6.1 looks whether the bytes are within the window's region.
TEST(MemoryWindows, KeepTheirBounds_wireTwoProcesses) {
  LACUNA_NEEDS_WINDOWS();
  for (const auto& [spoil, name] : kSpoils) {
    if (!of_bounds(spoil)) continue;
    const std::string wrong = in_two_processes([&](int rank, nic::Bootstrap& b) { return write_through(spoil, rank, b); });
    if (tested_nic().starts_with("verbs:rxe") && wrong.contains("completed with success"))
      GTEST_SKIP() << tested_nic() << " checks a region's bounds and not its window's";
    EXPECT_EQ(wrong, "") << name;
  }
}
TEST(MemoryWindows, RefuseWhatTheyCannotHold_wireTwoProcesses) {
  LACUNA_NEEDS_WINDOWS();
  EXPECT_EQ(in_two_processes(refusals), "");
}

TEST(MemoryWindows, AreNotOnEveryNic) {
  if (tested_nic() != "local") GTEST_SKIP() << "of NIC local";
  const auto window = nic::open("local").value()->create_window();
  ASSERT_FALSE(window);
  EXPECT_EQ(window.error().code, base::Code::unsupported);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
