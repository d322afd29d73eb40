// An mlx5 device that is none: libibverbs' and mlx5dv's functions, as far as NIC verbs calls them, over memory of this
// process. What is posted runs later, at somebody's poll; keys are really resolved; what the documents forbid is
// refused as they say, or goes wrong as they say:
//
//   - errors of builders show at ibv_wr_complete, which then posts nothing (ibv_wr_post(3))
//   - entries of a key go inline: as many as max_inline_data left room for; a stride's head takes one
//     (mlx5dv_wr_post(3))
//   - strides and their pieces are cut to 16 bits in silence
//   - an indirect key begins at address 0, stands for nothing until its request ran, and may name others to a depth of
//     4
//   - requests of one queue pair run in order, but bytes that a read fetches may land after the requests behind it,
//     unless those are fenced
//   - a short message is scattered through its completion unless the queue pair was created without that, which spoils
//     indirect keys
//
// Both ends of a connection are in this process, so tests use two threads.
#pragma once

#include <string>
#include <vector>

#include "lacuna/nic/verbs/library.hpp"

namespace lacuna::test::mlx5 {

/// Its devices: one with indirect keys, one without.
inline constexpr const char* kDevice = "fake5_0";
inline constexpr const char* kOtherDevice = "fake4_0";

[[nodiscard]] const nic::verbs::Library& library();
/// As nic::open("verbs:DEVICE") would.
nic::Result<std::unique_ptr<nic::Context>> open(const nic::OpenOptions& options = {}, std::string_view device = kDevice);

/// From now on what is registered with it is pinned, and reached by its pages (pins.hpp). Errors: unsupported.
nic::Result<void> pin_pages();

/// A call that was made, of those that have to do with keys.
struct Call {
  enum class What { create_mkey, destroy_mkey, mr_list, mr_interleaved, local_inv, complete } what;
  std::uint32_t key = 0;
  std::uint32_t entries = 0;  ///< of a key, or of a binding; of complete, requests with this doorbell
  std::uint32_t repeat = 0;
};
/// Since the last time that this was asked.
std::vector<Call> take_calls();
/// What was done that the documents forbid, and no return value says: completions lost, objects destroyed while others
/// use them, requests outside of ibv_wr_start and ibv_wr_complete. Empty, if all is well.
std::vector<std::string> violations();

}  // namespace lacuna::test::mlx5
