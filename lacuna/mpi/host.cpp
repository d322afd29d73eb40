#include "lacuna/mpi/host.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>

namespace lacuna::mpi {
namespace {

// A library that is loaded already and has the symbol, wherever the program keeps it.
void* library_with(const char* symbol) {
  struct Search {
    const char* symbol;
    void* found;
  } search{symbol, nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& search = *static_cast<Search*>(data);
        if (info->dlpi_name == nullptr || *info->dlpi_name == '\0') return 0;
        void* library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) return 0;
        if (dlsym(library, search.symbol) != nullptr) {
          search.found = library;
          return 1;
        }
        dlclose(library);
        return 0;
      },
      &search);
  return search.found;
}

[[noreturn]] void give_up(const char* missing) {
  std::fprintf(stderr,
               "lacuna: %s is not in the MPI of this program; liblacuna_mpi_%s.so was loaded before one of another ABI, or before none. "
               "`lacuna mpi preload` names the right library\n",
               missing, kAbi);
  std::abort();
}

#if defined(LACUNA_MPI_ABI_OPENMPI)
void* objects_in = nullptr;

// The program's own copy, if it has one (a copy relocation): that is what it passes.
void* find_object(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  return found != nullptr ? found : dlsym(objects_in, name);
}
#endif

Host load() {
  Host made;
  void* library = dlsym(RTLD_NEXT, "PMPI_Init") != nullptr ? RTLD_NEXT : library_with("PMPI_Init");
  if (library == nullptr) give_up("PMPI_Init");
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are lists of types
#define X(name, arguments)                                                       \
  made.name = reinterpret_cast<int(*) arguments>(dlsym(library, "PMPI_" #name)); \
  if (made.name == nullptr) give_up("PMPI_" #name);
  LACUNA_MPI_HOST_CALLS(X)
#undef X
#define X(name, arguments) made.name = reinterpret_cast<int(*) arguments>(dlsym(library, "PMPI_" #name));
  LACUNA_MPI_HOST_CALLS_MAYBE(X)
#undef X
  // NOLINTEND(bugprone-macro-parentheses)
  made.large = made.Send_c != nullptr && made.Recv_c != nullptr && made.Mrecv_c != nullptr;
  fill_missing(made);
#if defined(LACUNA_MPI_ABI_OPENMPI)
  objects_in = library;
  made.find = &find_object;
  const auto object = [](const char* name) {
    void* found = find_object(name);
    if (found == nullptr) give_up(name);
    return found;
  };
  made.world = static_cast<Comm>(object("ompi_mpi_comm_world"));
  made.self = static_cast<Comm>(object("ompi_mpi_comm_self"));
  made.no_comm = static_cast<Comm>(object("ompi_mpi_comm_null"));
  made.byte = static_cast<Datatype>(object("ompi_mpi_byte"));
  made.no_type = static_cast<Datatype>(object("ompi_mpi_datatype_null"));
  made.no_request = static_cast<Request>(object("ompi_request_null"));
  made.no_message = static_cast<Message>(object("ompi_message_null"));
  made.message_of_none = static_cast<Message>(object("ompi_message_no_proc"));
#else
  if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != nullptr) give_up("a handle that is an int");
  made.world = kCommWorld;
  made.self = kCommSelf;
  made.no_comm = kCommNull;
  made.byte = kByte;
  made.no_type = kDatatypeNull;
  made.no_request = kRequestNull;
  made.no_message = kMessageNull;
  made.message_of_none = kMessageNoProc;
#endif
  return made;
}

}  // namespace

const Host& host() {
  static const Host loaded = load();
  return loaded;
}

}  // namespace lacuna::mpi
