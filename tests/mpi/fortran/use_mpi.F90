! By the module mpi: handles are integers, and arguments are checked.
! ranks: 2
#include "integers.inc"
program by_use_mpi
  use mpi
  implicit none
  integer, parameter :: max_lines = 1000
  integer :: rank, error, lines = 0, wrongs = 0
  character(len=60) :: said(max_lines)
  call all_of_them
#include "calls.inc"

subroutine more
end subroutine
end program
