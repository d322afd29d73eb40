// The C API: handles around values, statuses around Results.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "lacuna/c/handles.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/guide/guide.hpp"
#include "lacuna/layout/layout.hpp"

using lacuna::base::Code;
using lacuna::base::Error;
using lacuna::base::Result;
using lacuna::c::failed;
using lacuna::c::guarded;
using lacuna::c::write_text;
using lacuna::layout::Layout;

struct lacuna_guide {
  lacuna::guide::Guide guide;
  const lacuna::guide::Peer* peer;
};

namespace {

std::string& last_message() {
  thread_local std::string message;
  return message;
}

lacuna_status status_of(Code code) {
  switch (code) {
    case Code::invalid_argument: return LACUNA_ERR_INVALID_ARGUMENT;
    case Code::overflow: return LACUNA_ERR_OVERFLOW;
    case Code::limit: return LACUNA_ERR_LIMIT;
    case Code::malformed: return LACUNA_ERR_MALFORMED;
    case Code::out_of_memory: return LACUNA_ERR_OUT_OF_MEMORY;
    case Code::unsupported: return LACUNA_ERR_UNSUPPORTED;
    case Code::truncated: return LACUNA_ERR_TRUNCATED;
    case Code::peer_lost: return LACUNA_ERR_PEER_LOST;
    case Code::timeout: return LACUNA_ERR_TIMEOUT;
    case Code::permission: return LACUNA_ERR_PERMISSION;
    default: return LACUNA_ERR_OTHER;
  }
}

Code code_of(const std::system_error& error) {
  if (error.code() == std::errc::not_enough_memory) return Code::out_of_memory;
  if (error.code() == std::errc::resource_unavailable_try_again) return Code::limit;  // no further thread, for one
  if (error.code() == std::errc::permission_denied || error.code() == std::errc::operation_not_permitted) return Code::permission;
  return Code::io;
}

// Of the exception that is being handled.
Error error_of_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {Code::out_of_memory, "no memory for this call"};
  } catch (const std::length_error&) {
    return {Code::out_of_memory, "no memory is as large as this call asks for"};
  } catch (const std::system_error& error) {
    return {code_of(error), error.what()};
  } catch (const std::exception& error) {
    return {Code::io, std::string("a fault of the library's own: ") + error.what()};
  } catch (...) {
    return {Code::io, "a fault of the library's own"};
  }
}

// Runs `make`, which returns a Result<Layout>, and hands the layout out.
lacuna_status hand_out(lacuna_layout** layout, const auto& make) {
  return guarded([&] {
    Result<Layout> made = make();
    if (!made) return failed(made.error());
    *layout = new lacuna_layout{std::move(*made)};
    return LACUNA_OK;
  });
}

// The library's names are literals, so they end with a NUL.
const char* c_name(std::string_view name) { return name.data(); }  // NOLINT(bugprone-suspicious-stringview-data-usage)

lacuna::guide::Placement placement_of(int objective) {
  lacuna::guide::Placement placement;
  placement.objective = static_cast<lacuna::guide::Objective>(objective);
  return placement;
}

Result<void> check_objective(int objective) {
  if (objective >= LACUNA_LATENCY && objective <= LACUNA_CPU) return {};
  return lacuna::base::fail(Code::invalid_argument, "there is no objective " + std::to_string(objective));
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

}  // namespace

void lacuna::c::remember(std::string text) { last_message() = std::move(text); }

lacuna_status lacuna::c::thrown() noexcept {
  Code code = Code::io;
  try {
    const Error error = error_of_exception();
    code = error.code;
    return failed(error);
  } catch (...) {  // no memory for the text; what was said last is not of this call
    last_message().clear();
    return status_of(code == Code::io ? Code::out_of_memory : code);
  }
}

lacuna_status lacuna::c::failed(const Error& error) {
  last_message() = error.text();
  return status_of(error.code);
}

const char* lacuna_version(void) {
  return lacuna::base::version().data();  // a literal
}

const char* lacuna_error_message(void) { return last_message().c_str(); }

