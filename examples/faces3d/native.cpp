// The border by Lacuna: the same parts, as loops over planes and rows.
#include "examples/faces3d/exchange.hpp"

namespace examples::faces3d {
namespace {

using lacuna::Layout;

// Cells of a part, which lie from `offset` on.
struct Cells {
  std::size_t offset;
  Layout layout;
};

Cells cells_of(const Box& box, const Part& part) {
  constexpr std::int64_t kDouble = sizeof(double);
  const std::int64_t row = box.sizes()[2] * kDouble;
  const std::int64_t plane = box.sizes()[1] * row;
  const Layout line = Layout::bytes(part.count[2] * kDouble);
  return {box.at(part.first[0], part.first[1], part.first[2]),
          Layout::hvector(part.count[0], 1, plane, Layout::hvector(part.count[1], 1, row, line))};
}

class Native : public Exchange {
 public:
  Native(const Box& box, Job& job) : box_(box), ranks_(job.lacuna()) {
    for (int d = 0; d < kDirections; ++d) {
      inner_.push_back(cells_of(box, box.inner(d)));
      border_.push_back(cells_of(box, box.border(d)));
    }
  }

  void run(double* field) override {
    std::vector<lacuna::Request> requests;
    for (int d = 0; d < kDirections; ++d) {
      const auto& [offset, layout] = border_[static_cast<std::size_t>(d)];
      if (d != kItself) requests.push_back(ranks_.irecv(field + offset, layout, box_.neighbour(d), opposite(d)));
    }
    for (int d = 0; d < kDirections; ++d) {
      const auto& [offset, layout] = inner_[static_cast<std::size_t>(d)];
      if (d != kItself) requests.push_back(ranks_.isend(field + offset, layout, box_.neighbour(d), d));
    }
    for (lacuna::Request& request : requests) request.wait();
  }

 private:
  Box box_;
  lacuna::Communicator& ranks_;
  std::vector<Cells> inner_;
  std::vector<Cells> border_;
};

}  // namespace

std::unique_ptr<Exchange> make_native(const Box& box, Job& job) { return std::make_unique<Native>(box, job); }

}  // namespace examples::faces3d
