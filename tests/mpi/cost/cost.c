/* What MPI's calls cost, in one of several ways of use. cost.py runs this plain and preloaded, by turns.

     cost once KIND BLOCKS WAY ROUNDS     a type for each message: made, committed, sent, freed. KIND: vector, indexed,
                                          struct; WAY: calls, requests
     cost many CALL COUNT ROUNDS          COUNT receives of 128 bytes with gaps, begun, then ended by CALL: all, any,
                                          some, testall, testany, testsome
     cost exchange KIND DOUBLES COUNT ROUNDS
                                          COUNT messages each way at once, by MPI_Irecv, MPI_Isend and MPI_Waitall, of
                                          numbers without gaps (numbers) or of every second number (vector); time for
                                          each message
     cost ring BYTES ROUNDS               each rank exchanges doubles with gaps with its neighbours, by MPI_Sendrecv
     cost ping BYTES ROUNDS               contiguous bytes to and fro

   COST_THREADS=1 asks for MPI_THREAD_MULTIPLE. Every message is looked at. Rank 0 prints one line: the median and the
   90th percentile of a round, in ns. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void stop(const char* why) {
  fprintf(stderr, "cost: rank %d: %s\n", rank, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void print(double* seconds, int rounds) {
  qsort(seconds, (size_t)rounds, sizeof *seconds, by_size);
  if (rank == 0) printf("%.1f %.1f\n", 1e9 * seconds[rounds / 2], 1e9 * seconds[rounds * 9 / 10]);
}

static double* doubles(size_t count, double first) {
  double* made = malloc(count * sizeof *made);
  if (made == NULL) stop("no memory");
  for (size_t i = 0; i < count; ++i) made[i] = first + (double)i;
  return made;
}

/* Blocks of one to three doubles with as many between them, by a fixed seed for all ranks; where each begins, in
 * doubles. */
static size_t draw(int blocks, int* lengths, int* places) {
  unsigned state = 12345;
  int at = 0;
  for (int i = 0; i < blocks; ++i) {
    state = state * 1103515245u + 12345u;
    lengths[i] = 1 + (int)(state >> 16) % 3;
    places[i] = at;
    at += 2 * lengths[i];
  }
  return (size_t)at;
}

static MPI_Datatype type_of(const char* kind, int blocks, int* lengths, const int* places, MPI_Aint* bytes, MPI_Datatype* members) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  if (strcmp(kind, "vector") == 0) {
    MPI_Type_vector(blocks, 1, 2, MPI_DOUBLE, &made);
  } else if (strcmp(kind, "indexed") == 0) {
    MPI_Type_indexed(blocks, lengths, places, MPI_DOUBLE, &made);
  } else if (strcmp(kind, "struct") == 0) {
    for (int i = 0; i < blocks; ++i) bytes[i] = (MPI_Aint)sizeof(double) * places[i], members[i] = MPI_DOUBLE;
    MPI_Type_create_struct(blocks, lengths, bytes, members, &made);
  } else {
    stop("no such kind");
  }
  MPI_Type_commit(&made);
  return made;
}

