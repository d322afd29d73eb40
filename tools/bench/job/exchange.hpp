// One rank's part of a case: its memory, and ways to send the case's bytes from it into the other rank's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/job/buffer.hpp"
#include "tools/bench/job/cases.hpp"
#include "tools/bench/job/pair.hpp"

namespace lacuna::bench {

struct Messenger {
  std::string name;
  std::function<void()> send;  ///< both throw Broken
  std::function<void()> recv;
  bool in_place = true;  ///< from the send buffer into the receive buffer; else from packed bytes into packed bytes
};

class Exchange {
 public:
  /// Throws what the case is too large for.
  Exchange(Case what, const Pair& pair);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // The ways. What the MPI refuses is not added, but noted.
  void add(Messenger messenger) { messengers_.push_back(std::move(messenger)); }  ///< one of the caller's own, in place
  /// A contiguous layout as so many bytes
  void add_bytes(const std::string& name);
  /// MPI_Send and MPI_Recv of a datatype
  void add_datatype(const std::string& name);
  void add_by_hand(const std::string& name, Form form);  ///< loops around contiguous messages
  /// MPI_Pack and MPI_Unpack around them
  void add_mpi_pack(const std::string& name);
  /// As many contiguous bytes, from elsewhere to elsewhere
  void add_packed(const std::string& name);
  /// Whether there are loops of the form Form::memcpy that differ from those over elements.
  [[nodiscard]] bool has_memcpy() const { return has_blocks(case_.send.nests) || has_blocks(case_.receive.nests); }

  /// For tests. "corrupt:NAME": what this one receives has another first byte; "gap:NAME": the byte behind the first
  /// block is another one.
  void plant(const std::string& fault);

  [[nodiscard]] const Case& what() const { return case_; }
  [[nodiscard]] std::byte* send_base() const { return send_.base(); }
  [[nodiscard]] std::byte* receive_base() const { return receive_.base(); }
  [[nodiscard]] const std::vector<Messenger>& messengers() const { return messengers_; }
  /// Those that cannot send this case: "mpi_datatype: MPI refused a constructor".
  [[nodiscard]] const std::vector<std::string>& refused() const { return refused_; }

  /// Nothing of what came before is left where this one's data arrive.
  void clear(const Messenger& messenger);
  /// Whether what the other sent is there, and nothing else was touched. Clears it.
  bool received(const Messenger& messenger);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte[], Free>;
  static Memory memory(std::size_t bytes);
  [[nodiscard]] std::size_t bytes() const { return expected_.size(); }
  bool make_types(const std::string& name);
  void make_packed();

  Case case_;
  const Pair& pair_;
  Buffer send_;
  Buffer receive_;
  std::vector<std::byte> expected_;
  std::optional<base::Error> no_types_;
  Mpi::Type send_type_{nullptr, {nullptr}};
  Mpi::Type receive_type_{nullptr, {nullptr}};
  Memory packed_[2];     // what loops and MPI_Pack send, and receive
  Memory elsewhere_[2];  // what add_packed() sends, and receives
  std::vector<Messenger> messengers_;
  std::vector<std::string> refused_;
};

}  // namespace lacuna::bench
