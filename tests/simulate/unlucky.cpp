#include "tests/simulate/unlucky.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::simulate {

using base::Code;
using nic::Completion;
using nic::Result;

void Happened::add(const Happened& other) {
  for (std::int64_t Happened::* kind : {&Happened::late, &Happened::slow, &Happened::stalls, &Happened::unready, &Happened::jumps,
                                        &Happened::no_keys, &Happened::slow_keys, &Happened::no_posts, &Happened::lies, &Happened::deaths})
    this->*kind += other.*kind;
}

// Completions that came, each with when it is told. Those of one queue pair stay in their order.
class Unlucky::Queue final : public nic::CompletionQueue {
 public:
  Queue(Unlucky& context, std::unique_ptr<nic::CompletionQueue> inside) : context_(context), inside_(std::move(inside)) {
    context_.queues_.push_back(this);
  }
  ~Queue() override { std::erase(context_.queues_, this); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  [[nodiscard]] bool overrun() const override { return inside_->overrun(); }
  [[nodiscard]] nic::CompletionQueue& inside() { return *inside_; }
  void add(const Completion& completion, std::int64_t told) {
    std::int64_t& last = last_[completion.qp_num];
    last = std::max(last, told);
    held_.emplace(last, completion);
    announced_ = std::min(announced_, last - 1);
  }
  bool take(std::int64_t now, Completion& completion) {
    if (held_.empty() || held_.begin()->first > now) return false;
    completion = held_.begin()->second;
    held_.erase(held_.begin());
    return true;
  }
  /// Whether one of that queue pair, or of that process of a hub, is not told yet. Faults come behind it.
  [[nodiscard]] bool holds(std::uint32_t number) const {
    return std::ranges::any_of(held_, [number](const auto& one) { return one.second.qp_num == number; });
  }
  /// The time of the next one that the process has not been woken for; INT64_MAX: none. It may leave what it was woken
  /// for, as long as nothing of that queue pair is under way.
  [[nodiscard]] std::int64_t next() const {
    const auto found = held_.upper_bound(announced_);
    return found == held_.end() ? INT64_MAX : found->first;
  }
  void announce(std::int64_t now) { announced_ = std::max(announced_, now); }

 private:
  Unlucky& context_;
  std::unique_ptr<nic::CompletionQueue> inside_;
  std::multimap<std::int64_t, Completion> held_;  // equals in the order in which they came
  std::map<std::uint32_t, std::int64_t> last_;
  std::int64_t announced_ = -1;
};

class Unlucky::Pair final : public nic::QueuePair {
 public:
  Pair(Unlucky& context, std::unique_ptr<nic::QueuePair> inside, const nic::CompletionQueue& queue)
      : context_(context), inside_(std::move(inside)), queue_(static_cast<const Queue&>(queue)), limits_(inside_->limits()) {
    context_.pairs_.push_back(this);
    number_ = inside_->number();
    path_ = inside_->path();
  }
  ~Pair() override { std::erase(context_.pairs_, this); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  void end() { inside_.reset(); }
  [[nodiscard]] std::uint32_t number() const override { return number_; }
  [[nodiscard]] nic::Path path() const override { return path_; }
  [[nodiscard]] const nic::Limits& limits() const override { return limits_; }
  Result<void> post_chain(std::span<const nic::SendRequest> chain) override {
    if (!context_.call()) return context_.gone();
    Result<void> posted = context_.may_post();
    if (posted) posted = inside_->post_chain(chain);
    context_.fate_.trace.say(context_.inside_.now(), context_.rank_, "posts {} {} on {}{}", chain.size(),
                             nic::opcode_name(chain.front().opcode), number_, posted ? "" : ": " + posted.error().message);
    if (posted && chain.front().opcode == nic::Opcode::send) context_.sent();
    return posted;
  }
  Result<void> post_recv(const nic::RecvRequest& request) override {
    if (!context_.call()) return context_.gone();
    LACUNA_TRY(context_.may_post());
    context_.unready();
    return inside_->post_recv(request);
  }
  [[nodiscard]] const base::Error* fault() const override {
    const base::Error* const found = inside_ != nullptr ? inside_->fault() : &context_.kDead;
    if (found == nullptr || (inside_ != nullptr && queue_.holds(number_))) return nullptr;
    if (found != nullptr && !std::exchange(told_, true))
      context_.fate_.trace.say(context_.inside_.now(), context_.rank_, "sees that {} failed: {}", number_, found->text());
    return found;
  }

 private:
  mutable bool told_ = false;
  Unlucky& context_;
  std::unique_ptr<nic::QueuePair> inside_;  // null: the process is dead
  const Queue& queue_;
  nic::Limits limits_;
  std::uint32_t number_;
  nic::Path path_;
};

class Unlucky::Hub final : public nic::Hub {
 public:
  Hub(Unlucky& context, std::unique_ptr<nic::Hub> inside, const nic::CompletionQueue& queue)
      : context_(context), inside_(std::move(inside)), queue_(static_cast<const Queue&>(queue)) {
    context_.hubs_.push_back(this);
  }
  ~Hub() override { std::erase(context_.hubs_, this); }
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  void end() { inside_.reset(); }
  Result<void> post_send(int to, const nic::SendRequest& request) override {
    if (!context_.call()) return context_.gone();
    Result<void> posted = context_.may_post();
    if (posted) posted = inside_->post_send(to, request);
    context_.fate_.trace.say(context_.inside_.now(), context_.rank_, "posts a send to {}{}", to,
                             posted ? "" : ": " + posted.error().message);
    if (posted) context_.sent();
    return posted;
  }
  Result<void> post_recv(const nic::RecvRequest& request) override {
    if (!context_.call()) return context_.gone();
    LACUNA_TRY(context_.may_post());
    context_.unready();
    return inside_->post_recv(request);
  }
  Result<std::unique_ptr<nic::QueuePair>> connect(int peer, int line, nic::CompletionQueue& queue,
                                                  const nic::QueuePairOptions& options) override {
    if (!context_.call()) return std::unexpected(context_.gone().error());
    return std::make_unique<Pair>(context_, LACUNA_TRY(inside_->connect(peer, line, static_cast<Queue&>(queue).inside(), options)), queue);
  }
  [[nodiscard]] const base::Error* fault(int peer) const override {
    if (inside_ == nullptr) return &context_.kDead;
    return holds(peer) ? nullptr : inside_->fault(peer);
  }
  int next_fault() override {
    for (int peer = inside_ != nullptr ? inside_->next_fault() : -1; peer >= 0; peer = inside_->next_fault()) faults_.push_back(peer);
    const auto found = std::ranges::find_if(faults_, [this](int peer) { return !holds(peer); });
    if (found == faults_.end()) return -1;
    const int peer = *found;
    faults_.erase(found);
    return peer;
  }

