! A program that uses the module mpi_f08: its MPI_Init also raises the thread level, and the
! module's own calls and constants work afterwards.
! TEST: own-level
! TEST: hosts
! TEST: n=2
program f08
   use mpi_f08
   use, intrinsic :: iso_c_binding
   implicit none
   interface
      integer(c_int) function armci_init() bind(c, name='ARMCI_Init')
         import :: c_int
      end function
      integer(c_int) function armci_finalize() bind(c, name='ARMCI_Finalize')
         import :: c_int
      end function
   end interface
   integer :: level, me, ranks, total
   integer(c_int) :: rc

   call MPI_Init()
   call MPI_Query_thread(level)
   if (level /= MPI_THREAD_MULTIPLE) then
      print *, 'the thread level is', level
      error stop 1
   end if
   rc = armci_init()
   if (rc /= 0) error stop 2
   call MPI_Comm_rank(MPI_COMM_WORLD, me)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks)
   call MPI_Allreduce(me + 1, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
   if (total /= ranks*(ranks + 1)/2) error stop 3
   if (me > 0) call MPI_Recv(total, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
   if (me == 0) then
      do level = 1, ranks - 1
         call MPI_Send(total, 1, MPI_INTEGER, level, 7, MPI_COMM_WORLD)
      end do
   end if
   if (total /= ranks*(ranks + 1)/2) error stop 4
   rc = armci_finalize()
   if (rc /= 0) error stop 5
   if (me == 0) print '(a)', 'PASS mpi_f08'
   call MPI_Finalize()
end program
