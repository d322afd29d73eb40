// The bootstrap by a name in the abstract namespace of Unix sockets, which ends with the processes that use it. The
// process that binds the name coordinates, the others connect to it; the kernel tells both whose process the other is.
// The coordinator makes a pair of sockets for each two of the others; the connection to itself is its own with each.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <span>

#include "lacuna/protocol/bootstrap/bootstrap.hpp"

namespace lacuna::protocol::bootstrap {
namespace {

using base::Code;

constexpr std::uint32_t kMagic = 0x314d434c;     // "LCM1"
constexpr std::uint32_t kNoMemory = 0x304d434c;  // "LCM0": of a process that cannot take part
constexpr std::size_t kRequestBytes = 12;
constexpr std::int64_t kRetryNs = 5'000'000;
constexpr std::int64_t kTellNs = 5'000'000'000;  // the others come at once, unless they have no memory either
constexpr const char* kWithoutMemory = "no memory";

struct Name {
  sockaddr_un address{};
  socklen_t length = 0;
};

Result<Name> name_of(std::string_view name) {
  Name result;
  constexpr std::size_t kMost = sizeof result.address.sun_path - 1;  // without the zero that says "abstract"
  const auto full = fmt::format_to_n(result.address.sun_path + 1, kMost, "lacuna-{}-{}", geteuid(), name);
  if (full.size > kMost)
    return base::fail(Code::limit, fmt::format("a name of {} bytes; at most {} fit", name.size(), kMost - (full.size - name.size())));
  result.address.sun_family = AF_UNIX;
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size);
  return result;
}

Result<base::Fd> unix_socket() {
  base::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::unexpected(base::system_error("socket", errno));
  return socket;
}

const sockaddr* generic(const Name& name) { return reinterpret_cast<const sockaddr*>(&name.address); }

// The listening socket, or nothing if another has the name.
Result<base::Fd> try_bind(const Name& name) {
  base::Fd socket = LACUNA_TRY(unix_socket());
  if (bind(socket.get(), generic(name), name.length) != 0) {
    if (errno == EADDRINUSE) return base::Fd();
    return std::unexpected(base::system_error("bind", errno));
  }
  if (listen(socket.get(), kMostRanks) != 0) return std::unexpected(base::system_error("listen", errno));
  return socket;
}

// The effective user of the process at the other end, as it was when it connected or began to listen.
Result<uid_t> user_of(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::unexpected(base::system_error("SO_PEERCRED", errno));
  return peer.uid;
}

// The connection, or nothing if no process listens, yet or any more.
Result<base::Fd> try_connect(const Name& name, const BootstrapPlan& plan) {
  base::Fd socket = LACUNA_TRY(unix_socket());
  if (connect(socket.get(), generic(name), name.length) != 0) {
    if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) return base::Fd();
    return std::unexpected(base::system_error("connect", errno));
  }
  const uid_t user = LACUNA_TRY(user_of(socket.get()));
  if (user != geteuid())
    return base::fail(Code::permission,
                      fmt::format("a process of user {} holds the name {}; this one runs as user {}", user, plan.where, geteuid()));
  return socket;
}

// So short that it wants no memory.
std::string request_of(std::uint32_t magic, int size, int rank) {
  std::string request;
  put(request, magic);
  put(request, static_cast<std::uint32_t>(size));
  put(request, static_cast<std::uint32_t>(rank));
  return request;
}

