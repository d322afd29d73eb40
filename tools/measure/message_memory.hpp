// Memory of the two ranks that measure messages: filled, compared, gaps included, and what rank 0 hears of it.
#pragma once

#include "lacuna/protocol/protocol.hpp"
#include "tools/measure/proof.hpp"

namespace lacuna::measure {

inline constexpr int kWordTag = 2;  ///< of what the ranks tell one another between measurements

template <class T>
Layout layout_of_value() {
  return *Layout::bytes(sizeof(T));
}

/// Of one rank: `count` messages of a layout to the other rank, and as many from it.
class MessageMemory {
 public:
  static Result<MessageMemory> of(const Layout& message, std::int64_t count = 1);
  /// Lays what this rank sends in the turn of that number, and makes the receiving part as it is before a message.
  void begin(const protocol::Communicator& ranks, std::int64_t turn);
  /// Compares what has come with what the other rank has sent in that turn; both ranks call. At rank 0: what is wrong
  /// on either, in words; else empty. Errors: those of messages.
  Result<std::string> wrong(protocol::Communicator& ranks, std::int64_t turn);
  [[nodiscard]] const Layout& layout() const { return message_; }
  [[nodiscard]] std::byte* send_base(std::int64_t i = 0) { return send_.data() + kGuard + i * pitch_; }
  [[nodiscard]] std::byte* receive_base(std::int64_t i = 0) { return receive_.data() + kGuard + i * pitch_; }

 private:
  MessageMemory(const Layout& message, std::int64_t pitch, const Layout& all);
  Layout message_, all_;
  std::int64_t pitch_;
  CheckedRanges windows_;
  std::vector<std::byte> send_, receive_;
};

}  // namespace lacuna::measure
