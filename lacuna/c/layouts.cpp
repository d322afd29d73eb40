// The C API's layouts, and the CPU's copies of them.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "lacuna/c/handles.hpp"
#include "lacuna/copy/copy.hpp"

using lacuna::base::Code;
using lacuna::base::Result;
using lacuna::c::either;
using lacuna::c::failed;
using lacuna::c::guarded;
using lacuna::c::value_or;
using lacuna::c::write_text;
using lacuna::layout::Layout;

struct lacuna_team {
  explicit lacuna_team(int threads) : value(threads) {}
  lacuna::copy::Team value;
};

namespace {

constexpr int kMostThreads = 1024;

// Runs `make`, which returns a Result<Layout>, and hands the layout out.
lacuna_status hand_out(const lacuna::c::Missing& missing, lacuna_layout** layout, const auto& make) {
  return guarded(missing, [&] {
    Result<Layout> made = make();
    if (!made) return failed(made.error());
    *layout = new lacuna_layout{std::move(*made)};
    return LACUNA_OK;
  });
}

// A C array as a span. A negative count is the constructor's to refuse; here it names nothing.
std::span<const int64_t> list(const int64_t* values, int64_t count) {
  return {values, static_cast<std::size_t>(std::max<int64_t>(count, 0))};
}

Result<void> check_count(int64_t count) {
  if (count >= 0) return {};
  return lacuna::base::fail(Code::invalid_argument, "count is " + std::to_string(count) + "; it must not be negative");
}

Result<void> check_fragment(const Layout& layout, int64_t position, int64_t length) {
  if (position >= 0 && length >= 0 && position <= layout.size() && length <= layout.size() - position) return {};
  return lacuna::base::fail(Code::invalid_argument, "bytes " + std::to_string(position) + " + " + std::to_string(length) +
                                                        " of a stream of " + std::to_string(layout.size()));
}

lacuna::layout::Order order_of(lacuna_order order) {
  return order == LACUNA_ORDER_C ? lacuna::layout::Order::c : lacuna::layout::Order::fortran;
}

// Of what several threads write, each byte once.
Result<void> check_apart(const Layout& layout) {
  const Result<bool> twice = layout.overlaps();
  if (!twice) return std::unexpected(twice.error());
  if (!*twice) return {};
  return lacuna::base::fail(Code::invalid_argument, "the layout names some bytes twice; threads would write them in any order");
}

}  // namespace

lacuna_status lacuna_layout_bytes(int64_t count, lacuna_layout** layout) {
  return hand_out(LACUNA_GIVEN(layout), layout, [&] { return Layout::bytes(count); });
}

lacuna_status lacuna_layout_contiguous(int64_t count, const lacuna_layout* old, lacuna_layout** layout) {
  return hand_out(LACUNA_GIVEN(old, layout), layout, [&] { return Layout::contiguous(count, old->value); });
}

lacuna_status lacuna_layout_vector(int64_t count, int64_t blocklength, int64_t stride, const lacuna_layout* old, lacuna_layout** layout) {
  return hand_out(LACUNA_GIVEN(old, layout), layout, [&] { return Layout::vector(count, blocklength, stride, old->value); });
}

lacuna_status lacuna_layout_hvector(int64_t count, int64_t blocklength, int64_t stride_bytes, const lacuna_layout* old,
                                    lacuna_layout** layout) {
  return hand_out(LACUNA_GIVEN(old, layout), layout, [&] { return Layout::hvector(count, blocklength, stride_bytes, old->value); });
}

lacuna_status lacuna_layout_hindexed(int64_t count, const int64_t* blocklengths, const int64_t* byte_displacements,
                                     const lacuna_layout* old, lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(old, layout), LACUNA_LISTS(count, blocklengths, byte_displacements)), layout,
                  [&]() -> Result<Layout> {
                    LACUNA_TRY(check_count(count));
                    return Layout::hindexed(list(blocklengths, count), list(byte_displacements, count), old->value);
                  });
}

