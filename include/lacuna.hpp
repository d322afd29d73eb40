// lacuna.hpp: Lacuna for C++20 programs; a thin layer over lacuna.h, which has the units and the rules. Objects own what they name, errors are
// exceptions of type lacuna::Error. Whatever is shaped like a strided view can be sent and received: std::mdspan and its kin (data_handle(), rank(),
// extent(i), stride(i)), and contiguous ranges such as std::vector and std::span.
//
//   auto ranks = lacuna::Communicator::connect("job", {.size = 2});
//   if (ranks.rank() == 0) ranks.send(matrix, 1);          // an mdspan
//   else ranks.recv(column, 0);                            // any other shape of as many bytes
#ifndef LACUNA_HPP
#define LACUNA_HPP

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lacuna.h"

namespace lacuna {

class Error : public std::runtime_error {
 public:
  explicit Error(lacuna_status status) : std::runtime_error(lacuna_error_message()), status_(status) {}
  [[nodiscard]] lacuna_status status() const { return status_; }

 private:
  lacuna_status status_;
};

namespace detail {
inline void check(lacuna_status status) {
  if (status != LACUNA_OK) throw Error(status);
}
struct Free {
  void operator()(lacuna_layout* layout) const { lacuna_layout_free(layout); }
  void operator()(lacuna_comm* comm) const { lacuna_comm_free(comm); }
  void operator()(lacuna_exchange* exchange) const { lacuna_exchange_free(exchange); }
};
}  // namespace detail

/// A strided view: std::mdspan's interface, as far as it is needed. Strides are in elements.
template <class View>
concept StridedView = requires(const View& view) {
  { *view.data_handle() };
  { view.rank() } -> std::convertible_to<std::size_t>;
  { view.extent(0) } -> std::convertible_to<std::int64_t>;
  { view.stride(0) } -> std::convertible_to<std::int64_t>;
};

/// Which bytes, in which order, relative to a base address. Move only.
class Layout {
 public:
  static Layout bytes(std::int64_t count) { return made(&lacuna_layout_bytes, count); }
  static Layout contiguous(std::int64_t count, const Layout& old) { return made(&lacuna_layout_contiguous, count, old.get()); }
  static Layout vector(std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Layout& old) {
    return made(&lacuna_layout_vector, count, blocklength, stride, old.get());
  }
  /// The stride in bytes.
  static Layout hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride_bytes, const Layout& old) {
    return made(&lacuna_layout_hvector, count, blocklength, stride_bytes, old.get());
  }
  static Layout resized(const Layout& old, std::int64_t lower_bound, std::int64_t extent) {
    return made(&lacuna_layout_resized, old.get(), lower_bound, extent);
  }
  /// lengths[i] bytes at offsets[i].
  static Layout blocks(std::span<const std::int64_t> offsets, std::span<const std::int64_t> lengths) {
    if (offsets.size() != lengths.size()) throw std::invalid_argument("blocks: as many offsets as lengths are needed");
    return made(&lacuna_layout_blocks, std::ssize(offsets), offsets.data(), lengths.data());
  }
  /// Blocks of block_bytes at page_numbers[i] * block_bytes.
  static Layout paged(std::int64_t block_bytes, std::span<const std::int64_t> page_numbers) {
    return made(&lacuna_layout_paged, block_bytes, std::ssize(page_numbers), page_numbers.data());
  }
  /// The elements of a view in the order of its indices, the last one fastest.
  template <StridedView View>
  static Layout of(const View& view) {
    constexpr std::int64_t item = sizeof(*view.data_handle());
    Layout layout = bytes(item);
    for (std::size_t d = view.rank(); d-- > 0;)
      layout = hvector(static_cast<std::int64_t>(view.extent(d)), 1, static_cast<std::int64_t>(view.stride(d)) * item, layout);
    return layout;
  }

  /// Of a handle from lacuna.h, which is owned from now on.
  explicit Layout(lacuna_layout* handle) : handle_(handle) {}
  [[nodiscard]] const lacuna_layout* get() const { return handle_.get(); }
  [[nodiscard]] std::int64_t size() const { return lacuna_layout_size(get()); }
  [[nodiscard]] std::int64_t run_count() const { return lacuna_layout_run_count(get()); }
  [[nodiscard]] std::int64_t extent() const { return lacuna_layout_extent(get()); }
  [[nodiscard]] bool same_runs(const Layout& other) const { return lacuna_layout_same_runs(get(), other.get()) == 1; }