// A Bootstrap needs the kernel to say which process sends.
Result<std::unique_ptr<nic::Bootstrap>> bootstrap_over(base::Fd socket) {
  const int on = 1;
  if (setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    return std::unexpected(base::system_error("SO_PASSCRED", errno));
  return std::make_unique<nic::UnixBootstrap>(std::move(socket));
}

// --- the coordinator ---

bool same_user(const Caller& caller) {
  const Result<uid_t> user = user_of(caller.socket.get());
  if (user && *user == geteuid()) return true;
  const base::Error error =
      user ? base::Error{Code::permission, fmt::format("the processes here run as user {}, this one as user {}", geteuid(), *user)}
           : user.error();
  tell(caller.socket.get(), refusal(MessageKind::refused, error));
  return false;
}

Result<Asked> read_request(const Caller& caller) {
  std::string_view fields = caller.request;
  const std::uint32_t magic = take(fields);
  if (magic != kMagic && magic != kNoMemory) return base::fail(Code::malformed, "not the request of a process that wants to connect");
  Asked asked;
  asked.no_memory = magic == kNoMemory;
  asked.size = static_cast<int>(take(fields));
  asked.rank = static_cast<int>(take(fields));
  return asked;
}

// Each two of the members get a pair of sockets, which this process forgets as soon as they are sent.
Result<void> connect_members(const Gathered& gathered, std::int64_t deadline) {
  const int size = static_cast<int>(gathered.members.size());
  const auto send_to = [&](int rank, const Message& message) -> Result<void> {
    const Result<void> sent = send(gathered.members[static_cast<std::size_t>(rank)].socket.get(), message, deadline);
    if (!sent) return base::fail(sent.error().code, fmt::format("rank {}, while all were being connected: {}", rank, sent.error().message));
    return {};
  };
  for (int rank = 0; rank < size; ++rank)
    if (rank != gathered.rank) LACUNA_TRY(send_to(rank, {.kind = MessageKind::rank, .value = rank}));
  for (int first = 0; first < size; ++first) {
    for (int second = first + 1; second < size; ++second) {
      if (first == gathered.rank || second == gathered.rank) continue;
      auto [one, other] = LACUNA_TRY(nic::UnixBootstrap::socket_pair());
      const Message to_first{.kind = MessageKind::peer, .value = second, .bytes = {}, .file = std::move(one)};
      const Message to_second{.kind = MessageKind::peer, .value = first, .bytes = {}, .file = std::move(other)};
      LACUNA_TRY(send_to(first, to_first));
      LACUNA_TRY(send_to(second, to_second));
    }
  }
  return conclude(gathered, deadline);
}

// give_up() that wants no memory. A member that hears nothing before it has its rank would wait for another
// coordinator.
void give_up_without_memory(const Gathered& gathered) {
  std::string header;  // message.cpp: kind, value, and how many bytes follow; so short that it wants no memory
  for (const auto field : {static_cast<std::uint32_t>(MessageKind::failed), static_cast<std::uint32_t>(Code::out_of_memory), 0U})
    put(header, field);
  for (const Member& member : gathered.members) {
    if (!member.socket) continue;
    [[maybe_unused]] const Result<void> told = send_bytes(member.socket.get(), header, 0);
  }
}

// All have come.
Result<Group> connect_all(Gathered& gathered, Acceptor& acceptor, const BootstrapPlan& plan) try {
  if (std::ranges::any_of(gathered.members, &Member::no_memory))
    return std::unexpected(give_up(gathered, {Code::out_of_memory, "one of the processes has no memory to connect"}));
  // Before anybody can be done and come to the next group of that name.
  const base::Error full{Code::invalid_argument, fmt::format("all {} processes have come to {} already", plan.size, plan.where)};
  for (const base::Fd& late : acceptor.close()) tell(late.get(), refusal(MessageKind::refused, full));

  if (const Result<void> connected = connect_members(gathered, plan.deadline); !connected)
    return std::unexpected(give_up(gathered, connected.error()));
  Group group{.rank = gathered.rank, .peers = {}};
  for (Member& member : gathered.members) {
    group.peers.emplace_back();
    if (member.socket) group.peers.back() = LACUNA_TRY(bootstrap_over(std::move(member.socket)));
  }
  return group;
} catch (const std::bad_alloc&) {
  give_up_without_memory(gathered);
  return base::fail(Code::out_of_memory, kWithoutMemory);
}

Result<Group> coordinate(base::Fd listener, const BootstrapPlan& plan, Fullest& fullest) {
  Acceptor acceptor(std::move(listener), kRequestBytes, static_cast<std::size_t>(plan.size) + 64, same_user);
  Gathered gathered = LACUNA_TRY(gather(acceptor, plan, read_request, fullest));
  return connect_all(gathered, acceptor, plan);
}

// --- a member ---

// From the moment that the ranks are given: all get their connections or none.
Result<Group> take_connections(base::Fd coordinator, int rank, const BootstrapPlan& plan) try {
  const auto unexpected = [&] {
    return base::fail(Code::malformed, fmt::format("the coordinator of {} said what was not expected", plan.where));
  };
  const auto next = [&](MessageKind kind) -> Result<Message> {
    Result<Message> message = receive(coordinator.get(), plan.deadline);
    if (!message)
      return base::fail(message.error().code,
                        fmt::format("the coordinator of {}, while all were being connected: {}", plan.where, message.error().message));
    if (message->kind == MessageKind::failed) return std::unexpected(told_error(*message));
    if (message->kind != kind) return unexpected();
    return message;
  };
  const auto valid = [&](int other) { return other >= 0 && other < plan.size; };

  if (!valid(rank) || (plan.rank >= 0 && rank != plan.rank)) return unexpected();
  std::vector<base::Fd> sockets(static_cast<std::size_t>(plan.size));
  for (int left = plan.size - 2; left > 0; --left) {
    Result<Message> message = next(MessageKind::peer);
    if (!message) {
      tell(coordinator.get(), refusal(MessageKind::failed, message.error()));
      return std::unexpected(message.error());
    }
    if (!valid(message->value) || message->value == rank || !message->file || sockets[static_cast<std::size_t>(message->value)])
      return unexpected();
    sockets[static_cast<std::size_t>(message->value)] = std::move(message->file);
  }
  tell(coordinator.get(), {.kind = MessageKind::done});  // if it has given up and gone, it has said why
  LACUNA_TRY(next(MessageKind::go));

  Group group{.rank = rank, .peers = {}};
  for (int other = 0; other < plan.size; ++other) {
    group.peers.emplace_back();
    if (other == rank) continue;
    base::Fd& socket = sockets[static_cast<std::size_t>(other)];
    group.peers.back() = LACUNA_TRY(bootstrap_over(std::move(socket ? socket : coordinator)));
  }
  return group;
} catch (const std::bad_alloc&) {
  return base::fail(Code::out_of_memory, kWithoutMemory);
}

// The group; nothing if the coordinator left before it was complete.
Result<std::optional<Group>> wait_for_rank(base::Fd coordinator, const BootstrapPlan& plan, Fullest& fullest) {
  const std::string request = request_of(kMagic, plan.size, plan.rank);
  // One that is refused finds the connection closed here, and the reason in what it can still receive.
  [[maybe_unused]] const Result<void> asked = send_bytes(coordinator.get(), request, plan.deadline);
  for (;;) {
    const Result<Message> message = receive(coordinator.get(), plan.deadline);
    if (!message) {
      if (message.error().code == Code::peer_lost) return std::nullopt;
      if (message.error().code == Code::timeout)
        return std::unexpected(fullest.timeout(fmt::format("the coordinator of {} does not answer", plan.where)));
      return std::unexpected(message.error());
    }
    if (message->kind == MessageKind::refused || message->kind == MessageKind::failed) return std::unexpected(told_error(*message));
    if (message->kind == MessageKind::status) {
      fullest.note(message->value, told_text(*message));
    } else if (message->kind == MessageKind::rank) {
      return LACUNA_TRY(take_connections(std::move(coordinator), message->value, plan));
    } else {
      return base::fail(Code::malformed, fmt::format("the coordinator of {} sent what was not expected", plan.where));
    }
  }
}

// Whether the coordinator says that there is no group; else it has left before that.
bool hears_refusal(int coordinator, std::int64_t deadline) {
  std::array<char, 12> header{};  // message.cpp: kind, value, and how many bytes follow
  std::array<char, 256> text{};
  while (receive_bytes(coordinator, header, deadline)) {
    std::string_view fields(header.data(), header.size());
    const auto kind = static_cast<MessageKind>(take(fields));
    if (kind == MessageKind::failed || kind == MessageKind::refused) return true;
    fields.remove_prefix(sizeof(std::uint32_t));  // the value
    for (std::size_t left = take(fields); left > 0;) {
      const std::size_t bytes = std::min(left, text.size());
      if (!receive_bytes(coordinator, std::span(text).first(bytes), deadline)) return false;
      left -= bytes;
    }
  }
  return false;
}

// Whether it has told the others.
bool tells_no_memory(std::string_view name, int size, std::int64_t deadline) try {
  const Result<Name> address = name_of(name);
  if (!address) return true;  // the others cannot come there either
  const base::Fd coordinator(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!coordinator || connect(coordinator.get(), generic(*address), address->length) != 0) return false;
  if (!send_bytes(coordinator.get(), request_of(kNoMemory, size, -1), deadline)) return false;
  return hears_refusal(coordinator.get(), deadline);
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

void tell_no_memory(std::string_view name, int size) {
  const std::int64_t deadline = base::now_ns() + kTellNs;
  while (!tells_no_memory(name, size, deadline) && base::now_ns() < deadline) pause_until(base::now_ns() + kRetryNs);
}

Result<Group> connect_by_name(std::string_view name, const BootstrapPlan& plan) {
  const Name address = LACUNA_TRY(name_of(name));
  Fullest fullest;
  while (base::now_ns() < plan.deadline) {
    base::Fd listener = LACUNA_TRY(try_bind(address));
    if (listener) return coordinate(std::move(listener), plan, fullest);
    base::Fd coordinator = LACUNA_TRY(try_connect(address, plan));
    if (coordinator) {
      std::optional<Group> group = LACUNA_TRY(wait_for_rank(std::move(coordinator), plan, fullest));
      if (group) return std::move(*group);
    }
    pause_until(std::min(plan.deadline, base::now_ns() + kRetryNs));
  }
  return std::unexpected(fullest.timeout(fmt::format("a process holds the name {} and does not answer", plan.where)));
}

}  // namespace lacuna::protocol::bootstrap
