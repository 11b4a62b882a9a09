! Regions and marks from Fortran: the trace contains their names without trailing blanks.
! TEST: n=2
program regions
  use, intrinsic :: iso_c_binding
  use mpi
  implicit none
  interface
    function armci_init() bind(c, name='ARMCI_Init') result(code)
      import :: c_int
      integer(c_int) :: code
    end function
    function armci_finalize() bind(c, name='ARMCI_Finalize') result(code)
      import :: c_int
      integer(c_int) :: code
    end function
    function setenv(name, value, overwrite) bind(c) result(code)
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: name(*), value(*)
      integer(c_int), value :: overwrite
      integer(c_int) :: code
    end function
    function mkdtemp(template) bind(c) result(place)
      import :: c_ptr, c_char
      character(kind=c_char), intent(inout) :: template(*)
      type(c_ptr) :: place
    end function
  end interface
  character(len=200) :: directory, path
  character(len=32) :: name = 'SCF iteration'
  character(len=:), allocatable :: bytes
  integer :: ierror, rank, unit, length, step, code

  directory = '/tmp/portolan-regions.XXXXXX'//c_null_char
  if (.not. c_associated(mkdtemp(directory))) stop 5
  if (setenv('PORTOLAN_TRACE'//c_null_char, directory, 1_c_int) /= 0) stop 2
  directory(index(directory, c_null_char):) = ' '
  call mpi_init(ierror)
  call mpi_comm_rank(mpi_comm_world, rank, ierror)
  if (armci_init() /= 0) stop 3
  do step = 1, 3
    call portolan_region_begin(name)
    call portolan_mark('converged')
    call portolan_region_end()
  end do
  if (armci_finalize() /= 0) stop 4

  write (path, '(a, a, i6.6, a)') trim(directory), '/rank-', rank, '.ptrace'
  open (newunit=unit, file=path, access='stream', form='unformatted', status='old')
  inquire (unit=unit, size=length)
  allocate (character(len=length) :: bytes)
  read (unit) bytes
  close (unit, status='delete')
  ! The length precedes the text.
  if (index(bytes, achar(13)//'SCF iteration') == 0) then
    print '(a)', 'FAIL regions: the trace has no region'
    call mpi_abort(mpi_comm_world, 1, ierror)
  end if
  if (index(bytes, achar(9)//'converged') == 0) then
    print '(a)', 'FAIL regions: the trace has no mark'
    call mpi_abort(mpi_comm_world, 1, ierror)
  end if
  ! Rank 0 also has the lock of the directory.
  call execute_command_line('rm -f '//trim(directory)//'/.lock && rmdir '//trim(directory), exitstat=code)
  if (code /= 0) then
    print '(a)', 'FAIL regions: '//trim(directory)//' is not empty'
    call mpi_abort(mpi_comm_world, 1, ierror)
  end if
  call mpi_barrier(mpi_comm_world, ierror)
  if (rank == 0) print '(a)', 'PASS regions'
  call mpi_finalize(ierror)
end program