 private:
  template <class Make, class... Arguments>
  static Layout made(const Make& make, Arguments... arguments) {
    lacuna_layout* handle = nullptr;
    detail::check(make(arguments..., &handle));
    return Layout(handle);
  }
  std::unique_ptr<lacuna_layout, detail::Free> handle_;
};

using Message = lacuna_message;
using Exposed = lacuna_exposed;  // memory of a rank that others put to and get from; to be sent to them
inline constexpr int any_source = LACUNA_ANY_SOURCE;
inline constexpr int any_tag = LACUNA_ANY_TAG;

/// A send or a receive that is under way. Ends with wait() or test(). Destroyed before, a receive that found no message is taken back; all else is waited
/// for, since the memory is in use. Must not outlive its communicator.
class Request {
 public:
  Request(lacuna_comm* comm, lacuna_request* handle) : comm_(comm), handle_(handle) {}
  Request(Request&& other) noexcept : comm_(other.comm_), handle_(std::exchange(other.handle_, nullptr)) {}
  Request& operator=(Request&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() {
    int cancelled = 0;
    if (handle_ != nullptr && lacuna_cancel(comm_, &handle_, &cancelled) == LACUNA_OK && cancelled == 0)
      lacuna_wait(comm_, &handle_, nullptr);
  }
  [[nodiscard]] bool done() const { return handle_ == nullptr; }
  Message wait() {
    Message message{};
    detail::check(lacuna_wait(comm_, &handle_, &message));
    return message;
  }
  std::optional<Message> test() {
    Message message{};
    int done = 0;
    detail::check(lacuna_test(comm_, &handle_, &done, &message));
    return done == 1 ? std::optional(message) : std::nullopt;
  }

 private:
  lacuna_comm* comm_;
  lacuna_request* handle_;
};

/// What all ranks do together, to be started again and again (lacuna_exchange). Errors of arguments come out of the calls that wait or test. One that is
/// under way is given up when it is destroyed. Must not outlive its communicator, nor the memory.
class Exchange {
 public:
  struct Options {
    std::string schedule = "automatic";  ///< "at_once", "pairwise", "forward"; all ranks the same
    int window = 8;                      ///< of pairwise: sends, and receives, under way at once
    double timeout_s = 0;                ///< of wait(), for the other ranks; 0: for ever
  };
  explicit Exchange(lacuna_exchange* handle) : handle_(handle) {}
  void start() { detail::check(lacuna_exchange_start(handle_.get())); }
  bool test() {
    int done = 0;
    detail::check(lacuna_exchange_test(handle_.get(), &done));
    return done == 1;
  }
  void wait() { detail::check(lacuna_exchange_wait(handle_.get())); }
  [[nodiscard]] std::string explain() const {
    std::string text(lacuna_exchange_explain(handle_.get(), nullptr, 0), '\0');
    lacuna_exchange_explain(handle_.get(), text.data(), text.size() + 1);
    return text;
  }

 private:
  std::unique_ptr<lacuna_exchange, detail::Free> handle_;
};

/// Memory of an exchange, with the rank where it goes, or comes from: `layout` at `base`.
struct Outgoing {
  int rank;
  const void* base;
  const Layout* layout;
};
struct Incoming {
  int rank;
  void* base;
  const Layout* layout;
};
using Matrix = lacuna_matrix;

class Communicator {
 public:
  struct Options {
    int size = 2;
    int rank = -1;       ///< -1: as they come
    std::string secret;  ///< for "host:port"
    std::string nic = "local";
    double timeout_s = 30;
    std::int64_t eager_bytes = 0;       ///< 0: the default
    std::int64_t unexpected_bytes = 0;  ///< 0: the default
    bool progress_thread = false;
    std::string registering;  ///< empty: LACUNA_REGISTERING, or else "automatic"
    std::string learning;     ///< empty: LACUNA_LEARN, or else "off"
  };
  /// Meets the others (lacuna_connect()).
  static Communicator connect(const std::string& address, const Options& options) {
    const lacuna_connect_options given{options.nic.c_str(),
                                       options.timeout_s,
                                       options.eager_bytes,
                                       options.unexpected_bytes,
                                       options.progress_thread ? 1 : 0,
                                       options.registering.c_str(),
                                       options.learning.c_str()};
    lacuna_comm* comm = nullptr;
    detail::check(lacuna_connect(address.c_str(), options.size, options.rank, options.secret.c_str(), &given, &comm));
    return Communicator(comm);
  }
  explicit Communicator(lacuna_comm* handle) : handle_(handle) {}
  [[nodiscard]] lacuna_comm* get() const { return handle_.get(); }
  [[nodiscard]] int rank() const { return lacuna_comm_rank(get()); }
  [[nodiscard]] int size() const { return lacuna_comm_size(get()); }

