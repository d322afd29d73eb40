#include "lacuna/mpi/datatypes.hpp"

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
#if defined(LACUNA_MPI_ABI_OPENMPI)
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
                           "packed"}) {
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
