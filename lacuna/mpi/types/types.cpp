#include "lacuna/mpi/types/types.hpp"

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

bool Type::takes_part_of_element(Datatype handle) const {
  constexpr std::int64_t room = 16;
  if (takes_part_.load(std::memory_order_relaxed) == 0)
    takes_part_.store(largest_element_of(handle) <= room ? 1 : -1, std::memory_order_relaxed);
  return is_known_to_take_part();
}

Types::Types() {
  spare_.reserve(64);
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
      if (host().Type_size(type, &size) == kSuccess && size > 0) whole_[slot_of(type)] = {type, size};
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
    if (type != nullptr && host().Type_size(type, &size) == kSuccess) whole_[slot_of(type)] = {type, size};
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
  self.forget(type);
  return kSuccess;
}

// Readers have no lock, so none that another thread may free.
void Types::add_whole(Datatype type, const Type& decoded) {
  Whole& slot = whole_[slot_of(type)];
  if (slot.size == 0 && decoded.whole() && !Mutex::multiple()) slot = {.type = type, .size = decoded.size()};
}

// Under the lock.
void Types::forget(Datatype type) {
  if (Whole& whole = whole_[slot_of(type)]; whole.type == type) whole = {};
  if (Recent& recent = this->recent(type); recent.type == type) recent = {};
  auto gone = known_.extract(type);
  if (gone.empty() || spare_.size() == spare_.capacity()) return;
  gone.mapped() = {};
  spare_.push_back(std::move(gone));
}

// Under the lock. Null: it is not known.
Types::Known* Types::known(Datatype type) {
  Recent& recent = this->recent(type);
  if (recent.type == type && recent.known != nullptr) return recent.known;
  const auto found = known_.find(type);
  if (found == known_.end()) return nullptr;
  recent = {.type = type, .known = &found->second};
  return recent.known;
}

void Types::committed(Datatype type) {
  const std::scoped_lock lock(mutex_);
  if (spare_.empty()) {
    known_.try_emplace(type);
    return;
  }
  auto spare = std::move(spare_.back());
  spare_.pop_back();
  spare.key() = type;
  const auto added = known_.insert(std::move(spare));
  recent(type) = {.type = type, .known = &added.position->second};
}

bool Types::puts_off_free(Datatype type) {
  const std::scoped_lock lock(mutex_);
  Known* const known = this->known(type);
  if (known == nullptr) return false;
  if (known->loans > 0) return known->freed = true;
  forget(type);
  return false;
}

Loan::Loan(Types& types, Datatype type) : types_(&types), type_(type) {
  const std::scoped_lock lock(types.mutex_);
  ++types.known_[type].loans;
}

Loan::~Loan() {
  if (types_ != nullptr) types_->give_back(type_);
}

void Types::give_back(Datatype type) {
  {
    const std::scoped_lock lock(mutex_);
    const auto known = known_.find(type);
    if (known == known_.end() || --known->second.loans > 0 || !known->second.freed) return;
    forget(type);
  }
  host().Type_free(&type);
}

Use Types::find(Datatype type, Count count, bool& early) {
  early = false;
  bool is_committed = false;
  {
    std::unique_lock lock(mutex_);
    if (Known* const known = this->known(type); known != nullptr) {
      if (known->of != nullptr) return Use(known->of);
      is_committed = true;
      early = count != kDecode && is_early(*known, type, count, lock);
      if (early) return nullptr;
    }
  }
  return is_committed || is_predefined(type) ? decoded(type) : nullptr;
}

// Of one that is committed.
bool Types::is_early(Known& of, Datatype type, Count count, std::unique_lock<Mutex>& lock) {
  // To decode takes 10 to 50 ns for each entry, and a microsecond or two. Hosts take half a microsecond for a message,
  // and 0.1 to 0.5 ns for each byte with gaps.
  constexpr std::int64_t decode_ns = 2000, entry_ns = 40, call_ns = 500, bytes_per_ns = 3, times = 10;
  if (++of.uses < decode_at_) return true;
  if (decode_at_ != 0) return false;
  if (of.size < 0) of.size = size_of(type);
  std::int64_t bytes = 0;
  if (of.size < 0 || !base::mul(of.size, count, bytes)) return false;
  of.host_ns += call_ns + bytes / bytes_per_ns;
  const std::int64_t most = (of.host_ns / times - decode_ns) / entry_ns;
  if (most <= of.entries) return true;
  lock.unlock();  // the host may call back
  const std::int64_t entries = entries_of(type, most);
  lock.lock();
  if (const auto still = known_.find(type); still != known_.end()) still->second.entries = entries;
  return entries > most;
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

void Types::forget_ways() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [type, known] : known_) {
    if (known.of != nullptr) known.of->forget_ways();
  }
}

void Types::end() {
  std::unordered_map<std::int64_t, Datatype> made;
  {
    const std::scoped_lock lock(mutex_);
    made.swap(without_gaps_);
  }
  for (auto& [size, type] : made) host().Type_free(&type);
}

Use Types::of_message(Datatype type, Count count, Comm comm, bool& early, int& wrong) {
  Use found = find(type, count, early);
  if (found != nullptr || early) return found;
  const char nothing = 0;  // is read of one element that goes nowhere
  wrong = host().Send(&nothing, 1, type, kProcNull, 0, comm);
  return wrong == kSuccess ? decoded(type) : nullptr;
}

Use Types::decoded(Datatype type) {
  base::Result<Layout> layout = decode(type);
  if (!layout) return nullptr;
  auto made = std::make_shared<const Type>(std::move(*layout));
  Use use(made);
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto [known, added] = known_.try_emplace(type);
    // By another thread: to set the attribute again is to delete it
    if (known->second.of != nullptr || known->second.in_making) {
      use.keep();
      return use;
    }
    known->second.in_making = true;
    first = added;
  }
  const bool set = host().Type_set_attr(type, keyval_, nullptr) == kSuccess;
  const std::scoped_lock lock(mutex_);
  Known& known = known_[type];
  known.in_making = false;
  if (set) {
    add_whole(type, *made);
    known.of = std::move(made);
  } else {
    use.keep();  // for this once
    if (first && known.loans == 0) forget(type);
  }
  return use;
}

std::int64_t size_of(Datatype type) {
  Count size = -1;
  int small = -1;
  if (host().Type_size_x != nullptr) {
    if (host().Type_size_x(type, &size) == kSuccess) return size;
  } else if (host().Type_size(type, &small) == kSuccess) {
    size = small;
  }
  return size;
}

}  // namespace lacuna::mpi
