! The halo exchange of halo.c as Fortran programs have it: arrays with their own bounds, subarray types in Fortran's order, sections packed by hand. The first
! index runs fastest, so that ranks side by side in the second one exchange whole columns, and those in the first one 16 bytes of each column.
!
!   mpirun -n 4 ./halo_fortran --seconds 0.5 --largest 2048
module block_of_grid
  use, intrinsic :: iso_c_binding
  use mpi
  implicit none
  private
  public :: run

  integer, parameter :: depth = 2, sides = 4, tag = 7, by_datatype = 1

  type edge
    integer :: neighbour, tag_of_theirs, out_type, in_type
    integer :: from(2), into(2), extent(2)  ! from, into: of the first point, counted as in values
    double precision, allocatable :: out(:, :), in(:, :)
  end type

  ! One block, as modules of Fortran programs have it.
  integer :: n, where(2), ranks(2)
  double precision, allocatable :: values(:, :)
  type(edge), target :: edges(sides)

  interface
    subroutine mini_race(name, bytes, seconds, state, exchange, prepare, check) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_long), value :: bytes
      real(c_double), value :: seconds
      type(c_ptr), value :: state
      type(c_funptr), value :: exchange, prepare, check
    end subroutine
  end interface

contains

  subroutine exchange(state, way) bind(c)
    type(c_ptr), value :: state
    integer(c_int), value :: way
    integer :: requests(2 * sides), side, error
    if (c_associated(state)) return
    do side = 1, sides
      associate (e => edges(side))
        if (way == by_datatype) then
          call MPI_Irecv(values, 1, e%in_type, e%neighbour, e%tag_of_theirs, MPI_COMM_WORLD, requests(side), error)
        else
          call MPI_Irecv(e%in, size(e%in), MPI_DOUBLE_PRECISION, e%neighbour, e%tag_of_theirs, MPI_COMM_WORLD, requests(side), error)
        end if
      end associate
    end do
    do side = 1, sides
      associate (e => edges(side))
        if (way == by_datatype) then
          call MPI_Isend(values, 1, e%out_type, e%neighbour, tag + side, MPI_COMM_WORLD, requests(sides + side), error)
        else
          if (e%neighbour /= MPI_PROC_NULL) &
            e%out = values(e%from(1):e%from(1) + e%extent(1) - 1, e%from(2):e%from(2) + e%extent(2) - 1)
          call MPI_Isend(e%out, size(e%out), MPI_DOUBLE_PRECISION, e%neighbour, tag + side, MPI_COMM_WORLD, requests(sides + side), error)
        end if
      end associate
    end do
    call MPI_Waitall(2 * sides, requests, MPI_STATUSES_IGNORE, error)
    if (way == by_datatype) return
    do side = 1, sides
      associate (e => edges(side))
        if (e%neighbour /= MPI_PROC_NULL) &
          values(e%into(1):e%into(1) + e%extent(1) - 1, e%into(2):e%into(2) + e%extent(2) - 1) = e%in
      end associate
    end do
  end subroutine

  ! Of each point of the whole grid another one in each call.
  pure double precision function point(i, j, call)
    integer, intent(in) :: i, j
    integer(c_int), intent(in) :: call
    point = (i + dble(where(1)) * n) * 65536 + j + dble(where(2)) * n + call * 0.125d0
  end function

  subroutine prepare(state, call) bind(c)
    type(c_ptr), value :: state
    integer(c_int), value :: call
    integer :: i, j
    if (c_associated(state)) return
    values = -1
    do j = 1, n
      do i = 1, n
        values(i, j) = point(i, j, call)
      end do
    end do
  end subroutine

  ! Corners, and what lies beyond the whole grid, nobody sends.
  integer(c_int) function check(state, call) bind(c)
    type(c_ptr), value :: state
    integer(c_int), value :: call
    integer :: i, j, side
    double precision :: right
    logical :: inside(2), comes
    check = 0
    if (c_associated(state)) return
    do j = 1 - depth, n + depth
      do i = 1 - depth, n + depth
        inside = [i >= 1 .and. i <= n, j >= 1 .and. j <= n]
        side = 4
        if (j < 1) side = 3
        if (i > n) side = 2
        if (i < 1) side = 1
        comes = all(inside)
        if (inside(1) .neqv. inside(2)) comes = edges(side)%neighbour /= MPI_PROC_NULL
        right = -1
        if (comes) right = point(i, j, call)
        if (values(i, j) /= right) return
      end do
    end do
    check = 1
  end function

  ! Sides 1 and 2: before and after in the first index; 3 and 4: in the second.
  subroutine open_edge(e, side)
    type(edge), intent(inout) :: e
    integer, intent(in) :: side
    integer :: axis, step, there(2), whole(2), error
    axis = (side + 1) / 2
    step = merge(-1, 1, mod(side, 2) == 1)
    there = where
    there(axis) = there(axis) + step
    e%neighbour = MPI_PROC_NULL
    if (there(axis) >= 0 .and. there(axis) < ranks(axis)) e%neighbour = there(1) * ranks(2) + there(2)
    e%tag_of_theirs = tag + merge(side + 1, side - 1, mod(side, 2) == 1)
    e%extent = n
    e%extent(axis) = depth
    e%from = 1
    e%into = 1
    e%from(axis) = merge(1, n - depth + 1, step < 0)
    e%into(axis) = merge(1 - depth, n + 1, step < 0)
    whole = n + 2 * depth
    call MPI_Type_create_subarray(2, whole, e%extent, e%from + depth - 1, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, e%out_type, error)
    call MPI_Type_create_subarray(2, whole, e%extent, e%into + depth - 1, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, e%in_type, error)
    call MPI_Type_commit(e%out_type, error)
    call MPI_Type_commit(e%in_type, error)
    allocate (e%out(e%extent(1), e%extent(2)), e%in(e%extent(1), e%extent(2)))
  end subroutine

  subroutine run(points, seconds)
    integer, intent(in) :: points
    double precision, intent(in) :: seconds
    integer :: rank, everybody, dims(2), side, error
    integer(c_long) :: bytes
    character(len=64) :: name
    n = points
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, everybody, error)
    dims = 0
    call MPI_Dims_create(everybody, 2, dims, error)
    ranks = dims  ! the larger one first: there lie 16 bytes of each column
    where = [rank / ranks(2), mod(rank, ranks(2))]
    allocate (values(1 - depth:n + depth, 1 - depth:n + depth))
    bytes = 0
    do side = 1, sides
      call open_edge(edges(side), side)
      if (edges(side)%neighbour /= MPI_PROC_NULL) bytes = bytes + 8_c_long * depth * n
    end do
    write (name, '(a, i0, a, i0, a)') 'halo in Fortran, ', n, ' x ', n, c_null_char
    call mini_race(name, bytes, seconds, c_null_ptr, c_funloc(exchange), c_funloc(prepare), c_funloc(check))
    do side = 1, sides
      call MPI_Type_free(edges(side)%out_type, error)
      call MPI_Type_free(edges(side)%in_type, error)
      deallocate (edges(side)%out, edges(side)%in)
    end do
    deallocate (values)
  end subroutine

end module

program halo
  use mpi
  use block_of_grid
  implicit none
  integer :: error, points, status
  double precision :: seconds, largest
  call MPI_Init(error)
  seconds = number('--seconds', 0.5d0)
  largest = number('--largest', 2048d0)
  points = 256
  do while (points <= largest)
    call run(points, seconds)
    points = 2 * points
  end do
  call MPI_Finalize(error)

contains

  ! The argument behind `name`.
  double precision function number(name, otherwise)
    character(len=*), intent(in) :: name
    double precision, intent(in) :: otherwise
    character(len=32) :: text
    integer :: place
    number = otherwise
    do place = 1, command_argument_count(), 2
      call get_command_argument(place, text)
      if (text /= name) cycle
      call get_command_argument(place + 1, text)
      read (text, *, iostat=status) number
      if (status == 0 .and. number > 0) return
      print '(5a)', 'halo: ', name, ' ', trim(text), ': not a number above 0'
      call MPI_Abort(MPI_COMM_WORLD, 2, error)
    end do
  end function

end program
