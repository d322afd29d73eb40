// The fake's datatypes: type maps, as MPI defines them, and what made them.
#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <utility>

#include "tests/interposer/world.hpp"

namespace lacuna::test::fake {
namespace {

using mpi::Combiner;
using mpi::kErrType;
using mpi::kSuccess;

constexpr std::uintptr_t kInt = 0x209, kDouble = 0x214, kDoubleInt = 0x22a;

// Held for moments, and never while a callback runs.
std::mutex types_mutex;
std::map<Datatype, std::unique_ptr<TypeObject>>& types() {
  static std::map<Datatype, std::unique_ptr<TypeObject>> all;
  return all;
}

void add_predefined(std::uintptr_t number, Map map) {
  auto made = std::make_unique<TypeObject>();
  made->map = std::make_shared<const Map>(std::move(map));
  made->committed = true;
  types()[reinterpret_cast<Datatype>(number)] = std::move(made);
}

// Under the types' lock. Null: it is none.
TypeObject* object_of(Datatype type) {
  if (types().empty()) {
    for (const auto& [number, size] : {std::pair<std::uintptr_t, std::int64_t>{mpi::kByte, 1}, {kInt, 4}, {kDouble, 8}})
      add_predefined(number, {.blocks = {{0, size}}, .size = size, .extent = size});
    add_predefined(kDoubleInt, {.blocks = {{0, 12}}, .size = 12, .extent = 16});
  }
  const auto found = types().find(type);
  return found == types().end() ? nullptr : found->second.get();
}

void place(Map& map, std::int64_t at, std::int64_t bytes) {
  if (!map.blocks.empty() && map.blocks.back().at + map.blocks.back().bytes == at) {
    map.blocks.back().bytes += bytes;
  } else {
    map.blocks.push_back({at, bytes});
  }
  map.size += bytes;
}

// A map that grows by copies of others; its bounds are those of what is in it.
class Growing {
 public:
  void add(const Map& old, std::int64_t at, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t here = at + i * old.extent;
      for (const Map::Block& block : old.blocks) place(map_, here + block.at, block.bytes);
      low_ = any_ ? std::min(low_, here + old.low) : here + old.low;
      high_ = any_ ? std::max(high_, here + old.low + old.extent) : here + old.low + old.extent;
      any_ = true;
    }
  }
  Map take() {
    map_.low = low_;
    map_.extent = high_ - low_;
    return std::move(map_);
  }

 private:
  Map map_;
  std::int64_t low_ = 0, high_ = 0;
  bool any_ = false;
};

// The arguments of a constructor, in their order: numbers of the standard's that are ints in both forms, counts, and
// addresses.
class Making {
 public:
  Making(Combiner combiner, bool large) {
    made_->combiner = combiner;
    made_->large = large;
  }
  Making& number(int value) {
    made_->integers.push_back(value);
    return *this;
  }
  Making& count(Count value) {
    if (made_->large) {
      made_->counts.push_back(value);
    } else {
      made_->integers.push_back(static_cast<int>(value));
    }
    return *this;
  }
  Making& counts(std::span<const Count> values) {
    for (const Count value : values) count(value);
    return *this;
  }
  Making& address(Count value) {
    if (made_->large) {
      made_->counts.push_back(value);
    } else {
      made_->addresses.push_back(value);
    }
    return *this;
  }
  Making& addresses(std::span<const Count> values) {
    for (const Count value : values) address(value);
    return *this;
  }
  Datatype of(std::span<const Datatype> members, Map map) {
    const std::scoped_lock lock(types_mutex);
    for (const Datatype member : members) ++object_of(member)->uses;
    made_->members.assign(members.begin(), members.end());
    made_->map = std::make_shared<const Map>(std::move(map));
    const auto handle = reinterpret_cast<Datatype>(made_.get());
    types()[handle] = std::move(made_);
    return handle;
  }
  Datatype of(Datatype member, Map map) { return of(std::span(&member, 1), std::move(map)); }