lacuna_status lacuna_layout_hindexed_block(int64_t count, int64_t blocklength, const int64_t* byte_displacements, const lacuna_layout* old,
                                           lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(old, layout), LACUNA_LISTS(count, byte_displacements)), layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    return Layout::hindexed_block(blocklength, list(byte_displacements, count), old->value);
  });
}

lacuna_status lacuna_layout_struct(int64_t count, const int64_t* blocklengths, const int64_t* byte_displacements,
                                   const lacuna_layout* const* members, lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(layout), LACUNA_LISTS(count, blocklengths, byte_displacements, members)), layout,
                  [&]() -> Result<Layout> {
                    LACUNA_TRY(check_count(count));
                    std::vector<Layout> values;
                    values.reserve(static_cast<std::size_t>(count));
                    for (int64_t i = 0; i < count; ++i) {
                      if (members[i] == nullptr)
                        return lacuna::base::fail(Code::invalid_argument, "member " + std::to_string(i) + " is NULL");
                      values.push_back(members[i]->value);
                    }
                    return Layout::structure(list(blocklengths, count), list(byte_displacements, count), values);
                  });
}

lacuna_status lacuna_layout_subarray(int dims, const int64_t* sizes, const int64_t* subsizes, const int64_t* starts, lacuna_order order,
                                     const lacuna_layout* old, lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(old, layout), LACUNA_LISTS(dims, sizes, subsizes, starts)), layout, [&] {
    return Layout::subarray(list(sizes, dims), list(subsizes, dims), list(starts, dims), order_of(order), old->value);
  });
}

lacuna_status lacuna_layout_indexed(int64_t count, const int64_t* blocklengths, const int64_t* displacements, const lacuna_layout* old,
                                    lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(old, layout), LACUNA_LISTS(count, blocklengths, displacements)), layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    return Layout::indexed(list(blocklengths, count), list(displacements, count), old->value);
  });
}

lacuna_status lacuna_layout_indexed_block(int64_t count, int64_t blocklength, const int64_t* displacements, const lacuna_layout* old,
                                          lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(old, layout), LACUNA_LISTS(count, displacements)), layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    return Layout::indexed_block(blocklength, list(displacements, count), old->value);
  });
}

lacuna_status lacuna_layout_darray(int64_t processes, int64_t rank, int dims, const int64_t* sizes,
                                   const lacuna_distribution* distributions, const int64_t* block_sizes, const int64_t* grid,
                                   lacuna_order order, const lacuna_layout* old, lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(old, layout), LACUNA_LISTS(dims, sizes, distributions, block_sizes, grid)), layout,
                  [&]() -> Result<Layout> {
                    LACUNA_TRY(check_count(dims));
                    std::vector<lacuna::layout::Distribution> each;
                    for (int d = 0; d < dims; ++d) {
                      if (distributions[d] < LACUNA_DISTRIBUTE_NONE || distributions[d] > LACUNA_DISTRIBUTE_CYCLIC)
                        return lacuna::base::fail(Code::invalid_argument, "there is no distribution " + std::to_string(distributions[d]));
                      each.push_back(static_cast<lacuna::layout::Distribution>(distributions[d]));
                    }
                    return Layout::darray(processes, rank, list(sizes, dims), each, list(block_sizes, dims), list(grid, dims),
                                          order_of(order), old->value);
                  });
}

lacuna_status lacuna_layout_strided(int64_t item_bytes, int dims, const int64_t* shape, const int64_t* strides_bytes,
                                    lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(layout), LACUNA_LISTS(dims, shape, strides_bytes)), layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(dims));
    return Layout::strided(item_bytes, list(shape, dims), list(strides_bytes, dims));
  });
}

