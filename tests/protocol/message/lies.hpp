// What tests of hostile peers say, and how they see what became of a request.
#pragma once

#include "lacuna/protocol/channel/head.hpp"
#include "tests/protocol/message/hostile_rig.hpp"

namespace lacuna::test::lies {

using base::Code;
using layout::Layout;
using protocol::Announce;
using protocol::Answer;
using protocol::AnswerKind;
using protocol::Communicator;
using protocol::Head;
using protocol::HeadKind;
using protocol::LayoutPart;
using protocol::Request;
using protocol::RingDescriptor;
using protocol::RingMemory;
using protocol::StreamRings;
using support::Random;

inline Layout bytes(std::int64_t n) { return support::value(Layout::bytes(n)); }
inline Layout vector(std::int64_t count, std::int64_t length, std::int64_t stride) {
  return support::value(Layout::vector(count, length, stride, bytes(1)));
}

inline Setting shared() { return {}; }
inline Setting queues() {
  Setting made;
  made.nic.forbidden_paths = {nic::Path::mapped};
  return made;
}
inline Setting forced(const char* method) {
  Setting made;
  made.options.force.method = support::value(method::find(method));
  return made;
}

template <class Body>
Head head(HeadKind kind, const Body& body, std::uint64_t size = 0, std::uint32_t number = 0, std::int32_t tag = 1) {
  Head made;
  made.kind = kind;
  made.tag = tag;
  made.number = number;
  made.bytes = size;
  protocol::put_body(made, body);
  return made;
}
inline Head plain(HeadKind kind, std::uint64_t size = 0, std::uint32_t number = 0, std::int32_t tag = 1) {
  return head(kind, std::uint8_t{0}, size, number, tag);
}

// What became of it, as a code; io where it did not end, unsupported where it succeeded.
inline constexpr Code kPending = Code::io;
inline constexpr Code kSuccess = Code::unsupported;
inline Code ended(Communicator& ranks, Request* request, int turns = 300) {
  for (int i = 0; i < turns; ++i) {
    const auto result = ranks.test(request);
    if (result) return *result ? kSuccess : result->error().code;
  }
  return kPending;
}

}  // namespace lacuna::test::lies