lacuna_status lacuna_layout_bytes(int64_t count, lacuna_layout** layout) {
  return hand_out(layout, [&] { return Layout::bytes(count); });
}

lacuna_status lacuna_layout_contiguous(int64_t count, const lacuna_layout* old, lacuna_layout** layout) {
  return hand_out(layout, [&] { return Layout::contiguous(count, old->value); });
}

lacuna_status lacuna_layout_vector(int64_t count, int64_t blocklength, int64_t stride, const lacuna_layout* old, lacuna_layout** layout) {
  return hand_out(layout, [&] { return Layout::vector(count, blocklength, stride, old->value); });
}

lacuna_status lacuna_layout_hvector(int64_t count, int64_t blocklength, int64_t stride_bytes, const lacuna_layout* old,
                                    lacuna_layout** layout) {
  return hand_out(layout, [&] { return Layout::hvector(count, blocklength, stride_bytes, old->value); });
}

lacuna_status lacuna_layout_hindexed(int64_t count, const int64_t* blocklengths, const int64_t* byte_displacements,
                                     const lacuna_layout* old, lacuna_layout** layout) {
  return hand_out(layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    return Layout::hindexed(list(blocklengths, count), list(byte_displacements, count), old->value);
  });
}

lacuna_status lacuna_layout_hindexed_block(int64_t count, int64_t blocklength, const int64_t* byte_displacements, const lacuna_layout* old,
                                           lacuna_layout** layout) {
  return hand_out(layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    return Layout::hindexed_block(blocklength, list(byte_displacements, count), old->value);
  });
}

lacuna_status lacuna_layout_struct(int64_t count, const int64_t* blocklengths, const int64_t* byte_displacements,
                                   const lacuna_layout* const* members, lacuna_layout** layout) {
  return hand_out(layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    std::vector<Layout> values;
    values.reserve(static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i) values.push_back(members[i]->value);
    return Layout::structure(list(blocklengths, count), list(byte_displacements, count), values);
  });
}

lacuna_status lacuna_layout_subarray(int dims, const int64_t* sizes, const int64_t* subsizes, const int64_t* starts, lacuna_order order,
                                     const lacuna_layout* old, lacuna_layout** layout) {
  const auto in_order = order == LACUNA_ORDER_C ? lacuna::layout::Order::c : lacuna::layout::Order::fortran;
  return hand_out(layout,
                  [&] { return Layout::subarray(list(sizes, dims), list(subsizes, dims), list(starts, dims), in_order, old->value); });
}

lacuna_status lacuna_layout_resized(const lacuna_layout* old, int64_t lower_bound, int64_t extent, lacuna_layout** layout) {
  return hand_out(layout, [&] { return Layout::resized(old->value, lower_bound, extent); });
}

lacuna_status lacuna_layout_blocks(int64_t count, const int64_t* offsets, const int64_t* lengths, lacuna_layout** layout) {
  return hand_out(layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    return Layout::blocks(list(offsets, count), list(lengths, count));
  });
}

lacuna_status lacuna_layout_paged(int64_t block_bytes, int64_t count, const int64_t* page_numbers, lacuna_layout** layout) {
  return hand_out(layout, [&]() -> Result<Layout> {
    LACUNA_TRY(check_count(count));
    return Layout::paged(block_bytes, list(page_numbers, count));
  });
}

void lacuna_layout_free(lacuna_layout* layout) { delete layout; }

int64_t lacuna_layout_size(const lacuna_layout* layout) { return layout->value.size(); }
int64_t lacuna_layout_run_count(const lacuna_layout* layout) { return layout->value.run_count(); }
int64_t lacuna_layout_lower_bound(const lacuna_layout* layout) { return layout->value.lower_bound(); }
int64_t lacuna_layout_extent(const lacuna_layout* layout) { return layout->value.extent(); }
int64_t lacuna_layout_true_lower_bound(const lacuna_layout* layout) { return layout->value.true_lower_bound(); }
int64_t lacuna_layout_true_extent(const lacuna_layout* layout) { return layout->value.true_extent(); }
int lacuna_layout_same_runs(const lacuna_layout* a, const lacuna_layout* b) { return a->value.same_runs(b->value) ? 1 : 0; }

