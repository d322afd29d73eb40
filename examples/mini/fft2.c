/* The Fourier transform of a matrix that is spread over ranks by rows: the rows, a transpose across all ranks, the rows
 * again. The transpose is what is timed: MPI_Alltoallw, whose types take the blocks out of the rows and turn them as
 * they arrive, or loops around MPI_Alltoall.
 *
 *   mpirun -n 2 ./fft2 --seconds 0.5 --largest 1024 */
#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mini.h"

typedef double complex number;

enum { LEAST = 64, WAVE_ROW = 3, WAVE_COLUMN = 5 };

struct matrix {
  int n, rows, rank, ranks;
  number *own, *turned, *packed_out, *packed_in;
  MPI_Datatype* out;
  MPI_Datatype* in;
  int *ones, *places;
};

static void exchange(void* state, enum mini_way way) {
  struct matrix* m = state;
  if (way == MINI_DATATYPE) {
    MPI_Alltoallw(m->own, m->ones, m->places, m->out, m->turned, m->ones, m->places, m->in, MPI_COMM_WORLD);
    return;
  }
  int rows = m->rows, n = m->n, block = rows * rows;
  number* packed = m->packed_out;
  for (int to = 0; to < m->ranks; ++to)
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < rows; ++column) *packed++ = m->own[(long)row * n + to * rows + column];
  MPI_Alltoall(m->packed_out, block, MPI_C_DOUBLE_COMPLEX, m->packed_in, block, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
  for (int from = 0; from < m->ranks; ++from)
    for (int column = 0; column < rows; ++column)
      for (int row = 0; row < rows; ++row)
        m->turned[(long)column * n + from * rows + row] = m->packed_in[(long)from * block + (long)row * rows + column];
}

static number value(int row, int column, int call) { return row + column * 4096.0 + call * 0.125 * I; }

static void prepare(void* state, int call) {
  struct matrix* m = state;
  for (int row = 0; row < m->rows; ++row)
    for (int column = 0; column < m->n; ++column) {
      m->own[(long)row * m->n + column] = value(m->rank * m->rows + row, column, call);
      m->turned[(long)row * m->n + column] = -1;
    }
}

static int check(void* state, int call) {
  const struct matrix* m = state;
  for (int row = 0; row < m->rows; ++row)
    for (int column = 0; column < m->n; ++column)
      if (m->turned[(long)row * m->n + column] != value(column, m->rank * m->rows + row, call)) return 0;
  return 1;
}

/* All of the transform, of a plane wave, which is one number afterwards. */
static void transform(struct matrix* m) {
  int n = m->n, right = 1, all = 0;
  const double turn = 2 * acos(-1) / n;
  fftw_plan plans[2];
  for (int i = 0; i < 2; ++i) {
    fftw_complex* rows = (fftw_complex*)(i == 0 ? m->own : m->turned);
    plans[i] = fftw_plan_many_dft(1, &n, m->rows, rows, NULL, 1, n, rows, NULL, 1, n, FFTW_FORWARD, FFTW_ESTIMATE);
  }
  for (int row = 0; row < m->rows; ++row)
    for (int column = 0; column < n; ++column) {
      long turns = (long)WAVE_ROW * (m->rank * m->rows + row) + (long)WAVE_COLUMN * column;
      m->own[(long)row * n + column] = cexp(I * turn * (double)(turns % n));
    }
  fftw_execute(plans[0]);
  exchange(m, MINI_DATATYPE);
  fftw_execute(plans[1]);
  for (int row = 0; row < m->rows; ++row)
    for (int column = 0; column < n; ++column) {
      double peak = m->rank * m->rows + row == WAVE_COLUMN && column == WAVE_ROW ? (double)n * n : 0;
      if (cabs(m->turned[(long)row * n + column] - peak) > 1e-9 * n * n) right = 0;
    }
  for (int i = 0; i < 2; ++i) fftw_destroy_plan(plans[i]);
  MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all) return;
  fprintf(stderr, "fft2, %d x %d: the transform is wrong\n", n, n);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void open_types(struct matrix* m) {
  const int size = (int)sizeof(number);
  for (int i = 0; i < m->ranks; ++i) {
    MPI_Datatype column, beside;
    MPI_Type_vector(m->rows, m->rows, m->n, MPI_C_DOUBLE_COMPLEX, &m->out[i]);
    MPI_Type_vector(m->rows, 1, m->n, MPI_C_DOUBLE_COMPLEX, &column);
    MPI_Type_create_resized(column, 0, size, &beside);
    MPI_Type_contiguous(m->rows, beside, &m->in[i]);
    MPI_Type_commit(&m->out[i]);
    MPI_Type_commit(&m->in[i]);
    MPI_Type_free(&column);
    MPI_Type_free(&beside);
    m->ones[i] = 1;
    m->places[i] = i * m->rows * size;
  }
}

static void run(int n, double seconds) {
  struct matrix m = {.n = n};
  MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &m.ranks);
  m.rows = n / m.ranks;
  long bytes = (long)sizeof(number) * m.rows * n;
  number** parts[] = {&m.own, &m.turned, &m.packed_out, &m.packed_in};
  for (int i = 0; i < 4; ++i) *parts[i] = mini_memory(bytes);
  m.out = mini_memory((long)sizeof(MPI_Datatype) * m.ranks);
  m.in = mini_memory((long)sizeof(MPI_Datatype) * m.ranks);
  m.ones = mini_memory((long)sizeof(int) * m.ranks);
  m.places = mini_memory((long)sizeof(int) * m.ranks);
  open_types(&m);
  char name[64];
  snprintf(name, sizeof name, "fft2, %d x %d", n, n);
  mini_race(name, bytes - bytes / m.ranks, seconds, &m, exchange, prepare, check);
  transform(&m);
  for (int i = 0; i < m.ranks; ++i) {
    MPI_Type_free(&m.out[i]);
    MPI_Type_free(&m.in[i]);
  }
  for (int i = 0; i < 4; ++i) free(*parts[i]);
  free(m.out);
  free(m.in);
  free(m.ones);
  free(m.places);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double seconds = mini_number(argc, argv, "seconds", 0.5), largest = mini_number(argc, argv, "largest", 1024);
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int n = LEAST * ranks; n <= largest; n *= 2) run(n, seconds);
  MPI_Finalize();
  return 0;
}
