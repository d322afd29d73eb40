! By mpif.h: handles are integers, and nothing is declared.
! ranks: 2
#include "integers.inc"
program by_mpif
  implicit none
  include 'mpif.h'
  integer, parameter :: max_lines = 1000
  integer :: rank, error, lines = 0, wrongs = 0
  character(len=60) :: said(max_lines)
  call all_of_them
#include "calls.inc"

subroutine more
end subroutine
end program
