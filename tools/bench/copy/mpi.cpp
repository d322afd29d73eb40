#include "tools/bench/copy/mpi.hpp"

#include <dlfcn.h>

#include <limits>
#include <vector>

namespace lacuna::bench {

using base::Code;
using base::Result;
using corpus::Datatype;
using Op = Datatype::Op;

Result<std::unique_ptr<Mpi>> Mpi::start(const std::string& shim, int ranks) {
  void* library = dlopen(shim.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return base::fail(Code::unsupported, dlerror());
  const auto table = reinterpret_cast<lacuna_mpi_shim_function>(dlsym(library, "lacuna_mpi_shim_table"));
  if (table == nullptr) return base::fail(Code::unsupported, shim + " has no lacuna_mpi_shim_table");
  const lacuna_mpi_shim* calls = table();
  if (calls->version != LACUNA_MPI_SHIM_VERSION) return base::fail(Code::unsupported, shim + " is of another version");
  if (calls->start(ranks) != 0)
    return base::fail(Code::unsupported, shim + ": MPI_Init failed, or there are not " + std::to_string(ranks) + " ranks");
  return std::unique_ptr<Mpi>(new Mpi(calls));
}

Mpi::~Mpi() { shim_->stop(); }

namespace {

Result<std::vector<int>> ints(const Datatype::List& list) {
  std::vector<int> narrow;
  narrow.reserve(list.size());
  for (const std::int64_t value : list) {
    if (value > std::numeric_limits<int>::max() || value < std::numeric_limits<int>::min())
      return base::fail(Code::overflow, std::to_string(value) + " does not fit an int");
    narrow.push_back(static_cast<int>(value));
  }
  return narrow;
}

}  // namespace

Result<Mpi::Type> Mpi::build(const Datatype& d) const {
  std::vector<Type> olds;
  for (const Datatype& member : d.members) olds.push_back(LACUNA_TRY(build(member)));
  const lacuna_mpi_type* old = olds.empty() ? nullptr : olds[0].get();
  const std::vector<int> n = d.op == Op::hvector || d.op == Op::resized ? std::vector<int>{} : LACUNA_TRY(ints(d.numbers));
  std::vector<int> a;
  std::vector<int> b;
  std::vector<long> far;
  switch (d.op) {
    case Op::indexed: a = LACUNA_TRY(ints(d.lists[0])), b = LACUNA_TRY(ints(d.lists[1])); break;
    case Op::indexed_block: b = LACUNA_TRY(ints(d.lists[0])); break;
    case Op::hindexed:
    case Op::structure: a = LACUNA_TRY(ints(d.lists[0])), far.assign(d.lists[1].begin(), d.lists[1].end()); break;
    case Op::hindexed_block: far.assign(d.lists[0].begin(), d.lists[0].end()); break;
    case Op::subarray: a = LACUNA_TRY(ints(d.lists[0])), b = LACUNA_TRY(ints(d.lists[1])); break;
    default: break;
  }
  const int count = static_cast<int>(far.empty() ? b.size() : far.size());
  lacuna_mpi_type* made = nullptr;
  switch (d.op) {
    case Op::basic: made = shim_->basic(n[0]); break;
    case Op::contiguous: made = shim_->contiguous(n[0], old); break;
    case Op::vector: made = shim_->vector(n[0], n[1], n[2], old); break;
    case Op::hvector: made = shim_->hvector(static_cast<int>(d.numbers[0]), static_cast<int>(d.numbers[1]), d.numbers[2], old); break;
    case Op::indexed: made = shim_->indexed(count, a.data(), b.data(), old); break;
    case Op::hindexed: made = shim_->hindexed(count, a.data(), far.data(), old); break;
    case Op::indexed_block: made = shim_->indexed_block(count, n[0], b.data(), old); break;
    case Op::hindexed_block: made = shim_->hindexed_block(count, n[0], far.data(), old); break;
    case Op::structure: {
      std::vector<lacuna_mpi_type*> members;
      for (const Type& member : olds) members.push_back(member.get());
      made = shim_->structure(count, a.data(), far.data(), members.data());
      break;
    }
    case Op::subarray: {
      const std::vector<int> starts = LACUNA_TRY(ints(d.lists[2]));
      made = shim_->subarray(static_cast<int>(a.size()), a.data(), b.data(), starts.data(), n[0], old);
      break;
    }
    case Op::resized: made = shim_->resized(old, d.numbers[0], d.numbers[1]); break;
  }
  if (made == nullptr) return base::fail(Code::unsupported, "MPI refused a constructor");
  return Type(made, Release{shim_});
}

Result<Mpi::Type> Mpi::type(const Datatype& datatype) const {
  Type made = LACUNA_TRY(build(datatype));
  if (shim_->commit(made.get()) != 0) return base::fail(Code::unsupported, "MPI refused to commit");
  return made;
}

}  // namespace lacuna::bench
