// A communicator for Python: requests and exchanges, with the arrays that they hold.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "array.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::python {

using layout::Layout;
using protocol::Status;

inline constexpr std::int64_t kSlice = 50'000'000;  // ns of waiting between two looks at Python's signals

// What has to end before its communicator does.
class Ends {
 public:
  Ends() = default;
  virtual ~Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  virtual void end() = 0;
};

// A request with the memory that it uses.
struct Pending {
  std::optional<Array> array;
  protocol::Request* request = nullptr;  // null once it is done
  std::optional<Result<Status>> result;
  std::list<std::shared_ptr<Pending>>::iterator kept{};  // where its communicator keeps it, until it is done
};

class Ranks {
 public:
  Ranks(const std::string& address, int size, int rank, const std::string& secret, double timeout_s, const std::string& nic,
        std::int64_t eager_bytes, std::int64_t unexpected_bytes, bool progress_thread, const std::optional<std::string>& registering,
        const std::optional<std::string>& learning) {
    protocol::Options options{.eager_bytes = eager_bytes, .unexpected_bytes = unexpected_bytes, .progress_thread = progress_thread};
    threads_ = progress_thread;
    options = value_or_raise(protocol::Options::from_environment(options));
    if (registering) options.registering = value_or_raise(protocol::registering_from_name(*registering));
    if (learning) options.learn = value_or_raise(guide::LearnOptions::from_text(*learning));
    Result<void> made;
    {
      protocol::BootstrapOptions wanted{
          .address = address, .size = size, .rank = rank, .secret = secret, .timeout_s = timeout_s, .machine = {}};
      const base::Wipe wipe(wanted.secret);  // Python's own string stays as long as Python keeps it
      const nb::gil_scoped_release unlocked;
      made = open(wanted, nic, options);
    }
    value_or_raise(std::move(made));
  }
  ~Ranks() { close(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void close() {
    if (ranks_ == nullptr) return;
    for (const std::weak_ptr<Ends>& one : ending_) {
      if (const auto alive = one.lock()) alive->end();
    }
    ending_.clear();
    {
      const nb::gil_scoped_release unlocked;
      ranks_.reset();
    }
    for (const auto& pending : pending_) {
      pending->request = nullptr;
      pending->result = base::fail(base::Code::peer_lost, "the communicator was closed before this ended");
      pending->array.reset();
    }
    pending_.clear();
    exposed_.clear();
    registered_.clear();
  }

  [[nodiscard]] int rank() { return get().rank(); }
  [[nodiscard]] int size() { return get().size(); }

  std::shared_ptr<Pending> begin(const nb::handle& object, bool sends, int peer, int tag, const std::optional<Layout>& layout,
                                 std::int64_t offset) {
    auto made = std::make_shared<Pending>();
    made->array.emplace(object, !sends);
    std::byte* base = made->array->base(layout, offset);
    const Entered entered(*this);
    made->request =
        value_or_raise(sends ? get().isend(base, made->array->layout(), peer, tag) : get().irecv(base, made->array->layout(), peer, tag));
    made->kept = pending_.insert(pending_.end(), made);
    return made;
  }

  // Of a put, or a get, between an array and exposed memory.
  std::shared_ptr<Pending> access(const nb::handle& object, bool gets, const protocol::Exposed& there, std::int64_t offset,
                                  const std::optional<Layout>& theirs) {
    auto made = std::make_shared<Pending>();
    made->array.emplace(object, gets);
    std::byte* base = made->array->base(std::nullopt, 0);
    const Layout& own = made->array->layout();
    const Layout there_layout = theirs ? *theirs : value_or_raise(Layout::bytes(own.size()));
    const Entered entered(*this);
    made->request =
        value_or_raise(gets ? get().get(base, own, there, offset, there_layout) : get().put(base, own, there, offset, there_layout));
    made->kept = pending_.insert(pending_.end(), made);
    return made;
  }
  protocol::Exposed expose(const nb::handle& object) {
    auto bytes = std::make_unique<Array>(object, true);
    const Layout& layout = bytes->layout();
    if (!layout.contiguous_bytes() || layout.size() == 0)
      throw nb::value_error("what is exposed has to be contiguous, and at least a byte");
    const Entered entered(*this);
    const protocol::Exposed made = value_or_raise(get().expose(bytes->data() + layout.true_lower_bound(), layout.size()));
    exposed_[made.number] = std::move(bytes);
    return made;
  }
  std::uint32_t register_memory(const nb::handle& object) {
    auto bytes = std::make_unique<Array>(object, false);
    const Layout& layout = bytes->layout();
    const Entered entered(*this);
    const std::uint32_t made = value_or_raise(get().register_memory(bytes->data() + layout.true_lower_bound(), layout.true_extent()));
    registered_[made] = std::move(bytes);
    return made;
  }
  void deregister_memory(std::uint32_t number) {
    const Entered entered(*this);
    value_or_raise(get().deregister_memory(number));
    registered_.erase(number);
  }
  void withdraw(const protocol::Exposed& exposed) {
    for (;;) {
      const Entered entered(*this);
      protocol::Communicator& ranks = get();
      Result<void> gone;
      {
        const nb::gil_scoped_release unlocked;
        gone = ranks.withdraw(exposed, kSlice);
      }
      if (gone) break;
      if (gone.error().code != base::Code::timeout) value_or_raise(std::move(gone));
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    exposed_.erase(exposed.number);
  }

  bool test(const std::shared_ptr<Pending>& pending) {
    if (pending->request == nullptr) return true;
    const Entered entered(*this);
    std::optional<Result<Status>> ended = get().test(pending->request);
    if (!ended) return false;
    end(pending, std::move(*ended));
    return true;
  }

  Status wait(const std::shared_ptr<Pending>& pending) {
    protocol::Request* const request = pending->request;
    if (request != nullptr) (void)wait_any({&pending, 1}, {&request, 1});
    return value_or_raise(*pending->result);
  }

  // begin() and wait() in one.
  Status run(const nb::handle& object, bool sends, int peer, int tag, const std::optional<Layout>& layout, std::int64_t offset) {
    return wait(begin(object, sends, peer, tag, layout, offset));
  }

  // The index of one that has ended.
  std::size_t wait_any(const std::vector<std::shared_ptr<Pending>>& all) {
    std::vector<protocol::Request*> requests;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i]->request == nullptr) return i;
      requests.push_back(all[i]->request);
    }
    return wait_any(all, requests);
  }

