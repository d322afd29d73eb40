// What a programmer writes instead of a datatype: loops. Two forms of them are published (DDTBench's manual packing,
// and every tutorial's memcpy): nested loops over elements with run-time bounds and restrict, and one memcpy for each
// block. Compiled with -O3 -march=native.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/corpus/datatype.hpp"

namespace lacuna::bench {

enum class Form { elements, memcpy };

/// One loop nest over elements of one size: at most four loops, or a list of blocks.
struct HandNest {
  std::int64_t element = 1;  ///< bytes of one: 1, 2, 4, 8 or 16
  std::int64_t offset = 0;   ///< bytes
  struct Loop {
    std::int64_t count;
    std::int64_t stride;  ///< elements
  };
  std::vector<Loop> loops;            ///< outermost first; inside the list, if there is one
  std::vector<std::int32_t> list;     ///< elements
  std::vector<std::int32_t> lengths;  ///< of the blocks of the list, in elements; empty where all are alike
};

/// The loops for a datatype, or nothing where it is not made of such nests (arrays of structs have loops of their own).
std::optional<std::vector<HandNest>> nests_of(const corpus::Datatype& type);

void hand_pack(const std::vector<HandNest>& nests, Form form, const std::byte* base, std::byte* out);
void hand_unpack(const std::vector<HandNest>& nests, Form form, std::byte* base, const std::byte* in);

/// Whether the second form differs from the first: there are blocks of more than one element.
bool has_blocks(const std::vector<HandNest>& nests);

// Arrays of structs, as C has them; `list` is null or says which.
enum class Record { atom, pair, particle };
corpus::Datatype record_type(Record record);  ///< the members that move, with the struct's extent
std::int64_t record_extent(Record record);
void hand_pack_records(Record record, Form form, const std::byte* base, std::int64_t count, const std::int32_t* list, std::byte* out);
void hand_unpack_records(Record record, Form form, std::byte* base, std::int64_t count, const std::int32_t* list, const std::byte* in);

}  // namespace lacuna::bench
