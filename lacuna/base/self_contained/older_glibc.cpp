// Lets self-contained libraries and programs run with an older glibc than that of the machine that built them. The
// archive of GCC 12's libstdc++ asks glibc for arc4random (std::random_device), which glibc has since 2.36; each
// library and program has its own, hidden.
#include <sys/random.h>

#include <cstdint>

extern "C" [[gnu::visibility("hidden")]] std::uint32_t arc4random() noexcept {
  std::uint32_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != sizeof bits) {  // it gives so few at once, unless it is interrupted
  }
  return bits;
}
