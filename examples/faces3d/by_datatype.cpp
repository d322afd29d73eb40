// The border by MPI: a subarray for each of the 26 parts that go, and for each that comes. A message is named by the
// direction in which it goes, since two boxes may be neighbours in several.
#include <stdexcept>

#include "examples/faces3d/exchange.hpp"

namespace examples::faces3d {
namespace {

MPI_Datatype subarray(const Box& box, const Part& part) {
  const Triple sizes = box.sizes();
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(3, sizes.data(), part.count.data(), part.first.data(), MPI_ORDER_C, MPI_DOUBLE, &made);
  MPI_Type_commit(&made);
  return made;
}

class ByDatatype : public Exchange {
 public:
  explicit ByDatatype(const Box& box) : box_(box) {
    for (int d = 0; d < kDirections; ++d) {
      inner_.push_back(subarray(box, box.inner(d)));
      border_.push_back(subarray(box, box.border(d)));
    }
  }
  ByDatatype(const ByDatatype&) = delete;
  ByDatatype& operator=(const ByDatatype&) = delete;
  ~ByDatatype() override {
    for (std::size_t d = 0; d < inner_.size(); ++d) {
      MPI_Type_free(&inner_[d]);
      MPI_Type_free(&border_[d]);
    }
  }

  void run(double* field) override {
    std::vector<MPI_Request> requests;
    for (int d = 0; d < kDirections; ++d)
      if (d != kItself)
        MPI_Irecv(field, 1, border_[static_cast<std::size_t>(d)], box_.neighbour(d), opposite(d), MPI_COMM_WORLD, &requests.emplace_back());
    for (int d = 0; d < kDirections; ++d)
      if (d != kItself)
        MPI_Isend(field, 1, inner_[static_cast<std::size_t>(d)], box_.neighbour(d), d, MPI_COMM_WORLD, &requests.emplace_back());
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

 private:
  Box box_;
  std::vector<MPI_Datatype> inner_;
  std::vector<MPI_Datatype> border_;
};

}  // namespace

std::unique_ptr<Exchange> make_by_datatype(const Box& box) { return std::make_unique<ByDatatype>(box); }

std::unique_ptr<Exchange> make_exchange(const std::string& variant, const Box& box, Job& job) {
  if (variant == "datatype") return make_by_datatype(box);
  if (variant == "native") return make_native(box, job);
  throw std::invalid_argument(variant + " is no variant; datatype and native are");
}

}  // namespace examples::faces3d
