#include "bench/messages/contenders.hpp"

#include <cstdlib>
#include <limits>

namespace lacuna::bench {
namespace {

constexpr int kTag = 0;

std::uint64_t seed_of(int rank) { return static_cast<std::uint64_t>(rank) + 1; }
constexpr std::uint64_t kBackground = 3;

void check(int status, const char* what) {
  if (status != 0) throw Broken(what);
}

}  // namespace

Exchange::Exchange(Case what, const Pair& pair) : case_(std::move(what)), pair_(pair), send_(case_.send), receive_(case_.receive) {
  if (case_.send.layout.size() > std::numeric_limits<int>::max()) throw std::invalid_argument(case_.name + " does not fit an MPI count");
  send_.fill(seed_of(pair.peer()));
  expected_ = send_.data();
  send_.fill(seed_of(pair.rank()));
  receive_.fill(kBackground);

  add_lacuna();
  if (case_.group == "contiguous") {
    add_bytes();
  } else {
    add_datatype();
    add_by_hand(Form::elements);
    if (has_blocks(case_.send.nests) || has_blocks(case_.receive.nests)) add_by_hand(Form::memcpy);
  }
  if (const char* fault = std::getenv("LACUNA_TEST_FAULT")) plant(fault);
}

void Exchange::add_lacuna() {
  protocol::Communicator* ranks = &pair_.lacuna();
  const int peer = pair_.peer();
  messengers_.push_back({"lacuna",
                         [=, this] {
                           if (const auto sent = ranks->send(send_.base(), case_.send.layout, peer, kTag); !sent)
                             throw Broken(sent.error().text());
                         },
                         [=, this] {
                           if (const auto got = ranks->recv(receive_.base(), case_.receive.layout, peer, kTag); !got)
                             throw Broken(got.error().text());
                         }});
}

void Exchange::add_bytes() {
  const lacuna_mpi_shim* mpi = &pair_.mpi().calls();
  const int peer = pair_.peer();
  const int bytes = static_cast<int>(case_.send.layout.size());
  messengers_.push_back({"mpi_contiguous", [=, this] { check(mpi->send(send_.base(), bytes, nullptr, peer), "MPI_Send failed"); },
                         [=, this] { check(mpi->recv(receive_.base(), bytes, nullptr, peer), "MPI_Recv failed"); }});
}

void Exchange::add_datatype() {
  auto send_type = pair_.mpi().type(case_.send.type);
  auto receive_type = pair_.mpi().type(case_.receive.type);
  if (!send_type || !receive_type) {
    refused_.push_back("mpi_datatype: " + (send_type ? receive_type : send_type).error().text());
    return;
  }
  send_type_ = std::move(*send_type);
  receive_type_ = std::move(*receive_type);
  const lacuna_mpi_shim* mpi = &pair_.mpi().calls();
  const int peer = pair_.peer();
  messengers_.push_back({"mpi_datatype",
                         [=, this] { check(mpi->send(send_.base(), 1, send_type_.get(), peer), "MPI_Send of a datatype failed"); },
                         [=, this] { check(mpi->recv(receive_.base(), 1, receive_type_.get(), peer), "MPI_Recv of a datatype failed"); }});
}

void Exchange::add_by_hand(Form form) {
  const lacuna_mpi_shim* mpi = &pair_.mpi().calls();
  const int peer = pair_.peer();
  const int bytes = static_cast<int>(case_.send.layout.size());
  for (auto& packed : packed_) {
    if (packed == nullptr)
      packed.reset(static_cast<std::byte*>(std::malloc(static_cast<std::size_t>(bytes))));  // NOLINT(cppcoreguidelines-no-malloc)
    if (packed == nullptr) throw std::bad_alloc();
  }
  std::byte* out = packed_[0].get();
  std::byte* in = packed_[1].get();
  messengers_.push_back({form == Form::elements ? "hand_elements" : "hand_memcpy",
                         [=, this] {
                           hand_pack(case_.send.nests, form, send_.base(), out);
                           check(mpi->send(out, bytes, nullptr, peer), "MPI_Send failed");
                         },
                         [=, this] {
                           check(mpi->recv(in, bytes, nullptr, peer), "MPI_Recv failed");
                           hand_unpack(case_.receive.nests, form, receive_.base(), in);
                         }});
}

// "corrupt:NAME": what this one receives has another first byte; "gap:NAME": the byte behind the first block is another one.
void Exchange::plant(const std::string& fault) {
  layout::Cursor cursor(case_.receive.layout);
  const layout::Run first = cursor.next_run(INT64_MAX);
  for (Messenger& messenger : messengers_) {
    const bool in_gap = fault == "gap:" + messenger.name;
    if (!in_gap && fault != "corrupt:" + messenger.name) continue;
    std::byte* spoilt = receive_.base() + first.offset + (in_gap ? first.length : 0);
    messenger.recv = [spoilt, recv = std::move(messenger.recv)] {
      recv();
      *spoilt ^= std::byte{1};
    };
  }
}

void Exchange::Free::operator()(std::byte* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc)

}  // namespace lacuna::bench
