// From a canonical form back to constructors: loops and lists as they are; what falls into several of them is one list
// of blocks, as a program would keep it. The elements are the largest basic type that divides every number.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "tools/bench/messages/cases.hpp"

namespace lacuna::bench {
namespace {

using corpus::Datatype;
using layout::Node;
using layout::NodeKind;
using List = Datatype::List;

// Of 8 and what `node` counts in: 8, 4, 2 or 1.
std::int64_t element_of(const Node& node) {
  std::int64_t common = 8;
  const auto divides = [&](std::int64_t number) { common = std::gcd(common, number); };
  divides(node.kind == NodeKind::run ? node.size : node.stride);
  for (const std::int64_t offset : node.offsets) divides(offset);
  if (node.kind == NodeKind::blocks)
    for (const std::int64_t start : node.starts) divides(start);
  for (const auto& child : node.children) divides(element_of(*child));
  return common;
}

Datatype run_of(std::int64_t bytes, std::int64_t element) {
  return bytes == element ? Datatype::basic(element) : Datatype::contiguous(bytes / element, Datatype::basic(element));
}

Datatype type_of(const Node& node, std::int64_t element) {
  switch (node.kind) {
    case NodeKind::run: return run_of(node.size, element);
    case NodeKind::loop: return Datatype::hvector(node.count, 1, node.stride, type_of(*node.children[0], element));
    case NodeKind::list: return Datatype::hindexed_block(1, node.offsets, type_of(*node.children[0], element));
    case NodeKind::blocks: {
      List lengths;
      for (std::size_t i = 0; i + 1 < node.starts.size(); ++i) lengths.push_back((node.starts[i + 1] - node.starts[i]) / element);
      return Datatype::hindexed(lengths, node.offsets, Datatype::basic(element));
    }
    case NodeKind::sequence: break;
  }
  throw std::logic_error("a sequence has no constructor of its own");
}

bool has_sequence(const Node& node) {
  return node.kind == NodeKind::sequence || std::ranges::any_of(node.children, [](const auto& child) { return has_sequence(*child); });
}

Datatype list_of(const layout::Layout& layout) {
  List lengths;
  List offsets;
  std::int64_t element = 8;
  layout::Cursor cursor(layout);
  for (layout::Run run = cursor.next_run(INT64_MAX); run.length > 0; run = cursor.next_run(INT64_MAX)) {
    lengths.push_back(run.length);
    offsets.push_back(run.offset);
    element = std::gcd(std::gcd(element, run.length), run.offset);
  }
  for (std::int64_t& length : lengths) length /= element;
  return Datatype::hindexed(std::move(lengths), std::move(offsets), Datatype::basic(element));
}

}  // namespace

Datatype written(const layout::Layout& layout) {
  const Node& root = *layout.form();
  if (has_sequence(root)) return list_of(layout);
  Datatype type = type_of(root, std::gcd(element_of(root), layout.form_offset()));
  return layout.form_offset() == 0 ? type : Datatype::at(layout.form_offset(), std::move(type));
}

}  // namespace lacuna::bench
