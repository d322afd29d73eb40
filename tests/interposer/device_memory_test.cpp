// Memory of GPUs through the interposer. The CPU cannot touch the memory of the emulated device: a read or a write that
// is not the fake host's ends the test. The fake host moves such memory, as an MPI does that knows GPUs.
#include <gtest/gtest.h>

#include "lacuna/mpi/types/device_memory.hpp"
#include "tests/interposer/buffer.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

using Ints = Buffer<int>;

using Move = int (*)(const Host& mpi, void* memory, Count count, Datatype type);

int started(const Host& mpi, int made, Request& request) {
  if (made != mpi::kSuccess) return made;
  for (int round = 0; round < 2; ++round) {  // sent twice, received twice
    mpi.Start(&request);
    mpi.Wait(&request, mpi::ignored());
  }
  return mpi.Request_free(&request);
}
int number(Count count) { return static_cast<int>(count); }

int send(const Host& mpi, void* memory, Count count, Datatype type) { return mpi.Send(memory, number(count), type, 1, 7, mpi.world); }
int ssend(const Host& mpi, void* memory, Count count, Datatype type) { return mpi.Ssend(memory, number(count), type, 1, 7, mpi.world); }
int isend(const Host& mpi, void* memory, Count count, Datatype type) {
  Request request{};
  const int made = mpi.Isend(memory, number(count), type, 1, 7, mpi.world, &request);
  return made != mpi::kSuccess ? made : mpi.Wait(&request, mpi::ignored());
}
int send_init(const Host& mpi, void* memory, Count count, Datatype type) {
  Request request{};
  return started(mpi, mpi.Send_init(memory, number(count), type, 1, 7, mpi.world, &request), request);
}
int recv(const Host& mpi, void* memory, Count count, Datatype type) {
  return mpi.Recv(memory, number(count), type, 0, 7, mpi.world, mpi::ignored());
}
int irecv(const Host& mpi, void* memory, Count count, Datatype type) {
  Request request{};
  const int made = mpi.Irecv(memory, number(count), type, 0, 7, mpi.world, &request);
  return made != mpi::kSuccess ? made : mpi.Wait(&request, mpi::ignored());
}
int mrecv(const Host& mpi, void* memory, Count count, Datatype type) {
  Message message{};
  const int made = mpi.Mprobe(0, 7, mpi.world, &message, mpi::ignored());
  return made != mpi::kSuccess ? made : mpi.Mrecv(memory, number(count), type, &message, mpi::ignored());
}
int probed(const Host& mpi, void* memory, Count count, Datatype type) {
  const int made = mpi.Probe(0, 7, mpi.world, mpi::ignored());
  return made != mpi::kSuccess ? made : recv(mpi, memory, count, type);
}
int recv_init(const Host& mpi, void* memory, Count count, Datatype type) {
  Request request{};
  return started(mpi, mpi.Recv_init(memory, number(count), type, 0, 7, mpi.world, &request), request);
}

struct Ways {
  const char* name;
  Move send, receive;
};
constexpr Ways kWays[] = {{"Send, Recv", send, recv},     {"Ssend, Irecv", ssend, irecv}, {"Isend, Irecv", isend, irecv},
                          {"Isend, Mrecv", isend, mrecv}, {"Send, Probe", send, probed},  {"Send_init, Recv_init", send_init, recv_init}};

void run(const Options& options, bool preloaded, const Program& program) {
  const Outcome came = preloaded ? run_preloaded(options, program) : run_plain(options, program);
  for (const std::string& wrong : came.wrong) ADD_FAILURE() << wrong;
}

