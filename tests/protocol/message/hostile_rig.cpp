#include "tests/protocol/message/hostile_rig.hpp"

#include <thread>

#include "lacuna/protocol/channel/known_layouts.hpp"

namespace lacuna::test {

using protocol::Head;
using protocol::HeadKind;
using protocol::RingDescriptor;
using protocol::RingMemory;

namespace {

RingMemory& memory_of(const RingDescriptor& ring) { return *reinterpret_cast<RingMemory*>(ring.addr); }

}  // namespace

// --- the tap ---------------------------------------------------------------------------------------------------------

std::byte* Tap::claim(std::size_t bytes) { return inside().claim(bytes) != nullptr ? scratch_.data() : nullptr; }

void Tap::commit(Head& head) {
  if (head.kind == HeadKind::stream) own_.push_back(protocol::body_of<RingDescriptor>(head));
  std::vector<std::byte> payload(scratch_.begin(), scratch_.begin() + head.payload);
  Head changed = head;
  if (rarity_ == 0 || !random_.one_in(rarity_)) {
    forward(changed, payload);
  } else {
    switch (random_.below(6)) {
      case 0: break;  // lost
      case 1:
        forward(changed, payload);
        forward(changed, payload);
        break;
      case 2:
        if (!held_back_) {
          held_back_ = {changed, payload};
          return;
        }
        [[fallthrough]];
      case 3: {
        std::vector<std::byte> more;
        const Head lie = made_up(more);
        forward(lie, more);
        forward(changed, payload);
        break;
      }
      default: tamper(changed, payload); forward(changed, payload);
    }
  }
  if (held_back_ && random_.one_in(3)) {
    forward(held_back_->first, held_back_->second);
    held_back_.reset();
  }
}

base::Result<bool> Tap::next(Arrival& arrival) {
  const bool some = LACUNA_TRY(inside().next(arrival));
  if (some) said_[static_cast<std::uint8_t>(arrival.head.kind)] = arrival.head;
  if (some && arrival.head.kind == HeadKind::stream) theirs_.push_back(protocol::body_of<RingDescriptor>(arrival.head));
  return some;
}

void Tap::say(Head head, std::span<const std::byte> payload) {
  if (!payload.empty()) head.payload = static_cast<std::uint32_t>(payload.size());
  forward(head, payload);
}

void Tap::forward(const Head& head, std::span<const std::byte> payload) {
  std::byte* to = inside().claim(std::max(payload.size(), std::size_t{64}));
  if (to == nullptr) return;
  std::ranges::copy(payload, to);
  Head sent = head;
  inside().commit(sent);
}

// Numbers that mean something, or nearly.
std::uint64_t Tap::number() {
  switch (random_.below(5)) {
    case 0: return random_.next();
    case 1:
      return random_.pick(
          std::vector<std::uint64_t>{0, 63, 64, 255, 256, 257, 16384, 16385, 131'072, 1u << 31, ~0u, 1ull << 60, 1ull << 63, ~0ull});
    default: return static_cast<std::uint64_t>(random_.below(12));
  }
}

void Tap::tamper(Head& head, std::vector<std::byte>& payload) {
  for (std::int64_t times = random_.between(1, 3); times > 0; --times) {
    switch (random_.below(8)) {
      case 0: head.kind = static_cast<HeadKind>(random_.below(11)); break;
      case 1: head.tag = static_cast<std::int32_t>(number()); break;
      case 2: head.number = static_cast<std::uint32_t>(number()); break;
      case 3: head.bytes = random_.one_in(2) ? number() : head.bytes + static_cast<std::uint64_t>(random_.between(-2, 2)); break;
      case 4:
        if (payload.empty()) break;
        if (random_.one_in(2)) {
          payload.resize(static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(protocol::kMostPayload))));
          head.payload = static_cast<std::uint32_t>(payload.size());
        } else {
          for (int i = 0; i < 4; ++i) payload[random_.next() % payload.size()] ^= static_cast<std::byte>(1 << random_.below(8));
        }
        break;
      case 5: {
        const std::uint64_t word = number();
        std::memcpy(head.body + random_.below(8) * 4, &word, random_.one_in(2) ? 4 : 8);
        break;
      }
      default: head.body[random_.next() % sizeof head.body] ^= static_cast<std::byte>(1 << random_.below(8));
    }
    if (payload.empty()) return;
  }
}

Head Tap::made_up(std::vector<std::byte>& payload) {
  Head head;
  head.kind = static_cast<HeadKind>(random_.one_in(20) ? random_.below(256) : random_.between(1, 11));
  head.tag = random_.one_in(8) ? static_cast<std::int32_t>(number()) : static_cast<std::int32_t>(random_.below(3));
  head.number = static_cast<std::uint32_t>(number());
  head.bytes = number();
  if (random_.one_in(2)) {
    payload.resize(static_cast<std::size_t>(random_.one_in(2) ? 16 * random_.between(1, 8) : random_.scaled(protocol::kMostPayload)));
    for (std::byte& byte : payload) byte = static_cast<std::byte>(random_.next());
    head.payload = static_cast<std::uint32_t>(payload.size());
    if (head.kind == HeadKind::eager && !random_.one_in(4)) head.bytes = head.payload;
  }
  make_up_body(head, payload);
  return head;
}

void Tap::make_up_body(Head& head, std::vector<std::byte>& payload) {
  switch (head.kind) {
    case HeadKind::stream: {
      RingDescriptor ring = own_.empty() ? RingDescriptor() : own_[random_.next() % own_.size()];
      if (random_.one_in(2)) ring.addr += number();
      if (random_.one_in(2)) ring.lines = static_cast<std::uint16_t>(number());
      if (random_.one_in(4)) ring.pages = static_cast<std::uint16_t>(number());
      if (random_.one_in(2)) ring.at = static_cast<std::uint32_t>(number());
      if (random_.one_in(2)) ring.first = number();
      if (random_.one_in(2)) ring.answer = static_cast<std::uint32_t>(number());
      protocol::put_body(head, ring);
      break;
    }
    case HeadKind::announce: {
      const protocol::Announce body{static_cast<std::uint32_t>(random_.below(3)), static_cast<std::uint8_t>(random_.below(2)),
                                    static_cast<std::uint8_t>(random_.below(2)), static_cast<std::uint8_t>(random_.below(2))};
      protocol::put_body(head, body);
      break;
    }
    case HeadKind::answer: {
      protocol::Answer body{static_cast<std::uint32_t>(number()),
                            static_cast<std::uint32_t>(random_.below(3)),
                            {},
                            static_cast<protocol::AnswerKind>(random_.below(4)),
                            random_.one_in(2) ? number() : static_cast<std::uint64_t>(random_.between(1, 100'000)),
                            {static_cast<std::uint32_t>(random_.below(4)), static_cast<std::uint32_t>(random_.below(4))}};
      body.way[0] = static_cast<std::uint8_t>(random_.below(12));
      body.way[1] = static_cast<std::uint8_t>(random_.below(4));
      body.way[2] = static_cast<std::uint8_t>(random_.below(3));
      protocol::put_body(head, body);
      break;
    }
    case HeadKind::part:
    case HeadKind::ready: {
      protocol::PartBody body{static_cast<std::uint32_t>(random_.one_in(4) ? number() : static_cast<std::uint64_t>(random_.below(4))),
                              {static_cast<std::uint8_t>(random_.below(12)), static_cast<std::uint8_t>(random_.below(4)),
                               static_cast<std::uint8_t>(random_.below(3))},
                              static_cast<std::uint8_t>(random_.below(3))};
      protocol::put_body(head, body);
      break;
    }
    case HeadKind::layout: {
      std::vector<std::byte> wire = layout::encode(support::random_layout(random_).layout);
      if (wire.size() > protocol::kMostPayload) wire.resize(protocol::kMostPayload);
      if (random_.one_in(2)) wire[random_.next() % wire.size()] ^= static_cast<std::byte>(1 << random_.below(8));
      protocol::put_body(head, protocol::LayoutPart{static_cast<std::uint32_t>(random_.one_in(4) ? number() : 1), 0,
                                                    random_.one_in(4) ? number() : wire.size(), random_.one_in(8) ? number() : 0});
      payload = wire;
      head.payload = static_cast<std::uint32_t>(payload.size());
      break;
    }
    default:
      for (std::byte& byte : head.body) byte = static_cast<std::byte>(random_.next());
  }
}

void Tap::scribble() {
  if (rarity_ == 0 || (own_.empty() && theirs_.empty()) || !random_.one_in(8 * rarity_)) return;
  const bool own = theirs_.empty() || (!own_.empty() && random_.one_in(2));
  const RingDescriptor& ring = random_.pick(own ? own_ : theirs_);
  RingMemory& memory = memory_of(ring);
  const std::uint64_t value = random_.one_in(2) ? number() : memory.filled + static_cast<std::uint64_t>(random_.between(-3, 3));
  if (own && random_.one_in(2)) memory.filled = value;
  if (random_.one_in(2)) memory.emptied = value;
  if (own && random_.one_in(2)) memory.data()[random_.next() % (ring.pages * 4096U)] ^= std::byte{0x40};
}

// --- the den ---------------------------------------------------------------------------------------------------------

Den::Den(const Setting& setting, std::uint64_t seed, int rarity) {
  auto made = support::value(groups(setting.ranks));
  contexts_.resize(made.size());
  ranks_.resize(made.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < made.size(); ++i) {
    threads.emplace_back([&, i] {
      contexts_[i] = support::value(nic::open("local", setting.nic));
      protocol::Options options = setting.options;
      int peers = 0;
      if (i == 1) {
        options.wrap_channel = [&](std::unique_ptr<protocol::Channel> channel) -> std::unique_ptr<protocol::Channel> {
          if (peers++ > 0) return channel;
          auto tap = std::make_unique<Tap>(std::move(channel), seed, rarity);
          tap_ = tap.get();
          return tap;
        };
      }
      ranks_[i] = support::value(protocol::Communicator::create(*contexts_[i], "local", std::move(made[i]), options));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// They wait for one another as they end.
Den::~Den() {
  std::vector<std::thread> threads;
  for (auto& rank : ranks_) threads.emplace_back([&rank] { rank.reset(); });
  for (std::thread& thread : threads) thread.join();
}

bool Den::until(const std::function<bool()>& ready, int idle_turns) {
  for (int idle = 0, turns = 0; idle < idle_turns && turns < 100'000; ++turns) {
    if (ready()) return true;
    bool moved = false;
    for (auto& rank : ranks_) moved = rank->progress() || moved;
    tap_->scribble();
    idle = moved ? 0 : idle + 1;
  }
  return ready();
}

void Den::victim_moves(int turns) {
  for (int i = 0; i < turns; ++i) ranks_[0]->progress();
}

// --- memory ----------------------------------------------------------------------------------------------------------

Guarded::Guarded(layout::Layout what, std::uint64_t seed) : layout(std::move(what)), seed_(seed * 0x9e3779b9) {
  const std::int64_t low = std::min<std::int64_t>(0, layout.true_lower_bound()) - 4096;
  const std::int64_t high = std::max<std::int64_t>(0, layout.true_lower_bound() + layout.true_extent()) + 4096;
  origin = -low;
  bytes.resize(static_cast<std::size_t>(high - low));
  named.resize(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(i);
  layout::Cursor cursor(layout);
  for (std::int64_t left = layout.size(); left > 0;) {
    const layout::Run run = cursor.next_run(left);
    for (std::int64_t i = 0; i < run.length; ++i) named[static_cast<std::size_t>(origin + run.offset + i)] = true;
    left -= run.length;
  }
}

bool Guarded::intact() const {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!named[i] && bytes[i] != pattern(i)) return false;
  }
  return true;
}

bool Guarded::untouched() const {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern(i)) return false;
  }
  return true;
}

}  // namespace lacuna::test
