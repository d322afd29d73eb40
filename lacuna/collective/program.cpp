#include "lacuna/collective/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lacuna/base/rarely.hpp"

namespace lacuna::collective {

using base::Code;
using protocol::Request;
using protocol::Status;

// --- the alarm -------------------------------------------------------------------------------------------------------

Alarm::~Alarm() {
  if (request_ != nullptr && !ranks_.cancel(request_) && !ranks_.test(request_)) {
    LACUNA_RARELY("alarm: one is coming as the exchange ends");
    ranks_.give_up(request_);
  }
  for (Request* request : ringing_) {
    if (ranks_.test(request)) continue;
    LACUNA_RARELY("alarm: one did not go");
    ranks_.give_up(request);
  }
}

// A rank that has lost another one is not told by that one.
Result<void> Alarm::arm() {
  if (const base::Error* lost = ranks_.lost(); lost != nullptr && request_ == nullptr) {
    LACUNA_RARELY("alarm: a rank was lost before the exchange");
    return std::unexpected(*lost);
  }
  if (request_ == nullptr && ranks_.size() > 1)
    request_ = LACUNA_TRY(ranks_.irecv(&words_, LACUNA_TRY(Layout::bytes(sizeof words_)), protocol::kAnySource, tag_));
  return {};
}

base::Error Alarm::heard(const Result<Status>& ended) {
  request_ = nullptr;
  heard_ = ended.has_value();  // else the others may not know: a peer that closes may have lost this rank alone
  if (!ended) return ended.error();
  LACUNA_RARELY("alarm: a rank gave up");
  words_.text[sizeof words_.text - 1] = 0;
  const bool known = words_.code >= 0 && words_.code <= static_cast<std::int32_t>(Code::truncated);
  return {known ? static_cast<Code>(words_.code) : Code::malformed, fmt::format("rank {} gave up: {}", ended->source, words_.text)};
}

void Alarm::ring(const base::Error& error) {
  if (heard_) return;
  LACUNA_RARELY("alarm: the others are told");
  said_ = {.code = static_cast<std::int32_t>(error.code), .rank = ranks_.rank()};
  std::strncpy(said_.text, error.message.c_str(), sizeof said_.text - 1);
  const Result<Layout> layout = Layout::bytes(sizeof said_);
  for (int peer = 0; layout && peer < ranks_.size(); ++peer) {
    if (peer == ranks_.rank()) continue;
    if (const Result<Request*> told = ranks_.isend(&said_, *layout, peer, tag_); told && !ranks_.test(*told)) ringing_.push_back(*told);
  }
}

// --- rounds ----------------------------------------------------------------------------------------------------------

Program::~Program() {
  if (!idle()) give_up({Code::peer_lost, "it left an exchange that was under way"});
}

Result<bool> Program::go_on(std::int64_t timeout_ns) {
  Result<bool> done = run(timeout_ns);
  if (!done) give_up(done.error());
  return done;
}

Result<bool> Program::run(std::int64_t timeout_ns) {
  LACUNA_TRY(alarm_.arm());
  const std::int64_t now = ranks_.context().now();
  const std::int64_t deadline = timeout_ns < Communicator::kForever - now ? now + timeout_ns : Communicator::kForever;
  while (!rounds_.empty()) {
    const Round& round = *rounds_.front();
    if (!begun_) LACUNA_TRY(begin(round));
    while (!receives_.over() || !sends_.over()) {
      const bool moved = LACUNA_TRY(timeout_ns <= 0 ? look() : wait(deadline));
      if (!moved) return false;
    }
    begun_ = false;
    rounds_.pop_front();
    if (round.after) LACUNA_TRY(round.after());
  }
  return true;
}

Result<void> Program::begin(const Round& round) {
  if (round.before) LACUNA_TRY(round.before());
  begun_ = true;
  receives_ = {.posts = &round.receives};
  sends_ = {.posts = &round.sends};
  LACUNA_TRY(fill(receives_));
  LACUNA_TRY(fill(sends_));
  if (round.meanwhile) LACUNA_TRY(round.meanwhile());
  return {};
}

// Posts as many as may be under way. Messages wait for one another in the order in which they are posted; that order is
// the same at both ends of each (all earlier ones at either end belong to earlier steps), so the earliest of all can
// always move, however small the windows are.
Result<void> Program::fill(Lane& lane) {
  const auto window = static_cast<std::size_t>(rounds_.front()->window);
  for (; lane.under_way.size() < window && lane.next < lane.posts->size(); ++lane.next) {
    const Post& post = (*lane.posts)[lane.next];
    lane.under_way.push_back(LACUNA_TRY(&lane == &sends_ ? ranks_.isend(post.base, post.layout, post.peer, tag_)
                                                         : ranks_.irecv(post.base, post.layout, post.peer, tag_)));
  }
  return {};
}

// What became of the earliest message of a lane.
Result<void> Program::took(Lane& lane, const Result<Status>& ended) {
  const Post& post = (*lane.posts)[lane.next - lane.under_way.size()];
  lane.under_way.pop_front();
  if (!ended) return base::fail(ended.error().code, fmt::format("rank {}: {}", post.peer, ended.error().message));
  if (ended->bytes != post.layout.size())
    return base::fail(Code::malformed,
                      fmt::format("rank {} sent {} bytes where {} were agreed on", post.peer, ended->bytes, post.layout.size()));
  return fill(lane);
}

// Whether one of the messages that are next has ended. The alarm counts only where nothing else is left: who is gone
// may have done its part.
Result<bool> Program::look() {
  for (Lane* lane : {&receives_, &sends_}) {
    if (lane->head() == nullptr) continue;
    if (const auto ended = ranks_.test(lane->head())) {
      LACUNA_TRY(took(*lane, *ended));
      return true;
    }
  }
  if (alarm_.request() == nullptr) return false;
  if (const auto ended = ranks_.test(alarm_.request())) return std::unexpected(alarm_.heard(*ended));
  return false;
}

Result<bool> Program::wait(std::int64_t deadline) {
  const std::array<Request*, 3> next{receives_.head(), sends_.head(), alarm_.request()};
  const std::int64_t left = deadline == Communicator::kForever ? deadline : std::max<std::int64_t>(0, deadline - ranks_.context().now());
  const Result<std::size_t> found = ranks_.wait_any(next, left);
  if (!found && found.error().code == Code::timeout) return false;
  const std::size_t which = LACUNA_TRY(found);
  const std::optional<Result<Status>> ended = ranks_.test(next[which]);
  if (!ended) return true;
  if (which == 2) return std::unexpected(alarm_.heard(*ended));
  LACUNA_TRY(took(which == 0 ? receives_ : sends_, *ended));
  return true;
}

// Tells the others first: they are lost here if something is half way.
void Program::give_up(const base::Error& error) {
  if (!known_to_all_) alarm_.ring(error);
  for (Lane* lane : {&receives_, &sends_}) {
    for (Request* request : lane->under_way) {
      if (ranks_.cancel(request) || ranks_.test(request)) continue;
      LACUNA_RARELY("exchange: given up with a message half way");
      ranks_.give_up(request);
    }
    lane->under_way.clear();
  }
  rounds_.clear();
  begun_ = false;
}

}  // namespace lacuna::collective