 private:
  std::unique_ptr<TypeObject> made_ = std::make_unique<TypeObject>();
};

Map repeated(std::span<const Count> lengths, std::span<const Count> places, std::int64_t unit, const Map& old) {
  Growing map;
  for (std::size_t i = 0; i < places.size(); ++i) map.add(old, places[i] * unit, lengths[i]);
  return map.take();
}

Datatype at_strides(Combiner combiner, Count count, Count length, Count stride, bool in_bytes, Datatype old, bool large) {
  const auto of = map_of(old);
  Growing map;
  for (Count i = 0; i < count; ++i) map.add(*of, i * stride * (in_bytes ? 1 : of->extent), length);
  Making making(combiner, large);
  making.count(count).count(length);
  return (in_bytes ? making.address(stride) : making.count(stride)).of(old, map.take());
}

struct Keyval {
  int (*deleted)(Datatype, int, void*, void*);
  void* extra;
};
std::map<int, Keyval>& keyvals() {
  static std::map<int, Keyval> all;
  return all;
}

// Drops one use; what has no more leaves the table, and its callbacks are called.
void drop(Datatype type) {
  std::unique_ptr<TypeObject> gone;
  {
    const std::scoped_lock lock(types_mutex);
    TypeObject* object = object_of(type);
    if (reinterpret_cast<std::uintptr_t>(type) < mpi::kFirstOwnHandle || --object->uses > 0) return;
    gone = std::move(types().find(type)->second);
    types().erase(type);
  }
  for (const auto& [key, value] : gone->attributes) {
    Keyval keyval{};
    {
      const std::scoped_lock lock(types_mutex);
      keyval = keyvals().at(key);
    }
    keyval.deleted(type, key, value, keyval.extra);
  }
  for (const Datatype member : gone->members) drop(member);
}

}  // namespace

std::shared_ptr<const Map> map_of(Datatype type) {
  const std::scoped_lock lock(types_mutex);
  const TypeObject* object = object_of(type);
  return object == nullptr ? nullptr : object->map;
}

bool is_committed(Datatype type) {
  const std::scoped_lock lock(types_mutex);
  const TypeObject* object = object_of(type);
  return object != nullptr && object->committed;
}

std::size_t types_made() {
  const std::scoped_lock lock(types_mutex);
  return static_cast<std::size_t>(
      std::ranges::count_if(types(), [](const auto& one) { return reinterpret_cast<std::uintptr_t>(one.first) >= mpi::kFirstOwnHandle; }));
}

Datatype byte_type() { return reinterpret_cast<Datatype>(mpi::kByte); }
Datatype int_type() { return reinterpret_cast<Datatype>(kInt); }
Datatype double_type() { return reinterpret_cast<Datatype>(kDouble); }
Datatype double_int_type() { return reinterpret_cast<Datatype>(kDoubleInt); }

// --- constructors ----------------------------------------------------------------------------------------------------

