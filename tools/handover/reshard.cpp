// Tensor parallelism changes between prefill and decode: four prefill ranks, each with a quarter of the heads, hand
// their KV cache to two decode ranks with half of the heads each. `reshard --help` has the settings;
// docs/guide/kv-cache.md says what the numbers mean.
#include <fmt/format.h>

#include "tools/handover/show.hpp"

namespace {

using namespace lacuna::handover;
namespace base = lacuna::base;

constexpr int kPrefill = 4;
constexpr int kDecode = 2;
constexpr std::int64_t kSpare = 2;

base::Result<std::vector<Stream>> streams(const Arguments& arguments) {
  const std::int64_t heads = arguments.number("heads");
  if (heads % kPrefill != 0)
    return base::fail(base::Code::invalid_argument, fmt::format("--heads {}: it must be a multiple of {} ranks", heads, kPrefill));
  if (arguments.number("head-bytes") * heads * arguments.number("tokens") * arguments.number("layers") > 4LL << 30)
    return base::fail(base::Code::limit, "layers x tokens x heads x head-bytes is beyond 4 GiB, more than this example moves");
  Contents what{.layers = arguments.number("layers"),
                .kv = 2,
                .tokens = arguments.number("tokens"),
                .heads = heads / kPrefill,
                .head_bytes = arguments.number("head-bytes")};
  Contents half = what;
  half.heads = heads / kDecode;
  std::vector<Stream> all;
  for (int rank = 0; rank < kPrefill; ++rank) {
    const int decode = rank / (kPrefill / kDecode);
    Stream stream{.sender = rank, .receiver = kPrefill + decode, .first_head = rank * what.heads};
    stream.src = paged_cache(what, arguments.number("page"), Order::tokens_first, Kv::pools, kSpare, 1 + static_cast<std::uint64_t>(rank));
    const Cache theirs =
        paged_cache(half, arguments.number("peer-page"), Order::tokens_first, Kv::pages, kSpare, 11 + static_cast<std::uint64_t>(decode));
    stream.dst = heads_of(theirs, stream.first_head - decode * half.heads, what.heads);
    all.push_back(std::move(stream));
  }
  return all;
}

std::string title(const Arguments& arguments) {
  return fmt::format("KV cache of {} heads, 4 prefill ranks to 2 decode ranks: pages of {} tokens to pages of {}",
                     arguments.number("heads"), arguments.number("page"), arguments.number("peer-page"));
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(
      {.name = "reshard",
       .what = "reshard: the KV cache of four prefill ranks with a quarter of the heads each to two decode ranks with half of them each,\n"
               "in six processes, by every method, verified. Planning is told of all streams, layouts and posting of rank 0's.",
       .settings = {{"layers", "4", "of the model", 1, 1000},
                    {"tokens", "2048", "of the request", 1, 10'000'000},
                    {"heads", "8", "K and V heads of the model, a multiple of 4", 4, 4096},
                    {"head-bytes", "256", "of a head's K for a token: 128 numbers of 16 bits", 1, 1 << 20},
                    {"page", "16", "tokens of a page at the source", 1, 1 << 20},
                    {"peer-page", "64", "tokens of a page at the destination", 1, 1 << 20}},
       .ranks = kPrefill + kDecode,
       .streams = &streams,
       .title = &title},
      argc, argv);
}
