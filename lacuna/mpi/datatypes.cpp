#include "lacuna/mpi/datatypes.hpp"

#include <climits>

namespace lacuna::mpi {

std::int64_t Type::bytes(Count count) const {
  std::int64_t product = 0;
  return base::mul(size_, count, product) && product <= layout::kMaxBytes ? product : -1;
}

base::Result<Elements> Type::of(Count count) const {
  if (count == 1) return Elements(layout_);
  const std::scoped_lock lock(mutex_);
  for (const auto& [kept, layout] : several_) {
    if (kept == count) return Elements(Layout(layout));
  }
  Layout made = LACUNA_TRY(Layout::contiguous(count, layout_));
  if (several_.size() < kKept) {
    several_.emplace_back(count, made);
  } else {
    several_[std::exchange(next_, (next_ + 1) % kKept)] = {count, made};
  }
  return Elements(std::move(made));
}

Types::Types() {
  host().Type_create_keyval(&copied, &deleted, &keyval_, this);
#if defined(LACUNA_MPI_ABI_STANDARD)
  // Those without gaps whose handles MPI-5.0 writes down. Where there is no Fortran its types have no size.
  constexpr std::pair<std::uintptr_t, std::uintptr_t> kRanges[] = {
      {0x201, 0x203}, {0x207, 0x210}, {0x212, 0x214}, {0x216, 0x21e}, {0x220, 0x220}, {0x224, 0x225}, {0x238, 0x239},
      {0x23c, 0x23c}, {0x240, 0x241}, {0x243, 0x245}, {0x247, 0x249}, {0x250, 0x251}, {0x258, 0x259}};
  for (const auto& [first, last] : kRanges) {
    for (std::uintptr_t number = first; number <= last; ++number) {
      const auto type = reinterpret_cast<Datatype>(number);
      int size = 0;
      if (host().Type_size(type, &size) == kSuccess && size > 0) predefined_[slot_of(type)] = {type, size};
    }
  }
#elif defined(LACUNA_MPI_ABI_OPENMPI)
  for (const char* name : {"byte",
                           "char",
                           "signed_char",
                           "unsigned_char",
                           "wchar",
                           "short",
                           "unsigned_short",
                           "int",
                           "unsigned",
                           "long",
                           "unsigned_long",
                           "long_long_int",
                           "unsigned_long_long",
                           "float",
                           "double",
                           "long_double",
                           "int8_t",
                           "uint8_t",
                           "int16_t",
                           "uint16_t",
                           "int32_t",
                           "uint32_t",
                           "int64_t",
                           "uint64_t",
                           "aint",
                           "offset",
                           "count",
                           "c_bool",
                           "c_float_complex",
                           "c_double_complex",
                           "packed",
                           "integer",
                           "real",
                           "dblprec",
                           "cplex",
                           "dblcplex",
                           "logical",
                           "character"}) {
    const auto type = static_cast<Datatype>(host().find((std::string("ompi_mpi_") + name).c_str()));
    int size = 0;
    if (type != nullptr && host().Type_size(type, &size) == kSuccess) predefined_[slot_of(type)] = {type, size};
  }
#endif
}

int Types::copied(Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return kSuccess;
}

int Types::deleted(Datatype type, int, void*, void* types) {
  auto& self = *static_cast<Types*>(types);
  const std::scoped_lock lock(self.mutex_);
  self.known_.erase(type);
  if (Recent& recent = self.recent(type); recent.type == type) recent.of = nullptr;
  return kSuccess;
}

void Types::committed(Datatype type) {
  if (host().Type_set_attr(type, keyval_, nullptr) != kSuccess) return;
  const std::scoped_lock lock(mutex_);
  known_.try_emplace(type, nullptr);
}

Use Types::find(Datatype type) {
  bool is_committed = false;
  {
    const std::scoped_lock lock(mutex_);
    Recent& last = recent(type);
    if (last.type == type && last.of != nullptr) return Use(last.of);
    if (const auto known = known_.find(type); known != known_.end()) {
      if (known->second != nullptr) {
        last = {.type = type, .of = known->second};
        return Use(last.of);
      }
      is_committed = true;
    }
  }
  return is_committed || is_predefined(type) ? decoded(type) : nullptr;
}

Datatype Types::without_gaps(std::int64_t size) {
  if (size <= 0 || size > INT_MAX) return host().no_type;
  if (size == 1) return host().byte;
  const std::scoped_lock lock(mutex_);
  if (const auto known = without_gaps_.find(size); known != without_gaps_.end()) return known->second;
  Datatype made{};
  if (without_gaps_.size() >= kSizes || host().Type_contiguous(static_cast<int>(size), host().byte, &made) != kSuccess)
    return host().no_type;
  host().Type_commit(&made);
  without_gaps_[size] = made;
  return made;
}

Use Types::of_message(Datatype type, Comm comm, int& wrong) {
  Use found = find(type);
  if (found != nullptr) return found;
  const char nothing = 0;  // is read of one element that goes nowhere
  wrong = host().Send(&nothing, 1, type, kProcNull, 0, comm);
  return wrong == kSuccess ? decoded(type) : nullptr;
}

Use Types::decoded(Datatype type) {
  base::Result<Layout> layout = decode(type);
  if (!layout) return nullptr;
  auto made = std::make_shared<const Type>(std::move(*layout));
  Use use(made);
  if (host().Type_set_attr(type, keyval_, nullptr) != kSuccess) {
    use.keep();  // for this once
    return use;
  }
  const std::scoped_lock lock(mutex_);
  known_[type] = std::move(made);
  return use;
}

}  // namespace lacuna::mpi
