// Functions that a program looks up by a handle of its MPI's library, as bindings for other languages do:
// dlsym(dlopen("libmpi.so"), "MPI_Recv"). The loader looks into that library alone and does not find what was
// preloaded: the program would receive by the host's function what Lacuna sends. So this library has a dlsym, which
// gives Lacuna's function in the host's place, and is the C library's in every other case.
#pragma once

namespace lacuna::mpi {

using Lookup = void* (*)(void* handle, const char* name);

/// The C library's dlsym, or that of a library that was preloaded behind this one.
Lookup next_dlsym();
/// What a lookup by a handle finds: this library's function of that name if `found` is the host's, else `found`.
void* seen(void* found, const char* name);

/// Where the library, or program, is loaded that has the address. Null: none has it.
void* object_of(const void* address);
void* own_object();
/// In host.cpp: the library of the host that is loaded by now, if it is of this library's ABI. Nothing is said if there
/// is none.
void* object_of_host();

}  // namespace lacuna::mpi