lacuna_status lacuna_layout_slice(const lacuna_layout* whole, int64_t position, int64_t length, lacuna_layout** layout) {
  return hand_out(LACUNA_GIVEN(whole, layout), layout, [&] { return whole->value.slice(position, length); });
}

lacuna_status lacuna_layout_resized(const lacuna_layout* old, int64_t lower_bound, int64_t extent, lacuna_layout** layout) {
  return hand_out(LACUNA_GIVEN(old, layout), layout, [&] { return Layout::resized(old->value, lower_bound, extent); });
}

lacuna_status lacuna_layout_blocks(int64_t count, const int64_t* offsets, const int64_t* lengths, lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(layout), LACUNA_LISTS(count, offsets, lengths)), layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    return Layout::blocks(list(offsets, count), list(lengths, count));
  });
}

lacuna_status lacuna_layout_paged(int64_t block_bytes, int64_t count, const int64_t* page_numbers, lacuna_layout** layout) {
  return hand_out(either(LACUNA_GIVEN(layout), LACUNA_LISTS(count, page_numbers)), layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    return Layout::paged(block_bytes, list(page_numbers, count));
  });
}

void lacuna_layout_free(lacuna_layout* layout) { delete layout; }

int64_t lacuna_layout_size(const lacuna_layout* layout) {
  return value_or(LACUNA_GIVEN(layout), int64_t{0}, [&] { return layout->value.size(); });
}
int64_t lacuna_layout_run_count(const lacuna_layout* layout) {
  return value_or(LACUNA_GIVEN(layout), int64_t{0}, [&] { return layout->value.run_count(); });
}
int64_t lacuna_layout_lower_bound(const lacuna_layout* layout) {
  return value_or(LACUNA_GIVEN(layout), int64_t{0}, [&] { return layout->value.lower_bound(); });
}
int64_t lacuna_layout_extent(const lacuna_layout* layout) {
  return value_or(LACUNA_GIVEN(layout), int64_t{0}, [&] { return layout->value.extent(); });
}
int64_t lacuna_layout_true_lower_bound(const lacuna_layout* layout) {
  return value_or(LACUNA_GIVEN(layout), int64_t{0}, [&] { return layout->value.true_lower_bound(); });
}
int64_t lacuna_layout_true_extent(const lacuna_layout* layout) {
  return value_or(LACUNA_GIVEN(layout), int64_t{0}, [&] { return layout->value.true_extent(); });
}
int lacuna_layout_same_runs(const lacuna_layout* a, const lacuna_layout* b) {
  return value_or(LACUNA_GIVEN(a, b), 0, [&] { return a->value.same_runs(b->value) ? 1 : 0; });
}

lacuna_status lacuna_layout_overlaps(const lacuna_layout* layout, int* overlaps) {
  return guarded(LACUNA_GIVEN(layout, overlaps), [&] {
    const Result<bool> twice = layout->value.overlaps();
    if (!twice) return failed(twice.error());
    *overlaps = *twice ? 1 : 0;
    return LACUNA_OK;
  });
}

lacuna_status lacuna_layout_prepare(const lacuna_layout* layout) {
  return guarded(LACUNA_GIVEN(layout), [&] {
    lacuna::copy::prepare(layout->value);
    return LACUNA_OK;
  });
}

size_t lacuna_layout_describe(const lacuna_layout* layout, char* text, size_t size) {
  return value_or(LACUNA_GIVEN(layout), std::size_t{0}, [&] { return write_text(layout->value.describe(), text, size); });
}

lacuna_status lacuna_pack(const lacuna_layout* layout, const void* base, int64_t position, int64_t length, void* out) {
  return guarded(LACUNA_GIVEN(layout), [&] {
    if (const Result<void> valid = check_fragment(layout->value, position, length); !valid) return failed(valid.error());
    lacuna::copy::pack(layout->value, static_cast<const std::byte*>(base), position, length, static_cast<std::byte*>(out));
    return LACUNA_OK;
  });
}

