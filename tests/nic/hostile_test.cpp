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
namespace LACUNA_TEST_FILE {

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
  nic::Hello introduce(const nic::Hello& mine) { return wire_->exchange(mine, kPatience).value(); }
  void agree() { static_cast<void>(wire_->exchange({}, kPatience)); }

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
  // A file that could shrink under our hands would let the peer kill us
  for (const std::size_t file : {0U, 1U, 2U, 3U}) {
    nic::Hello swapped = honest(nic::Path::slots);
    swapped.files[file] = unsealed(4096);
    expect_refused(swapped, "an unsealed file");
  }
}

// A connected impostor, with the victim's inbox and its own in its hands.
void with_inboxes(nic::Path path, const std::function<void(Inbox& victims, Inbox& own)>& mischief,
                  const std::function<void(Rig&)>& victim) {
  SharedMemory own = SharedMemory::create("impostor", sizeof(Inbox)).value();
  nic::Hello hello = honest(path);
  hello.files[3] = own.share().value();
  Impostor impostor(path, [&](base::Result<Rig> rig) {
    ASSERT_TRUE(rig) << rig.error().text();
    victim(*rig);
  });
  nic::Hello theirs = impostor.introduce(hello);
  const SharedMemory victims = SharedMemory::map(std::move(theirs.files[3]), sizeof(Inbox), SharedMemory::Access::write).value();
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
  const auto op = [](nic::Opcode opcode) { return static_cast<std::uint32_t>(opcode); };
  with_inboxes(nic::Path::slots, slot({op(nic::Opcode::send), 0xffffffff, 1, 0, 0, 0, 0}), failed);
  with_inboxes(nic::Path::slots, slot({op(nic::Opcode::send), 1001, 1, 0, 0, 1001, 0}), failed);
  with_inboxes(nic::Path::slots, slot({77, 8, 1, 0, 0, 8, 0}), failed);
  with_inboxes(nic::Path::slots, slot({op(nic::Opcode::bind), 8, 1, 0, 0, 8, 0}), failed);
  with_inboxes(nic::Path::slots, slot({op(nic::Opcode::write), 8, 1, 0, 0x1000, 8, 0}), failed);
  with_inboxes(nic::Path::slots, slot({op(nic::Opcode::write), 8, 1, 1 << 16 | 1, ~std::uint64_t{0} - 4, 8, 0}), failed);
  with_inboxes(nic::Path::slots, slot({op(nic::Opcode::read), 0, 1, 1 << 16 | 1, ~std::uint64_t{0} - 4, ~std::uint64_t{0}, 0}), failed);
}

// Replies that nobody asked for, or of another length, are not written anywhere.
TEST(SharedMemoryNonsense, Replies) {
  for (const std::uint32_t length : {0U, 7U, 0xffffffffU}) {
    with_inboxes(
        nic::Path::slots,
        [length](Inbox& victims, Inbox&) {
          victims.replies[0].length = length;
          victims.replied.value = 1;
        },
        [](Rig& rig) {
          const nic::Sge sge = rig.sge(0, 6);
          ASSERT_TRUE(rig.qp->post_send({.opcode = nic::Opcode::read, .sg_list = {&sge, 1}, .remote_addr = 0x1000, .rkey = 1 << 16 | 1}));
          const base::Result<base::Error> fault = rig.fault();
          ASSERT_TRUE(fault) << fault.error().text();
          EXPECT_EQ(fault->code, base::Code::malformed) << fault->text();
          EXPECT_EQ(rig.buffer.data()[0], std::byte{0});
        });
  }
}

TEST(SharedMemoryNonsense, Completions) {
  with_inboxes(
      nic::Path::mapped,
      [](Inbox& victims, Inbox&) {
        victims.dones[0] = {99, 6, 0, 0};
        victims.completed.value = 1;
      },
      [](Rig& rig) { expect_fault(rig, base::Code::transfer); });
  with_inboxes(
      nic::Path::mapped,
      [](Inbox& victims, Inbox&) {
        victims.dones[0] = {0, 6, 1'000'000, 0};  // more than was posted
        victims.completed.value = 1;
      },
      [](Rig& rig) { expect_fault(rig, base::Code::transfer); });
}

// A peer's key table and translations are the peer's to write: whatever they hold, what is granted lies within what was
// asked for, sums do not wrap around into what they do not name, and no walk leaves the table.
class KeyTableNonsense : public testing::Test {
 protected:
  static constexpr std::uint32_t kKey = 3 << 16 | 1;
  [[nodiscard]] std::optional<std::vector<nic::local::Extent>> granted(std::uint64_t addr, std::uint32_t length) const {
    std::vector<nic::local::Extent> extents;
    const nic::Sge sge{addr, length, kKey};
    if (!nic::local::resolve({table_, translations_}, {&sge, 1}, 0, length, nic::local::kRightRemoteWrite, 200, extents))
      return std::nullopt;
    return extents;
  }
  SharedMemory table_ = SharedMemory::create("keys", nic::local::kKeyTableBytes).value();
  SharedMemory translations_ = SharedMemory::create("translations", 1 << 20).value();
  nic::local::KeyEntry& entry_ = reinterpret_cast<nic::local::KeyEntry*>(table_.data())[3];
  nic::local::Translation* list_ = reinterpret_cast<nic::local::Translation*>(translations_.data());
};

