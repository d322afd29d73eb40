// lacuna::Layout, strided views, and the CPU's copies. Include lacuna.hpp.
#ifndef LACUNA_LAYOUT_HPP
#define LACUNA_LAYOUT_HPP

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "error.hpp"

namespace lacuna {

/// A strided view: std::mdspan's interface, as far as it is needed. Strides are in elements.
template <class View>
concept StridedView = requires(const View& view) {
  { *view.data_handle() };
  { view.rank() } -> std::convertible_to<std::size_t>;
  { view.extent(0) } -> std::convertible_to<std::int64_t>;
  { view.stride(0) } -> std::convertible_to<std::int64_t>;
};

namespace detail {

template <class View>
struct ElementOf {
  using type = std::ranges::range_value_t<View>;
};
template <StridedView View>
struct ElementOf<View> {
  using type = std::remove_cvref_t<decltype(*std::declval<const View&>().data_handle())>;
};

}  // namespace detail

/// Memory that an object names: a strided view or a contiguous range, of elements that may be moved as bytes.
template <class View>
concept Memory = (StridedView<std::remove_cvref_t<View>> || std::ranges::contiguous_range<View>) &&
                 std::is_trivially_copyable_v<typename detail::ElementOf<std::remove_cvref_t<View>>::type>;

namespace detail {

template <class View>
auto* address_of(View& view) {
  if constexpr (StridedView<std::remove_cvref_t<View>>) {
    return view.data_handle();
  } else {
    return std::ranges::data(view);
  }
}

}  // namespace detail

/// The same, and it may be written to.
template <class View>
concept WritableMemory =
    Memory<View> && !std::is_const_v<std::remove_pointer_t<decltype(detail::address_of(std::declval<std::remove_reference_t<View>&>()))>>;

/// The memory outlives what names it: anything but a temporary that owns its elements, as a std::vector does.
template <class View>
concept Lasting = std::is_lvalue_reference_v<View> || StridedView<std::remove_cvref_t<View>> || std::ranges::borrowed_range<View>;

enum class Order { c = LACUNA_ORDER_C, fortran = LACUNA_ORDER_FORTRAN };
enum class Distribution { none = LACUNA_DISTRIBUTE_NONE, block = LACUNA_DISTRIBUTE_BLOCK, cyclic = LACUNA_DISTRIBUTE_CYCLIC };
inline constexpr std::int64_t default_block = LACUNA_DISTRIBUTE_DEFAULT;

/// Which bytes, in which order, relative to a base address. Immutable and cheap to copy; may be used from several
/// threads at once.
class Layout {
 public:
  using List = std::span<const std::int64_t>;

