! LAPI_INIT before MPI_INIT, LAPI_TERM after MPI_FINALIZE.
! TEST: n=2
program lapi_first
  use mpi
  implicit none
  include 'lapif.h'
  integer :: hndl, ierr, rank, total, provided
  logical :: flag
  type(LAPI_INFO_T) :: info

  info = LAPI_INFO_T(0, 0, 0, 0, 0, 0, 0_8, 0_8, 0_8, 0_8)
  call LAPI_INIT(hndl, info, ierr)
  call check('LAPI_INIT', ierr, LAPI_SUCCESS)
  call MPI_INIT_THREAD(MPI_THREAD_SINGLE, provided, ierr)
  call check('MPI_INIT_THREAD', ierr, MPI_SUCCESS)
  call check('the level', provided, MPI_THREAD_MULTIPLE)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
  call MPI_ALLREDUCE(1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check('MPI_ALLREDUCE', ierr, MPI_SUCCESS)
  call MPI_FINALIZE(ierr)
  call check('MPI_FINALIZE', ierr, MPI_SUCCESS)
  call LAPI_GFENCE(hndl, ierr)
  call check('LAPI_GFENCE', ierr, LAPI_SUCCESS)
  call LAPI_TERM(hndl, ierr)
  call check('LAPI_TERM', ierr, LAPI_SUCCESS)
  call MPI_FINALIZED(flag, ierr)
  if (.not. flag) stop 1
  if (rank == 0) print '(a)', 'PASS lapi_first'

contains

  subroutine check(what, got, wanted)
    character(*), intent(in) :: what
    integer, intent(in) :: got, wanted
    if (got == wanted) return
    print *, 'FAIL lapi_first: ', what, got
    stop 1
  end subroutine check
end program lapi_first