lacuna_status lacuna_unpack(const lacuna_layout* layout, void* base, int64_t position, int64_t length, const void* in) {
  return guarded(LACUNA_GIVEN(layout), [&] {
    if (const Result<void> valid = check_fragment(layout->value, position, length); !valid) return failed(valid.error());
    lacuna::copy::unpack(layout->value, static_cast<std::byte*>(base), position, length, static_cast<const std::byte*>(in));
    return LACUNA_OK;
  });
}

lacuna_status lacuna_transpack(const lacuna_layout* src, const void* src_base, const lacuna_layout* dst, void* dst_base) {
  return guarded(LACUNA_GIVEN(src, dst), [&] {
    const Result<void> moved =
        lacuna::copy::transpack(src->value, static_cast<const std::byte*>(src_base), dst->value, static_cast<std::byte*>(dst_base));
    return moved ? LACUNA_OK : failed(moved.error());
  });
}

lacuna_status lacuna_team_make(int threads, lacuna_team** team) {
  return guarded(LACUNA_GIVEN(team), [&] {
    if (threads < 1 || threads > kMostThreads)
      return failed({Code::invalid_argument, std::to_string(threads) + " threads; a team has from 1 to " + std::to_string(kMostThreads)});
    *team = new lacuna_team(threads);
    return LACUNA_OK;
  });
}

void lacuna_team_free(lacuna_team* team) { delete team; }

lacuna_status lacuna_team_pack(lacuna_team* team, const lacuna_layout* layout, const void* base, int64_t position, int64_t length,
                               void* out) {
  return guarded(LACUNA_GIVEN(team, layout), [&] {
    if (const Result<void> valid = check_fragment(layout->value, position, length); !valid) return failed(valid.error());
    team->value.pack(layout->value, static_cast<const std::byte*>(base), position, length, static_cast<std::byte*>(out));
    return LACUNA_OK;
  });
}

lacuna_status lacuna_team_unpack(lacuna_team* team, const lacuna_layout* layout, void* base, int64_t position, int64_t length,
                                 const void* in) {
  return guarded(LACUNA_GIVEN(team, layout), [&] {
    if (const Result<void> valid = check_fragment(layout->value, position, length); !valid) return failed(valid.error());
    if (const Result<void> valid = check_apart(layout->value); !valid) return failed(valid.error());
    team->value.unpack(layout->value, static_cast<std::byte*>(base), position, length, static_cast<const std::byte*>(in));
    return LACUNA_OK;
  });
}

lacuna_status lacuna_team_transpack(lacuna_team* team, const lacuna_layout* src, const void* src_base, const lacuna_layout* dst,
                                    void* dst_base) {
  return guarded(LACUNA_GIVEN(team, src, dst), [&] {
    if (const Result<void> valid = check_apart(dst->value); !valid) return failed(valid.error());
    const Result<void> moved =
        team->value.transpack(src->value, static_cast<const std::byte*>(src_base), dst->value, static_cast<std::byte*>(dst_base));
    return moved ? LACUNA_OK : failed(moved.error());
  });
}

lacuna_status lacuna_layout_encode(const lacuna_layout* layout, void* wire, size_t size, size_t* needed) {
  return guarded(LACUNA_GIVEN(layout, needed), [&] {
    const std::vector<std::byte> bytes = lacuna::layout::encode(layout->value);
    *needed = bytes.size();
    if (bytes.size() > size)
      return failed(
          {Code::limit, "the wire form takes " + std::to_string(bytes.size()) + " bytes; there is room for " + std::to_string(size)});
    std::memcpy(wire, bytes.data(), bytes.size());
    return LACUNA_OK;
  });
}

lacuna_status lacuna_layout_decode(const void* wire, size_t size, lacuna_layout** layout) {
  return hand_out(LACUNA_GIVEN(layout), layout, [&] { return lacuna::layout::decode({static_cast<const std::byte*>(wire), size}); });
}