  // Memory that a layout describes.
  void send(const void* base, const Layout& layout, int dest, int tag = 0) {
    detail::check(lacuna_send(get(), base, layout.get(), dest, tag));
  }
  Message recv(void* base, const Layout& layout, int source = any_source, int tag = any_tag) {
    Message message{};
    detail::check(lacuna_recv(get(), base, layout.get(), source, tag, &message));
    return message;
  }
  [[nodiscard]] Request isend(const void* base, const Layout& layout, int dest, int tag = 0) {
    lacuna_request* request = nullptr;
    detail::check(lacuna_isend(get(), base, layout.get(), dest, tag, &request));
    return {get(), request};
  }
  [[nodiscard]] Request irecv(void* base, const Layout& layout, int source = any_source, int tag = any_tag) {
    lacuna_request* request = nullptr;
    detail::check(lacuna_irecv(get(), base, layout.get(), source, tag, &request));
    return {get(), request};
  }

  // Views and ranges.
  template <class View>
  void send(const View& view, int dest, int tag = 0) {
    send(address_of(view), layout_of(view), dest, tag);
  }
  template <class View>
  Message recv(View&& view, int source = any_source, int tag = any_tag) {
    return recv(writable(address_of(view)), layout_of(view), source, tag);
  }
  template <class View>
  [[nodiscard]] Request isend(const View& view, int dest, int tag = 0) {
    return isend(address_of(view), layout_of(view), dest, tag);
  }
  template <class View>
  [[nodiscard]] Request irecv(View&& view, int source = any_source, int tag = any_tag) {
    return irecv(writable(address_of(view)), layout_of(view), source, tag);
  }

  /// Registers a contiguous range until deregister_memory(), for all messages in it: it stays mapped until then.
  template <class View>
  [[nodiscard]] std::uint32_t register_memory(View&& range) {
    static_assert(std::ranges::contiguous_range<View>, "a contiguous range is needed");
    std::uint32_t number = 0;
    detail::check(lacuna_register_memory(get(), writable(std::ranges::data(range)),
                                         static_cast<std::int64_t>(std::ranges::size(range) * sizeof(std::ranges::range_value_t<View>)),
                                         &number));
    return number;
  }
  void deregister_memory(std::uint32_t number) { detail::check(lacuna_deregister_memory(get(), number)); }

  // One-sided: `offset` bytes behind the beginning of exposed memory.
  template <class View>
  [[nodiscard]] Exposed expose(View&& range) {
    static_assert(std::ranges::contiguous_range<View>, "a contiguous range is needed");
    using Element = std::ranges::range_value_t<View>;
    static_assert(std::is_trivially_copyable_v<Element>, "elements must be trivially copyable");
    Exposed exposed{};
    detail::check(lacuna_expose(get(), writable(std::ranges::data(range)),
                                static_cast<std::int64_t>(std::ranges::size(range) * sizeof(Element)), &exposed));
    return exposed;
  }
  void withdraw(const Exposed& exposed) { detail::check(lacuna_withdraw(get(), &exposed)); }
  template <class View>
  void put(const View& view, const Exposed& to, std::int64_t offset, const Layout& there) {
    const Layout here = layout_of(view);
    detail::check(lacuna_put(get(), address_of(view), here.get(), &to, offset, there.get()));
  }
  template <class View>
  void put(const View& view, const Exposed& to, std::int64_t offset = 0) {
    put(view, to, offset, Layout::bytes(layout_of(view).size()));
  }
  template <class View>
  void get(View&& view, const Exposed& from, std::int64_t offset, const Layout& there) {
    const Layout here = layout_of(view);
    detail::check(lacuna_get(get(), writable(address_of(view)), here.get(), &from, offset, there.get()));
  }
  template <class View>
  void get(View&& view, const Exposed& from, std::int64_t offset = 0) {
    get(view, from, offset, Layout::bytes(layout_of(view).size()));
  }