static void move(int sends, void* memory, MPI_Datatype type, int requests) {
  MPI_Request request;
  if (requests) {
    if (sends) MPI_Isend(memory, 1, type, 1 - rank, 7, MPI_COMM_WORLD, &request);
    if (!sends) MPI_Irecv(memory, 1, type, 1 - rank, 7, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (sends) MPI_Send(memory, 1, type, 1 - rank, 7, MPI_COMM_WORLD);
    if (!sends) MPI_Recv(memory, 1, type, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void once(const char* kind, int blocks, int requests, int rounds, double* seconds) {
  int* lengths = malloc((size_t)blocks * sizeof *lengths);
  int* places = malloc((size_t)blocks * sizeof *places);
  MPI_Aint* bytes = malloc((size_t)blocks * sizeof *bytes);
  MPI_Datatype* members = malloc((size_t)blocks * sizeof *members);
  if (lengths == NULL || places == NULL || bytes == NULL || members == NULL) stop("no memory");
  const int vector = strcmp(kind, "vector") == 0;
  const size_t count = draw(blocks, lengths, places), all = count > 2 * (size_t)blocks ? count : 2 * (size_t)blocks;
  double *out = doubles(all, 1), *in = doubles(all, -1e6);
  for (int round = 0; round < rounds; ++round) {
    const double begin = MPI_Wtime();
    for (int turn = 0; turn < 2; ++turn) {
      const int sends = turn == rank;
      MPI_Datatype type = type_of(kind, blocks, lengths, places, bytes, members);
      move(sends, sends ? out : in, type, requests);
      MPI_Type_free(&type);
    }
    seconds[round] = (MPI_Wtime() - begin) / 2;
    for (int i = 0; i < blocks; ++i) {
      const size_t at = vector ? 2 * (size_t)i : (size_t)places[i], length = vector ? 1 : (size_t)lengths[i];
      if (in[at] != out[at] || in[at + length] == out[at + length]) stop("wrong data");
      in[at] = 0;
    }
  }
  free(lengths), free(places), free(bytes), free(members), free(out), free(in);
}

static void end_all(const char* call, int count, MPI_Request* requests, int* indices) {
  int done = 0, index = 0, flag = 0;
  if (strcmp(call, "all") == 0) MPI_Waitall(count, requests, MPI_STATUSES_IGNORE), done = count;
  while (done < count) {
    int some = 0;
    if (strcmp(call, "any") == 0) {
      MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE), some = 1;
    } else if (strcmp(call, "testany") == 0) {
      MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE), some = flag;
    } else if (strcmp(call, "some") == 0) {
      MPI_Waitsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
    } else if (strcmp(call, "testsome") == 0) {
      MPI_Testsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
    } else if (strcmp(call, "testall") == 0) {
      MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE), some = flag ? count : 0;
    } else {
      stop("no such call");
    }
    done += some;
  }
}

static void many(const char* call, int count, int rounds, double* seconds) {
  enum { kDoubles = 16 };
  MPI_Datatype type;
  MPI_Type_vector(kDoubles, 1, 2, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  double* memory = doubles((size_t)count * 2 * kDoubles, rank == 0 ? 1 : -1e9);
  MPI_Request* requests = malloc((size_t)count * sizeof *requests);
  int* indices = malloc((size_t)count * sizeof *indices);
  if (requests == NULL || indices == NULL) stop("no memory");
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < count; ++i) {
      double* const at = memory + (size_t)i * 2 * kDoubles;
      if (rank == 0) MPI_Isend(at, 1, type, 1, i % 1000, MPI_COMM_WORLD, &requests[i]);
      if (rank == 1) MPI_Irecv(at, 1, type, 0, i % 1000, MPI_COMM_WORLD, &requests[i]);
    }
    end_all(rank == 1 ? call : "all", count, requests, indices);
    MPI_Barrier(MPI_COMM_WORLD);
    seconds[round] = MPI_Wtime() - begin;
    for (int i = 0; rank == 1 && i < count * kDoubles; ++i) {
      if (memory[2 * i] != 1 + 2 * i) stop("wrong data");
      memory[2 * i] = 0;
    }
  }
  MPI_Type_free(&type);
  free(memory), free(requests), free(indices);
}

