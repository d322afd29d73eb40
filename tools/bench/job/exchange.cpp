#include "tools/bench/job/exchange.hpp"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace lacuna::bench {
namespace {

std::uint64_t seed_of(int rank) { return static_cast<std::uint64_t>(rank) + 1; }
constexpr std::uint64_t kBackground = 3;
constexpr int kEmpty = 0xa5;  // bytes of packed memory that nothing arrived in

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
}

// --- the ways --------------------------------------------------------------------------------------------------------

void Exchange::add_bytes(const std::string& name) {
  const lacuna_mpi_shim* mpi = &pair_.mpi().calls();
  const int peer = pair_.peer();
  const int size = static_cast<int>(bytes());
  add({name, [=, this] { check(mpi->send(send_.base(), size, nullptr, peer), "MPI_Send failed"); },
       [=, this] { check(mpi->recv(receive_.base(), size, nullptr, peer), "MPI_Recv failed"); }});
}

void Exchange::add_datatype(const std::string& name) {
  if (!make_types(name)) return;
  const lacuna_mpi_shim* mpi = &pair_.mpi().calls();
  const int peer = pair_.peer();
  add({name, [=, this] { check(mpi->send(send_.base(), 1, send_type_.get(), peer), "MPI_Send of a datatype failed"); },
       [=, this] { check(mpi->recv(receive_.base(), 1, receive_type_.get(), peer), "MPI_Recv of a datatype failed"); }});
}

void Exchange::add_by_hand(const std::string& name, Form form) {
  make_packed();
  const lacuna_mpi_shim* mpi = &pair_.mpi().calls();
  const int peer = pair_.peer();
  const int size = static_cast<int>(bytes());
  std::byte* out = packed_[0].get();
  std::byte* in = packed_[1].get();
  add({name,
       [=, this] {
         hand_pack(case_.send.nests, form, send_.base(), out);
         check(mpi->send(out, size, nullptr, peer), "MPI_Send failed");
       },
       [=, this] {
         check(mpi->recv(in, size, nullptr, peer), "MPI_Recv failed");
         hand_unpack(case_.receive.nests, form, receive_.base(), in);
       }});
}

void Exchange::add_mpi_pack(const std::string& name) {
  if (!make_types(name)) return;
  make_packed();
  const lacuna_mpi_shim* mpi = &pair_.mpi().calls();
  const lacuna_mpi_type* type = mpi->packed();
  const int peer = pair_.peer();
  const int size = static_cast<int>(bytes());
  std::byte* out = packed_[0].get();
  std::byte* in = packed_[1].get();
  add({name,
       [=, this] {
         if (mpi->pack(send_.base(), send_type_.get(), out, size) != size) throw Broken("MPI_Pack failed");
         check(mpi->send(out, size, type, peer), "MPI_Send of packed bytes failed");
       },
       [=, this] {
         check(mpi->recv(in, size, type, peer), "MPI_Recv of packed bytes failed");
         if (mpi->unpack(in, size, receive_.base(), receive_type_.get()) != size) throw Broken("MPI_Unpack failed");
       }});
}

void Exchange::add_packed(const std::string& name) {
  for (Memory& side : elsewhere_) side = memory(bytes());
  const std::vector<std::byte> own = send_.data();
  std::memcpy(elsewhere_[0].get(), own.data(), own.size());
  const lacuna_mpi_shim* mpi = &pair_.mpi().calls();
  const int peer = pair_.peer();
  const int size = static_cast<int>(bytes());
  add({name, [=, this] { check(mpi->send(elsewhere_[0].get(), size, nullptr, peer), "MPI_Send failed"); },
       [=, this] { check(mpi->recv(elsewhere_[1].get(), size, nullptr, peer), "MPI_Recv failed"); },
       /*in_place=*/false});
}

void Exchange::plant(const std::string& fault) {
  layout::Cursor cursor(case_.receive.layout);
  const layout::Run first = cursor.next_run(INT64_MAX);
  for (Messenger& messenger : messengers_) {
    const bool in_gap = fault == "gap:" + messenger.name;
    if (!in_gap && fault != "corrupt:" + messenger.name) continue;
    std::byte* spoilt = messenger.in_place ? receive_.base() + first.offset + (in_gap ? first.length : 0) : elsewhere_[1].get();
    messenger.recv = [spoilt, recv = std::move(messenger.recv)] {
      recv();
      *spoilt ^= std::byte{1};
    };
  }
}

// --- what arrives ----------------------------------------------------------------------------------------------------

void Exchange::clear(const Messenger& messenger) {
  if (messenger.in_place)
    receive_.clear();
  else
    std::memset(elsewhere_[1].get(), kEmpty, bytes());
}

bool Exchange::received(const Messenger& messenger) {
  if (messenger.in_place) return receive_.holds(expected_);
  const bool arrived = std::memcmp(elsewhere_[1].get(), expected_.data(), bytes()) == 0;
  clear(messenger);
  return arrived;
}

// --- what they are made of -------------------------------------------------------------------------------------------

bool Exchange::make_types(const std::string& name) {
  if (!no_types_ && send_type_ == nullptr) {
    auto send_type = pair_.mpi().type(case_.send.type);
    auto receive_type = pair_.mpi().type(case_.receive.type);
    if (send_type && receive_type) {
      send_type_ = std::move(*send_type);
      receive_type_ = std::move(*receive_type);
    } else {
      no_types_ = (send_type ? receive_type : send_type).error();
    }
  }
  if (no_types_) refused_.push_back(name + ": " + no_types_->text());
  return !no_types_;
}

void Exchange::make_packed() {
  for (Memory& side : packed_)
    if (side == nullptr) side = memory(bytes());
}

Exchange::Memory Exchange::memory(std::size_t bytes) {
  Memory made(static_cast<std::byte*>(std::malloc(bytes)));  // NOLINT(cppcoreguidelines-no-malloc): as programs do
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

void Exchange::Free::operator()(std::byte* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc)

}  // namespace lacuna::bench
