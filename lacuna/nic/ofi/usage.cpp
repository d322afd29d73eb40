#include "lacuna/nic/ofi/usage.hpp"

#include <cstring>

#include "lacuna/nic/ofi/context.hpp"

namespace lacuna::nic::ofi {

Result<Usage> Usage::create(Context& context) {
  Usage usage;
  usage.word_ = LACUNA_TRY(RegisteredBuffer::create(context, sizeof(std::uint64_t), {.remote_read = false}));
  usage.values_ = LACUNA_TRY(RegisteredBuffer::create(context, 2 * sizeof(std::uint64_t), {.remote_write = false, .remote_read = false}));
  const std::uint64_t one = 1;
  std::memcpy(usage.values_.buffer.data() + sizeof one, &one, sizeof one);
  return usage;
}

bool Usage::set() const { return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(word_.buffer.data()), __ATOMIC_ACQUIRE) != 0; }

}  // namespace lacuna::nic::ofi