static void exchange(const char* kind, int numbers, int count, int rounds, double* seconds) {
  enum { kTurns = 50 };
  const int step = strcmp(kind, "vector") == 0 ? 2 : 1, elements = step == 2 ? 1 : numbers;
  MPI_Datatype type = MPI_DOUBLE;
  if (step == 2) MPI_Type_vector(numbers, 1, step, MPI_DOUBLE, &type), MPI_Type_commit(&type);
  const size_t room = (size_t)step * (size_t)numbers, all = room * (size_t)count;
  double *out = doubles(all, 1 + rank), *in = doubles(all, -1e9);
  MPI_Request* requests = malloc(2 * (size_t)count * sizeof *requests);
  if (requests == NULL) stop("no memory");
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int turn = 0; turn < kTurns; ++turn) {
      for (int i = 0; i < count; ++i) MPI_Irecv(in + room * (size_t)i, elements, type, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
      for (int i = 0; i < count; ++i) MPI_Isend(out + room * (size_t)i, elements, type, 1 - rank, i, MPI_COMM_WORLD, &requests[count + i]);
      MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
    }
    seconds[round] = (MPI_Wtime() - begin) / kTurns / count;
    for (size_t i = 0; i < all; ++i) {
      const int moved = i % (size_t)step == 0;
      if (moved != (in[i] == 2 - rank + (double)i)) stop("wrong data");
      if (moved) in[i] = 0;
    }
  }
  if (step == 2) MPI_Type_free(&type);
  free(out), free(in), free(requests);
}

static void ring(size_t bytes, int rounds, double* seconds) {
  const size_t count = bytes / sizeof(double);
  MPI_Datatype type;
  MPI_Type_vector((int)count, 1, 2, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  double *out = doubles(2 * count, 1 + rank), *in = doubles(2 * count, -1e9);
  const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
  for (int round = 0; round < rounds; ++round) {
    const double begin = MPI_Wtime();
    MPI_Sendrecv(out, 1, type, to, 7, in, 1, type, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    seconds[round] = MPI_Wtime() - begin;
    for (size_t i = 0; i < 2 * count; i += 2) {
      if (in[i] != 1 + from + (double)i) stop("wrong data");
      in[i] = 0;
    }
  }
  MPI_Type_free(&type);
  free(out), free(in);
}

static void ping(size_t bytes, int rounds, double* seconds) {
  char *out = malloc(bytes), *in = malloc(bytes);
  if (out == NULL || in == NULL) stop("no memory");
  memset(out, 1 + rank, bytes), memset(in, 0, bytes);
  const int turns = bytes <= 4096 ? 100 : 1;
  for (int round = 0; round < rounds; ++round) {
    const double begin = MPI_Wtime();
    for (int turn = 0; turn < turns; ++turn) {
      if (rank == 0) MPI_Send(out, (int)bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
      MPI_Recv(in, (int)bytes, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(out, (int)bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
    }
    seconds[round] = (MPI_Wtime() - begin) / turns / 2;
    if (in[0] != 2 - rank || in[bytes - 1] != 2 - rank) stop("wrong data");
    in[0] = in[bytes - 1] = 0;
  }
  free(out), free(in);
}

int main(int argc, char** argv) {
  int provided = 0;
  const int wanted = getenv("COST_THREADS") != NULL ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (provided < wanted) stop("this MPI has no such threads");
  const int rounds = argc > 2 ? atoi(argv[argc - 1]) : 0;
  double* seconds = rounds > 0 ? malloc((size_t)rounds * sizeof *seconds) : NULL;
  if (seconds == NULL) stop("usage: see the head of cost.c");
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc == 6 && strcmp(argv[1], "once") == 0)
    once(argv[2], atoi(argv[3]), strcmp(argv[4], "requests") == 0, rounds, seconds);
  else if (argc == 5 && strcmp(argv[1], "many") == 0)
    many(argv[2], atoi(argv[3]), rounds, seconds);
  else if (argc == 6 && strcmp(argv[1], "exchange") == 0)
    exchange(argv[2], atoi(argv[3]), atoi(argv[4]), rounds, seconds);
  else if (argc == 4 && strcmp(argv[1], "ring") == 0)
    ring((size_t)atol(argv[2]), rounds, seconds);
  else if (argc == 4 && strcmp(argv[1], "ping") == 0)
    ping((size_t)atol(argv[2]), rounds, seconds);
  else
    stop("usage: see the head of cost.c");
  print(seconds, rounds);
  free(seconds);
  MPI_Finalize();
  return 0;
}