  // All ranks together (lacuna.h). Of an alltoallw there is one block for each rank on either side, in the order of ranks.
  [[nodiscard]] Exchange alltoallw_init(std::span<const Outgoing> sends, std::span<const Incoming> receives,
                                        const Exchange::Options& options = Exchange::Options()) {
    check_ranks(sends);
    check_ranks(receives);
    const Blocks<const void*> out(sends);
    const Blocks<void*> in(receives);
    const lacuna_exchange_options given = c_options(options);
    lacuna_exchange* exchange = nullptr;
    detail::check(
        lacuna_alltoallw_init(get(), out.bases.data(), out.layouts.data(), in.bases.data(), in.layouts.data(), &given, &exchange));
    return Exchange(exchange);
  }
  [[nodiscard]] Exchange neighbor_exchange_init(std::span<const Outgoing> sends, std::span<const Incoming> receives,
                                                const Exchange::Options& options = Exchange::Options()) {
    const Blocks<const void*> out(sends);
    const Blocks<void*> in(receives);
    const lacuna_exchange_options given = c_options(options);
    lacuna_exchange* exchange = nullptr;
    detail::check(lacuna_neighbor_exchange_init(get(), static_cast<int>(sends.size()), out.ranks.data(), out.bases.data(),
                                                out.layouts.data(), static_cast<int>(receives.size()), in.ranks.data(), in.bases.data(),
                                                in.layouts.data(), &given, &exchange));
    return Exchange(exchange);
  }
  /// matrix: with lists of as many blocks as there are ranks, or none.
  [[nodiscard]] Exchange transpose_init(const Matrix& matrix, const void* before, void* after,
                                        const Exchange::Options& options = Exchange::Options()) {
    const lacuna_exchange_options given = c_options(options);
    lacuna_exchange* exchange = nullptr;
    detail::check(lacuna_transpose_init(get(), &matrix, before, after, &given, &exchange));
    return Exchange(exchange);
  }
  void alltoallw(std::span<const Outgoing> sends, std::span<const Incoming> receives,
                 const Exchange::Options& options = Exchange::Options()) {
    run(alltoallw_init(sends, receives, options));
  }
  void neighbor_exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives,
                         const Exchange::Options& options = Exchange::Options()) {
    run(neighbor_exchange_init(sends, receives, options));
  }
  void transpose(const Matrix& matrix, const void* before, void* after, const Exchange::Options& options = Exchange::Options()) {
    run(transpose_init(matrix, before, after, options));
  }

  [[nodiscard]] std::optional<Message> probe(int source = any_source, int tag = any_tag) {
    Message message{};
    int found = 0;
    detail::check(lacuna_probe(get(), source, tag, &found, &message));
    return found == 1 ? std::optional(message) : std::nullopt;
  }
  bool progress() { return lacuna_progress(get()) == 1; }
  [[nodiscard]] std::string statistics() const {
    std::string text(lacuna_comm_statistics(get(), nullptr, 0), '\0');
    lacuna_comm_statistics(get(), text.data(), text.size() + 1);
    return text;
  }

 private:
  // Lists as C takes them.
  template <class Base>
  struct Blocks {
    explicit Blocks(const auto& blocks) {
      for (const auto& block : blocks) {
        ranks.push_back(block.rank);
        bases.push_back(block.base);
        layouts.push_back(block.layout != nullptr ? block.layout->get() : nullptr);
      }
    }
    std::vector<int> ranks;
    std::vector<Base> bases;
    std::vector<const lacuna_layout*> layouts;
  };
  static lacuna_exchange_options c_options(const Exchange::Options& options) {
    return {options.schedule.c_str(), options.window, options.timeout_s};
  }
  void check_ranks(const auto& blocks) const {
    bool ordered = std::cmp_equal(blocks.size(), size());
    for (std::size_t i = 0; ordered && i < blocks.size(); ++i) ordered = std::cmp_equal(blocks[i].rank, i);
    if (!ordered) throw std::invalid_argument("alltoallw: one block for each rank is needed, in the order of ranks");
  }
  static void run(Exchange exchange) {
    exchange.start();
    exchange.wait();
  }
  template <class View>
  static auto* address_of(View& view) {
    if constexpr (StridedView<View>) {
      return view.data_handle();
    } else {
      static_assert(std::ranges::contiguous_range<View>, "a strided view (std::mdspan) or a contiguous range is needed");
      return std::ranges::data(view);
    }
  }
  template <class View>
  static Layout layout_of(const View& view) {
    if constexpr (StridedView<View>) {
      static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*view.data_handle())>>,
                    "elements must be trivially copyable");
      return Layout::of(view);
    } else {
      using Element = std::ranges::range_value_t<View>;
      static_assert(std::is_trivially_copyable_v<Element>, "elements must be trivially copyable");
      return Layout::bytes(static_cast<std::int64_t>(std::ranges::size(view) * sizeof(Element)));
    }
  }
  template <class Element>
  static void* writable(Element* address) {
    static_assert(!std::is_const_v<Element>, "what is received into must not be const");
    return address;
  }
  std::unique_ptr<lacuna_comm, detail::Free> handle_;
};

}  // namespace lacuna

#endif
