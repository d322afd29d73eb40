#include "tests/fuzz/programs/collected.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::fuzz {
namespace {

namespace fake = test::fake;
using Memory = std::vector<std::byte>;

// One rank's part, among `ranks`.
struct Part {
  const StoryCollective& story;
  const std::vector<int>& ranks;
  int me;
  [[nodiscard]] std::size_t rank(int local) const { return static_cast<std::size_t>(ranks[static_cast<std::size_t>(local)]); }
  [[nodiscard]] const Shape& out(int local) const { return story.out[rank(local)]; }
  [[nodiscard]] const Shape& in(int local) const { return story.in[rank(local)]; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
  [[nodiscard]] int root() const { return static_cast<int>(std::ranges::find(ranks, story.root) - ranks.begin()); }
  [[nodiscard]] Memory sent(int local) const { return bytes_of(story.data + rank(local), out(local).span() * size()); }
  /// What the i-th block of a rank's memory has.
  [[nodiscard]] std::vector<std::byte> block(int local, int i) const { return out(local).pack(sent(local).data() + i * out(local).span()); }
};

bool is_all(Collected kind) { return kind == Collected::alltoall || kind == Collected::later_alltoall; }

Memory expected(const Part& part, Memory memory) {
  const Collected kind = part.story.kind;
  const auto put = [&](int i, const std::vector<std::byte>& bytes) {
    part.in(part.me).unpack(bytes, memory.data() + i * part.in(part.me).span());
  };
  switch (kind) {
    case Collected::bcast:
      if (part.me != part.root()) put(0, part.block(part.root(), 0));
      break;
    case Collected::scatter: put(0, part.block(part.root(), part.me)); break;
    default:
      if (kind == Collected::gather && part.me != part.root()) break;
      for (int i = 0; i < part.size(); ++i) put(i, part.block(i, is_all(kind) ? part.me : 0));
  }
  return memory;
}

}  // namespace

Memory bytes_of(std::uint64_t seed, std::int64_t bytes) {
  support::Random random(seed);
  Memory made(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  for (std::byte& byte : made) byte = static_cast<std::byte>(random.next());
  return made;
}
Memory spoiled(std::int64_t bytes) { return Memory(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), std::byte{0xee}); }

std::string play_collective(const StoryCollective& story, const fake::Host& mpi, fake::Comm comm, const std::vector<int>& ranks, int me,
                            bool may_fail) {
  const Part part{story, ranks, me};
  Memory from = part.sent(me), to = spoiled(part.in(me).span() * part.size());
  const Memory from_before = from, wanted = expected(part, to);
  fake::Datatype out = part.out(me).make(mpi), in = part.in(me).make(mpi);
  const auto a = static_cast<int>(part.out(me).count), b = static_cast<int>(part.in(me).count);
  const int root = part.root();
  fake::Request request{};
  int result = mpi::kSuccess;
  switch (story.kind) {
    case Collected::alltoall: result = mpi.Alltoall(from.data(), a, out, to.data(), b, in, comm); break;
    case Collected::allgather: result = mpi.Allgather(from.data(), a, out, to.data(), b, in, comm); break;
    case Collected::bcast:
      result = me == root ? mpi.Bcast(from.data(), a, out, root, comm) : mpi.Bcast(to.data(), b, in, root, comm);
      break;
    case Collected::gather: result = mpi.Gather(from.data(), a, out, to.data(), b, in, root, comm); break;
    case Collected::scatter: result = mpi.Scatter(from.data(), a, out, to.data(), b, in, root, comm); break;
    case Collected::later_alltoall: result = mpi.Ialltoall(from.data(), a, out, to.data(), b, in, comm, &request); break;
    case Collected::later_allgather: result = mpi.Iallgather(from.data(), a, out, to.data(), b, in, comm, &request); break;
  }
  const bool later = story.kind == Collected::later_alltoall || story.kind == Collected::later_allgather;
  if (later && result == mpi::kSuccess) result = mpi.Wait(&request, mpi::ignored());
  mpi.Type_free(&out);
  mpi.Type_free(&in);
  const auto kind = static_cast<int>(story.kind);
  if (from == from_before && result != mpi::kSuccess && may_fail) return "";
  if (result != mpi::kSuccess) return fmt::format("collective {} returns {}", kind, result);
  if (from != from_before) return fmt::format("collective {} changes what it sends", kind);
  return to == wanted ? "" : fmt::format("collective {} brings other bytes, or its gaps have them", kind);
}

}  // namespace lacuna::fuzz
