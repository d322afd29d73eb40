// Datatypes as the interposer reads them from the host: each constructor, with counts of both kinds, within each other.
#include <gtest/gtest.h>

#include <array>

#include "lacuna/mpi/types/types.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

constexpr std::array<Count, 3> kLengths{1, 3, 2}, kPlaces{0, 2, 8}, kBytes{0, 40, 160};
constexpr std::array<Count, 2> kSizes{6, 8}, kSubsizes{3, 4}, kStarts{1, 2};

using Make = Datatype (*)(Datatype, bool);
constexpr std::pair<const char*, Make> kMakers[] = {
    {"contiguous", [](Datatype old, bool large) { return contiguous(3, old, large); }},
    {"vector", [](Datatype old, bool large) { return fake::vector(5, 2, 3, old, large); }},
    {"hvector", [](Datatype old, bool large) { return hvector(5, 2, 600, old, large); }},
    {"indexed", [](Datatype old, bool large) { return indexed(kLengths, kPlaces, old, large); }},
    {"hindexed", [](Datatype old, bool large) { return hindexed(kLengths, kBytes, old, large); }},
    {"indexed_block", [](Datatype old, bool large) { return indexed_block(2, kPlaces, old, large); }},
    {"structure", [](Datatype old, bool large) { return structure(kLengths, kBytes, std::array{old, int_type(), old}, large); }},
    {"subarray", [](Datatype old, bool large) { return subarray(kSizes, kSubsizes, kStarts, old, large); }},
    {"resized", [](Datatype old, bool large) { return resized(old, 0, 1000, large); }},
};

// A type is sent to a receive of as many bytes, which have to be what the fake packs.
void expect_understood(const Host& mpi, int rank, Datatype type, const std::string& name) {
  mpi.Type_commit(&type);
  int size = 0;
  Aint low = 0, extent = 0;
  mpi.Type_size(type, &size);
  mpi.Type_get_extent(type, &low, &extent);
  const int count = 8192 / std::max(size, 1) + 1;
  std::vector<std::byte> memory(static_cast<std::size_t>(count * extent + 4096));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 37 >> 3);
  std::vector<std::byte> wanted(static_cast<std::size_t>(count * size));
  int position = 0;
  mpi::host().Pack(memory.data(), count, type, wanted.data(), static_cast<int>(wanted.size()), &position, mpi.world);
  std::vector<std::byte> got(wanted.size());
  const auto bytes = static_cast<int>(got.size());
  if (rank == 0) {
    mpi.Send(memory.data(), count, type, 1, 7, mpi.world);
    mpi.Send(wanted.data(), bytes, byte_type(), 1, 8, mpi.world);
  } else {
    mpi.Recv(got.data(), bytes, byte_type(), 0, 7, mpi.world, mpi::ignored());
    EXPECT_EQ(got, wanted) << name << ", sent";
    std::vector<std::byte> into(memory.size()), by_host(memory.size());
    mpi.Recv(into.data(), count, type, 0, 8, mpi.world, mpi::ignored());
    position = 0;
    mpi::host().Unpack(wanted.data(), bytes, &position, by_host.data(), count, type, mpi.world);
    EXPECT_EQ(into, by_host) << name << ", received";
  }
  mpi.Type_free(&type);
}

TEST(InterposedTypes, AreUnderstoodWithinEachOther) {
  const Outcome outcome = run_preloaded({}, [](const Host& mpi, int rank) {
    for (const auto& [inner_name, inner] : kMakers) {
      for (const auto& [outer_name, outer] : kMakers) {
        for (const int large : {0, 1, 2, 3}) {
          Datatype within = inner(double_type(), (large & 1) != 0);
          const std::string name =
              std::string(outer_name) + ((large & 2) != 0 ? "_c of " : " of ") + inner_name + ((large & 1) != 0 ? "_c" : "");
          expect_understood(mpi, rank, outer(within, (large & 2) != 0), name);
          mpi.Type_free(&within);
        }
      }
    }
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

TEST(InterposedTypes, OfAValueAndAnIndex) {
  const Outcome outcome = run_preloaded({}, [](const Host& mpi, int rank) {
    expect_understood(mpi, rank, contiguous(3, double_int_type()), "double and int");
    Datatype pair = value_index(double_type());
    expect_understood(mpi, rank, fake::vector(3, 1, 2, pair), "value and index");
    mpi.Type_free(&pair);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// Open MPI has room for part of an element of 16 bytes, and no check.
TEST(InterposedTypes, TellTheirLargestElement) {
  const Outcome outcome = run_preloaded({.ranks = 1}, [](const Host&, int) {
    Datatype pairs = structure(kLengths, kBytes, std::array{byte_type(), double_int_type(), int_type()});
    Datatype nested = fake::vector(3, 1, 2, contiguous(2, pairs));
    EXPECT_EQ(mpi::largest_element_of(byte_type()), 1);
    EXPECT_EQ(mpi::largest_element_of(fake::vector(5, 2, 3, int_type())), 4);
    EXPECT_EQ(mpi::largest_element_of(nested), 12);
    EXPECT_TRUE(mpi::Type(*layout::Layout::bytes(8)).takes_part_of_element(nested));
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