Datatype contiguous(Count count, Datatype old, bool large) {
  Growing map;
  map.add(*map_of(old), 0, count);
  return Making(Combiner::contiguous, large).count(count).of(old, map.take());
}
Datatype vector(Count count, Count length, Count stride, Datatype old, bool large) {
  return at_strides(Combiner::vector, count, length, stride, false, old, large);
}
Datatype hvector(Count count, Count length, Aint stride, Datatype old, bool large) {
  return at_strides(Combiner::hvector, count, length, stride, true, old, large);
}
Datatype indexed(std::span<const Count> lengths, std::span<const Count> places, Datatype old, bool large) {
  const auto of = map_of(old);
  return Making(Combiner::indexed, large)
      .count(static_cast<Count>(lengths.size()))
      .counts(lengths)
      .counts(places)
      .of(old, repeated(lengths, places, of->extent, *of));
}
Datatype hindexed(std::span<const Count> lengths, std::span<const Count> places, Datatype old, bool large) {
  return Making(Combiner::hindexed, large)
      .count(static_cast<Count>(lengths.size()))
      .counts(lengths)
      .addresses(places)
      .of(old, repeated(lengths, places, 1, *map_of(old)));
}
Datatype indexed_block(Count length, std::span<const Count> places, Datatype old, bool large) {
  const auto of = map_of(old);
  const std::vector<Count> lengths(places.size(), length);
  return Making(Combiner::indexed_block, large)
      .count(static_cast<Count>(places.size()))
      .count(length)
      .counts(places)
      .of(old, repeated(lengths, places, of->extent, *of));
}
Datatype structure(std::span<const Count> lengths, std::span<const Count> places, std::span<const Datatype> olds, bool large) {
  Growing map;
  for (std::size_t i = 0; i < olds.size(); ++i) map.add(*map_of(olds[i]), places[i], lengths[i]);
  return Making(Combiner::structure, large)
      .count(static_cast<Count>(lengths.size()))
      .counts(lengths)
      .addresses(places)
      .of(olds, map.take());
}
Datatype subarray(std::span<const Count> sizes, std::span<const Count> subsizes, std::span<const Count> starts, Datatype old, bool large) {
  const auto of = map_of(old);
  Map map;
  std::int64_t whole = 1;
  for (const Count size : sizes) whole *= size;
  const auto visit = [&](const auto& self, std::size_t dim, std::int64_t at) -> void {
    if (dim == sizes.size()) {
      for (const Map::Block& block : of->blocks) place(map, at * of->extent + block.at, block.bytes);
      return;
    }
    for (Count i = 0; i < subsizes[dim]; ++i) self(self, dim + 1, at * sizes[dim] + starts[dim] + i);
  };
  visit(visit, 0, 0);
  map.extent = whole * of->extent;
  return Making(Combiner::subarray, large)
      .number(static_cast<int>(sizes.size()))
      .counts(sizes)
      .counts(subsizes)
      .counts(starts)
      .number(mpi::kOrderC)
      .of(old, std::move(map));
}
Datatype resized(Datatype old, Aint low, Aint extent, bool large) {
  Map map = *map_of(old);
  map.low = low;
  map.extent = extent;
  return Making(Combiner::resized, large).address(low).address(extent).of(old, std::move(map));
}
Datatype value_index(Datatype old) {
  Growing map;
  map.add(*map_of(old), 0, 1);
  map.add(*map_of(int_type()), map_of(old)->extent, 1);
  return Making(Combiner::value_index, false).of(std::array{old, int_type()}, map.take());
}

// --- the host's functions --------------------------------------------------------------------------------------------

