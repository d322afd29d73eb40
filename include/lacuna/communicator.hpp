// lacuna::Communicator: messages, one-sided access and exchanges between processes. Include lacuna.hpp.
#ifndef LACUNA_COMMUNICATOR_HPP
#define LACUNA_COMMUNICATOR_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "error.hpp"
#include "exchange.hpp"
#include "layout.hpp"

namespace lacuna {

using Message = lacuna_message;
using Exposed = lacuna_exposed;  // memory of a rank that others put to and get from; to be sent to them
inline constexpr int any_source = LACUNA_ANY_SOURCE;
inline constexpr int any_tag = LACUNA_ANY_TAG;

/// A send or a receive that is under way. Ends with wait() or test(). Destroyed before, a receive that found no
/// message is taken back; all else is waited for, since the memory is in use. Must not outlive its communicator.
class Request {
 public:
  /// Of handles from lacuna.h; the request is owned from now on.
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
  /// Errors: TRUNCATED, PEER_LOST, TIMEOUT, MALFORMED; whatever they are, the request has ended.
  Message wait() {
    Message message{};
    detail::check(lacuna_wait(comm_, &handle_, &message));
    return message;
  }
  /// What became of it, if it is done. Errors: as wait().
  std::optional<Message> test() {
    Message message{};
    int done = 0;
    detail::check(lacuna_test(comm_, &handle_, &done, &message));
    return done == 1 ? std::optional(message) : std::nullopt;
  }

 private:
  friend class Communicator;
  lacuna_comm* comm_;
  lacuna_request* handle_;
};

class Communicator {
 public:
  struct Options {
    int size = 2;
    int rank = -1;            ///< -1: as they come
    std::string secret = {};  ///< for "host:port"
    std::string nic = {};     ///< "local", "ofi:tcp", ...; empty: LACUNA_NIC, or else one that reaches all ranks
    double timeout_s = 30;
    std::int64_t eager_bytes = 0;       ///< 0: the default
    std::int64_t unexpected_bytes = 0;  ///< 0: the default
    bool progress_thread = false;
    std::string registering = {};  ///< empty: LACUNA_REGISTERING, or else "automatic"
    std::string learning = {};     ///< empty: LACUNA_LEARN, or else "off"
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

  // Memory that a view or a range names.
  template <class View>
    requires Memory<const View&>
  void send(const View& view, int dest, int tag = 0) {
    send(detail::address_of(view), Layout::of(view), dest, tag);
  }
  template <WritableMemory View>
  Message recv(View&& view, int source = any_source, int tag = any_tag) {
    return recv(detail::address_of(view), Layout::of(view), source, tag);
  }
  template <Lasting View>
    requires Memory<View>
  [[nodiscard]] Request isend(View&& view, int dest, int tag = 0) {
    return isend(detail::address_of(view), Layout::of(view), dest, tag);
  }
  template <Lasting View>
    requires WritableMemory<View>
  [[nodiscard]] Request irecv(View&& view, int source = any_source, int tag = any_tag) {
    return irecv(detail::address_of(view), Layout::of(view), source, tag);
  }

  /// Waits for all, and ends them. What became of each. Errors: the first failed one's; all have ended.
  std::vector<Message> wait_all(std::span<Request> requests) {
    std::vector<lacuna_request*> handles = taken(requests);
    std::vector<Message> messages(requests.size());
    detail::check(lacuna_wait_all(get(), static_cast<int>(handles.size()), handles.data(), messages.data()));
    return messages;
  }
  /// Waits for one that is not done, and ends it. Errors: its own; INVALID_ARGUMENT (all are done).
  struct Ended {
    std::size_t index;
    Message message;
  };
  Ended wait_any(std::span<Request> requests) {
    std::vector<lacuna_request*> handles = taken(requests);
    int index = 0;
    Message message{};
    const lacuna_status status = lacuna_wait_any(get(), static_cast<int>(handles.size()), handles.data(), &index, &message);
    for (std::size_t i = 0; i < handles.size(); ++i) requests[i].handle_ = handles[i];
    detail::check(status);
    return {static_cast<std::size_t>(index), message};
  }

  /// Registers a contiguous range until deregister_memory(), for all messages in it: it stays mapped until then.
  template <Lasting Range>
    requires WritableMemory<Range> && std::ranges::contiguous_range<Range>
  [[nodiscard]] std::uint32_t register_memory(Range&& range) {
    std::uint32_t number = 0;
    detail::check(lacuna_register_memory(get(), detail::address_of(range), Layout::of(range).size(), &number));
    return number;
  }
  /// Errors: INVALID_ARGUMENT (no such number).
  void deregister_memory(std::uint32_t number) { detail::check(lacuna_deregister_memory(get(), number)); }

