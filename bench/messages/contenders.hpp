// Ways to send a case's bytes from one rank's memory into the other's, all between the same buffers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/messages/buffer.hpp"
#include "bench/messages/pair.hpp"

namespace lacuna::bench {

struct Messenger {
  std::string name;
  std::function<void()> send;  ///< from the own send buffer; both throw Broken
  std::function<void()> recv;  ///< into the own receive buffer
};

/// One rank's part of a case.
class Exchange {
 public:
  Exchange(Case what, const Pair& pair);

  [[nodiscard]] const std::vector<Messenger>& messengers() const { return messengers_; }  ///< Lacuna is the first
  /// Those that cannot send this case: "mpi_datatype: MPI refused a constructor".
  [[nodiscard]] const std::vector<std::string>& refused() const { return refused_; }
  /// Whether what the other sent is in the receive buffer, and nothing else. Clears it.
  bool received() { return receive_.holds(expected_); }

 private:
  void add_lacuna();
  void add_bytes();
  void add_datatype();
  void add_by_hand(Form form);
  void plant(const std::string& fault);

  Case case_;
  const Pair& pair_;
  Buffer send_;
  Buffer receive_;
  std::vector<std::byte> expected_;
  Mpi::Type send_type_{nullptr, {nullptr}};
  Mpi::Type receive_type_{nullptr, {nullptr}};
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> packed_[2];  // what the loops by hand send, and receive
  std::vector<Messenger> messengers_;
  std::vector<std::string> refused_;
};

}  // namespace lacuna::bench