namespace calls {

int Type_size(Datatype type, int* size) {
  const auto map = map_of(type);
  if (map == nullptr) return kErrType;
  *size = static_cast<int>(map->size);
  return kSuccess;
}

int Type_get_extent(Datatype type, Aint* low, Aint* extent) {
  const auto map = map_of(type);
  if (map == nullptr) return kErrType;
  *low = map->low;
  *extent = map->extent;
  return kSuccess;
}

// As MPICH does: it ends the program where a large constructor is asked for in this way (MPI-4.1, 5.1.13: an error).
int Type_get_envelope(Datatype type, int* integers, int* addresses, int* members, int* combiner) {
  const std::scoped_lock lock(types_mutex);
  const TypeObject* object = object_of(type);
  if (object == nullptr) return kErrType;
  if (object->large) {
    const Lock world = enter();
    complain("MPI_Type_get_envelope of a type with large counts");
    return kErrType;
  }
  *integers = static_cast<int>(object->integers.size());
  *addresses = static_cast<int>(object->addresses.size());
  *members = static_cast<int>(object->members.size());
  *combiner = static_cast<int>(object->combiner);
  return kSuccess;
}

int Type_get_envelope_c(Datatype type, Count* integers, Count* addresses, Count* counts, Count* members, int* combiner) {
  const std::scoped_lock lock(types_mutex);
  const TypeObject* object = object_of(type);
  if (object == nullptr) return kErrType;
  *integers = static_cast<Count>(object->integers.size());
  *addresses = static_cast<Count>(object->addresses.size());
  *counts = static_cast<Count>(object->counts.size());
  *members = static_cast<Count>(object->members.size());
  *combiner = static_cast<int>(object->combiner);
  return kSuccess;
}

int Type_get_contents_c(Datatype type, Count integers, Count addresses, Count counts, Count members, int* at_integers, Aint* at_addresses,
                        Count* at_counts, Datatype* at_members) {
  const std::scoped_lock lock(types_mutex);
  const TypeObject* object = object_of(type);
  if (object == nullptr || object->combiner == Combiner::named) return kErrType;
  const auto fits = [](Count room, const auto& list) { return room >= static_cast<Count>(list.size()); };
  if (!fits(integers, object->integers) || !fits(addresses, object->addresses) || !fits(counts, object->counts) ||
      !fits(members, object->members))
    return kErrArg;
  std::ranges::copy(object->integers, at_integers);
  std::ranges::copy(object->addresses, at_addresses);
  std::ranges::copy(object->counts, at_counts);
  std::ranges::copy(object->members, at_members);
  for (const Datatype member : object->members) ++object_of(member)->uses;
  return kSuccess;
}

int Type_get_contents(Datatype type, int integers, int addresses, int members, int* at_integers, Aint* at_addresses, Datatype* at_members) {
  return Type_get_contents_c(type, integers, addresses, 0, members, at_integers, at_addresses, nullptr, at_members);
}

int Type_create_keyval(int (* /*copy*/)(Datatype, int, void*, void*, void*, int*), int (*deleted)(Datatype, int, void*, void*), int* keyval,
                       void* extra) {
  const std::scoped_lock lock(types_mutex);
  *keyval = static_cast<int>(keyvals().size()) + 1;
  keyvals()[*keyval] = {deleted, extra};
  return kSuccess;
}

int Type_set_attr(Datatype type, int keyval, void* value) {
  const std::scoped_lock lock(types_mutex);
  TypeObject* object = object_of(type);
  if (object == nullptr || !keyvals().contains(keyval)) return kErrType;
  object->attributes[keyval] = value;
  return kSuccess;
}

int Type_contiguous(int count, Datatype old, Datatype* made) {
  *made = contiguous(count, old);
  return kSuccess;
}

int Type_commit(Datatype* type) {
  const std::scoped_lock lock(types_mutex);
  TypeObject* object = object_of(*type);
  if (object == nullptr) return kErrType;
  object->committed = true;
  return kSuccess;
}

int Type_dup(Datatype old, Datatype* made) {
  const bool committed = is_committed(old);
  *made = Making(Combiner::dup, false).of(old, *map_of(old));
  return committed ? Type_commit(made) : kSuccess;
}

int Type_free(Datatype* type) {
  if (map_of(*type) == nullptr) return kErrType;
  drop(std::exchange(*type, reinterpret_cast<Datatype>(mpi::kDatatypeNull)));
  return kSuccess;
}

// Of bytes alone: the interposer asks for nothing else.
int Get_elements_x(const Status* status, Datatype type, Count* count) {
  const auto map = map_of(type);
  if (map == nullptr) return kErrType;
  *count = bytes_of(*status) / std::max<std::int64_t>(map->size, 1);
  return kSuccess;
}

int Status_set_elements_x(Status* status, Datatype type, Count count) {
  const auto map = map_of(type);
  if (map == nullptr) return kErrType;
  put_bytes(*status, count * map->size);
  return kSuccess;
}

}  // namespace calls
}  // namespace lacuna::test::fake
