#include "lacuna/protocol/choice/choice.hpp"

#include <fmt/format.h>

namespace lacuna::protocol {
namespace {

const guide::MessagePrices& prices_of(const guide::Profile& profile) {
  const auto& measured = profile.messages;
  return measured ? *measured : guide::MessagePrices::usual();
}

}  // namespace

Choices::Choices(const nic::Context& context, const std::string& nic, const Options& options)
    : options_(options),
      guide_(options.force),
      peer_(&guide_.add(context.limits(), guide::find_profile(nic))),
      messages_(prices_of(peer_->profile()), options),
      learner_(options.learn),
      learned_file_(guide::learned_file(guide::profile_file(nic))) {}

Cut Choices::cut(const Layout& src, const Layout& dst, const CutSide (&sides)[2], const guide::Placement& placement, const void* base) {
  const bool counts = base != nullptr && registering() == Registering::automatic;
  Reuse::Account* account = counts ? &reuse_.of(base, src.digest(), dst.digest()) : nullptr;
  const double saved_ns = account != nullptr ? account->saved_ns() : 0;
  const Cut cut = choose_cut(registering(), src, dst, sides, options_.part_bytes, guide_, *peer_, placement, saved_ns);
  if (account == nullptr) return cut;
  if (sides[0].registered && sides[1].registered) {
    account->found();
  } else if (!cut.whole()) {
    account->copied(cut.saves_ns);
  } else if (saved_ns > 0) {
    account->registers();
  }
  return cut;
}

Result<guide::Learner::Chosen> Choices::choose(const Layout& src, const Layout& dst, const guide::Placement& placement, bool alone) {
  if (alone) return learner_.choose(guide_, src, dst, *peer_, placement);
  return guide::Learner::Chosen{.choice = LACUNA_TRY(guide_.choose(src, dst, *peer_, placement))};
}

std::optional<nic::Path> Choices::path_of(const Layout& layout) {
  const Result<guide::Choice> choice =
      guide_.choose(layout, layout, *peer_, {.src_shared = false, .dst_shared = false, .told = true, .uses = 1});
  return choice ? std::optional(choice->way.path) : std::nullopt;
}

Result<std::string> Choices::explain(const Layout& src, const Layout& dst, const CutSide (&sides)[2], bool stays, const std::string& mode) {
  const guide::Placement placement{.src_shared = false, .dst_shared = false, .uses = 1};
  const auto why = LACUNA_TRY(guide_.explain(src, dst, *peer_, placement));
  const Cut cut = choose_cut(registering(), src, dst, sides, options_.part_bytes, guide_, *peer_, placement);
  const bool pays = registering() == Registering::automatic && cut.saves_ns > 0 && stays;
  return fmt::format("rendezvous: the receiver chooses the way. Memory that is not registered goes {} ({}{}). Here {}.\n", describe(cut),
                     registering_name(registering()), pays ? "; used again, it is registered once that has paid" : "", mode) +
         guide::describe(why);
}

std::string Choices::describe_learning() const {
  return options_.learn.learning != guide::Learning::off ? learner_.statistics().describe() : std::string();
}

void Choices::save() const {
  if (options_.learn.learning != guide::Learning::on || learner_.learned().empty()) return;
  const Result<void> kept = guide::merge_learned(learned_file_, learner_.learned());
  if (!kept) base::log(base::Level::warn, "what was learned is lost: " + kept.error().message);
}

}  // namespace lacuna::protocol
