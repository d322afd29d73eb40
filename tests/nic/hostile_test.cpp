// A peer that is not what it claims to be: spoilt introductions, and nonsense in the memory that it shares. The victim
// says malformed (or completes with an error) and stays alive.
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "lacuna/nic/local/inbox.hpp"
#include "lacuna/nic/local/movers.hpp"
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace {

using nic::local::Inbox;
using nic::local::SharedMemory;

// Plays the other end of a victim's connection, by hand.
class Impostor {
 public:
  using Victim = std::function<void(base::Result<Rig>)>;

  /// Runs `victim` on its end in a thread.
  Impostor(nic::Path path, Victim victim) {
    auto sockets = nic::UnixBootstrap::socket_pair().value();
    wire_ = std::make_unique<nic::UnixBootstrap>(std::move(sockets.first));
    thread_ = std::thread([path, victim = std::move(victim), socket = std::move(sockets.second)]() mutable {
      nic::UnixBootstrap bootstrap(std::move(socket));
      victim(Rig::make(bootstrap, path, 1 << 20));
    });
  }
  ~Impostor() { thread_.join(); }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

  /// Sends an introduction, gets the victim's.
  nic::Hello introduce(const nic::Hello& mine) { return wire_->exchange(mine, 10 * kSecond).value(); }
  void agree() { static_cast<void>(wire_->exchange({}, 10 * kSecond)); }

 private:
  std::unique_ptr<nic::UnixBootstrap> wire_;
  std::thread thread_;
};

// What an honest end sends: got from one, which then gives up because it is answered with nothing.
nic::Hello honest(nic::Path path) {
  nic::Hello hello;
  Impostor impostor(path, [](const base::Result<Rig>& rig) { EXPECT_EQ(rig.error().code, base::Code::malformed); });
  hello = impostor.introduce({});
  impostor.agree();
  return hello;
}

void expect_refused(const nic::Hello& forged, const char* what) {
  Impostor impostor(nic::Path::slots, [what](const base::Result<Rig>& rig) {
    ASSERT_FALSE(rig) << what;
    EXPECT_EQ(rig.error().code, base::Code::malformed) << what << ": " << rig.error().text();
  });
  impostor.introduce(forged);
  impostor.agree();
}

base::Fd unsealed(std::size_t bytes) {
  base::Fd file(memfd_create("unsealed", MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  return file;
}

TEST(Introduction, SpoiltIsRefused) {
  nic::Hello cut = honest(nic::Path::slots);
  cut.bytes.pop_back();
  expect_refused(cut, "cut short");
  nic::Hello fewer = honest(nic::Path::slots);
  fewer.files.pop_back();
  expect_refused(fewer, "a file less");
  nic::Hello magic = honest(nic::Path::slots);
  magic.bytes[0] ^= std::byte{1};
  expect_refused(magic, "another magic");
  for (const std::size_t file : {0U, 1U, 2U}) {  // a file that could shrink under our hands would let the peer kill us
    nic::Hello swapped = honest(nic::Path::slots);
    swapped.files[file] = unsealed(4096);
    expect_refused(swapped, "an unsealed file");
  }
}

TEST(Introduction, RandomBytesAreRefusedOrHarmless) {
  std::mt19937 random(1);
  const std::size_t length = honest(nic::Path::slots).bytes.size();
  for (int i = 0; i < 20; ++i) {
    nic::Hello noise;
    noise.bytes.resize(i % 2 == 0 ? length : random() % 200);
    for (std::byte& byte : noise.bytes) byte = static_cast<std::byte>(random());
    expect_refused(noise, "noise");
  }
}

// A connected impostor, with the victim's inbox and its own in its hands.
void with_inboxes(nic::Path path, const std::function<void(Inbox& victims, Inbox& own)>& mischief,
                  const std::function<void(Rig&)>& victim) {
  SharedMemory own = SharedMemory::create("impostor", sizeof(Inbox)).value();
  nic::Hello hello = honest(path);
  hello.files[2] = own.share().value();
  Impostor impostor(path, [&](base::Result<Rig> rig) {
    ASSERT_TRUE(rig) << rig.error().text();
    victim(*rig);
  });
  nic::Hello theirs = impostor.introduce(hello);
  const SharedMemory victims = SharedMemory::map(std::move(theirs.files[2]), sizeof(Inbox), SharedMemory::Access::write).value();
  mischief(nic::local::inbox(victims), nic::local::inbox(own));
  impostor.agree();
}

void expect_fault(Rig& rig, base::Code code) {
  const nic::Sge sge = rig.sge(0, 1000);
  ASSERT_TRUE(rig.qp->post_recv({.sg_list = {&sge, 1}}));
  ASSERT_TRUE(rig.qp->post_send({.sg_list = {&sge, 1}}));
  const base::Result<base::Error> fault = rig.fault();
  ASSERT_TRUE(fault) << fault.error().text();
  EXPECT_EQ(fault->code, code) << fault->text();
}

constexpr std::uint64_t kHuge = ~std::uint64_t{0} / 2;

TEST(SharedMemoryNonsense, Counters) {
  const auto malformed = [](Rig& rig) { expect_fault(rig, base::Code::malformed); };
  with_inboxes(nic::Path::mapped, [](Inbox& victims, Inbox&) { victims.completed.value = kHuge; }, malformed);
  with_inboxes(nic::Path::slots, [](Inbox& victims, Inbox&) { victims.filled.value = kHuge; }, malformed);
  with_inboxes(nic::Path::slots, [](Inbox&, Inbox& own) { own.consumed.value = kHuge; }, malformed);
  with_inboxes(
      nic::Path::mapped, [](Inbox&, Inbox& own) { own.posted.value = kHuge; }, [](Rig& rig) { expect_fault(rig, base::Code::transfer); });
}

TEST(SharedMemoryNonsense, PostedReceives) {
  const auto failed = [](Rig& rig) { expect_fault(rig, base::Code::transfer); };
  const auto posted = [](std::uint32_t sges, std::uint32_t length) {
    return [=](Inbox&, Inbox& own) {
      own.recvs[0].sges = sges;
      own.recvs[0].sg_list.fill({0x1000, length, 1 << 8 | 1});
      own.posted.value = 1;
    };
  };
  with_inboxes(nic::Path::mapped, posted(1'000'000, 8), failed);
  with_inboxes(nic::Path::mapped, posted(32, 0xffffffff), failed);
  with_inboxes(nic::Path::mapped, posted(1, 4), failed);
}

TEST(SharedMemoryNonsense, Slots) {
  const auto failed = [](Rig& rig) { expect_fault(rig, base::Code::transfer); };
  const auto slot = [](nic::local::SlotHead head) {
    return [=](Inbox& victims, Inbox&) {
      victims.slots[0].head = head;
      victims.filled.value = 1;
    };
  };
  using nic::local::SlotKind;
  with_inboxes(nic::Path::slots, slot({SlotKind::send, 0xffffffff, 1, 0, 0}), failed);
  with_inboxes(nic::Path::slots, slot({SlotKind::send, 1001, 1, 0, 0}), failed);
  with_inboxes(nic::Path::slots, slot({static_cast<SlotKind>(77), 8, 1, 0, 0}), failed);
  with_inboxes(nic::Path::slots, slot({SlotKind::write, 8, 1, 0, 0x1000}), failed);
  with_inboxes(nic::Path::slots, slot({SlotKind::write, 8, 1, 1 << 8 | 1, ~std::uint64_t{0} - 4}), failed);
}

TEST(SharedMemoryNonsense, Completions) {
  with_inboxes(
      nic::Path::mapped,
      [](Inbox& victims, Inbox&) {
        victims.dones[0] = {99, 0};
        victims.completed.value = 1;
      },
      [](Rig& rig) { expect_fault(rig, base::Code::transfer); });
  with_inboxes(
      nic::Path::mapped,
      [](Inbox& victims, Inbox&) {
        victims.dones[0] = {0, 1'000'000};  // more than was posted
        victims.completed.value = 1;
      },
      [](Rig& rig) { expect_fault(rig, base::Code::transfer); });
}

// A peer's key table is the peer's to write: sums of its numbers must not wrap around into what they do not name.
TEST(SharedMemoryNonsense, KeyTable) {
  const SharedMemory table = SharedMemory::create("keys", nic::local::kKeyTableBytes).value();
  auto& entry = reinterpret_cast<nic::local::KeyEntry*>(table.data())[3];
  const std::uint32_t key = 3 << 16 | 1;
  const auto granted = [&](std::uint64_t addr, std::uint64_t length) {
    return nic::local::check(table, key, addr, length, nic::local::kRightRemoteWrite);
  };
  entry.key = key;
  entry.rights = ~0U;
  entry.addr = 0x1000;
  entry.length = ~std::uint64_t{0};
  entry.arena_offset = ~std::uint64_t{0} - 7;
  EXPECT_TRUE(granted(0x1000, 8));
  EXPECT_FALSE(granted(0x1010, 8));  // offset + 16 wraps
  EXPECT_FALSE(granted(0x0fff, 1));
  EXPECT_FALSE(nic::local::check(table, ~0U, 0x1000, 1, 0));
  const nic::local::PeerMemory peer{.process = 1, .pidfd = {}, .arena = SharedMemory::create("arena", 4096).value(), .keys = {}};
  std::array<std::byte, 16> bytes{};
  const nic::Sge from{reinterpret_cast<std::uint64_t>(bytes.data()), 16, 0};
  const nic::Sge to{0x1000, 16, key};
  for (const std::uint64_t offset : {~std::uint64_t{0} - 7, std::uint64_t{4081}, std::uint64_t{4097}}) {
    EXPECT_EQ(nic::local::move_mapped(peer, {&from, 1}, {&to, 1}, {&offset, 1}), nic::Status::rem_access_err);
  }
}

// Everything at once, at random, on every path.
TEST(SharedMemoryNonsense, RandomInboxes) {
  std::mt19937_64 random(7);
  for (const nic::Path path : {nic::Path::mapped, nic::Path::slots}) {  // kernel differs from mapped only in how bytes move
    for (int round = 0; round < 30; ++round) {
      const auto scribble = [&](Inbox& inbox) {
        auto* words = reinterpret_cast<std::uint64_t*>(&inbox);
        for (int i = 0; i < 200; ++i) words[random() % (sizeof(Inbox) / 8)] = random() >> (random() % 64);
        for (std::size_t i = 0; i < 16 * 8; i += 8) {  // the counters, small and large
          if (random() % 3 == 0 && i != 6 * 8) words[i] = random() >> (random() % 64);
        }
      };
      with_inboxes(
          path,
          [&](Inbox& victims, Inbox& own) {
            scribble(victims);
            scribble(own);
            victims.access.value = 0;
          },
          [](Rig& rig) {
            const nic::Sge sge = rig.sge(0, 1000);
            for (int i = 0; i < 10; ++i) {
              static_cast<void>(rig.qp->post_recv({.sg_list = {&sge, 1}}));
              static_cast<void>(rig.qp->post_send({.sg_list = {&sge, 1}}));
              static_cast<void>(rig.next(1'000'000));
            }
          });
    }
  }
}

}  // namespace
}  // namespace lacuna::test
