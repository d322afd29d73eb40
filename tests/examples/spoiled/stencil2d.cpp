// In place of examples/stencil2d/native.cpp: the same, and then one cell of the last rank's border is off by its last
// bit.
#include <cmath>

#define make_native make_right
#include "examples/stencil2d/native.cpp"
#undef make_native

namespace examples::stencil2d {
namespace {

class Spoiled : public Halo {
 public:
  Spoiled(const Block& block, Job& job) : right_(make_right(block, job)), cell_(block.at(1, -1)), last_(job.rank() == job.size() - 1) {}
  void exchange(double* field) override {
    right_->exchange(field);
    if (last_) field[cell_] = std::nextafter(field[cell_], 2.0);
  }

 private:
  std::unique_ptr<Halo> right_;
  std::size_t cell_;
  bool last_;
};

}  // namespace

std::unique_ptr<Halo> make_native(const Block& block, Job& job) { return std::make_unique<Spoiled>(block, job); }

}  // namespace examples::stencil2d
