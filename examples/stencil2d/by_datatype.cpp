// The borders by MPI: a column is a vector of single doubles, a row is contiguous.
#include <stdexcept>

#include "examples/stencil2d/halo.hpp"

namespace examples::stencil2d {
namespace {

class ByDatatype : public Halo {
 public:
  explicit ByDatatype(const Block& block) : block_(block), sides_(sides(block)) {
    MPI_Type_vector(block.rows.count, 1, static_cast<int>(block.pitch()), MPI_DOUBLE, &column_);
    MPI_Type_contiguous(block.columns.count, MPI_DOUBLE, &row_);
    MPI_Type_commit(&column_);
    MPI_Type_commit(&row_);
  }
  ByDatatype(const ByDatatype&) = delete;
  ByDatatype& operator=(const ByDatatype&) = delete;
  ~ByDatatype() override {
    MPI_Type_free(&column_);
    MPI_Type_free(&row_);
  }

  void exchange(double* field) override {
    std::array<MPI_Request, 8> requests{};
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      const int peer = block_.neighbours[s] < 0 ? MPI_PROC_NULL : block_.neighbours[s];
      const MPI_Datatype type = sides_[s].column ? column_ : row_;
      MPI_Irecv(field + sides_[s].border, 1, type, peer, static_cast<int>(opposite(s)), MPI_COMM_WORLD, &requests[s]);
      MPI_Isend(field + sides_[s].inner, 1, type, peer, static_cast<int>(s), MPI_COMM_WORLD, &requests[4 + s]);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

 private:
  Block block_;
  std::array<Side, 4> sides_;
  MPI_Datatype column_ = MPI_DATATYPE_NULL;
  MPI_Datatype row_ = MPI_DATATYPE_NULL;
};

}  // namespace

std::unique_ptr<Halo> make_by_datatype(const Block& block) { return std::make_unique<ByDatatype>(block); }

std::unique_ptr<Halo> make_halo(const std::string& variant, const Block& block, Job& job) {
  if (variant == "datatype") return make_by_datatype(block);
  if (variant == "native") return make_native(block, job);
  throw std::invalid_argument(variant + " is no variant; datatype and native are");
}

}  // namespace examples::stencil2d
