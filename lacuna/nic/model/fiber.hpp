// fiber: a stack of its own for each simulated process. The fibers of a thread take turns: one runs until it switches
// to another one. It hides how stacks are switched, and what exceptions and sanitizers have to know of that.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <span>

namespace lacuna::nic::model {

class Fiber {
 public:
  /// The stack on which the calling thread is.
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Gives it a stack of its own, on which `body` will run. `body` ends by leave(), and throws nothing. False: the
  /// system has no memory for the stack.
  [[nodiscard]] bool make(std::function<void()> body);
  /// This one runs; from now on `to` does, until somebody switches back.
  void switch_to(Fiber& to) { change(to, false); }
  /// The same, for ever.
  void leave(Fiber& to) { change(to, true); }

 private:
  static void enter(unsigned int high, unsigned int low);
  void change(Fiber& to, bool for_ever);
  void arrived();

  // As the C++ ABI has it of each thread (__cxa_eh_globals): the exceptions that are being handled.
  struct Exceptions {
    void* caught;
    unsigned int uncaught;
  };

  ucontext_t context_{};
  std::span<std::byte> stack_;  // behind its guard page; empty: the thread's own
  std::function<void()> body_;
  Exceptions exceptions_{};
  Fiber* from_ = nullptr;  // that switched to this one last
  // For sanitizers: where the stack is, and what stands for it.
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;
  [[maybe_unused]] void* shadow_ = nullptr;
};

}  // namespace lacuna::nic::model