  // One-sided: `there` lies `offset` bytes behind the beginning of exposed memory. Errors: INVALID_ARGUMENT (sizes
  // differ, or it is not within the memory), LIMIT, PEER_LOST.
  template <Lasting Range>
    requires WritableMemory<Range> && std::ranges::contiguous_range<Range>
  [[nodiscard]] Exposed expose(Range&& range) {
    Exposed exposed{};
    detail::check(lacuna_expose(get(), detail::address_of(range), Layout::of(range).size(), &exposed));
    return exposed;
  }
  /// No rank reaches it afterwards; waits for what is under way.
  void withdraw(const Exposed& exposed) { detail::check(lacuna_withdraw(get(), &exposed)); }
  void put(const void* base, const Layout& here, const Exposed& to, std::int64_t offset, const Layout& there) {
    detail::check(lacuna_put(get(), base, here.get(), &to, offset, there.get()));
  }
  void get(void* base, const Layout& here, const Exposed& from, std::int64_t offset, const Layout& there) {
    detail::check(lacuna_get(get(), base, here.get(), &from, offset, there.get()));
  }
  [[nodiscard]] Request iput(const void* base, const Layout& here, const Exposed& to, std::int64_t offset, const Layout& there) {
    lacuna_request* request = nullptr;
    detail::check(lacuna_iput(get(), base, here.get(), &to, offset, there.get(), &request));
    return {get(), request};
  }
  [[nodiscard]] Request iget(void* base, const Layout& here, const Exposed& from, std::int64_t offset, const Layout& there) {
    lacuna_request* request = nullptr;
    detail::check(lacuna_iget(get(), base, here.get(), &from, offset, there.get(), &request));
    return {get(), request};
  }
  template <class View>
    requires Memory<const View&>
  void put(const View& view, const Exposed& to, std::int64_t offset, const Layout& there) {
    put(detail::address_of(view), Layout::of(view), to, offset, there);
  }
  template <class View>
    requires Memory<const View&>
  void put(const View& view, const Exposed& to, std::int64_t offset = 0) {
    put(view, to, offset, Layout::bytes(Layout::of(view).size()));
  }
  template <WritableMemory View>
  void get(View&& view, const Exposed& from, std::int64_t offset, const Layout& there) {
    get(detail::address_of(view), Layout::of(view), from, offset, there);
  }
  template <WritableMemory View>
  void get(View&& view, const Exposed& from, std::int64_t offset = 0) {
    get(view, from, offset, Layout::bytes(Layout::of(view).size()));
  }

  // All ranks together (lacuna.h). Of an alltoallw there is one block for each rank on either side, in the order of
  // ranks.
  [[nodiscard]] Exchange alltoallw_init(std::span<const Outgoing> sends, std::span<const Incoming> receives,
                                        const Exchange::Options& options = Exchange::Options()) {
    check_ranks(sends);
    check_ranks(receives);
    const detail::Blocks<const void*> out(sends);
    const detail::Blocks<void*> in(receives);
    const lacuna_exchange_options given = detail::c_options(options);
    lacuna_exchange* exchange = nullptr;
    detail::check(
        lacuna_alltoallw_init(get(), out.bases.data(), out.layouts.data(), in.bases.data(), in.layouts.data(), &given, &exchange));
    return Exchange(exchange);
  }
  [[nodiscard]] Exchange neighbor_exchange_init(std::span<const Outgoing> sends, std::span<const Incoming> receives,
                                                const Exchange::Options& options = Exchange::Options()) {
    const detail::Blocks<const void*> out(sends);
    const detail::Blocks<void*> in(receives);
    const lacuna_exchange_options given = detail::c_options(options);
    lacuna_exchange* exchange = nullptr;
    detail::check(lacuna_neighbor_exchange_init(get(), static_cast<int>(sends.size()), out.ranks.data(), out.bases.data(),
                                                out.layouts.data(), static_cast<int>(receives.size()), in.ranks.data(), in.bases.data(),
                                                in.layouts.data(), &given, &exchange));
    return Exchange(exchange);
  }
  /// matrix: with lists of as many blocks as there are ranks, or none.
  [[nodiscard]] Exchange transpose_init(const Matrix& matrix, const void* before, void* after,
                                        const Exchange::Options& options = Exchange::Options()) {
    const lacuna_exchange_options given = detail::c_options(options);
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

  /// What a receive would find now.
  [[nodiscard]] std::optional<Message> probe(int source = any_source, int tag = any_tag) {
    Message message{};
    int found = 0;
    detail::check(lacuna_probe(get(), source, tag, &found, &message));
    return found == 1 ? std::optional(message) : std::nullopt;
  }
  /// Moves on without waiting; whether something moved.
  bool progress() { return lacuna_progress(get()) == 1; }
  /// What was sent and received, by which protocol and way.
  [[nodiscard]] std::string statistics() const {
    return detail::text_of([this](char* text, std::size_t size) { return lacuna_comm_statistics(get(), text, size); });
  }
  /// How a message would travel to `dest`.
  [[nodiscard]] std::string explain(const Layout& src, const Layout& dst, int dest) {
    return detail::text_of([&](char* text, std::size_t size) {
      std::size_t needed = 0;
      detail::check(lacuna_comm_explain(get(), src.get(), dst.get(), dest, text, size, &needed));
      return needed;
    });
  }

 private:
  void check_ranks(const auto& blocks) const {
    bool ordered = std::cmp_equal(blocks.size(), size());
    for (std::size_t i = 0; ordered && i < blocks.size(); ++i) ordered = std::cmp_equal(blocks[i].rank, i);
    if (!ordered) detail::refuse("alltoallw: one block for each rank is needed, in the order of ranks");
  }
  static void run(Exchange exchange) {
    exchange.start();
    exchange.wait();
  }
  static std::vector<lacuna_request*> taken(std::span<Request> requests) {
    std::vector<lacuna_request*> handles;
    handles.reserve(requests.size());
    for (Request& request : requests) handles.push_back(std::exchange(request.handle_, nullptr));
    return handles;
  }
  std::unique_ptr<lacuna_comm, detail::Free> handle_;
};

}  // namespace lacuna

#endif
