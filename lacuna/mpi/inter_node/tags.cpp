#include "lacuna/mpi/inter_node/tags.hpp"

#include <algorithm>
#include <new>

#include "lacuna/mpi/inter_node/private_comm.hpp"

namespace lacuna::mpi {

int ChunkTags::take(int to) {
  std::unique_ptr<Sent>& of = sent_.at(static_cast<std::size_t>(to));
  if (of == nullptr) of = std::make_unique<Sent>();
  Sent& sent = *of;
  constexpr int kAll = kNone - kFirst;
  if (sent.count == kAll || (sent.last + 1) % kAtOnce == 0) learn(to, sent);
  if (sent.count == kAll) return kNone;
  do sent.last = sent.last % kAll + kFirst;
  while (sent.used[static_cast<std::size_t>(sent.last)]);
  sent.used.set(static_cast<std::size_t>(sent.last));
  ++sent.count;
  return sent.last;
}

// What the receiver has said meanwhile. A tag that no message has is none that it can give back.
void ChunkTags::learn(int to, Sent& sent) {
  for (;;) {
    int found = 0;
    Status status{};
    EndedTags report{};
    if (told_by([&] { return host().Iprobe(to, kNone, comm_, &found, &status); }) != kSuccess || found == 0) return;
    if (told_by([&] { return host().Recv(report.data(), sizeof report, host().byte, to, kNone, comm_, &status); }) != kSuccess) return;
    for (const std::uint16_t tag : report) {
      if (tag < kFirst || tag >= kNone || !sent.used[tag]) continue;
      sent.used.reset(tag);
      --sent.count;
    }
  }
}

bool ChunkTags::goes(Received& received) {
  int over = 0;
  if (received.goes) received.goes = told_by([&] { return host().Test(&received.request, &over, ignored()); }) == kSuccess && over == 0;
  return received.goes;
}

void ChunkTags::give_back(int from, int tag) try {
  std::unique_ptr<Received>& of = received_.at(static_cast<std::size_t>(from));
  if (of == nullptr) of = std::make_unique<Received>();
  Received& received = *of;
  received.ended.push_back(static_cast<std::uint16_t>(tag));
  while (received.ended.size() >= kAtOnce && !goes(received)) {
    std::copy(received.ended.end() - kAtOnce, received.ended.end(), received.said.begin());
    received.ended.resize(received.ended.size() - kAtOnce);
    received.goes = told_by([&] {
                      return host().Isend(received.said.data(), sizeof received.said, host().byte, from, kNone, comm_, &received.request);
                    }) == kSuccess;
  }
} catch (const std::bad_alloc&) {
  base::log(base::Level::debug, "MPI receive: no memory to give a tag back, so no message has it again");
}

bool ChunkTags::some_go() {
  return std::ranges::any_of(received_, [](const std::unique_ptr<Received>& received) { return received != nullptr && goes(*received); });
}

}  // namespace lacuna::mpi
