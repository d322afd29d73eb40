// From a datatype's envelope and contents to its layout.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "lacuna/mpi/types/types.hpp"

namespace lacuna::mpi {
namespace {

using base::Result;
using Numbers = std::vector<std::int64_t>;
using Span = std::span<const std::int64_t>;

// What MPI_Type_get_contents says. Which of its lists a number is in depends on the constructor and on whether it was
// the one for large counts; `numbers` has all of them in the order of the constructor's arguments, as MPI-4.1 lists
// them for the large ones.
struct Contents {
  Combiner combiner = Combiner::named;
  Numbers integers;   // int
  Numbers addresses;  // MPI_Aint
  Numbers counts;     // MPI_Count: of large constructors
  std::vector<Datatype> types;

  Contents() = default;
  Contents(Contents&&) = default;
  Contents& operator=(Contents&&) = default;
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  // The handles are ours, but for those of predefined types. Mostly many are one.
  ~Contents() {
    bool ours = false;
    for (Datatype last = host().no_type; Datatype& type : types) {
      if (type != last) ours = !is_predefined(type);
      last = type;
      if (ours) host().Type_free(&type);
    }
  }
};
// MPI_Count is `long long`, or `long`
static_assert(sizeof(Count) == sizeof(std::int64_t) && std::is_same_v<Aint, std::int64_t>);

base::Error failed(const char* what) { return {base::Code::unsupported, std::string(what) + " of a datatype failed"}; }

// How long the lists of a type's contents are. A type with large counts may only be asked by the large functions, which
// not every host has; where it has none, there are no such types.
struct Envelope {
  Count integers = 0, addresses = 0, counts = 0, types = 0;
  Combiner combiner = Combiner::named;
};

bool has_large_types() { return host().Type_get_envelope_c != nullptr && host().Type_get_contents_c != nullptr; }

std::optional<Envelope> envelope_of(Datatype type) {
  Envelope made;
  int combiner = 0, integers = 0, addresses = 0, types = 0;
  if (has_large_types()) {
    if (host().Type_get_envelope_c(type, &made.integers, &made.addresses, &made.counts, &made.types, &combiner) != kSuccess)
      return std::nullopt;
  } else {
    if (host().Type_get_envelope(type, &integers, &addresses, &types, &combiner) != kSuccess) return std::nullopt;
    made.integers = integers;
    made.addresses = addresses;
    made.types = types;
  }
  made.combiner = static_cast<Combiner>(combiner);
  return made;
}

// Made by no constructor of a program's.
bool is_predefined(Combiner made_by) {
  return made_by == Combiner::named || made_by == Combiner::f90_real || made_by == Combiner::f90_complex ||
         made_by == Combiner::f90_integer || made_by == Combiner::value_index;
}

Result<Contents> contents_of(Datatype type) {
  const std::optional<Envelope> envelope = envelope_of(type);
  if (!envelope) return std::unexpected(failed("MPI_Type_get_envelope"));
  Contents made;
  made.combiner = envelope->combiner;
  if (is_predefined(made.combiner)) return made;
  std::vector<int> ints(static_cast<std::size_t>(envelope->integers));
  made.addresses.resize(static_cast<std::size_t>(envelope->addresses));
  made.counts.resize(static_cast<std::size_t>(envelope->counts));
  std::vector<Datatype> members(static_cast<std::size_t>(envelope->types));
  const int got =
      has_large_types()
          ? host().Type_get_contents_c(type, envelope->integers, envelope->addresses, envelope->counts, envelope->types, ints.data(),
                                       made.addresses.data(), reinterpret_cast<Count*>(made.counts.data()), members.data())
          : host().Type_get_contents(type, static_cast<int>(envelope->integers), static_cast<int>(envelope->addresses),
                                     static_cast<int>(envelope->types), ints.data(), made.addresses.data(), members.data());
  if (got != kSuccess) return std::unexpected(failed("MPI_Type_get_contents"));
  made.types = std::move(members);
  made.integers.assign(ints.begin(), ints.end());
  return made;
}

// A predefined type. Those of a value and an int may have a gap; where, MPI_Pack tells.
Result<Layout> predefined(Datatype type) {
  int size = 0;
  Aint low = 0, extent = 0;
  if (host().Type_size(type, &size) != kSuccess || host().Type_get_extent(type, &low, &extent) != kSuccess)
    return std::unexpected(failed("MPI_Type_size"));
  if (low == 0 && extent == size) return Layout::bytes(size);
  std::array<unsigned char, 64> memory{}, packed{};
  if (low != 0 || std::cmp_greater(extent, memory.size()) || size > extent) return std::unexpected(failed("MPI_Type_get_extent"));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<unsigned char>(i);
  int position = 0;
  if (host().Pack(memory.data(), 1, type, packed.data(), static_cast<int>(packed.size()), &position, host().self) != kSuccess ||
      position != size)
    return std::unexpected(failed("MPI_Pack"));
  Numbers offsets, lengths(static_cast<std::size_t>(size), 1);
  for (int i = 0; i < size; ++i) offsets.push_back(packed[static_cast<std::size_t>(i)]);
  return Layout::resized(LACUNA_TRY(Layout::blocks(offsets, lengths)), 0, extent);
}

// The arguments of a constructor, one after another, from whichever list holds them. Constructors for large counts have
// their counts in the third.
class Arguments {
 public:
  explicit Arguments(const Contents& contents) : contents_(contents), large_(!contents.counts.empty()) {}
  std::int64_t integer() { return contents_.integers.at(integers_++); }
  std::int64_t count() { return large_ ? contents_.counts.at(counts_++) : integer(); }
  std::int64_t address() { return large_ ? contents_.counts.at(counts_++) : contents_.addresses.at(addresses_++); }
  Span integers(std::int64_t n) { return take(contents_.integers, integers_, n); }
  Span counts(std::int64_t n) { return large_ ? take(contents_.counts, counts_, n) : integers(n); }
  Span addresses(std::int64_t n) { return large_ ? take(contents_.counts, counts_, n) : take(contents_.addresses, addresses_, n); }
  [[nodiscard]] Result<Layout> member(std::size_t i = 0) const { return decode(contents_.types.at(i)); }

