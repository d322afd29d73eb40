// What stands between the interposer and its communicator, for tests that make it do something else: all calls go on as they are.
#pragma once

#include "lacuna/mpi/job/job.hpp"

namespace lacuna::test {

class Between : public protocol::Communicator {
 public:
  using Layout = layout::Layout;
  using Request = protocol::Request;
  template <class T>
  using Result = base::Result<T>;

  explicit Between(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  [[nodiscard]] nic::Context& context() override { return inner_->context(); }
  Result<Request*> isend(const void* base, const Layout& layout, int dest, int tag) override {
    return inner_->isend(base, layout, dest, tag);
  }
  Result<Request*> irecv(void* base, const Layout& layout, int source, int tag) override {
    return inner_->irecv(base, layout, source, tag);
  }
  std::optional<Result<protocol::Status>> test(Request* request) override { return inner_->test(request); }
  Result<std::size_t> wait_any(std::span<Request* const> requests, std::int64_t timeout_ns) override {
    return inner_->wait_any(requests, timeout_ns);
  }
  Result<protocol::Status> wait(Request* request) override { return inner_->wait(request); }
  bool cancel(Request* request) override { return inner_->cancel(request); }
  void give_up(Request* request) override { inner_->give_up(request); }
  int take_tag() override { return inner_->take_tag(); }
  Result<void> send(const void* base, const Layout& layout, int dest, int tag) override { return inner_->send(base, layout, dest, tag); }
  Result<protocol::Status> recv(void* base, const Layout& layout, int source, int tag) override {
    return inner_->recv(base, layout, source, tag);
  }
  Result<std::optional<protocol::Status>> probe(int source, int tag) override { return inner_->probe(source, tag); }
  bool progress() override { return inner_->progress(); }
  Result<std::uint32_t> register_memory(void* base, std::int64_t bytes) override { return inner_->register_memory(base, bytes); }
  Result<void> deregister_memory(std::uint32_t number) override { return inner_->deregister_memory(number); }
  Result<protocol::Exposed> expose(void* base, std::int64_t bytes) override { return inner_->expose(base, bytes); }
  Result<void> withdraw(const protocol::Exposed& exposed, std::int64_t timeout_ns) override {
    return inner_->withdraw(exposed, timeout_ns);
  }
  Result<Request*> put(const void* base, const Layout& src, const protocol::Exposed& to, std::int64_t offset, const Layout& dst) override {
    return inner_->put(base, src, to, offset, dst);
  }
  Result<Request*> get(void* base, const Layout& dst, const protocol::Exposed& from, std::int64_t offset, const Layout& src) override {
    return inner_->get(base, dst, from, offset, src);
  }
  Result<Request*> offer(const void* base, const Layout& layout, int dest, protocol::Behind behind, protocol::Ticket& ticket) override {
    return inner_->offer(base, layout, dest, behind, ticket);
  }
  void set_aside(Request* offer) override { inner_->set_aside(offer); }
  void pack(Request* offer) override { inner_->pack(offer); }
  Result<void> leave(Request* offer) override { return inner_->leave(offer); }
  Result<Request*> accept(void* base, const Layout& layout, int source, std::int64_t bytes, const protocol::Ticket& ticket) override {
    return inner_->accept(base, layout, source, bytes, ticket);
  }
  [[nodiscard]] protocol::Statistics statistics() const override { return inner_->statistics(); }
  Result<std::string> explain(const Layout& src, const Layout& dst, int dest) override { return inner_->explain(src, dst, dest); }

 private:
  std::unique_ptr<Communicator> inner_;
};

}  // namespace lacuna::test
