// The exchange by MPI: in step s each rank sends to the one s places behind it and receives from the one s places
// before it.
//
// A datatype describes a block where it lies in the matrix, so that the other side's contiguous message, or its
// datatype, is all that MPI needs. Blocks travel row by row: where they come from, a row is contiguous; where they go
// to, each element of it belongs to another row of the transpose. The receiving datatype is therefore as hard as
// datatypes get.
#include <stdexcept>
#include <utility>

#include "examples/common/timing.hpp"
#include "examples/fft2d/exchange.hpp"
#include "examples/fft2d/transpose.hpp"

namespace examples::fft2d {
namespace {

constexpr int kExchangeTag = 1;
const MPI_Datatype kComplex = MPI_C_DOUBLE_COMPLEX;

class Type {
 public:
  explicit Type(MPI_Datatype made) : type_(made) { MPI_Type_commit(&type_); }
  Type(Type&& other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  Type& operator=(Type&&) = delete;
  ~Type() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }
  [[nodiscard]] MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_;
};

// `rows` rows of `columns` elements within a matrix of `n` columns.
Type block(int rows, int columns, int n) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows, columns, n, kComplex, &made);
  return Type(made);
}

// Where such a block goes to in the transpose, row by row: each row is a column there.
Type transposed_block(int rows, int columns, int n) {
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_vector(columns, 1, n, kComplex, &column);
  MPI_Datatype next_to_one_another = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(column, 0, sizeof(Complex), &next_to_one_another);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(rows, next_to_one_another, &made);
  MPI_Type_free(&next_to_one_another);
  MPI_Type_free(&column);
  return Type(made);
}

class ByMpi : public Exchange {
 public:
  ByMpi(const Rows& rows, int rank, bool send_datatype, bool recv_datatype)
      : rows_(rows), rank_(rank), own_(rows.count(rank)), by_datatype_{send_datatype, recv_datatype} {
    for (int peer = 0; peer < rows.ranks; ++peer) {
      send_types_.push_back(block(own_, rows.count(peer), rows.n));
      recv_types_.push_back(transposed_block(rows.count(peer), own_, rows.n));
    }
    const std::size_t most = static_cast<std::size_t>(rows.count(0)) * static_cast<std::size_t>(own_);
    if (!send_datatype) packed_.resize(most);
    if (!recv_datatype) arrived_.resize(most);
  }

  Phases run(const Complex* from, Complex* to) override {
    Phases phases;
    const double start = now_us();
    transpose(from + rows_.first(rank_), pitch(), own_, own_, to + rows_.first(rank_), pitch());
    for (int step = 1; step < rows_.ranks; ++step) {
      const int dest = (rank_ + step) % rows_.ranks;
      const int source = (rank_ + rows_.ranks - step) % rows_.ranks;
      const Side send = sending(from + rows_.first(dest), dest);
      const double begin = now_us();
      const Side receive = receiving(to + rows_.first(source), source);
      MPI_Sendrecv(send.base, send.count, send.type, dest, kExchangeTag, receive.base, receive.count, receive.type, source, kExchangeTag,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      phases.communication += now_us() - begin;
      if (!by_datatype_.recv) transpose(arrived_.data(), own(), rows_.count(source), own_, to + rows_.first(source), pitch());
    }
    phases.packing = now_us() - start - phases.communication;
    return phases;
  }

 private:
  struct Side {
    void* base;
    int count;
    MPI_Datatype type;
  };
  [[nodiscard]] std::size_t pitch() const { return static_cast<std::size_t>(rows_.n); }
  [[nodiscard]] std::size_t own() const { return static_cast<std::size_t>(own_); }

  Side sending(const Complex* block, int dest) {
    if (by_datatype_.send) return {const_cast<Complex*>(block), 1, send_types_[static_cast<std::size_t>(dest)].get()};
    pack(block, pitch(), own_, rows_.count(dest), packed_.data());
    return {packed_.data(), own_ * rows_.count(dest), kComplex};
  }
  Side receiving(Complex* block, int source) {
    if (by_datatype_.recv) return {block, 1, recv_types_[static_cast<std::size_t>(source)].get()};
    return {arrived_.data(), own_ * rows_.count(source), kComplex};
  }

  Rows rows_;
  int rank_;
  int own_;
  struct {
    bool send, recv;
  } by_datatype_;
  std::vector<Type> send_types_;
  std::vector<Type> recv_types_;
  std::vector<Complex> packed_;
  std::vector<Complex> arrived_;
};

}  // namespace

std::unique_ptr<Exchange> make_by_mpi(const Rows& rows, const Job& job, bool send_datatype, bool recv_datatype) {
  return std::make_unique<ByMpi>(rows, job.rank(), send_datatype, recv_datatype);
}

std::unique_ptr<Exchange> make_exchange(const std::string& variant, const Rows& rows, Job& job) {
  if (variant == "native") return make_native(rows, job);
  if (variant == "none") return make_by_mpi(rows, job, false, false);
  if (variant == "send") return make_by_mpi(rows, job, true, false);
  if (variant == "recv") return make_by_mpi(rows, job, false, true);
  if (variant == "both") return make_by_mpi(rows, job, true, true);
  throw std::invalid_argument(variant + " is no variant; none, send, recv, both and native are");
}

}  // namespace examples::fft2d
