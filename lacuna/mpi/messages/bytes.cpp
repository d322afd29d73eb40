// Bytes that the host sends, whatever its counts are.
#include <climits>

#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi {

bool Bytes::fits(std::int64_t bytes) { return bytes <= INT_MAX || host().large; }

int Bytes::send(SendMode mode, const void* base, std::int64_t bytes, int dest, int tag, Comm comm) {
  const Host& h = host();
  if (bytes > INT_MAX) {
    const auto call = mode == SendMode::standard      ? h.Send_c
                      : mode == SendMode::synchronous ? h.Ssend_c
                      : mode == SendMode::ready       ? h.Rsend_c
                                                      : h.Bsend_c;
    return call(base, bytes, h.byte, dest, tag, comm);
  }
  const auto call = mode == SendMode::standard      ? h.Send
                    : mode == SendMode::synchronous ? h.Ssend
                    : mode == SendMode::ready       ? h.Rsend
                                                    : h.Bsend;
  return call(base, static_cast<int>(bytes), h.byte, dest, tag, comm);
}

int Bytes::isend(SendMode mode, const void* base, std::int64_t bytes, int dest, int tag, Comm comm, Request* request) {
  const Host& h = host();
  if (bytes > INT_MAX) {
    const auto call = mode == SendMode::standard      ? h.Isend_c
                      : mode == SendMode::synchronous ? h.Issend_c
                      : mode == SendMode::ready       ? h.Irsend_c
                                                      : h.Ibsend_c;
    return call(base, bytes, h.byte, dest, tag, comm, request);
  }
  const auto call = mode == SendMode::standard      ? h.Isend
                    : mode == SendMode::synchronous ? h.Issend
                    : mode == SendMode::ready       ? h.Irsend
                                                    : h.Ibsend;
  return call(base, static_cast<int>(bytes), h.byte, dest, tag, comm, request);
}

}  // namespace lacuna::mpi