// Whichever memory either side has, whatever the host is: what comes is what comes without the interposer.
void expect_the_same(const Ways& ways, Count count, const std::function<Datatype(const Host& mpi, int rank)>& type_of, std::size_t ints) {
  std::vector<int> first(ints);
  std::iota(first.begin(), first.end(), 1);
  for (const bool open_mpi : {false, true}) {
    for (const bool from : {false, true}) {
      for (const bool to : {false, true}) {
        SCOPED_TRACE(std::string(ways.name) + (open_mpi ? ", Open MPI" : "") + (from ? ", from a device" : "") +
                     (to ? ", to a device" : ""));
        std::vector<int> seen[2];
        for (const bool preloaded : {false, true}) {
          const Program program = [&](const Host& mpi, int rank) {
            Datatype type = type_of(mpi, rank);
            Ints memory(rank == 0 ? from : to, rank == 0 ? first : std::vector<int>(ints, -1));
            EXPECT_EQ((rank == 0 ? ways.send : ways.receive)(mpi, memory.data(), count, type), mpi::kSuccess);
            if (rank == 1) seen[preloaded ? 1 : 0] = memory.read();
            mpi.Type_free(&type);
          };
          run({.open_mpi = open_mpi}, preloaded, program);
        }
        ASSERT_EQ(seen[0], seen[1]);
        ASSERT_NE(seen[1], std::vector<int>(ints, -1));
      }
    }
  }
}

class InterposedDeviceMemory : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(load_driver(), ""); }
};

TEST(InterposedDevices, AreAskedOnceTheDriverIsLoaded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, without the driver
  const auto looks = [] {
    const Ints memory(true, {1});
    if (mpi::has_devices()) _exit(1);
    const bool found = load_driver().empty();
    Ints there(true, {1}), here(false, {1});
    _exit(found && mpi::on_device(there.data()) && !mpi::on_device(here.data()) ? 0 : 2);
  };
  EXPECT_EXIT(looks(), testing::ExitedWithCode(0), "");
}

TEST_F(InterposedDeviceMemory, WithGaps) {
  for (const Ways& ways : kWays) expect_the_same(ways, 1, [](const Host& mpi, int) { return every_second(mpi); }, 2 * kCount);
}

TEST_F(InterposedDeviceMemory, WithoutGaps) {  // long enough to be offered
  const Set offer("LACUNA_MPI_OFFER_CONTIGUOUS", "100000");
  constexpr int kInts = 30'000;
  const auto type_of = [](const Host& mpi, int) {
    Datatype type = fake::contiguous(100, int_type());
    mpi.Type_commit(&type);
    return type;
  };
  for (const Ways& ways : kWays) expect_the_same(ways, kInts / 100, type_of, kInts);
}

TEST_F(InterposedDeviceMemory, FromBytesWithoutGapsToBytesWithGaps) {
  const auto type_of = [](const Host& mpi, int rank) {
    Datatype type = rank == 0 ? fake::contiguous(kCount, int_type()) : fake::vector(kCount, 1, 2, int_type());
    mpi.Type_commit(&type);
    return type;
  };
  for (const Ways& ways : kWays) expect_the_same(ways, 1, type_of, 2 * kCount);
}

TEST_F(InterposedDeviceMemory, OfLessThanAnElement) {
  const auto type_of = [](const Host& mpi, int rank) {
    Datatype type = rank == 0 ? fake::vector(1501, 1, 2, int_type()) : fake::vector(1000, 1, 2, int_type());
    mpi.Type_commit(&type);
    return type;
  };
  for (const Ways& ways : kWays) {
    std::vector<int> first(4000);
    const auto twice = [&](const Host& mpi, void* memory, Datatype type) { return ways.receive(mpi, memory, 2, type); };
    for (const bool open_mpi : {false, true}) {
      SCOPED_TRACE(ways.name);
      std::vector<int> seen[2];
      for (const bool preloaded : {false, true}) {
        std::iota(first.begin(), first.end(), 1);
        const Program program = [&](const Host& mpi, int rank) {
          Datatype type = type_of(mpi, rank);
          Ints memory(rank == 1, rank == 0 ? first : std::vector<int>(4000, -1));
          EXPECT_EQ(rank == 0 ? ways.send(mpi, memory.data(), 1, type) : twice(mpi, memory.data(), type), mpi::kSuccess);
          if (rank == 1) seen[preloaded ? 1 : 0] = memory.read();
          mpi.Type_free(&type);
        };
        run({.open_mpi = open_mpi}, preloaded, program);
      }
      ASSERT_EQ(seen[0], seen[1]);
    }
  }
}

// A message of the program's that is as long as a descriptor.
TEST_F(InterposedDeviceMemory, OfADescriptorsBytes) {
  for (const Move receive : {recv, irecv, mrecv}) {
    run({}, true, [&](const Host& mpi, int rank) {
      std::vector<int> first(70, rank == 0 ? 5 : -1);
      Ints memory(rank == 1, first);
      EXPECT_EQ(rank == 0 ? mpi.Send(memory.data(), 253, byte_type(), 1, 7, mpi.world) : receive(mpi, memory.data(), 280, byte_type()),
                mpi::kSuccess);
      if (rank == 1) {
        EXPECT_EQ(memory.read()[62], 5);
        EXPECT_EQ(memory.read()[64], -1);
      }
    });
  }
}