TEST_F(KeyTableNonsense, SumsDoNotWrap) {
  entry_.key = kKey;
  entry_.rights = ~0U;
  entry_.addr = 0x1000;
  entry_.length = ~std::uint64_t{0};
  entry_.place = ~std::uint64_t{0} - 7;
  EXPECT_TRUE(granted(0x1000, 8));
  EXPECT_FALSE(granted(0x1010, 8));  // place + 16 wraps
  EXPECT_FALSE(granted(0x0fff, 1));
  EXPECT_FALSE(granted(~std::uint64_t{0} - 3, 8));
  const nic::local::PeerMemory peer{
      .process = 1, .pidfd = {}, .arena = SharedMemory::create("arena", 4096).value(), .key_table = {}, .translations = {}};
  for (const std::uint64_t offset : {~std::uint64_t{0} - 7, std::uint64_t{4081}, std::uint64_t{4097}, nic::local::kNotShared})
    EXPECT_FALSE(nic::local::in_arena(peer, {0x1000, 16, offset}));
  EXPECT_TRUE(nic::local::in_arena(peer, {0x1000, 16, 4080}));
}

TEST_F(KeyTableNonsense, TranslationsStayInTheirTable) {
  entry_.key = kKey;
  entry_.rights = ~0U;
  entry_.length = 1 << 20;
  const auto try_all = [&] {
    for (const std::uint64_t at : {0, 1, 100, (1 << 20) - 8}) EXPECT_FALSE(granted(at, 8));
  };
  for (const std::uint32_t repeat : {0U, 1U, ~0U}) {
    entry_.repeat = repeat;
    for (const std::uint32_t entries : {1U, 7U, ~0U}) {
      entry_.entries = entries;
      for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{32767}, std::uint64_t{32768}, ~std::uint64_t{0}}) {
        entry_.place = place;
        try_all();  // translations of zeros
      }
    }
  }
  entry_.place = 0;
  entry_.entries = 2;
  entry_.repeat = 0;
  list_[0] = {0, 0, 1 << 20, 0, kKey, 0};  // a key that names itself
  try_all();
}

TEST_F(KeyTableNonsense, RandomNumbersGrantOnlyWhatWasAsked) {
  std::mt19937_64 random(5);
  const auto any = [&] { return random() >> (random() % 64); };
  for (int round = 0; round < 100'000; ++round) {
    for (std::uint32_t k = 3; k < 5; ++k) {
      auto& entry = (&entry_)[k - 3];
      entry.key = k << 16 | 1;
      entry.rights = ~0U;
      entry.addr = k == 3 ? 0 : any();
      entry.length = any();
      entry.place = k == 3 ? any() % 40'000 : any();
      entry.entries = k == 3 ? static_cast<std::uint32_t>(any() % 40) : 0;
      entry.repeat = static_cast<std::uint32_t>(any());
    }
    for (int i = 0; i < 4; ++i) {
      list_[i] = {
          any(), any(), static_cast<std::uint32_t>(any()), static_cast<std::uint32_t>(any()), (random() % 8 == 0 ? 3U : 4U) << 16 | 1, 0};
    }
    const auto length = static_cast<std::uint32_t>(1 + random() % 100);
    const auto extents = granted(any() % 1000, length);
    if (!extents) continue;
    std::uint64_t sum = 0;
    const auto& region = (&entry_)[1];
    for (const nic::local::Extent& extent : *extents) {
      sum += extent.length;
      if (entry_.entries == 0) continue;  // entry 3 is itself a region then
      EXPECT_TRUE(extent.addr >= region.addr && extent.length <= region.length &&
                  extent.addr - region.addr <= region.length - extent.length);
    }
    EXPECT_EQ(sum, length);
  }
}

// Everything at once, at random, on every path.
TEST(SharedMemoryNonsense, RandomInboxes) {
  std::mt19937_64 random(7);
  // Kernel differs from mapped only in how bytes move
  for (const nic::Path path : {nic::Path::mapped, nic::Path::slots}) {
    for (int round = 0; round < 30; ++round) {
      const auto scribble = [&](Inbox& inbox) {
        auto* words = reinterpret_cast<std::uint64_t*>(&inbox);
        for (int i = 0; i < 200; ++i) words[random() % (sizeof(Inbox) / 8)] = random() >> (random() % 64);
        for (std::size_t i = 0; i < 16 * 8; i += 8) {  // the counters, small and large
          if (random() % 3 == 0) words[i] = random() >> (random() % 64);
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

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