size_t lacuna_layout_describe(const lacuna_layout* layout, char* text, size_t size) {
  return write_text(layout->value.describe(), text, size);
}

size_t lacuna_layout_explain(const lacuna_layout* layout, char* text, size_t size) {
  std::size_t length = 0;
  guarded([&] {
    length = write_text(lacuna::guide::describe(layout->value), text, size);
    return LACUNA_OK;
  });
  return length;
}

lacuna_status lacuna_pack(const lacuna_layout* layout, const void* base, int64_t position, int64_t length, void* out) {
  return guarded([&] {
    if (const Result<void> valid = check_fragment(layout->value, position, length); !valid) return failed(valid.error());
    lacuna::copy::pack(layout->value, static_cast<const std::byte*>(base), position, length, static_cast<std::byte*>(out));
    return LACUNA_OK;
  });
}

lacuna_status lacuna_unpack(const lacuna_layout* layout, void* base, int64_t position, int64_t length, const void* in) {
  return guarded([&] {
    if (const Result<void> valid = check_fragment(layout->value, position, length); !valid) return failed(valid.error());
    lacuna::copy::unpack(layout->value, static_cast<std::byte*>(base), position, length, static_cast<const std::byte*>(in));
    return LACUNA_OK;
  });
}

lacuna_status lacuna_transpack(const lacuna_layout* src, const void* src_base, const lacuna_layout* dst, void* dst_base) {
  return guarded([&] {
    const Result<void> moved =
        lacuna::copy::transpack(src->value, static_cast<const std::byte*>(src_base), dst->value, static_cast<std::byte*>(dst_base));
    return moved ? LACUNA_OK : failed(moved.error());
  });
}

lacuna_status lacuna_layout_encode(const lacuna_layout* layout, void* wire, size_t size, size_t* needed) {
  return guarded([&] {
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
  return hand_out(layout, [&] { return lacuna::layout::decode({static_cast<const std::byte*>(wire), size}); });
}

lacuna_status lacuna_guide_open(const char* nic, double message_us, lacuna_guide** guide) {
  return guarded([&] {
    namespace library = lacuna::guide;
    if (nic == nullptr) return failed({Code::invalid_argument, "the name of the NIC is NULL"});
    auto force = library::Force::from_environment();
    if (!force) return failed(force.error());
    auto limits = library::limits_of(nic);
    if (!limits) return failed(limits.error());
    auto made = std::make_unique<lacuna_guide>(library::Guide(*force), nullptr);
    made->peer = &made->guide.add(std::move(*limits), library::find_profile(nic), message_us);
    *guide = made.release();
    return LACUNA_OK;
  });
}

void lacuna_guide_free(lacuna_guide* guide) { delete guide; }

lacuna_status lacuna_guide_choose(lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst, int objective,
                                  lacuna_choice* choice) {
  return guarded([&] {
    if (const Result<void> valid = check_objective(objective); !valid) return failed(valid.error());
    const auto made = guide->guide.choose(src->value, dst->value, *guide->peer, placement_of(objective));
    if (!made) return failed(made.error());
    *choice = {c_name(made->way.method->name),
               c_name(lacuna::nic::path_name(made->way.path)),
               c_name(lacuna::method::notify_name(made->way.notify)),
               made->plan.latency_ns / 1e3,
               {made->plan.cpu_ns[0] / 1e3, made->plan.cpu_ns[1] / 1e3}};
    return LACUNA_OK;
  });
}

lacuna_status lacuna_guide_explain(const lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst, int objective, char* text,
                                   size_t size, size_t* needed) {
  return guarded([&] {
    if (const Result<void> valid = check_objective(objective); !valid) return failed(valid.error());
    const auto why = guide->guide.explain(src->value, dst->value, *guide->peer, placement_of(objective));
    if (!why) return failed(why.error());
    *needed = write_text(lacuna::guide::describe(*why), text, size);
    return LACUNA_OK;
  });
}
