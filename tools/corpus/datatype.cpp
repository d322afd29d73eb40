#include "tools/corpus/datatype.hpp"

namespace lacuna::corpus {

using layout::Layout;

base::Result<Layout> Datatype::layout() const {
  if (op == Op::basic) return Layout::bytes(numbers[0]);
  std::vector<Layout> olds;
  olds.reserve(members.size());
  for (const Datatype& member : members) olds.push_back(LACUNA_TRY(member.layout()));
  switch (op) {
    case Op::basic: break;
    case Op::contiguous: return Layout::contiguous(numbers[0], olds[0]);
    case Op::vector: return Layout::vector(numbers[0], numbers[1], numbers[2], olds[0]);
    case Op::hvector: return Layout::hvector(numbers[0], numbers[1], numbers[2], olds[0]);
    case Op::indexed: return Layout::indexed(lists[0], lists[1], olds[0]);
    case Op::hindexed: return Layout::hindexed(lists[0], lists[1], olds[0]);
    case Op::indexed_block: return Layout::indexed_block(numbers[0], lists[0], olds[0]);
    case Op::hindexed_block: return Layout::hindexed_block(numbers[0], lists[0], olds[0]);
    case Op::structure: return Layout::structure(lists[0], lists[1], olds);
    case Op::subarray:
      return Layout::subarray(lists[0], lists[1], lists[2], numbers[0] != 0 ? layout::Order::fortran : layout::Order::c, olds[0]);
    case Op::resized: return Layout::resized(olds[0], numbers[0], numbers[1]);
  }
  return base::fail(base::Code::invalid_argument, "a datatype of no known constructor");
}

}  // namespace lacuna::corpus
