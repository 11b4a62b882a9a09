! ARMCI from Fortran through iso_c_binding: start, memory, put, get, accumulate, read-modify-write,
! barrier, end. Rank 0 prints PASS armci_fortran.
! TEST: hosts
! TEST: n=3
! TEST: n=2 node-size=1
module armci
  use, intrinsic :: iso_c_binding
  implicit none

  integer(c_int), parameter :: ARMCI_FETCH_AND_ADD = 0, ARMCI_FETCH_AND_ADD_LONG = 1
  integer(c_int), parameter :: ARMCI_ACC_INT = 0, ARMCI_ACC_DBL = 3

  interface
    function armci_init() bind(c, name='ARMCI_Init') result(code)
      import :: c_int
      integer(c_int) :: code
    end function
    function armci_finalize() bind(c, name='ARMCI_Finalize') result(code)
      import :: c_int
      integer(c_int) :: code
    end function
    function armci_malloc(bases, bytes) bind(c, name='ARMCI_Malloc') result(code)
      import :: c_int, c_long, c_ptr
      type(c_ptr), intent(out) :: bases(*)
      integer(c_long), value :: bytes
      integer(c_int) :: code
    end function
    function armci_free(address) bind(c, name='ARMCI_Free') result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
      integer(c_int) :: code
    end function
    function armci_put(src, dst, bytes, proc) bind(c, name='ARMCI_Put') result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: src, dst
      integer(c_int), value :: bytes, proc
      integer(c_int) :: code
    end function
    function armci_get(src, dst, bytes, proc) bind(c, name='ARMCI_Get') result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: src, dst
      integer(c_int), value :: bytes, proc
      integer(c_int) :: code
    end function
    function armci_acc(datatype, scale, src, dst, bytes, proc) bind(c, name='ARMCI_Acc') &
        result(code)
      import :: c_int, c_ptr
      integer(c_int), value :: datatype, bytes, proc
      type(c_ptr), value :: scale, src, dst
      integer(c_int) :: code
    end function
    function armci_rmw(op, local, remote, value, proc) bind(c, name='ARMCI_Rmw') result(code)
      import :: c_int, c_ptr
      integer(c_int), value :: op, value, proc
      type(c_ptr), value :: local, remote
      integer(c_int) :: code
    end function
    subroutine armci_barrier() bind(c, name='ARMCI_Barrier')
    end subroutine
  end interface
end module

program armci_fortran
  use mpi
  use armci
  implicit none

  integer, parameter :: n = 50
  integer :: me, nproc, ierr, right, left, i
  type(c_ptr), allocatable :: base(:)
  real(c_double), pointer :: mine(:)
  real(c_double), target :: out(n), back(n), scale
  integer(c_long), pointer :: counter
  integer(c_long), target :: ticket
  integer(c_intptr_t) :: address

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nproc, ierr)
  right = mod(me + 1, nproc)
  left = mod(me + nproc - 1, nproc)

  call check(armci_init() == 0, 'ARMCI_Init')
  allocate(base(0:nproc-1))
  call check(armci_malloc(base, int(8 * n + 8, c_long)) == 0, 'ARMCI_Malloc')
  call check(c_associated(base(me)), 'an address of the own part')
  call c_f_pointer(base(me), mine, [n])
  call c_f_pointer(offset(base(me), 8 * n), counter)
  mine = 0
  counter = 0
  call armci_barrier()

  out = [(real(100 * me + i, c_double), i = 1, n)]
  call check(armci_put(c_loc(out), base(right), 8 * n, right) == 0, 'ARMCI_Put')
  call armci_barrier()
  call check(same(mine, [(100 * left + i, i = 1, n)]), 'what the left rank put')

  back = 0
  call check(armci_get(base(right), c_loc(back), 8 * n, right) == 0, 'ARMCI_Get')
  call check(same(back, [(100 * me + i, i = 1, n)]), 'what was put comes back')
  call armci_barrier()

  scale = 2
  out = 1
  call check(armci_acc(ARMCI_ACC_DBL, c_loc(scale), c_loc(out), base(0), 8 * n, 0) == 0, 'ARMCI_Acc')
  call armci_barrier()
  if (me == 0) call check(same(mine, [(100 * left + i + 2 * nproc, i = 1, n)]), 'the sum of all ranks')

  do i = 1, 100
    ticket = -1
    call check(armci_rmw(ARMCI_FETCH_AND_ADD_LONG, c_loc(ticket), offset(base(nproc-1), 8 * n), &
                         1, nproc - 1) == 0, 'ARMCI_Rmw')
    call check(ticket >= i - 1 .and. ticket < 100 * nproc, 'the ticket')
  end do
  call armci_barrier()
  if (me == nproc - 1) call check(counter == 100 * nproc, 'the counter')

  call armci_barrier()
  call check(armci_free(base(me)) == 0, 'ARMCI_Free')
  call check(armci_finalize() == 0, 'ARMCI_Finalize')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (me == 0) print '(a)', 'PASS armci_fortran'
  call MPI_Finalize(ierr)

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    integer :: code
    if (good) return
    print '(a,i0,a,i0,2a)', 'FAIL armci_fortran rank ', me, ' of ', nproc, ': ', what
    flush(6)
    call MPI_Abort(MPI_COMM_WORLD, 1, code)
  end subroutine

  logical function same(got, want)
    real(c_double), intent(in) :: got(:)
    integer, intent(in) :: want(:)
    same = all(nint(got) == want)
  end function

  type(c_ptr) function offset(start, bytes)
    type(c_ptr), intent(in) :: start
    integer, intent(in) :: bytes
    address = transfer(start, address) + bytes
    offset = transfer(address, offset)
  end function
end program
