// choice: how a message travels. It hides the guide, what the program learns while it runs, and what its memory was
// used for before.
//
//   a layout ──▶ messages(): eager, a stream, direct or rendezvous, between ranks that share memory (message_ways.hpp)
//
// By rendezvous:
//
//   both ends' layouts ──▶ cut(): which parts are registered, which copied ──▶ choose(): the way of each part
//                            (cut.hpp; reuse.hpp remembers memory)               (the guide; its Learner tries others)
#pragma once

#include <string>

#include "lacuna/guide/guide.hpp"
#include "lacuna/guide/learner.hpp"
#include "lacuna/protocol/choice/cut.hpp"
#include "lacuna/protocol/choice/message_ways.hpp"
#include "lacuna/protocol/choice/reuse.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::protocol {

class Choices {
 public:
  /// `options` has to outlive it. `nic`: as guide::find_profile() takes it.
  Choices(const nic::Context& context, const std::string& nic, const Options& options);

  /// What the user wants of memory. A user who forces a method wants it for the layouts, not for their copies.
  [[nodiscard]] Registering registering() const {
    const bool forced = options_.registering == Registering::automatic && options_.force.method != nullptr;
    return forced ? Registering::leave_pinned : options_.registering;
  }
  /// How a message is cut into parts. `base`: the receiver's memory, if a registration of it would stay; else null.
  Cut cut(const Layout& src, const Layout& dst, const CutSide (&sides)[2], const guide::Placement& placement, const void* base);
  /// The way of one part. `alone`: it is the whole message, so its time tells of its way. Errors: as Guide::choose().
  Result<guide::Learner::Chosen> choose(const Layout& src, const Layout& dst, const guide::Placement& placement, bool alone);
  /// What a part took whose way was a trial.
  void took(std::uint32_t trial, double ns) { learner_.took(guide_, trial, ns); }
  /// The path of the way that is best for two such layouts in ordinary memory; null: there is none.
  [[nodiscard]] std::optional<nic::Path> path_of(const Layout& layout);

  [[nodiscard]] const guide::Profile& profile() const { return peer_->profile(); }
  /// The ways to ranks that share memory.
  [[nodiscard]] MessageWays& messages() { return messages_; }

  /// In words: how memory that is not registered is cut, and the ways. `stays`: a registration outlives its transfer.
  /// Errors: as Guide::explain().
  Result<std::string> explain(const Layout& src, const Layout& dst, const CutSide (&sides)[2], bool stays, const std::string& mode);
  [[nodiscard]] std::string describe_learning() const;
  /// Writes what was learned to the profile's file, if the user wants that.
  void save() const;

 private:
  const Options& options_;
  guide::Guide guide_;
  const guide::PeerClass* peer_;  // what the other ranks are to the guide
  MessageWays messages_;
  guide::Learner learner_;
  std::string learned_file_;
  Reuse reuse_;
};

}  // namespace lacuna::protocol
