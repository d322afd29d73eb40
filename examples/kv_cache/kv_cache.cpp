// A paged KV cache goes from a prefill process to a decode process, which keeps it in other pages and in another
// order within them. Each side describes its own memory; Lacuna moves what both have in common, in one message. In
// Python, lacuna.kv makes such layouts from the arrays of serving systems (docs/guide/kv-cache.md).
// Compile it with
//
//   c++ -std=c++20 kv_cache.cpp -o kv_cache $(pkg-config --cflags --libs lacuna)
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <lacuna.hpp>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kTokens = 1024;
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kHeadBytes = 256;  // of a head's keys for a token: 128 numbers of 16 bits

// Where a cache keeps the keys of each token and head.
struct Cache {
  std::int64_t page_tokens;
  std::int64_t token_stride, head_stride;  // bytes within a page
  std::vector<std::int64_t> pages;         // page i of the request is page pages[i] of the memory

  [[nodiscard]] std::int64_t page_bytes() const { return page_tokens * kHeads * kHeadBytes; }
  [[nodiscard]] std::int64_t address(std::int64_t token, std::int64_t head) const {
    return pages[static_cast<std::size_t>(token / page_tokens)] * page_bytes() + token % page_tokens * token_stride + head * head_stride;
  }
  // The same for Lacuna, in the order that both sides agree on: token by token, head by head.
  [[nodiscard]] lacuna::Layout layout() const {
    const lacuna::Layout token = lacuna::Layout::hvector(kHeads, 1, head_stride, lacuna::Layout::bytes(kHeadBytes));
    const lacuna::Layout page = lacuna::Layout::hvector(page_tokens, 1, token_stride, token);
    return lacuna::Layout::indexed_block(1, pages, lacuna::Layout::resized(page, 0, page_bytes()));
  }
  // Twice as much memory as this request has pages, as an allocator would have given them out.
  [[nodiscard]] std::vector<char> memory() const { return std::vector<char>(2 * pages.size() * static_cast<std::size_t>(page_bytes())); }
};

std::vector<std::int64_t> page_table(std::int64_t count, std::int64_t step) {
  std::vector<std::int64_t> pages;
  for (std::int64_t i = 0; i < count; ++i) pages.push_back((i * step + 1) % (2 * count));
  return pages;
}

// Pages of 16 tokens, the heads of a token side by side.
Cache prefill() { return {16, kHeads * kHeadBytes, kHeadBytes, page_table(kTokens / 16, 3)}; }
// Pages of 64 tokens, the tokens of a head side by side.
Cache decode() { return {64, kHeadBytes, 64 * kHeadBytes, page_table(kTokens / 64, 5)}; }

char value_of(std::int64_t token, std::int64_t head) { return static_cast<char>(token * kHeads + head * 37 + 1); }

int send(const std::string& job) {
  auto ranks = lacuna::Communicator::connect(job, {.size = 2, .rank = 0});
  const Cache cache = prefill();
  std::vector<char> memory = cache.memory();
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t head = 0; head < kHeads; ++head) memory[static_cast<std::size_t>(cache.address(token, head))] = value_of(token, head);
  }
  ranks.send(memory.data(), cache.layout(), 1);
  return 0;
}

int receive(const std::string& job) {
  auto ranks = lacuna::Communicator::connect(job, {.size = 2, .rank = 1});
  const Cache cache = decode();
  std::vector<char> memory = cache.memory();
  const lacuna::Message message = ranks.recv(memory.data(), cache.layout(), 0);
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      if (memory[static_cast<std::size_t>(cache.address(token, head))] == value_of(token, head)) continue;
      std::fprintf(stderr, "token %lld, head %lld: another value than was sent\n", static_cast<long long>(token),
                   static_cast<long long>(head));
      return 1;
    }
  }
  std::printf("%lld bytes arrived: %lld runs of the sender's memory went to %lld of the receiver's\n",
              static_cast<long long>(message.bytes), static_cast<long long>(prefill().layout().run_count()),
              static_cast<long long>(cache.layout().run_count()));
  return 0;
}

}  // namespace

int main() try {
  const std::string job = "kv-cache-" + std::to_string(getpid());
  const pid_t child = fork();
  if (child == 0) return receive(job);
  const int sent = send(job);
  int received = 1;
  waitpid(child, &received, 0);
  return sent != 0 || received != 0 ? 1 : 0;
} catch (const lacuna::Error& error) {
  std::fprintf(stderr, "kv_cache: %s\n", error.what());
  return 1;
}
