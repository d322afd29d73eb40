// memory: the memory of the emulated device, as its kernels see it. Addresses of such memory cannot be read or written
// by anybody else: a kernel reaches the bytes by another mapping. It hides that mapping.
#pragma once

#include <cstddef>

namespace lacuna::device::emulated {

/// Where `bytes` at an address that a kernel was given really are. Ends the program, with a message, if they are not
/// within one allocation of the device's memory or of pinned memory, or are not aligned: what a GPU would answer with a
/// fault.
void* alias(unsigned long long address, std::size_t bytes, std::size_t alignment);

}  // namespace lacuna::device::emulated
