// The borders by Lacuna: the same layouts, the same messages.
#include "examples/stencil2d/halo.hpp"

namespace examples::stencil2d {
namespace {

using lacuna::Layout;

class Native : public Halo {
 public:
  Native(const Block& block, Job& job)
      : block_(block),
        sides_(sides(block)),
        ranks_(job.lacuna()),
        column_(Layout::vector(block.rows.count, 1, static_cast<std::int64_t>(block.pitch()), Layout::bytes(sizeof(double)))),
        row_(Layout::contiguous(block.columns.count, Layout::bytes(sizeof(double)))) {}

  void exchange(double* field) override {
    std::vector<lacuna::Request> requests;
    for (std::size_t s = 0; s < sides_.size(); ++s)
      if (block_.neighbours[s] >= 0)
        requests.push_back(ranks_.irecv(field + sides_[s].border, layout(s), block_.neighbours[s], static_cast<int>(opposite(s))));
    for (std::size_t s = 0; s < sides_.size(); ++s)
      if (block_.neighbours[s] >= 0)
        requests.push_back(ranks_.isend(field + sides_[s].inner, layout(s), block_.neighbours[s], static_cast<int>(s)));
    for (lacuna::Request& request : requests) request.wait();
  }

 private:
  [[nodiscard]] const Layout& layout(std::size_t side) const { return sides_[side].column ? column_ : row_; }

  Block block_;
  std::array<Side, 4> sides_;
  lacuna::Communicator& ranks_;
  Layout column_;
  Layout row_;
};

}  // namespace

std::unique_ptr<Halo> make_native(const Block& block, Job& job) { return std::make_unique<Native>(block, job); }

}  // namespace examples::stencil2d