  // Constructors: counts, lengths, strides and displacements as in MPI; those of hvector and the other h-forms in
  // bytes. Errors: INVALID_ARGUMENT, OVERFLOW (beyond 2^60 bytes).
  static Layout bytes(std::int64_t count) { return made(&lacuna_layout_bytes, count); }
  static Layout contiguous(std::int64_t count, const Layout& old) { return made(&lacuna_layout_contiguous, count, old.get()); }
  static Layout vector(std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Layout& old) {
    return made(&lacuna_layout_vector, count, blocklength, stride, old.get());
  }
  /// The stride in bytes.
  static Layout hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride_bytes, const Layout& old) {
    return made(&lacuna_layout_hvector, count, blocklength, stride_bytes, old.get());
  }
  static Layout indexed(List blocklengths, List displacements, const Layout& old) {
    const std::int64_t count = same_size("indexed", blocklengths, displacements);
    return made(&lacuna_layout_indexed, count, blocklengths.data(), displacements.data(), old.get());
  }
  static Layout hindexed(List blocklengths, List byte_displacements, const Layout& old) {
    const std::int64_t count = same_size("hindexed", blocklengths, byte_displacements);
    return made(&lacuna_layout_hindexed, count, blocklengths.data(), byte_displacements.data(), old.get());
  }
  static Layout indexed_block(std::int64_t blocklength, List displacements, const Layout& old) {
    return made(&lacuna_layout_indexed_block, std::ssize(displacements), blocklength, displacements.data(), old.get());
  }
  static Layout hindexed_block(std::int64_t blocklength, List byte_displacements, const Layout& old) {
    return made(&lacuna_layout_hindexed_block, std::ssize(byte_displacements), blocklength, byte_displacements.data(), old.get());
  }
  static Layout structure(List blocklengths, List byte_displacements, std::span<const Layout> members) {
    const std::int64_t count = same_size("structure", blocklengths, byte_displacements);
    same_size("structure", blocklengths, members);
    std::vector<const lacuna_layout*> handles;
    for (const Layout& member : members) handles.push_back(member.get());
    return made(&lacuna_layout_struct, count, blocklengths.data(), byte_displacements.data(), handles.data());
  }
  /// A box of `subsizes` at `starts` in an array of `sizes`; the extent is the whole array's.
  static Layout subarray(List sizes, List subsizes, List starts, const Layout& old, Order order = Order::c) {
    same_size("subarray", sizes, subsizes);
    const auto dims = static_cast<int>(same_size("subarray", sizes, starts));
    return made(&lacuna_layout_subarray, dims, sizes.data(), subsizes.data(), starts.data(), static_cast<lacuna_order>(order), old.get());
  }
  /// Process `rank`'s part of an array spread over a grid of processes (row-major). block_sizes: elements, or
  /// default_block.
  static Layout darray(std::int64_t processes, std::int64_t rank, List sizes, std::span<const Distribution> distributions, List block_sizes,
                       List grid, const Layout& old, Order order = Order::c) {
    same_size("darray", sizes, distributions);
    same_size("darray", sizes, block_sizes);
    const auto dims = static_cast<int>(same_size("darray", sizes, grid));
    std::vector<lacuna_distribution> each;
    for (const Distribution distribution : distributions) each.push_back(static_cast<lacuna_distribution>(distribution));
    return made(&lacuna_layout_darray, processes, rank, dims, sizes.data(), each.data(), block_sizes.data(), grid.data(),
                static_cast<lacuna_order>(order), old.get());
  }
  static Layout resized(const Layout& old, std::int64_t lower_bound, std::int64_t extent) {
    return made(&lacuna_layout_resized, old.get(), lower_bound, extent);
  }
  /// lengths[i] bytes at offsets[i].
  static Layout blocks(List offsets, List lengths) {
    return made(&lacuna_layout_blocks, same_size("blocks", offsets, lengths), offsets.data(), lengths.data());
  }
  /// Blocks of block_bytes at page_numbers[i] * block_bytes.
  static Layout paged(std::int64_t block_bytes, List page_numbers) {
    return made(&lacuna_layout_paged, block_bytes, std::ssize(page_numbers), page_numbers.data());
  }
  /// NumPy's shape and strides, in elements and in bytes; the last index is the fastest.
  static Layout strided(std::int64_t item_bytes, List shape, List strides_bytes) {
    return made(&lacuna_layout_strided, item_bytes, static_cast<int>(same_size("strided", shape, strides_bytes)), shape.data(),
                strides_bytes.data());
  }
  /// The elements of a view in the order of its indices, the last one fastest; of a range, all of them.
  template <class View>
    requires Memory<const View&>
  static Layout of(const View& view) {
    constexpr std::int64_t item = sizeof(*detail::address_of(view));
    if constexpr (StridedView<View>) {
      Layout layout = bytes(item);
      for (std::size_t d = view.rank(); d-- > 0;)
        layout = hvector(static_cast<std::int64_t>(view.extent(d)), 1, static_cast<std::int64_t>(view.stride(d)) * item, layout);
      return layout;
    } else {
      return bytes(static_cast<std::int64_t>(std::ranges::size(view)) * item);
    }
  }
  /// The inverse of encode(), for bytes from anywhere. Errors: MALFORMED, OVERFLOW, LIMIT.
  static Layout decode(std::span<const std::byte> wire) { return made(&lacuna_layout_decode, wire.data(), wire.size()); }

  /// Of a handle from lacuna.h, which is owned from now on.
  explicit Layout(lacuna_layout* handle) : handle_(handle, detail::Free()) {}
  [[nodiscard]] const lacuna_layout* get() const { return handle_.get(); }

  // Properties, in bytes.
  /// Of the data: the length of the packed stream
  [[nodiscard]] std::int64_t size() const { return lacuna_layout_size(get()); }
  /// Contiguous runs, after merging neighbours
  [[nodiscard]] std::int64_t run_count() const { return lacuna_layout_run_count(get()); }
  [[nodiscard]] std::int64_t lower_bound() const { return lacuna_layout_lower_bound(get()); }
  [[nodiscard]] std::int64_t extent() const { return lacuna_layout_extent(get()); }
  [[nodiscard]] std::int64_t true_lower_bound() const { return lacuna_layout_true_lower_bound(get()); }
  [[nodiscard]] std::int64_t true_extent() const { return lacuna_layout_true_extent(get()); }
  /// Whether both name the same bytes in the same order, however they were written.
  [[nodiscard]] bool same_runs(const Layout& other) const { return lacuna_layout_same_runs(get(), other.get()) == 1; }
  /// Whether some byte occurs twice, so that nothing can be received into it. Errors: LIMIT.
  [[nodiscard]] bool overlaps() const {
    int twice = 0;
    detail::check(lacuna_layout_overlaps(get(), &twice));
    return twice == 1;
  }
  /// The canonical form as text: "768 x +24576 B { 16 B }".
  [[nodiscard]] std::string describe() const {
    return detail::text_of([this](char* text, std::size_t size) { return lacuna_layout_describe(get(), text, size); });
  }
  /// Runs, extent, canonical form, kernels, run lengths: lines of text.
  [[nodiscard]] std::string explain() const {
    return detail::text_of([this](char* text, std::size_t size) { return lacuna_layout_explain(get(), text, size); });
  }
  /// What bytes [position, position + length) of the packed stream are. Errors: INVALID_ARGUMENT.
  [[nodiscard]] Layout slice(std::int64_t position, std::int64_t length) const {
    return made(&lacuna_layout_slice, get(), position, length);
  }
  /// A few bytes that describe the layout to another process.
  [[nodiscard]] std::vector<std::byte> encode() const {
    std::size_t needed = 0;
    if (const lacuna_status status = lacuna_layout_encode(get(), nullptr, 0, &needed); status != LACUNA_ERR_LIMIT) detail::check(status);
    std::vector<std::byte> wire(needed);
    detail::check(lacuna_layout_encode(get(), wire.data(), wire.size(), &needed));
    return wire;
  }
  /// Makes what copies of the layout need, which the first copy would make.
  void prepare() const { detail::check(lacuna_layout_prepare(get())); }

