// What is copied: every DDTBench layout at every size, and irregular ones that the corpus lacks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/copy/drawn.hpp"
#include "tools/bench/copy/hand.hpp"
#include "tools/corpus/datatype.hpp"

namespace lacuna::bench {

/// Arrays of a C struct, all or those of a list.
struct Records {
  Record record;
  std::int64_t count;
  std::vector<std::int32_t> list;
};

/// One side of a case.
struct Side {
  corpus::Datatype type;
  layout::Layout layout;
  std::int64_t span = 0;        ///< bytes of memory, from the layout's base on
  std::int64_t base = 0;        ///< where the base is in it; negative strides reach below it
  std::vector<HandNest> nests;  ///< the hand loop, unless one of the next two is set
  std::optional<Records> records;
  std::vector<DrawnNest> drawn;
};

struct Case {
  std::string group;  ///< "ddtbench", "irregular", "drawn"
  std::string name;
  std::string kind;  ///< the family, or the shape
  Side send;
  Side receive;
};

/// Each is made when it is asked for: the lists of all together are large.
struct CaseEntry {
  std::string group;
  std::string name;
  Case (*make)(const CaseEntry& entry);
  std::string family;
  std::int64_t a = 0;
  std::int64_t b = 0;
};
const std::vector<CaseEntry>& cases();

/// Datatypes of one typemap, written in several ways.
struct Equivalents {
  std::string name;
  std::vector<std::string> ways;
  std::vector<Side> sides;
};
std::vector<Equivalents> equivalents();

Side side_of(corpus::Datatype type, std::int64_t span, std::int64_t base = 0);

}  // namespace lacuna::bench