 private:
  static Span take(const Numbers& from, std::size_t& at, std::int64_t n) {
    const Span span = Span(from).subspan(at, static_cast<std::size_t>(n));
    at += static_cast<std::size_t>(n);
    return span;
  }
  const Contents& contents_;
  bool large_;
  std::size_t integers_ = 0, addresses_ = 0, counts_ = 0;
};

Result<Layout> darray(Arguments& from) {
  const std::int64_t processes = from.integer(), rank = from.integer(), dims = from.integer();
  const Span sizes = from.counts(dims), kinds = from.integers(dims), blocks = from.integers(dims), grid = from.integers(dims);
  const std::int64_t order = from.integer();
  std::vector<layout::Distribution> distributions;
  for (const std::int64_t kind : kinds)
    distributions.push_back(kind == kDistributeBlock    ? layout::Distribution::block
                            : kind == kDistributeCyclic ? layout::Distribution::cyclic
                                                        : layout::Distribution::none);
  Numbers block_sizes(blocks.begin(), blocks.end());
  std::ranges::replace(block_sizes, std::int64_t{kDefaultBlock}, layout::kDefaultBlock);
  return Layout::darray(processes, rank, sizes, distributions, block_sizes, grid,
                        order == kOrderC ? layout::Order::c : layout::Order::fortran, LACUNA_TRY(from.member()));
}

// The types of a struct, each once, and which of them each member has.
struct Members {
  std::vector<Layout> layouts;
  std::vector<std::uint32_t> which;
};
Result<Members> members_of(const Contents& contents) {
  Members made;
  made.which.reserve(contents.types.size());
  std::unordered_map<Datatype, std::uint32_t> known;
  std::uint32_t current = 0;
  for (std::size_t i = 0; i < contents.types.size(); ++i) {
    const Datatype type = contents.types[i];
    if (i == 0 || type != contents.types[i - 1]) {
      const auto [place, is_new] = known.try_emplace(type, static_cast<std::uint32_t>(made.layouts.size()));
      if (is_new) made.layouts.push_back(LACUNA_TRY(decode(type)));
      current = place->second;
    }
    made.which.push_back(current);
  }
  return made;
}

// A struct of 300 000 members is a list like any other, unless they have gaps and differ.
Result<Layout> structure(const Contents& contents, Arguments& from) {
  const std::int64_t count = from.count();
  const Span lengths = from.counts(count), displacements = from.addresses(count);
  const auto is_run = [](const Layout& one) {
    return one.contiguous_bytes() && one.lower_bound() == 0 && one.true_lower_bound() == 0 && one.extent() == one.size();
  };
  const Members members = LACUNA_TRY(members_of(contents));
  if (members.layouts.size() == 1) {
    const Layout& only = members.layouts.front();
    if (std::ranges::adjacent_find(lengths, std::not_equal_to<>()) == lengths.end())
      return Layout::hindexed_block(lengths.front(), displacements, only);
    return Layout::hindexed(lengths, displacements, only);
  }
  if (!std::ranges::all_of(members.layouts, is_run)) return Layout::structure(lengths, displacements, members.layouts, members.which);
  Numbers bytes(lengths.begin(), lengths.end());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!base::mul(bytes[i], members.layouts[members.which[i]].size(), bytes[i])) return std::unexpected(failed("The size"));
  }
  return Layout::blocks(displacements, bytes);
}

