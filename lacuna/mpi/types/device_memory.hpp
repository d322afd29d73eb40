// Memory of GPUs. The CPU cannot touch it, so the host moves what lies there, if it can. The driver of the GPU says
// which memory that is, once the program has loaded one.
#pragma once

#include "lacuna/mpi/types/types.hpp"

namespace lacuna::mpi {

/// Whether the program has loaded a driver that can be asked: CUDA's or HIP's. It takes some 10 ns.
[[nodiscard]] bool has_devices();
/// Whether an address is memory of a GPU, or memory that a driver moves between GPU and host ("managed").
[[nodiscard]] bool on_device(const void* at);
/// The same of elements of a type. Of absolute addresses, the first and the last.
[[nodiscard]] bool on_device(const Type& type, const void* base, Count count);

}  // namespace lacuna::mpi
