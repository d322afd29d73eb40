#include "lacuna/mpi/host.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace lacuna::mpi {
namespace {

// A library other than this one that is loaded already and has the symbol, wherever the program keeps it.
void* library_with(const char* symbol) {
  struct Search {
    const char* symbol;
    void* found;
    Dl_info own;
  } search{symbol, nullptr, {}};
  dladdr(reinterpret_cast<void*>(&library_with), &search.own);
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& search = *static_cast<Search*>(data);
        if (info->dlpi_name == nullptr || *info->dlpi_name == '\0' || info->dlpi_addr == reinterpret_cast<ElfW(Addr)>(search.own.dli_fbase))
          return 0;
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

#if !defined(LACUNA_MPI_ABI_OPENMPI)
// MPICH's library for the standard's ABI has the names of the other one; its own name is written down in MPI-5.0.
bool is_standard(const void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 && std::string_view(info.dli_fname).contains("libmpi_abi.");
}
#endif

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
#define X(name, arguments) made.name = reinterpret_cast<int(*) arguments>(dlsym(library, "PMPIX_" #name));
  LACUNA_MPI_HOST_EXTENSIONS(X)
#undef X
#define LACUNA_MPI_FIND(name) made.name = reinterpret_cast<decltype(made.name)>(dlsym(library, "PMPI_" #name));
#define X(name, later, arguments) \
  LACUNA_MPI_FIND(name)           \
  LACUNA_MPI_FIND(later)          \
  LACUNA_MPI_FIND(name##_init)    \
  LACUNA_MPI_FIND(name##_c)       \
  LACUNA_MPI_FIND(later##_c)      \
  LACUNA_MPI_FIND(name##_init_c)
  LACUNA_MPI_COLLECTIVES(X)
#undef X
  // NOLINTEND(bugprone-macro-parentheses)
  // Both have been in MPI, and each is in some library alone.
  if (made.Type_size_x == nullptr) made.Type_size_x = made.Type_size_c;
  if (made.Get_elements_x == nullptr) made.Get_elements_x = made.Get_elements_c;
  if (made.Status_set_elements_x == nullptr) made.Status_set_elements_x = made.Status_set_elements_c;
  if (made.Status_set_elements_x == nullptr) give_up("PMPI_Status_set_elements_x");
  made.large = made.Send_c != nullptr && made.Recv_c != nullptr && made.Mrecv_c != nullptr;
  fill_missing(made);
#if defined(LACUNA_MPI_ABI_OPENMPI)
  LACUNA_MPI_FIND(Message_c2f)
  LACUNA_MPI_FIND(Message_f2c)
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
#elif defined(LACUNA_MPI_ABI_STANDARD)
  if (!is_standard(reinterpret_cast<void*>(made.Init))) give_up("the ABI of MPI-5.0");
  LACUNA_MPI_FIND(Message_toint)
  LACUNA_MPI_FIND(Message_fromint)
  made.world = reinterpret_cast<Comm>(kCommWorld);
  made.self = reinterpret_cast<Comm>(kCommSelf);
  made.no_comm = reinterpret_cast<Comm>(kCommNull);
  made.byte = reinterpret_cast<Datatype>(kByte);
  made.no_type = reinterpret_cast<Datatype>(kDatatypeNull);
  made.no_request = reinterpret_cast<Request>(kRequestNull);
  made.no_message = reinterpret_cast<Message>(kMessageNull);
  made.message_of_none = reinterpret_cast<Message>(kMessageNoProc);
#else
  if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != nullptr || is_standard(reinterpret_cast<void*>(made.Init)))
    give_up("a handle that is an int");
  made.world = kCommWorld;
  made.self = kCommSelf;
  made.no_comm = kCommNull;
  made.byte = kByte;
  made.no_type = kDatatypeNull;
  made.no_request = kRequestNull;
  made.no_message = kMessageNull;
  made.message_of_none = kMessageNoProc;
#endif
#undef LACUNA_MPI_FIND
  return made;
}

}  // namespace

#if defined(LACUNA_MPI_ABI_STANDARD)
std::int64_t bytes_of(const Status& status) {
  Count bytes = 0;
  host().Get_elements_x(&status, host().byte, &bytes);
  return bytes;
}
#endif

const Host& host() {
  static const Host loaded = load();
  return loaded;
}

}  // namespace lacuna::mpi