 private:
  template <class Make, class... Arguments>
  static Layout made(const Make& make, Arguments... arguments) {
    lacuna_layout* handle = nullptr;
    detail::check(make(arguments..., &handle));
    return Layout(handle);
  }
  template <class A, class B>
  static std::int64_t same_size(const char* what, const A& a, const B& b) {
    if (a.size() != b.size())
      detail::refuse(std::string(what) + ": lists of " + std::to_string(a.size()) + " and of " + std::to_string(b.size()) + " entries");
    return std::ssize(a);
  }
  std::shared_ptr<lacuna_layout> handle_;
};

// --- copies by the CPU -----------------------------------------------------------------------------------------------

/// Bytes [position, position + length) of the packed stream. Errors: INVALID_ARGUMENT.
inline void pack(const Layout& layout, const void* base, std::int64_t position, std::int64_t length, void* out) {
  detail::check(lacuna_pack(layout.get(), base, position, length, out));
}
inline void unpack(const Layout& layout, void* base, std::int64_t position, std::int64_t length, const void* in) {
  detail::check(lacuna_unpack(layout.get(), base, position, length, in));
}
/// The whole of `src` into `dst`, without staging. The buffers are apart, and dst does not overlap itself. Errors:
/// INVALID_ARGUMENT (the sizes differ).
inline void transpack(const Layout& src, const void* src_base, const Layout& dst, void* dst_base) {
  detail::check(lacuna_transpack(src.get(), src_base, dst.get(), dst_base));
}
/// The whole stream of a view.
template <class View>
  requires Memory<const View&>
[[nodiscard]] std::vector<std::byte> pack(const View& view) {
  const Layout layout = Layout::of(view);
  std::vector<std::byte> out(static_cast<std::size_t>(layout.size()));
  pack(layout, detail::address_of(view), 0, layout.size(), out.data());
  return out;
}
/// The same into memory of the caller's. Errors: INVALID_ARGUMENT (not as many bytes as the view has).
template <class View>
  requires Memory<const View&>
void pack(const View& view, std::span<std::byte> out) {
  const Layout layout = Layout::of(view);
  if (std::cmp_not_equal(out.size(), layout.size()))
    detail::refuse("pack: a view of " + std::to_string(layout.size()) + " bytes into " + std::to_string(out.size()));
  pack(layout, detail::address_of(view), 0, layout.size(), out.data());
}
/// Errors: INVALID_ARGUMENT (not as many bytes as the view has).
template <WritableMemory View>
void unpack(std::span<const std::byte> in, View&& view) {
  const Layout layout = Layout::of(view);
  if (std::cmp_not_equal(in.size(), layout.size()))
    detail::refuse("unpack: " + std::to_string(in.size()) + " bytes into a view of " + std::to_string(layout.size()));
  unpack(layout, detail::address_of(view), 0, layout.size(), in.data());
}
/// From view to view of as many bytes.
template <class Source, WritableMemory Destination>
  requires Memory<const Source&>
void transpack(const Source& src, Destination&& dst) {
  transpack(Layout::of(src), detail::address_of(src), Layout::of(dst), detail::address_of(dst));
}

/// Threads that copy together, the caller's own among them. One caller at a time.
class Team {
 public:
  /// Errors: INVALID_ARGUMENT (not 1 to 1024), LIMIT (no further thread).
  explicit Team(int threads) {
    lacuna_team* team = nullptr;
    detail::check(lacuna_team_make(threads, &team));
    handle_.reset(team);
  }
  /// As the functions of these names.
  void pack(const Layout& layout, const void* base, std::int64_t position, std::int64_t length, void* out) {
    detail::check(lacuna_team_pack(handle_.get(), layout.get(), base, position, length, out));
  }
  void unpack(const Layout& layout, void* base, std::int64_t position, std::int64_t length, const void* in) {
    detail::check(lacuna_team_unpack(handle_.get(), layout.get(), base, position, length, in));
  }
  void transpack(const Layout& src, const void* src_base, const Layout& dst, void* dst_base) {
    detail::check(lacuna_team_transpack(handle_.get(), src.get(), src_base, dst.get(), dst_base));
  }

 private:
  std::unique_ptr<lacuna_team, detail::Free> handle_;
};

}  // namespace lacuna

#endif