  bool cancel(const std::shared_ptr<Pending>& pending) {
    if (pending->request == nullptr) return false;
    const Entered entered(*this);
    if (!get().cancel(pending->request)) return false;
    end(pending, base::fail(base::Code::invalid_argument, "this receive was cancelled"));
    return true;
  }

  std::optional<Status> probe(int source, int tag) {
    const Entered entered(*this);
    return value_or_raise(get().probe(source, tag));
  }
  bool progress() {
    const Entered entered(*this);
    return get().progress();
  }
  std::string statistics() {
    const Entered entered(*this);
    return get().statistics().describe();
  }
  std::string explain(const Layout& send, const Layout& receive, int dest) {
    const Entered entered(*this);
    return value_or_raise(get().explain(send, receive, dest));
  }

  // One thread at a time, unless the communicator has a thread of its own.
  class Entered {
   public:
    explicit Entered(Ranks& ranks) : ranks_(ranks) {
      if (!ranks_.threads_ && ranks_.busy_.exchange(true)) {
        PyErr_SetString(PyExc_RuntimeError, "another thread is in a call of this communicator; connect(progress_thread=True) allows that");
        throw nb::python_error();
      }
    }
    ~Entered() {
      if (!ranks_.threads_) ranks_.busy_ = false;
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    Ranks& ranks_;
  };

  protocol::Communicator& get() {
    if (ranks_ == nullptr) throw nb::value_error("this communicator was closed");
    return *ranks_;
  }
  void ends(const std::shared_ptr<Ends>& one) {
    ending_.remove_if([](const std::weak_ptr<Ends>& old) { return old.expired(); });
    ending_.push_back(one);
  }

 private:
  Result<void> open(const protocol::BootstrapOptions& wanted, const std::string& nic, const protocol::Options& options) {
    protocol::Meeting met = LACUNA_TRY(protocol::meet(wanted, nic));
    context_ = std::move(met.context);
    ranks_ = LACUNA_TRY(protocol::Communicator::create(*context_, std::string(context_->nic_name()), std::move(met.group), options));
    return {};
  }
  // Of requests under way.
  std::size_t wait_any(std::span<const std::shared_ptr<Pending>> all, std::span<protocol::Request* const> requests) {
    for (;;) {
      const Entered entered(*this);
      protocol::Communicator& ranks = get();
      Result<std::size_t> found;
      {
        const nb::gil_scoped_release unlocked;
        found = ranks.wait_any(requests, kSlice);
      }
      if (found) {
        end(all[*found], *ranks.test(requests[*found]));
        return *found;
      }
      if (found.error().code != base::Code::timeout) value_or_raise(std::move(found));
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }
  void end(const std::shared_ptr<Pending>& pending, Result<Status> result) {
    pending->result = std::move(result);
    pending->request = nullptr;
    pending->array.reset();
    pending_.erase(pending->kept);
  }

  std::unique_ptr<nic::Context> context_;
  std::unique_ptr<protocol::Communicator> ranks_;
  std::list<std::shared_ptr<Pending>> pending_;  // their memory is kept, whatever becomes of the Python objects
  std::map<std::uint32_t, std::unique_ptr<Array>> exposed_;
  std::map<std::uint32_t, std::unique_ptr<Array>> registered_;
  std::list<std::weak_ptr<Ends>> ending_;
  bool threads_ = false;
  std::atomic<bool> busy_ = false;
};

}  // namespace lacuna::python
