#include "tests/nixl/ends.hpp"

#include <algorithm>
#include <numeric>

namespace lacuna::test {
namespace {

nixl_meta_dlist_t list_of(const std::vector<Extent>& pieces, std::uint64_t base, nixlBackendMD* memory) {
  nixl_meta_dlist_t list;
  for (const Extent& piece : pieces) {
    nixlMetaDesc desc;
    desc.addr = base + static_cast<std::uint64_t>(piece.offset);
    desc.len = static_cast<std::size_t>(piece.length);
    desc.devId = 0;
    desc.metadataP = memory;
    list.descs.push_back(desc);
  }
  return list;
}

}  // namespace

AgentEnd::AgentEnd(const std::string& name, const std::string& nic, std::size_t bytes, const nixl_b_params_t& more)
    : name_(name), memory_(bytes) {
  nixl_b_params_t parameters = nixl::usual_parameters();
  parameters["nic"] = nic;
  parameters["timeout_s"] = parameters["wait_s"] = "100";
  for (const auto& [key, value] : more) parameters[key] = value;
  const nixlBackendInitParams given{.localAgent = name, .type = "LACUNA", .customParams = &parameters};
  engine_ = std::make_unique<nixl::Engine>(given);
  EXPECT_EQ(works() ? register_again() : NIXL_SUCCESS, NIXL_SUCCESS);
}

nixl_status_t AgentEnd::register_again() {
  nixlBlobDesc memory;
  memory.addr = reinterpret_cast<std::uintptr_t>(memory_.data());
  memory.len = memory_.size();
  memory.devId = 0;
  return engine_->registerMem(memory, DRAM_SEG, own_);
}

AgentEnd::~AgentEnd() {
  if (loaded_ != nullptr) engine_->unloadMD(loaded_);
  deregister();
}

nixl_status_t AgentEnd::deregister() {
  if (own_ == nullptr) return NIXL_SUCCESS;
  return engine_->deregisterMem(std::exchange(own_, nullptr));
}

std::string AgentEnd::address() const {
  std::string text;
  EXPECT_EQ(engine_->getConnInfo(text), NIXL_SUCCESS);
  return text;
}

std::string AgentEnd::token() const {
  std::string text;
  EXPECT_EQ(engine_->getPublicData(own_, text), NIXL_SUCCESS);
  return text;
}

void AgentEnd::load(const AgentEnd& other) {
  load(other.name_, other.address(), other.token(), reinterpret_cast<std::uint64_t>(other.memory_.data()), other.memory_.size());
}

void AgentEnd::load(const std::string& name, const std::string& address, const std::string& token, std::uint64_t base,
                    std::uint64_t bytes) {
  if (loaded_ != nullptr) engine_->unloadMD(loaded_);
  EXPECT_EQ(engine_->loadRemoteConnInfo(name, address), NIXL_SUCCESS);
  nixlBlobDesc memory;
  memory.addr = loaded_base_ = base;
  memory.len = bytes;
  memory.devId = 0;
  memory.metaInfo = token;
  EXPECT_EQ(engine_->loadRemoteMD(memory, DRAM_SEG, name, loaded_), NIXL_SUCCESS);
}

void AgentEnd::load_self() {
  loaded_base_ = reinterpret_cast<std::uint64_t>(memory_.data());
  EXPECT_EQ(engine_->loadLocalMD(own_, loaded_), NIXL_SUCCESS);
}

nixl_meta_dlist_t AgentEnd::local(const std::vector<Extent>& pieces) const {
  return list_of(pieces, reinterpret_cast<std::uint64_t>(memory_.data()), own_);
}
nixl_meta_dlist_t AgentEnd::remote(const std::vector<Extent>& pieces) const { return list_of(pieces, loaded_base_, loaded_); }

nixl_status_t finish(const nixlBackendEngine& engine, nixlBackendReqH* handle) {
  nixl_status_t status = NIXL_IN_PROG;
  EXPECT_EQ(await("a transfer", [&] { return (status = engine.checkXfer(handle)) != NIXL_IN_PROG; }), "");
  return status;
}

nixl_status_t transfer(AgentEnd& from, nixl_xfer_op_t operation, const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote,
                       const std::string& agent, const nixlBackendOptionalArgs& more) {
  nixlBackendReqH* handle = nullptr;
  nixl_status_t status = from.engine().prepXfer(operation, local, remote, agent, handle, &more);
  if (status != NIXL_SUCCESS) return status;
  status = from.engine().postXfer(operation, local, remote, agent, handle, &more);
  if (status == NIXL_IN_PROG) status = finish(from.engine(), handle);
  EXPECT_EQ(from.engine().releaseReqH(handle), NIXL_SUCCESS);
  return status;
}

notif_list_t notifications(nixlBackendEngine& engine, std::size_t count) {
  notif_list_t all;
  EXPECT_EQ(await("notifications",
                  [&] {
                    notif_list_t some;
                    EXPECT_EQ(engine.getNotifs(some), NIXL_SUCCESS);
                    std::ranges::move(some, std::back_inserter(all));
                    return all.size() >= count;
                  }),
            "");
  return all;
}

std::vector<Extent> random_extents(support::Random& random, std::int64_t count, std::int64_t stretch,
                                   const std::vector<std::int64_t>& lengths) {
  const std::int64_t slot = stretch / count;
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  std::vector<Extent> made;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t length = lengths[i];
    EXPECT_LE(length, slot);
    made.push_back({order[i] * slot + random.between(0, slot - length), length});
  }
  return made;
}

}  // namespace lacuna::test