TEST_F(InterposedDeviceMemory, OfBothSidesAtOnce) {
  for (const bool replaces : {false, true}) {
    for (const bool open_mpi : {false, true}) {
      std::vector<int> seen[2][2];
      for (const bool preloaded : {false, true}) {
        const Program program = [&](const Host& mpi, int rank) {
          Datatype type = every_second(mpi);
          Ints out(true, numbers(1000 * rank)), in(true, std::vector<int>(2 * kCount, -1));
          EXPECT_EQ(replaces ? mpi.Sendrecv_replace(out.data(), 1, type, 1 - rank, 7, 1 - rank, 7, mpi.world, mpi::ignored())
                             : mpi.Sendrecv(out.data(), 1, type, 1 - rank, 7, in.data(), 1, type, 1 - rank, 7, mpi.world, mpi::ignored()),
                    mpi::kSuccess);
          seen[preloaded ? 1 : 0][rank] = (replaces ? out : in).read();
          mpi.Type_free(&type);
        };
        run({.open_mpi = open_mpi}, preloaded, program);
      }
      for (const int rank : {0, 1}) ASSERT_EQ(seen[0][rank], seen[1][rank]);
    }
  }
}

TEST_F(InterposedDeviceMemory, PackedAndUnpacked) {
  run({.ranks = 1}, true, [](const Host& mpi, int) {
    Datatype type = every_second(mpi);
    Ints source(true, numbers(1)), packed(true, std::vector<int>(kCount)), back(true, std::vector<int>(2 * kCount, -1));
    std::vector<int> here(kCount);
    for (void* const to : {packed.data(), static_cast<void*>(here.data())}) {
      int position = 0;
      EXPECT_EQ(mpi.Pack(source.data(), 1, type, to, 4 * kCount, &position, mpi.world), mpi::kSuccess);
      EXPECT_EQ(position, 4 * kCount);
      position = 0;
      EXPECT_EQ(mpi.Unpack(to, 4 * kCount, &position, back.data(), 1, type, mpi.world), mpi::kSuccess);
    }
    EXPECT_EQ(packed.read(), here);
    EXPECT_EQ(here[1], 3);
    EXPECT_EQ(back.read()[2], 3);
    EXPECT_EQ(back.read()[3], -1);
    mpi.Type_free(&type);
  });
}

// Of two ranks each may have either side there.
TEST_F(InterposedDeviceMemory, InCollectives) {
  for (const unsigned there : {0U, 1U, 2U, 3U, 4U, 6U, 8U, 9U, 12U, 15U}) {
    SCOPED_TRACE(there);
    std::vector<int> seen[2][2];
    for (const bool preloaded : {false, true}) {
      const Program program = [&](const Host& mpi, int rank) {
        Datatype type = every_second(mpi);
        std::vector<int> first = numbers(1 + rank), second = numbers(7 + rank);
        first.insert(first.end(), second.begin(), second.end());
        Ints out((there >> rank & 1U) != 0, first), in((there >> (2 + rank) & 1U) != 0, std::vector<int>(4 * kCount, -1));
        const int counts[] = {1, 1}, places[] = {0, 2 * kCount * 4};
        const Datatype types[] = {type, type};
        for (int round = 0; round < 3; ++round)
          EXPECT_EQ(mpi.Alltoallw(out.data(), counts, places, types, in.data(), counts, places, types, mpi.world), mpi::kSuccess);
        EXPECT_EQ(mpi.Bcast(out.data(), 1, type, 0, mpi.world), mpi::kSuccess);
        std::vector<int>& all = seen[preloaded ? 1 : 0][rank] = in.read();
        const std::vector<int> sent = out.read();
        all.insert(all.end(), sent.begin(), sent.end());
        mpi.Type_free(&type);
      };
      run({}, preloaded, program);
    }
    for (const int rank : {0, 1}) ASSERT_EQ(seen[0][rank], seen[1][rank]);
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
