// A plan as text: what `lacuna explain` prints below the canonical form.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/plan.hpp"

namespace lacuna::copy {
namespace {

std::string text_of(const Moved& moved) {
  const std::string_view pack = moved.pack.name;
  const std::string_view unpack = moved.unpack.name;
  const std::string how = pack == unpack ? std::string(pack) : fmt::format("{}; to unpack {}", pack, unpack);
  const bool streams = moved.pack_stream.streams || moved.unpack_stream.streams;
  return fmt::format("blocks of {} B by {}{}", moved.length, how, streams ? ", by streaming stores where the destination is cold" : "");
}

std::string spots_text(const Spots& spots) {
  switch (spots.access) {
    case Access::stride: return fmt::format("{:+} B apart", spots.stride);
    case Access::list32: return "at offsets of 32 bits";
    case Access::list64: return "at offsets of 64 bits";
  }
  return "";
}

std::string pattern_text(const Pattern& pattern) {
  return fmt::format("by windows of up to {} B, {} to a window, {} B of it moved by one permutation", pattern.width, pattern.entries,
                     pattern.payload);
}

void describe(const Step& step, int indent, std::string& text) {
  const std::string margin(static_cast<std::size_t>(indent) * 2, ' ');
  const auto line = [&](const std::string& what) { text += margin + what + "\n"; };
  switch (step.kind) {
    case Step::Kind::run:
      return line(fmt::format("run: one block of {} B{}", step.size,
                              step.size >= 1024 ? ", by streaming stores where the destination is cold" : ""));
    case Step::Kind::nest: {
      const std::string rows = step.rows == 1 ? "" : fmt::format("{} rows {:+} B apart of ", step.rows, step.outer);
      line(fmt::format("nest: {}{} x {}, {}", rows, step.count, spots_text(step.spots), text_of(step.moved)));
      if (step.pattern) line((step.packs_windows ? "  " : "  to unpack ") + pattern_text(*step.pattern));
      return;
    }
    case Step::Kind::crossed: line("crossed: " + step.packing->describe()); return line("  to unpack " + step.unpacking->describe());
    case Step::Kind::list: return line(fmt::format("list: {} x {}, {}", step.count, spots_text(step.spots), text_of(step.moved)));
    case Step::Kind::blocks: return line(fmt::format("blocks: {} of various lengths, {}", step.count, step.irregular.name));
    case Step::Kind::masked:
      return line(fmt::format("masked: {} runs in {} windows of 64 B with a mask each", step.node->runs, step.masks.windows()));
    case Step::Kind::woven:
      if (step.pattern) return line(fmt::format("woven: {} x {}, {}", step.count, spots_text(step.spots), pattern_text(*step.pattern)));
      line(fmt::format("woven: {} x {}, {} at a time, member by member:", step.count, spots_text(step.spots), step.chunk));
      for (const Member& member : step.members) line("  " + text_of(member.moved));
      return;
    case Step::Kind::repeat: line(fmt::format("repeat: {} x {}:", step.count, spots_text(step.spots))); break;
    case Step::Kind::sequence:
      line(fmt::format(
          "sequence of {}{}:", step.count,
          step.structs.batch > 0 ? fmt::format(", fields of {} structs, {} at a time", step.structs.count, step.structs.batch) : ""));
      break;
  }
  constexpr std::size_t shown = 16;
  for (std::size_t i = 0; i < std::min(shown, step.children.size()); ++i) {
    const auto some = std::ranges::find(step.structs.crossed, i, &CrossedFields::part);
    if (some == step.structs.crossed.end()) {
      describe(step.children[i], indent + 1, text);
    } else {
      line("  crossed: " + some->packing.describe());
      line("    to unpack " + some->unpacking.describe());
    }
  }
  if (step.children.size() > shown) line(fmt::format("  ... {} in all", step.children.size()));
}

}  // namespace

std::string CopyPlan::describe() const {
  std::string text;
  copy::describe(root_, 0, text);
  return text;
}

std::string describe_kernels(const Layout& layout) { return layout.size() > 0 ? CopyPlan::of(layout).describe() : std::string(); }

}  // namespace lacuna::copy
