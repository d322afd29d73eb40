// matching: which message goes to which receive, by MPI's rules (MPI-4.1, 3.5): a receive takes the earliest message
// that fits it, a message goes to the earliest receive that it fits. It hides how they are found.
//
//   a receive is posted ── find(): a message is here ──▶ remove() it     a message comes ── match(): a receive waits
//                      └── else post(): it waits                                        └── else keep(): it waits
//
// Tags below 0 are the library's own; no wildcard takes them. Receives that name source and tag are found through bins;
// wildcards are few, and looked through in order. The links of all lists lie in the objects themselves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lacuna::protocol {

inline constexpr int kAny = -1;

/// A receive that waits, or a message that does. To be derived from.
struct Matchable {
  int source = 0;
  int tag = 0;
  std::uint64_t order = 0;
  Matchable* next = nullptr;  // of its bin, or of the wildcards
  Matchable* previous = nullptr;
  Matchable* later = nullptr;  // messages: of all
  Matchable* earlier = nullptr;
};

class Matcher {
 public:
  /// The earliest receive that takes such a message; it is no longer here. Null: none does.
  Matchable* match(int source, int tag) {
    Matchable* exact = receives_[bin(source, tag)].first;
    while (exact != nullptr && (exact->source != source || exact->tag != tag)) exact = exact->next;
    Matchable* wild = wildcards_.first;
    while (wild != nullptr && !takes(*wild, source, tag)) wild = wild->next;
    Matchable* found = exact == nullptr || (wild != nullptr && wild->order < exact->order) ? wild : exact;
    if (found != nullptr) withdraw(*found);
    return found;
  }
  /// A message that no receive takes waits for one.
  void keep(Matchable& message) {
    message.order = ++order_;
    messages_[bin(message.source, message.tag)].append(message);
    message.later = nullptr;
    message.earlier = last_;
    (last_ != nullptr ? last_->later : first_) = &message;
    last_ = &message;
  }

  /// The earliest message that such a receive takes; it stays. Null: none is here.
  [[nodiscard]] Matchable* find(int source, int tag) const {
    if (first_ == nullptr) return nullptr;
    if (source == kAny || tag == kAny) {
      Matchable* message = first_;
      while (message != nullptr && !accepts(source, tag, *message)) message = message->later;
      return message;
    }
    Matchable* message = messages_[bin(source, tag)].first;
    while (message != nullptr && (message->source != source || message->tag != tag)) message = message->next;
    return message;
  }
  /// The message waits no longer.
  void remove(Matchable& message) {
    messages_[bin(message.source, message.tag)].unlink(message);
    (message.earlier != nullptr ? message.earlier->later : first_) = message.later;
    (message.later != nullptr ? message.later->earlier : last_) = message.earlier;
  }

  /// A receive that no message is here for waits for one.
  void post(Matchable& receive) {
    receive.order = ++order_;
    list_of(receive).append(receive);
  }
  void withdraw(Matchable& receive) { list_of(receive).unlink(receive); }

  /// Calls visit(receive) for each that waits; visit may withdraw it.
  template <class Visit>
  void each_receive(const Visit& visit) {
    wildcards_.each(visit);
    for (List& list : receives_) list.each(visit);
  }
  /// Calls visit(message) for each that waits, in order; visit may remove it.
  template <class Visit>
  void each_message(const Visit& visit) {
    for (Matchable* at = first_; at != nullptr;) {
      Matchable* later = at->later;
      visit(*at);
      at = later;
    }
  }

 private:
  struct List {
    Matchable* first = nullptr;
    Matchable* last = nullptr;
    void append(Matchable& one) {
      one.next = nullptr;
      one.previous = last;
      (last != nullptr ? last->next : first) = &one;
      last = &one;
    }
    void unlink(Matchable& one) {
      (one.previous != nullptr ? one.previous->next : first) = one.next;
      (one.next != nullptr ? one.next->previous : last) = one.previous;
    }
    template <class Visit>
    void each(const Visit& visit) {
      for (Matchable* at = first; at != nullptr;) {
        Matchable* next = at->next;
        visit(*at);
        at = next;
      }
    }
  };
  static constexpr std::size_t kBins = 256;
  static std::size_t bin(int source, int tag) {
    const std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(source)) << 32 | static_cast<std::uint32_t>(tag);
    return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15 >> 56);
  }
  static bool accepts(int source, int tag, const Matchable& message) {
    return (source == kAny || source == message.source) && (tag == kAny ? message.tag >= 0 : tag == message.tag);
  }
  static bool takes(const Matchable& receive, int source, int tag) {
    return (receive.source == kAny || receive.source == source) && (receive.tag == kAny ? tag >= 0 : receive.tag == tag);
  }
  List& list_of(const Matchable& receive) {
    return receive.source == kAny || receive.tag == kAny ? wildcards_ : receives_[bin(receive.source, receive.tag)];
  }

  std::array<List, kBins> receives_;
  std::array<List, kBins> messages_;
  List wildcards_;
  Matchable* first_ = nullptr;  // messages in the order of arrival
  Matchable* last_ = nullptr;
  std::uint64_t order_ = 0;
};

}  // namespace lacuna::protocol
