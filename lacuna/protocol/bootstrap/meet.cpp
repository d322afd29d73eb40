// A group and its NIC: a NIC that is named is opened first, so that a wrong name is told at once.
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::protocol {

Result<Meeting> meet(const BootstrapOptions& options, std::string_view nic) {
  Meeting made;
  if (!nic.empty()) made.context = LACUNA_TRY(nic::open(nic));
  made.group = LACUNA_TRY(form_group(options));
  if (nic.empty()) made.context = LACUNA_TRY(nic::open_usual(!made.group.one_machine));
  return made;
}

}  // namespace lacuna::protocol
