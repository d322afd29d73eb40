// A paged KV cache, handed from a prefill server to a decode server that keeps it in another way: other pages, another
// order within them, other page tables. `kv_handover --help` has the settings; docs/guide/kv-cache.md says what the
// numbers mean.
#include <fmt/format.h>

#include "tools/handover/show.hpp"

namespace {

using namespace lacuna::handover;
namespace base = lacuna::base;

constexpr std::int64_t kSpare = 2;  // an allocator's pages for each that this request has

// Pages of 16 tokens, K and V in pools of their own, to pages of 64 tokens in which a head's tokens are side by side
// and V follows K.
std::vector<Stream> pages(const Arguments& arguments) {
  const Contents what{.layers = arguments.number("layers"),
                      .kv = 2,
                      .tokens = arguments.number("tokens"),
                      .heads = arguments.number("heads"),
                      .head_bytes = arguments.number("head-bytes")};
  Stream stream{.sender = 0, .receiver = 1};
  stream.src = paged_cache(what, arguments.number("page"), Order::tokens_first, Kv::pools, kSpare, 1);
  stream.dst = paged_cache(what, arguments.number("peer-page"), Order::heads_first, Kv::pages, kSpare, 2);
  return {stream};
}

// Latent attention with the context spread over eight ranks: every eighth row of the sender's cache, to pages of
// another rank.
std::vector<Stream> latent(const Arguments& arguments) {
  constexpr std::int64_t parallel = 8;
  const Contents what{.layers = arguments.number("layers"),
                      .kv = 1,
                      .tokens = arguments.number("tokens"),
                      .heads = 1,
                      .head_bytes = arguments.number("head-bytes")};
  Stream stream{.sender = 0, .receiver = 1};
  // The fourth of eight ranks' rows
  stream.src = {.what = what, .page_tokens = what.tokens, .pages = {0}, .first = 3 * what.head_bytes};
  stream.src.strides.token = parallel * what.head_bytes;
  stream.src.strides.layer = what.tokens * stream.src.strides.token;
  stream.src.memory_bytes = what.layers * stream.src.strides.layer;
  stream.dst = paged_cache(what, arguments.number("peer-page"), Order::tokens_first, Kv::pools, kSpare, 3);
  return {stream};
}

base::Result<std::vector<Stream>> streams(const Arguments& arguments) {
  if (arguments.number("head-bytes") * arguments.number("heads") * arguments.number("tokens") * arguments.number("layers") > 4LL << 30)
    return base::fail(base::Code::limit, "layers x tokens x heads x head-bytes is beyond 4 GiB, more than this example moves");
  return arguments.word("case") == "pages" ? pages(arguments) : latent(arguments);
}

std::string title(const Arguments& arguments) {
  if (arguments.word("case") == "latent") return "KV cache, latent attention: every eighth row to pages of another rank";
  return fmt::format("KV cache: pages of {} tokens, K and V apart, to pages of {}, heads first, V behind K", arguments.number("page"),
                     arguments.number("peer-page"));
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(
      {.name = "kv_handover",
       .what =
           "kv_handover: a paged KV cache from a prefill server to a decode server with another layout, by every method, verified.\n"
           "The source has pages of --page tokens, K and V in pools of their own; the destination pages of --peer-page tokens, heads\n"
           "first, V behind K. --case latent: rows of --head-bytes, every eighth of the source's, to pages; --heads has no meaning then.",
       .settings = {{"case", "pages", "what is handed over", 0, 0, {"pages", "latent"}},
                    {"layers", "4", "of the model", 1, 1000},
                    {"tokens", "2048", "of the request", 1, 10'000'000},
                    {"heads", "8", "K and V heads", 1, 4096},
                    {"head-bytes", "256", "of a head's K for a token: 128 numbers of 16 bits", 1, 1 << 20},
                    {"page", "16", "tokens of a page at the source", 1, 1 << 20},
                    {"peer-page", "64", "tokens of a page at the destination", 1, 1 << 20}},
       .ranks = 2,
       .streams = &streams,
       .title = &title},
      argc, argv);
}