Result<Layout> construct(Datatype type, const Contents& contents) {
  Arguments from(contents);
  switch (contents.combiner) {
    case Combiner::named:
    case Combiner::f90_real:
    case Combiner::f90_complex:
    case Combiner::f90_integer:
    case Combiner::value_index: return predefined(type);
    case Combiner::dup: return from.member();
    case Combiner::contiguous: return Layout::contiguous(from.count(), LACUNA_TRY(from.member()));
    case Combiner::vector: {
      const std::int64_t count = from.count(), length = from.count(), stride = from.count();
      return Layout::vector(count, length, stride, LACUNA_TRY(from.member()));
    }
    case Combiner::hvector: {
      const std::int64_t count = from.count(), length = from.count(), stride = from.address();
      return Layout::hvector(count, length, stride, LACUNA_TRY(from.member()));
    }
    case Combiner::indexed: {
      const std::int64_t count = from.count();
      const Span lengths = from.counts(count), displacements = from.counts(count);
      return Layout::indexed(lengths, displacements, LACUNA_TRY(from.member()));
    }
    case Combiner::hindexed: {
      const std::int64_t count = from.count();
      const Span lengths = from.counts(count), displacements = from.addresses(count);
      return Layout::hindexed(lengths, displacements, LACUNA_TRY(from.member()));
    }
    case Combiner::indexed_block: {
      const std::int64_t count = from.count(), length = from.count();
      return Layout::indexed_block(length, from.counts(count), LACUNA_TRY(from.member()));
    }
    case Combiner::hindexed_block: {
      const std::int64_t count = from.count(), length = from.count();
      return Layout::hindexed_block(length, from.addresses(count), LACUNA_TRY(from.member()));
    }
    case Combiner::structure: return structure(contents, from);
    case Combiner::subarray: {
      const std::int64_t dims = from.integer();
      const Span sizes = from.counts(dims), subsizes = from.counts(dims), starts = from.counts(dims);
      const layout::Order order = from.integer() == kOrderC ? layout::Order::c : layout::Order::fortran;
      return Layout::subarray(sizes, subsizes, starts, order, LACUNA_TRY(from.member()));
    }
    case Combiner::darray: return darray(from);
    case Combiner::resized: {
      const std::int64_t low = from.address(), extent = from.address();
      return Layout::resized(LACUNA_TRY(from.member()), low, extent);
    }
  }
  return base::fail(base::Code::unsupported, "a datatype by a constructor that is not known");
}

}  // namespace

bool is_predefined(Datatype type) {
  if (type == host().no_type) return false;
  const std::optional<Envelope> envelope = envelope_of(type);
  return envelope && is_predefined(envelope->combiner);
}

std::int64_t entries_of(Datatype type, std::int64_t most) {
  const std::optional<Envelope> envelope = envelope_of(type);
  if (!envelope || is_predefined(envelope->combiner)) return 1;
  std::int64_t entries = envelope->integers + envelope->addresses + envelope->counts + envelope->types;
  if (entries > most) return entries;
  const Result<Contents> contents = contents_of(type);
  if (!contents) return entries;
  Datatype last = host().no_type;
  for (const Datatype within : contents->types) {
    if (within != std::exchange(last, within)) entries += entries_of(within, most - entries);
    if (entries > most) break;
  }
  return entries;
}

std::int64_t largest_element_of(Datatype type) {
  const std::optional<Envelope> envelope = envelope_of(type);
  if (!envelope || is_predefined(envelope->combiner)) return size_of(type);
  const Result<Contents> contents = contents_of(type);
  if (!contents) return INT64_MAX;
  std::int64_t largest = 0;
  Datatype last = host().no_type;
  for (const Datatype within : contents->types) {
    if (within != std::exchange(last, within)) largest = std::max(largest, largest_element_of(within));
  }
  return largest;
}

base::Result<Layout> decode(Datatype type) {
  Layout made = LACUNA_TRY(construct(type, LACUNA_TRY(contents_of(type))));
  // MPI pads the extents of structures as it sees fit (its epsilon).
  Aint low = 0, extent = 0;
  if (host().Type_get_extent(type, &low, &extent) != kSuccess) return std::unexpected(failed("MPI_Type_get_extent"));
  if (made.lower_bound() == low && made.extent() == extent) return made;
  return Layout::resized(made, low, extent);
}

}  // namespace lacuna::mpi
