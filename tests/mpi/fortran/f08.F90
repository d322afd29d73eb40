! By the module mpi_f08: handles are types, errors need not be asked for, and a buffer may be a part of an array.
! ranks: 2
#define NUMBER(kind) type(kind)
#define STATUS_TYPE type(MPI_Status)
#define STATUSES(n) type(MPI_Status), dimension(n)
#define SOURCE_OF(status) status%MPI_SOURCE
#define TAG_OF(status) status%MPI_TAG
#define TAG_OF_ITEM(statuses, i) statuses(i)%MPI_TAG
program by_f08
  use mpi_f08
  implicit none
  integer, parameter :: max_lines = 1000
  integer :: rank, error, lines = 0, wrongs = 0
  character(len=60) :: said(max_lines)
  call all_of_them
#include "calls.inc"

subroutine more
  call without_error
  call sections(3)
  call sections(5000)
  call sections(200000)
end subroutine

subroutine without_error
  integer :: a(4)
  type(MPI_Datatype) :: every_other
  a = rank
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, every_other)
  call MPI_Type_commit(every_other)
  call MPI_Sendrecv(a(1), 1, every_other, 1 - rank, 1, a(2), 1, every_other, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call check(all(a == [rank, 1 - rank, rank, 1 - rank]), 'no ierror')
  call MPI_Type_free(every_other)
end subroutine

! A part of an array with gaps is a buffer where the binding knows arrays (MPI_SUBARRAYS_SUPPORTED); else the compiler
! copies it.
subroutine sections(n)
  integer, intent(in) :: n
  double precision, allocatable, asynchronous :: a(:), b(:)
  type(MPI_Request) :: requests(2)
  integer :: i
  character(len=40) :: text
  allocate (a(3 * n), b(2 * n))
  a = [(value_of(rank, i), i=1, 3 * n)]
  b = -1
  if (rank == 0) then
    call MPI_Send(a(1:3 * n:3), n, MPI_DOUBLE_PRECISION, 1, 1, MPI_COMM_WORLD)
    call MPI_Recv(b(2:2 * n:2), n, MPI_DOUBLE_PRECISION, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  else
    call MPI_Recv(b(2:2 * n:2), n, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Send(a(1:3 * n:3), n, MPI_DOUBLE_PRECISION, 0, 2, MPI_COMM_WORLD)
  end if
  write (text, '(a, i0)') 'section ', n
  call check(all(b(2::2) == [(value_of(1 - rank, 3 * i - 2), i=1, n)]) .and. all(b(1::2) == -1), text)
  if (MPI_SUBARRAYS_SUPPORTED) then
    b = -1
    call MPI_Irecv(b(1:2 * n:2), n, MPI_DOUBLE_PRECISION, 1 - rank, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(2:3 * n:3), n, MPI_DOUBLE_PRECISION, 1 - rank, 3, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(1::2) == [(value_of(1 - rank, 3 * i - 1), i=1, n)]) .and. all(b(2::2) == -1), 'section, later')
  end if
end subroutine
end program
