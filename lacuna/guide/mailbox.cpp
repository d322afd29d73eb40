#include "lacuna/guide/mailbox.hpp"

namespace lacuna::guide {

Result<std::unique_ptr<Mailbox>> Mailbox::create(method::Endpoint& endpoint) {
  std::unique_ptr<Mailbox> box(new Mailbox(endpoint));
  nic::Context& context = endpoint.context();
  box->out_ = LACUNA_TRY(context.allocate(kBytes));
  box->in_ = LACUNA_TRY(context.allocate(kBytes));
  box->out_region_ = LACUNA_TRY(context.register_memory(box->out_.bytes(), {}));
  box->in_region_ = LACUNA_TRY(context.register_memory(box->in_.bytes(), {}));
  const method::Method& pack = *LACUNA_TRY(method::find("pack"));
  const Layout bytes = LACUNA_TRY(Layout::bytes(kBytes));
  box->sender_ = LACUNA_TRY(method::make(pack, method::Role::sender, endpoint, {bytes, bytes}, {&box->out_region_}));
  box->receiver_ = LACUNA_TRY(method::make(pack, method::Role::receiver, endpoint, {bytes, bytes}, {&box->in_region_}));
  return box;
}

}  // namespace lacuna::guide
