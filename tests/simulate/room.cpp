// What a player does once all messages were received: room that was taken is there again.
#include <set>

#include "tests/simulate/player.hpp"

namespace lacuna::simulate {
namespace {

constexpr int kRoomTag = (1 << 20) + 1;
// Of this many bytes of room, three quarters are free when all was received: for two messages at least.
constexpr std::int64_t kSomeRoom = 4096;

}  // namespace

// Those that this rank has talked to in the story, and that know it too.
std::vector<int> Player::partners() const {
  std::set<int> all;
  for (const auto& [number, step] : stage_.steps) {
    if (step->kind != Step::Kind::message || !step->of(rank()) || step->from == step->to) continue;
    all.insert(step->from == rank() ? step->to : step->from);
  }
  return {all.begin(), all.end()};
}

// An empty message to each of them, and one from each.
bool Player::to_partners(const std::vector<int>& partners) {
  const layout::Layout none = support::value(layout::Layout::bytes(0));
  std::vector<Request*> begun;
  for (const int other : partners) {
    for (const bool out : {false, true}) {
      const base::Result<Request*> made =
          out ? ranks_.isend(memory_.data(), none, other, kRoomTag) : ranks_.irecv(memory_.data(), none, other, kRoomTag);
      if (!made) wrong("a message after the end: " + made.error().text());
      if (!made) return false;
      begun.push_back(*made);
    }
  }
  const base::Result<void> ended = ranks_.wait_all(begun);
  if (!ended) wrong("messages after the end: " + ended.error().text());
  return ended.has_value();
}

// The first message of each partner says that it has received all before, and comes behind its word of that. So the
// second one to it has room.
void Player::check_room() {
  const std::vector<int> all = partners();
  if (stage_.story.unexpected_bytes >= 0 && stage_.story.unexpected_bytes < kSomeRoom) return;
  if (!to_partners(all)) return;
  const std::int64_t before = ranks_.statistics().without_credit;
  if (!to_partners(all)) return;
  if (const std::int64_t now = ranks_.statistics().without_credit; now != before)
    wrong(fmt::format("{} small messages found no room, though all before were received", now - before));
}

}  // namespace lacuna::simulate
