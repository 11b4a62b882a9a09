! Global Arrays from Fortran: arrays with 64-bit indices, puts, gets, accumulates, a counter,
! reductions, a matrix product and mutexes. Prints `PASS ga_fortran`.
!
! Compile with the flags of `ga-config --fflags` (8-byte default integers).
! TEST: ga
program ga_fortran
  implicit none
#include "mafdecls.fh"
#include "global.fh"
  integer(kind=4) :: ierr
  integer :: me, ranks

  call mpi_init(ierr)
  call ga_initialize()
  me = ga_nodeid()
  ranks = ga_nnodes()
  call check(ma_init(MT_DBL, 1000000, 1000000), 'ma_init')

  call patches()
  call counter()
  call reductions()
  call product_of_matrices()
  call guarded()

  call ga_sync()
  call ga_terminate()
  if (me == 0) print '(a)', 'PASS ga_fortran'
  flush (6)
  call mpi_finalize(ierr)

contains

  ! Ends the job with status 1 unless `ok` is true.
  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(len=*), intent(in) :: what
    if (ok) return
    print '(a,i0,2a)', 'FAIL ga_fortran: rank ', me, ': ', what
    flush (6)
    call ga_error('ga_fortran: '//what, 1)
  end subroutine check

  pure double precision function value(i, j)
    integer, intent(in) :: i, j
    value = 1000d0*i + j
  end function value

  ! A 2-D array in column-major order: one rank puts, all accumulate.
  subroutine patches()
    integer, parameter :: n = 31, m = 23
    integer :: g, dims(2), chunk(2), lo(2), hi(2), ld(1), i, j, index, type, ndim
    double precision :: a(n, m), b(n, m), want
    character(len=32) :: name

    dims = (/n, m/)
    chunk = -1
    call check(nga_create(MT_DBL, 2, dims, 'patches', chunk, g), 'nga_create')
    call ga_inquire_name(g, name)
    call check(name == 'patches', 'name is '//name)
    call nga_inquire(g, type, ndim, dims)
    call check(type == MT_DBL .and. ndim == 2 .and. dims(1) == n .and. dims(2) == m, 'nga_inquire')
    do j = 1, m
      do i = 1, n
        a(i, j) = value(i, j)
      end do
    end do
    lo = 1
    hi = (/n, m/)
    ld(1) = n
    if (me == ranks - 1) call nga_put(g, lo, hi, a, ld)
    call ga_sync()

    ! An inner patch, from the same place in the local array.
    lo = (/4, 3/)
    hi = (/29, 20/)
    call nga_acc(g, lo, hi, a(4, 3), ld, 0.5d0)
    call ga_sync()
    b = -1
    lo = 1
    hi = (/n, m/)
    call nga_get(g, lo, hi, b, ld)
    do j = 1, m
      do i = 1, n
        want = value(i, j)
        if (i >= 4 .and. i <= 29 .and. j >= 3 .and. j <= 20) want = want*(1 + 0.5d0*ranks)
        call check(b(i, j) == want, 'put and accumulate')
      end do
    end do
    call ga_sync()

    ! The owner reads its part through the index into dbl_mb.
    call nga_distribution(g, me, lo, hi)
    if (lo(1) >= 1 .and. hi(1) >= lo(1)) then
      call nga_access(g, lo, hi, index, ld)
      call check(dbl_mb(index) == b(lo(1), lo(2)), 'nga_access')
      call nga_release(g, lo, hi)
    end if
    call ga_sync()
    call check(ga_destroy(g), 'ga_destroy')
  end subroutine patches

  ! Every number is returned once, so the sum of all numbers is known.
  subroutine counter()
    integer, parameter :: each = 200
    integer :: g, dims(1), chunk(1), at(1), i, got, before, total(1)
    dims = 4
    chunk = -1
    at = 3
    call check(nga_create(MT_INT, 1, dims, 'counter', chunk, g), 'nga_create of integers')
    call ga_zero(g)
    call ga_sync()
    total = 0
    before = -1
    do i = 1, each
      got = nga_read_inc(g, at, 1)
      call check(got > before, 'nga_read_inc does not grow')
      before = got
      total = total + got
    end do
    call ga_igop(7, total, 1, '+')
    call check(total(1) == each*ranks*(each*ranks - 1)/2, 'sum of the numbers given out')
    call ga_sync()
    call check(ga_destroy(g), 'ga_destroy')
  end subroutine counter

  subroutine reductions()
    double precision :: x(1000)
    integer :: i
    do i = 1, 1000
      x(i) = i*(me + 1)
    end do
    call ga_dgop(8, x, 1000, '+')
    do i = 1, 1000
      call check(x(i) == i*ranks*(ranks + 1)/2, 'ga_dgop +')
    end do
    x = me
    call ga_dgop(9, x, 1000, 'max')
    call check(all(x == ranks - 1), 'ga_dgop max')
    x = me
    call ga_brdcst(10, x, 8000, ranks - 1)
    call check(all(x == ranks - 1), 'ga_brdcst')
  end subroutine reductions

  subroutine product_of_matrices()
    integer, parameter :: n = 40, m = 33, k = 27
    integer :: ga, gb, gc, i, j
    double precision :: a(n, k), b(k, m), c(n, m), want(n, m)
    call check(ga_create(MT_DBL, n, k, 'A', 0, 0, ga), 'ga_create')
    call check(ga_create(MT_DBL, k, m, 'B', 0, 0, gb), 'ga_create')
    call check(ga_create(MT_DBL, n, m, 'C', 0, 0, gc), 'ga_create')
    do j = 1, k
      do i = 1, n
        a(i, j) = mod(i*7 + j*3, 13) - 6
      end do
    end do
    do j = 1, m
      do i = 1, k
        b(i, j) = mod(i*5 + j*11, 17) - 8
      end do
    end do
    if (me == 0) then
      call ga_put(ga, 1, n, 1, k, a, n)
      call ga_put(gb, 1, k, 1, m, b, k)
    end if
    call ga_sync()
    call ga_dgemm('n', 'n', n, m, k, 1d0, ga, gb, 0d0, gc)
    call ga_get(gc, 1, n, 1, m, c, n)
    want = matmul(a, b)
    call check(all(abs(c - want) < 1d-10), 'ga_dgemm')
    call ga_sync()
    call check(ga_destroy(gc) .and. ga_destroy(gb) .and. ga_destroy(ga), 'ga_destroy')
  end subroutine product_of_matrices

  ! All ranks read and write back under a lock.
  subroutine guarded()
    integer, parameter :: rounds = 50
    integer :: g, r
    double precision :: v(1)
    call check(ga_create(MT_DBL, 3, 1, 'guarded', 0, 0, g), 'ga_create')
    call ga_zero(g)
    call check(ga_create_mutexes(2), 'ga_create_mutexes')
    call ga_sync()
    do r = 1, rounds
      call ga_lock(1)
      call ga_get(g, 2, 2, 1, 1, v, 1)
      v = v + 1
      call ga_init_fence()
      call ga_put(g, 2, 2, 1, 1, v, 1)
      call ga_fence()
      call ga_unlock(1)
    end do
    call ga_sync()
    call ga_get(g, 2, 2, 1, 1, v, 1)
    call check(v(1) == rounds*ranks, 'updates under a lock')
    call ga_sync()
    call check(ga_destroy_mutexes(), 'ga_destroy_mutexes')
    call check(ga_destroy(g), 'ga_destroy')
  end subroutine guarded

end program ga_fortran
