#include "lacuna/mpi/host/host.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/mpi/host/lookup.hpp"

namespace lacuna::mpi {
namespace {

void* find(void* library, const char* symbol) { return next_dlsym()(library, symbol); }

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0')
          static_cast<std::vector<std::string>*>(data)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

// The next library that has the symbol, or one that is loaded already, wherever the program keeps it; never this one.
void* library_with(const char* symbol) {
  if (find(RTLD_NEXT, symbol) != nullptr) return RTLD_NEXT;
  for (const std::string& name : loaded_libraries()) {
    void* library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const found = find(library, symbol);
    if (found != nullptr && object_of(found) != own_object()) return library;
    dlclose(library);
  }
  return nullptr;
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

// Whether a function that was looked up in a library is of the ABI that this one is for.
bool is_of_this_abi([[maybe_unused]] void* library, [[maybe_unused]] const void* function) {
#if defined(LACUNA_MPI_ABI_OPENMPI)
  return find(library, "ompi_mpi_comm_world") != nullptr;
#elif defined(LACUNA_MPI_ABI_STANDARD)
  return is_standard(function);
#else
  return find(library, "ompi_mpi_comm_world") == nullptr && !is_standard(function);
#endif
}

#if defined(LACUNA_MPI_ABI_OPENMPI)
void* objects_in = nullptr;

// The program's own copy, if it has one (a copy relocation): that is what it passes.
void* find_object(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  return found != nullptr ? found : find(objects_in, name);
}
#endif

// NOLINTBEGIN(bugprone-macro-parentheses): a name
#define LACUNA_MPI_FIND(name) made.name = reinterpret_cast<decltype(made.name)>(find(library, "PMPI_" #name));
// NOLINTEND(bugprone-macro-parentheses)

void find_functions(Host& made, void* library) {
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are lists of types
#define X(name, arguments)                                                      \
  made.name = reinterpret_cast<int(*) arguments>(find(library, "PMPI_" #name)); \
  if (made.name == nullptr) give_up("PMPI_" #name);
  LACUNA_MPI_HOST_CALLS(X)
#undef X
#define X(name, arguments) made.name = reinterpret_cast<int(*) arguments>(find(library, "PMPI_" #name));
  LACUNA_MPI_HOST_CALLS_MAYBE(X)
#undef X
#define X(name, arguments) made.name = reinterpret_cast<int(*) arguments>(find(library, "PMPIX_" #name));
  LACUNA_MPI_HOST_EXTENSIONS(X)
#undef X
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
}

void find_handles(Host& made, [[maybe_unused]] void* library) {
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
  made.band = static_cast<Op>(object("ompi_mpi_op_band"));
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
  made.band = reinterpret_cast<Op>(kBand);
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
  made.band = kBand;
  made.no_request = kRequestNull;
  made.no_message = kMessageNull;
  made.message_of_none = kMessageNoProc;
#endif
}
#undef LACUNA_MPI_FIND

Host load() {
  Host made;
  void* library = library_with("PMPI_Init");
  if (library == nullptr) give_up("PMPI_Init");
  find_functions(made, library);
  fill_missing(made);
  find_handles(made, library);
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

void* object_of_host() {
  void* const library = library_with("PMPI_Init");
  void* const init = library == nullptr ? nullptr : find(library, "PMPI_Init");
  void* const object = init != nullptr && is_of_this_abi(library, init) ? object_of(init) : nullptr;
  if (library != nullptr && library != RTLD_NEXT) dlclose(library);
  return object;
}

// For what measures a preloaded program beside a plain one, in one job: the function that the plain one calls. What is
// looked up behind "the next library" depends on the caller, so this must not be the last call of the function.
extern "C" __attribute__((visibility("default"))) void* lacuna_mpi_host_function(const char* name) {
  void* const library = library_with("PMPI_Init");
  void* const found = library == nullptr ? nullptr : find(library, name);
  return found != nullptr && object_of(found) != own_object() ? found : nullptr;
}

std::string tool_behind(std::span<const char* const> functions) {
  const void* const host = object_of_host();
  for (const char* function : functions) {
    Dl_info info{};
    const void* const next = find(RTLD_NEXT, function);
    if (next != nullptr && host != nullptr && dladdr(next, &info) != 0 && info.dli_fbase != host) return info.dli_fname;
  }
  return {};
}

const Host& find_host() {
  static const Host loaded = load();
  return loaded;
}

}  // namespace lacuna::mpi