 private:
  [[nodiscard]] bool holds(int peer) const { return queue_.holds(static_cast<std::uint32_t>(peer)); }
  Unlucky& context_;
  std::unique_ptr<nic::Hub> inside_;
  const Queue& queue_;
  std::vector<int> faults_;
};

Unlucky::Unlucky(nic::Context& inside, const Luck& luck, std::uint64_t seed, int rank, Fate& fate)
    : inside_(inside),
      luck_(luck),
      random_(seed ^ (0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(rank + 1))),
      rank_(rank),
      fate_(fate) {}
Unlucky::~Unlucky() = default;

Result<void> Unlucky::gone() const { return std::unexpected(kDead); }

void Unlucky::die() {
  dead_ = true;
  ++happened_.deaths;
  fate_.trace.say(inside_.now(), rank_, "dies");
  for (Pair* pair : pairs_) pair->end();
  for (Hub* hub : hubs_) hub->end();
}

bool Unlucky::call() {
  if (dead_) return false;
  if (fate_.all_begun() && luck_.dies == rank_ && ++calls_ > luck_.dies_at && !luck_.dies_behind) die();
  if (dead_) return false;
  if (happens(luck_.slow, 1000)) {
    ++happened_.slow;
    work(random_.between(0, luck_.slow_ns));
  }
  return true;
}

void Unlucky::sent() {
  if (luck_.dies_behind && luck_.dies == rank_ && calls_ > luck_.dies_at && !dead_) die();
}

Result<void> Unlucky::refuse(Code code, std::string_view what) {
  fate_.trace.say(inside_.now(), rank_, "is refused {}", what);
  fate_.troubled[static_cast<std::size_t>(rank_)] = true;
  return base::fail(code, fmt::format("{} is refused, as this story has it", what));
}

Result<void> Unlucky::may_post() {
  if (!fate_.all_begun() || !luck_.refuses(rank_) || !happens(luck_.no_posts, 100'000)) return {};
  ++happened_.no_posts;
  return refuse(random_.one_in(2) ? Code::limit : Code::out_of_memory, "a post");
}

Result<void> Unlucky::may_register(std::string_view what) {
  if (!fate_.all_begun()) return {};
  if (happens(luck_.slow_keys, 1000)) {
    ++happened_.slow_keys;
    work(random_.between(0, luck_.slow_keys_ns));
  }
  if (!luck_.refuses(rank_) || !happens(luck_.no_keys, 1000)) return {};
  ++happened_.no_keys;
  return refuse(random_.one_in(2) ? Code::limit : Code::out_of_memory, what);
}

// What comes meanwhile finds no receive, if the others are used up.
void Unlucky::unready() {
  if (!fate_.all_begun() || !happens(luck_.unready, 100'000)) return;
  ++happened_.unready;
  work(random_.between(0, luck_.unready_ns));
}

void Unlucky::lies() {
  ++happened_.lies;
  fate_.deceived = true;
}

void Unlucky::work(std::int64_t ns) {
  const std::int64_t end = inside_.now() + ns;
  missed_ = true;
  while (inside_.now() < end && inside_.wait(end)) {
  }
}

std::int64_t Unlucky::now() {
  if (happens(luck_.jumps, 100'000)) {
    ++happened_.jumps;
    jumped_ns_ += random_.between(0, luck_.jump_ns);
  }
  return inside_.now() + jumped_ns_;
}

Result<nic::Buffer> Unlucky::allocate(std::size_t bytes) {
  if (!call()) return std::unexpected(kDead);
  return inside_.allocate(bytes);
}

Result<nic::Region> Unlucky::register_memory(std::span<std::byte> bytes, nic::Rights rights, nic::MemoryKind kind) {
  if (!call()) return std::unexpected(kDead);
  LACUNA_TRY(may_register("a region"));
  return inside_.register_memory(bytes, rights, kind);
}

Result<nic::IndirectKey> Unlucky::create_indirect_key(int entries) {
  if (!call()) return std::unexpected(kDead);
  LACUNA_TRY(may_register("an indirect key"));
  Result<nic::IndirectKey> made = inside_.create_indirect_key(entries);
  if (!made) fate_.troubled[static_cast<std::size_t>(rank_)] = true;
  return made;
}

Result<std::unique_ptr<nic::CompletionQueue>> Unlucky::create_completion_queue(int entries) {
  if (!call()) return std::unexpected(kDead);
  return std::make_unique<Queue>(*this, LACUNA_TRY(inside_.create_completion_queue(entries)));
}

Result<std::unique_ptr<nic::QueuePair>> Unlucky::connect(nic::Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                         const nic::QueuePairOptions& options) {
  if (!call()) return std::unexpected(kDead);
  return std::make_unique<Pair>(*this, LACUNA_TRY(inside_.connect(bootstrap, static_cast<Queue&>(queue).inside(), options)), queue);
}

Result<std::unique_ptr<nic::Hub>> Unlucky::create_hub(nic::CompletionQueue& queue, const nic::QueuePairOptions& options) {
  if (!call()) return std::unexpected(kDead);
  return std::make_unique<Hub>(*this, LACUNA_TRY(inside_.create_hub(static_cast<Queue&>(queue).inside(), options)), queue);
}

int Unlucky::poll(nic::CompletionQueue& queue, std::span<Completion> completions) {
  if (!call()) return 0;
  if (happens(luck_.stalls, 100'000)) {
    ++happened_.stalls;
    fate_.trace.say(inside_.now(), rank_, "has no CPU");
    work(random_.between(0, luck_.stall_ns));
  }
  auto& own = static_cast<Queue&>(queue);
  std::array<Completion, 16> came{};
  const int found = inside_.poll(own.inside(), came);
  const std::int64_t now = inside_.now();
  for (int i = 0; i < found; ++i) {
    const bool late = happens(luck_.late, 1000);
    if (late) ++happened_.late;
    own.add(came[static_cast<std::size_t>(i)], now + (late ? random_.between(0, luck_.late_ns) : 0));
  }
  int told = 0;
  while (std::cmp_less(told, completions.size()) && own.take(now, completions[static_cast<std::size_t>(told)])) {
    const Completion& one = completions[static_cast<std::size_t>(told++)];
    fate_.trace.say(now, rank_, "hears of {} on {}: {}", nic::opcode_name(one.opcode), one.qp_num, nic::status_name(one.status));
  }
  return told;
}

Result<void> Unlucky::wait(std::int64_t deadline) {
  if (!call()) return std::unexpected(kDead);
  if (inside_.now() > fate_.until) {
    if (!hung_) fate_.trace.say(inside_.now(), rank_, "waits in vain");
    hung_ = true;
    return base::fail(Code::timeout, "the story is over, and this rank still waits");
  }
  if (std::exchange(missed_, false)) return {};
  std::int64_t next = fate_.until + 1;
  for (const Queue* queue : queues_) next = std::min(next, queue->next());
  const std::int64_t own = deadline > INT64_MAX / 2 ? deadline : deadline - jumped_ns_;
  if (next <= inside_.now()) {
    for (Queue* queue : queues_) queue->announce(inside_.now());
    return {};
  }
  if (own <= next) return inside_.wait(own);
  [[maybe_unused]] const Result<void> waited = inside_.wait(next);
  return {};
}

}  // namespace lacuna::simulate
