! LAPI from Fortran: every call, handlers in Fortran, LAPI_ADDR_NULL for every argument that permits
! it. Rank 0 prints PASS lapi_fortran.
! TEST: hosts
! TEST: n={1,3}
! TEST: n=2 node-size=1
module lapi_handlers
  implicit none
  include 'lapif.h'
  integer, parameter :: n = 1000
  integer, target, save :: received(n) = 0
  integer, save :: completed = 0, headers = 0, sent = 0, got = 0
  type(LAPI_VEC_T), target, save :: place
  integer(LAPI_ADDR_TYPE), target, save :: pieces(2)
  integer(LAPI_LONG_TYPE), target, save :: lengths(2)

contains

  subroutine fail(what, value)
    use mpi
    character(*), intent(in) :: what
    integer, intent(in) :: value
    integer :: me, code
    call MPI_Comm_rank(MPI_COMM_WORLD, me, code)
    print '(a,i0,3a,i0)', 'FAIL lapi_fortran rank ', me, ': ', what, ': ', value
    flush(6)
    call MPI_Abort(MPI_COMM_WORLD, 1, code)
  end subroutine

  subroutine check(what, value, wanted)
    character(*), intent(in) :: what
    integer, intent(in) :: value, wanted
    if (value /= wanted) call fail(what, value)
  end subroutine
end module

! Completion handler.
subroutine completion(hndl, user_info)
  use lapi_handlers
  integer :: hndl, user_info
  if (hndl == 0) call fail('the handle of a completion handler', hndl)
  call check('the parameter of a completion handler', user_info, received(1))
  completed = completed + 1
end subroutine

! Header handler: places the data and names a completion handler.
integer(8) function header(hndl, uhdr, uhdr_len, msg_len, comp_h, user_info)
  use lapi_handlers
  integer :: hndl, uhdr(*), uhdr_len, ierr
  type(LAPI_RETURN_INFO_T) :: msg_len
  integer(LAPI_ADDR_TYPE) :: comp_h, where
  type(LAPI_ADDR_T) :: user_info
  external completion

  if (hndl == 0) call fail('the handle of a header handler', hndl)
  call check('uhdr_len', uhdr_len, merge(7, 8, headers == 2))
  call check('uhdr(1)', uhdr(1), msg_len%src)
  call check('msg_len', int(msg_len%msg_len), 4 * n)
  headers = headers + 1
  call LAPI_ADDRESS(completion, comp_h, ierr)
  call LAPI_ADDRESS(received, where, ierr)
  user_info%addr = where
  if (uhdr(2) == 1) msg_len%ret_flags = LAPI_SEND_REPLY
  header = where
end function

! Header handler that does nothing.
integer(8) function nothing(hndl, uhdr, uhdr_len, msg_len, comp_h, user_info)
  use lapi_handlers
  integer :: hndl, uhdr, uhdr_len
  integer(LAPI_LONG_TYPE) :: msg_len
  integer(LAPI_ADDR_TYPE) :: comp_h
  type(LAPI_ADDR_T) :: user_info
  headers = headers + 1
  if (uhdr_len /= 0) call fail('a header', uhdr)
  if (msg_len /= 0 .or. hndl == 0) call fail('an empty message', headers)
  comp_h = LAPI_ADDR_NULL
  user_info%addr = LAPI_ADDR_NULL
  nothing = LAPI_ADDR_NULL
end function

! Vector header handler: two halves of the destination, alternating.
integer(8) function vector_header(hndl, uhdr, uhdr_len, len_vec, comp_h, user_info)
  use lapi_handlers
  integer :: hndl, uhdr, uhdr_len, ierr
  integer(LAPI_LONG_TYPE) :: len_vec(*)
  integer(LAPI_ADDR_TYPE) :: comp_h
  type(LAPI_ADDR_T) :: user_info
  if (uhdr_len /= 0) call fail('a header', uhdr)
  if (hndl == 0) call fail('a vector message', uhdr_len)
  headers = headers + 1
  lengths = len_vec(1:2)
  call LAPI_ADDRESS(received(n / 2 + 1), pieces(1), ierr)
  call LAPI_ADDRESS(received, pieces(2), ierr)
  place%vec_type = LAPI_GEN_IOVECTOR
  place%num_vecs = 2
  call LAPI_ADDRESS(pieces, place%info, ierr)
  call LAPI_ADDRESS(lengths, place%len, ierr)
  comp_h = LAPI_ADDR_NULL
  user_info%addr = LAPI_ADDR_NULL
  call LAPI_ADDRESS(place, vector_header, ierr)
end function

subroutine sent_handler(hndl, info, sh)
  use lapi_handlers
  integer :: hndl, info
  type(LAPI_SH_INFO_T) :: sh
  if (hndl == 0 .or. sh%reason /= LAPI_SUCCESS) call fail('a send completion handler', sh%reason)
  info = info + 1
end subroutine

subroutine got_handler(hndl, info)
  use lapi_handlers
  integer :: hndl, info
  if (hndl == 0) call fail('a completion handler of a get', hndl)
  info = info + 1
end subroutine

program lapi_fortran
  use mpi
  use lapi_handlers
  implicit none

  integer :: me, nproc, ierr, hndl, right, left, i, value, current, uhdr(2)
  integer, target, save :: data(n), back(n), counted
  integer(8), target, save :: wide
  integer :: prev, pair(2)
  integer(8) :: wide_prev
  type(LAPI_INFO_T) :: info
  type(LAPI_MSG_STATE_T) :: state
  type(LAPI_STATISTICS_T) :: statistics
  type(LAPI_CNTR_T), save :: tgt, org, cmpl
  type(LAPI_ADDR_T) :: udata
  type(LAPI_VEC_T), target :: org_vec, tgt_vec
  type(LAPI_AM_T) :: am
  type(LAPI_GET_T) :: get
  integer(LAPI_ADDR_TYPE), target :: org_info(2), tgt_info(2)
  integer(LAPI_LONG_TYPE), target :: lens(2)
  integer(LAPI_ADDR_TYPE), allocatable :: headers_of(:), tgt_of(:), received_of(:), &
      counted_of(:), wide_of(:)
  integer(LAPI_ADDR_TYPE) :: address, back_at
  character(len=LAPI_MAX_ERR_STRING) :: text
  integer(8), external :: header, nothing, vector_header
  external sent_handler, got_handler

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nproc, ierr)
  right = mod(me + 1, nproc)
  left = mod(me + nproc - 1, nproc)

  call LAPI_GFENCE(0, ierr)
  call check('LAPI_GFENCE before LAPI_INIT', ierr, LAPI_ERR_HNDL_INVALID)
  info = LAPI_INFO_T(0, 0, 0, 0, 0, 1, LAPI_ADDR_NULL, LAPI_ADDR_NULL, LAPI_ADDR_NULL, LAPI_ADDR_NULL)
  call LAPI_INIT(hndl, info, ierr)
  call check('LAPI_INIT with values', ierr, LAPI_ERR_INFO_NONZERO)
  call LAPI_INIT(hndl, LAPI_ADDR_NULL, ierr)
  call check('LAPI_INIT without information', ierr, LAPI_ERR_INFO_NULL)
  info%info6 = 0
  call LAPI_INIT(hndl, info, ierr)
  call check('LAPI_INIT', ierr, LAPI_SUCCESS)
  call LAPI_QENV(hndl, TASK_ID, value, ierr)
  call check('TASK_ID', value, me)
  call LAPI_QENV(hndl, NUM_TASKS, value, ierr)
  call check('NUM_TASKS', value, nproc)
  call LAPI_QENV(hndl, NUM_TASKS, LAPI_ADDR_NULL, ierr)
  call check('LAPI_QENV of nowhere', ierr, LAPI_ERR_RET_PTR_NULL)
  call LAPI_SENV(hndl, ERROR_CHK, 1, ierr)
  call check('LAPI_SENV', ierr, LAPI_SUCCESS)
  call LAPI_SENV(hndl, ERROR_CHK, 2, ierr)
  call check('LAPI_SENV of 2', ierr, LAPI_ERR_SET_VAL)
  call LAPI_MSG_STRING(LAPI_ERR_TGT, text, ierr)
  call check('LAPI_MSG_STRING', ierr, LAPI_SUCCESS)
  if (text(1:12) /= 'LAPI_ERR_TGT') call fail('the text '//trim(text), 0)
  if (text(160:160) /= ' ') call fail('the end of the text', iachar(text(160:160)))
  call LAPI_MSG_STRING(12345, text, ierr)
  call check('LAPI_MSG_STRING', ierr, LAPI_ERR_CODE_UNKNOWN)

  call LAPI_SETCNTR(hndl, LAPI_ADDR_NULL, 0, ierr)
  call check('LAPI_SETCNTR of none', ierr, LAPI_ERR_CNTR_NULL)
  call LAPI_SETCNTR(hndl, tgt, 0, ierr)
  call LAPI_SETCNTR(hndl, org, 0, ierr)
  call LAPI_SETCNTR(hndl, cmpl, 3, ierr)
  call LAPI_GETCNTR(hndl, cmpl, value, ierr)
  call check('LAPI_GETCNTR', value, 3)
  call LAPI_WAITCNTR(hndl, cmpl, 2, current, ierr)
  call check('LAPI_WAITCNTR', current, 1)
  call LAPI_NOPOLL_WAIT(hndl, cmpl, 1, LAPI_ADDR_NULL, ierr)
  call check('LAPI_NOPOLL_WAIT', ierr, LAPI_SUCCESS)

  allocate(headers_of(0:nproc-1), tgt_of(0:nproc-1), received_of(0:nproc-1), &
           counted_of(0:nproc-1), wide_of(0:nproc-1))
  call exchange_procedure(header, headers_of)
  call LAPI_ADDRESS(tgt, address, ierr)
  call LAPI_ADDRESS_INIT(hndl, address, tgt_of, ierr)
  call check('LAPI_ADDRESS_INIT', ierr, LAPI_SUCCESS)
  call LAPI_ADDRESS(received, address, ierr)
  call LAPI_ADDRESS_INIT(hndl, address, received_of, ierr)
  call LAPI_ADDRESS(counted, address, ierr)
  call LAPI_ADDRESS_INIT(hndl, address, counted_of, ierr)
  call LAPI_ADDRESS(wide, address, ierr)
  call LAPI_ADDRESS_INIT(hndl, address, wide_of, ierr)
  call LAPI_ADDR_SET(hndl, header, 4, ierr)
  call check('LAPI_ADDR_SET', ierr, LAPI_SUCCESS)
  call LAPI_ADDR_GET(hndl, address, 4, ierr)
  if (address /= headers_of(me)) call fail('LAPI_ADDR_GET', ierr)
  call LAPI_ADDR_SET(hndl, headers_of(me), 0, ierr)
  call check('LAPI_ADDR_SET at 0', ierr, LAPI_ERR_ADDR_HNDL_RANGE)
  call LAPI_GFENCE(hndl, ierr)

  ! The header handler by exchanged address, by index, and as a procedure.
  do i = 1, 3
    data = [(100 * me + i + value, value = 1, n)]
    uhdr = [me, i - 1]
    call LAPI_ADDRESS(data, udata%addr, ierr)
    select case (i)
    case (1)
      call LAPI_AMSEND(hndl, right, headers_of(right), uhdr, 8, udata, 4_8 * n, tgt_of(right), org, cmpl, ierr)
    case (2)
      call LAPI_AMSEND(hndl, right, 4_LAPI_ADDR_TYPE, uhdr, 8, udata, 4_8 * n, tgt_of(right), org, cmpl, ierr)
    case (3)
      call LAPI_AMSEND(hndl, right, header, uhdr, 7, udata, 4_8 * n, tgt_of(right), org, cmpl, ierr)
    end select
    call check('LAPI_AMSEND', ierr, LAPI_SUCCESS)
    call LAPI_WAITCNTR(hndl, org, 1, current, ierr)
    call LAPI_WAITCNTR(hndl, cmpl, 1, current, ierr)
    call LAPI_WAITCNTR(hndl, tgt, 1, current, ierr)
    call check('headers', headers, i)
    call check('completed', completed, i)
    do value = 1, n
      if (received(value) /= 100 * left + i + value) call fail('received', received(value))
    end do
    call LAPI_GFENCE(hndl, ierr)
    received = 0
    call LAPI_GFENCE(hndl, ierr)
  end do
  headers = 0
  call LAPI_GFENCE(hndl, ierr)
  call LAPI_AMSEND(hndl, right, nothing, LAPI_ADDR_NULL, 0, LAPI_ADDR_NULL, 0_8, LAPI_ADDR_NULL, &
                   LAPI_ADDR_NULL, LAPI_ADDR_NULL, ierr)
  call check('an empty LAPI_AMSEND', ierr, LAPI_SUCCESS)
  call LAPI_AMSEND(hndl, right, nothing, LAPI_ADDR_NULL, 0, LAPI_ADDR_NULL, 0_8, tgt_of(right), &
                   LAPI_ADDR_NULL, cmpl, ierr)
  call LAPI_WAITCNTR(hndl, cmpl, 1, current, ierr)
  call LAPI_WAITCNTR(hndl, tgt, 1, current, ierr)
  call check('empty messages', headers, 2)
  call LAPI_AMSEND(hndl, right, LAPI_ADDR_NULL, uhdr, 8, udata, 8_8, LAPI_ADDR_NULL, org, cmpl, ierr)
  call check('no handler', ierr, LAPI_ERR_HDR_HNDLR_NULL)
  call LAPI_AMSEND(hndl, right, header, LAPI_ADDR_NULL, 8, udata, 8_8, LAPI_ADDR_NULL, org, cmpl, ierr)
  call check('no header', ierr, LAPI_ERR_UHDR_NULL)
  call LAPI_AMSEND(hndl, right, header, uhdr, 2001, udata, 8_8, LAPI_ADDR_NULL, org, cmpl, ierr)
  call check('a header of 2001', ierr, LAPI_ERR_UHDR_LEN)
  call LAPI_AMSEND(hndl, right, header, uhdr, 8, LAPI_ADDR_NULL, 8_8, LAPI_ADDR_NULL, org, cmpl, ierr)
  call check('no data', ierr, LAPI_ERR_ORG_ADDR_NULL)
  call LAPI_AMSEND(hndl, right, header, uhdr, 8, udata, -1_8, LAPI_ADDR_NULL, org, cmpl, ierr)
  call check('a length of -1', ierr, LAPI_ERR_DATA_LEN)
  call LAPI_AMSEND(hndl, nproc, header, uhdr, 8, udata, 8_8, LAPI_ADDR_NULL, org, cmpl, ierr)
  call check('no task', ierr, LAPI_ERR_TGT)

  ! Put, get, and their vectors.
  data = [(7 * me + i, i = 1, n)]
  call LAPI_PUT(hndl, right, 4_8 * n, received_of(right), data, tgt_of(right), org, cmpl, ierr)
  call check('LAPI_PUT', ierr, LAPI_SUCCESS)
  call LAPI_WAITCNTR(hndl, org, 1, current, ierr)
  call LAPI_WAITCNTR(hndl, cmpl, 1, current, ierr)
  call LAPI_WAITCNTR(hndl, tgt, 1, current, ierr)
  if (any(received /= [(7 * left + i, i = 1, n)])) call fail('what was put', received(1))
  call LAPI_GFENCE(hndl, ierr)
  back = 0
  call LAPI_ADDRESS(back, back_at, ierr)
  call LAPI_GET(hndl, right, 4_8 * n, received_of(right), back_at, LAPI_ADDR_NULL, org, ierr)
  call check('LAPI_GET', ierr, LAPI_SUCCESS)
  call LAPI_WAITCNTR(hndl, org, 1, current, ierr)
  if (any(back /= data)) call fail('what was got', back(1))
  call LAPI_GFENCE(hndl, ierr)
  lens = [40, 80]
  call LAPI_ADDRESS(data, org_info(1), ierr)
  call LAPI_ADDRESS(data(500), org_info(2), ierr)
  tgt_info = [received_of(right) + 400, received_of(right)]
  org_vec%vec_type = LAPI_GEN_IOVECTOR
  org_vec%num_vecs = 2
  call LAPI_ADDRESS(org_info, org_vec%info, ierr)
  call LAPI_ADDRESS(lens, org_vec%len, ierr)
  tgt_vec = org_vec
  call LAPI_ADDRESS(tgt_info, tgt_vec%info, ierr)
  call LAPI_ADDRESS(tgt_vec, address, ierr)
  received = 0
  call LAPI_GFENCE(hndl, ierr)
  call LAPI_PUTV(hndl, right, address, org_vec, LAPI_ADDR_NULL, LAPI_ADDR_NULL, cmpl, ierr)
  call check('LAPI_PUTV', ierr, LAPI_SUCCESS)
  call LAPI_WAITCNTR(hndl, cmpl, 1, current, ierr)
  call LAPI_GFENCE(hndl, ierr)
  if (any(received(101:110) /= [(7 * left + i, i = 1, 10)])) call fail('the first block', received(101))
  if (any(received(1:20) /= [(7 * left + i, i = 500, 519)])) call fail('the second block', received(1))
  back = 0
  call LAPI_ADDRESS(back, org_info(1), ierr)
  call LAPI_ADDRESS(back(100), org_info(2), ierr)
  call LAPI_GETV(hndl, right, tgt_vec, org_vec, LAPI_ADDR_NULL, org, ierr)
  call check('LAPI_GETV', ierr, LAPI_SUCCESS)
  call LAPI_WAITCNTR(hndl, org, 1, current, ierr)
  if (any(back(100:119) /= data(500:519))) call fail('the second block back', back(100))
  call LAPI_GFENCE(hndl, ierr)
  lens = [2 * n, 2 * n]
  call LAPI_ADDRESS(data, org_info(1), ierr)
  call LAPI_ADDRESS(data(n / 2 + 1), org_info(2), ierr)
  call LAPI_AMSENDV(hndl, right, vector_header, LAPI_ADDR_NULL, 0, org_vec, tgt_of(right), org, cmpl, ierr)
  call check('LAPI_AMSENDV', ierr, LAPI_SUCCESS)
  call LAPI_WAITCNTR(hndl, org, 1, current, ierr)
  call LAPI_WAITCNTR(hndl, cmpl, 1, current, ierr)
  call LAPI_WAITCNTR(hndl, tgt, 1, current, ierr)
  if (any(received(n/2+1:) /= [(7 * left + i, i = 1, n/2)])) call fail('the first half', received(n))
  if (any(received(:n/2) /= [(7 * left + i, i = n/2 + 1, n)])) call fail('the second half', received(1))

  ! Read-modify-write.
  counted = 0
  wide = 0
  call LAPI_GFENCE(hndl, ierr)
  do i = 1, 50
    call LAPI_RMW(hndl, FETCH_AND_ADD, 0, counted_of(0), 2, prev, org, ierr)
    call check('LAPI_RMW', ierr, LAPI_SUCCESS)
    call LAPI_RMW64(hndl, FETCH_AND_ADD, 0, wide_of(0), 2_8**40, wide_prev, org, ierr)
    call check('LAPI_RMW64', ierr, LAPI_SUCCESS)
    call LAPI_WAITCNTR(hndl, org, 2, current, ierr)
  end do
  call LAPI_GFENCE(hndl, ierr)
  if (me == 0) call check('the count', counted, 100 * nproc)
  if (me == 0 .and. wide /= 50_8 * nproc * 2_8**40) call fail('the wide count', int(wide / 2_8**40))
  call LAPI_GFENCE(hndl, ierr)
  if (me == nproc - 1) then
    pair = [100 * nproc, -1]
    call LAPI_RMW(hndl, COMPARE_AND_SWAP, 0, counted_of(0), pair, prev, org, ierr)
    call LAPI_WAITCNTR(hndl, org, 1, current, ierr)
    call check('COMPARE_AND_SWAP', prev, 1)
  end if

  ! LAPI_XFER with handlers.
  call LAPI_GFENCE(hndl, ierr)
  headers = 0
  call LAPI_GFENCE(hndl, ierr)
  uhdr = [me, 0]
  am = LAPI_AM_T(LAPI_AM_XFER, 0, right, 0, headers_of(right), 8, 0, 0, udata%addr, 4_8 * n, 0, 0, &
                 tgt_of(right), 0, 0)
  call LAPI_ADDRESS(uhdr, am%uhdr, ierr)
  call LAPI_ADDRESS(sent_handler, am%shdlr, ierr)
  call LAPI_ADDRESS(sent, am%sinfo, ierr)
  call LAPI_ADDRESS(cmpl, am%cmpl_cntr, ierr)
  call LAPI_XFER(hndl, am, ierr)
  call check('LAPI_XFER', ierr, LAPI_SUCCESS)
  call LAPI_WAITCNTR(hndl, cmpl, 1, current, ierr)
  call LAPI_WAITCNTR(hndl, tgt, 1, current, ierr)
  call check('messages by LAPI_XFER', headers, 1)
  call LAPI_FENCE(hndl, ierr)
  call check('send completion handlers', sent, 1)
  get = LAPI_GET_T(LAPI_GET_XFER, 0, right, 0, counted_of(right), 0, 4_8, 0, 0, 0, 0)
  call LAPI_ADDRESS(prev, get%org_addr, ierr)
  call LAPI_ADDRESS(org, get%org_cntr, ierr)
  call LAPI_ADDRESS(got_handler, get%chndlr, ierr)
  call LAPI_ADDRESS(got, get%cinfo, ierr)
  call LAPI_XFER(hndl, get, ierr)
  call check('LAPI_XFER of a get', ierr, LAPI_SUCCESS)
  call LAPI_WAITCNTR(hndl, org, 1, current, ierr)
  call newer_calls()
  am%Xfer_type = 99
  call LAPI_XFER(hndl, am, ierr)
  call check('LAPI_XFER of type 99', ierr, LAPI_ERR_XFER_CMD)

  call LAPI_PURGE_TOTASK(hndl, right, ierr)
  call check('LAPI_PURGE_TOTASK', ierr, LAPI_SUCCESS)
  call LAPI_PUT(hndl, right, 4_8, received_of(right), data, LAPI_ADDR_NULL, org, cmpl, ierr)
  call check('LAPI_PUT to one that was purged', ierr, LAPI_ERR_TGT_PURGED)
  call LAPI_RESUME_TOTASK(hndl, right, ierr)
  call check('LAPI_RESUME_TOTASK', ierr, LAPI_SUCCESS)
  call LAPI_PROBE(hndl, ierr)
  call check('LAPI_PROBE', ierr, LAPI_SUCCESS)
  call LAPI_MSGPOLL(hndl, 3, state, ierr)
  call check('LAPI_MSGPOLL', ierr, LAPI_SUCCESS)
  call LAPI_MSGPOLL(hndl, 3, LAPI_ADDR_NULL, ierr)
  call check('LAPI_MSGPOLL to nowhere', ierr, LAPI_ERR_MSG_INFO_NULL)
  call LAPI_QENV(hndl, QUERY_STATISTICS, statistics, ierr)
  if (statistics%Tot_pkt_sent_cnt < 5) call fail('statistics', int(statistics%Tot_pkt_sent_cnt))
  call PLAPI_PROBE(hndl, ierr)
  call check('PLAPI_PROBE', ierr, LAPI_SUCCESS)

  call LAPI_GFENCE(hndl, ierr)
  call LAPI_TERM(hndl, ierr)
  call check('LAPI_TERM', ierr, LAPI_SUCCESS)
  call check('completion handlers of gets', got, 1)
  call LAPI_PROBE(hndl, ierr)
  call check('LAPI_PROBE after LAPI_TERM', ierr, LAPI_ERR_HNDL_INVALID)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (me == 0) print '(a)', 'PASS lapi_fortran'
  call MPI_Finalize(ierr)

contains

  ! LAPI_UTIL, light messages, groups and multicasts, counters with status.
  subroutine newer_calls()
    use, intrinsic :: iso_c_binding
    abstract interface
      integer(c_int) function lock_function(handle) bind(c)
        import c_int
        integer(c_int), value :: handle
      end function
    end interface
    type(LAPI_THREAD_FUNC_T) :: functions
    type(LAPI_UTIL_T) :: command
    type(LAPI_MC_T) :: mc
    procedure(lock_function), pointer :: lock, unlock, trylock
    integer(LAPI_ADDR_TYPE) :: wide_table(nproc)
    integer :: code, group, before, task, answer
    integer, target, save :: members(64), states(64)

    functions%Util_type = LAPI_GET_THREAD_FUNC
    call LAPI_UTIL(hndl, functions, code)
    call check('LAPI_UTIL', code, LAPI_SUCCESS)
    call c_f_procpointer(transfer(functions%mutex_lock, c_null_funptr), lock)
    call c_f_procpointer(transfer(functions%mutex_unlock, c_null_funptr), unlock)
    call c_f_procpointer(transfer(functions%mutex_trylock, c_null_funptr), trylock)
    call check('mutex_lock', lock(hndl), 0)
    call check('mutex_trylock', trylock(hndl), 0)
    call check('mutex_unlock', unlock(hndl), 0)
    call check('mutex_unlock', unlock(hndl), 0)
    if (unlock(hndl) == 0) call fail('mutex_unlock without the lock', 0)
    command%Util_type = 0
    call PLAPI_UTIL(hndl, command, code)
    call check('LAPI_UTIL of a DGSP', code, LAPI_ERR_UTIL_CMD)
    command%Util_type = LAPI_GET_THREAD_FUNC
    call LAPI_UTIL(hndl, command, code)
    call check('LAPI_UTIL with LAPI_UTIL_T', code, LAPI_SUCCESS)
    if (command%reserved(1) /= functions%mutex_lock) call fail('LAPI_UTIL_T', 0)

    call LAPI_ADDRESS_INIT64(hndl, received_of(me), wide_table, code)
    call check('LAPI_ADDRESS_INIT64', code, LAPI_SUCCESS)
    do task = 1, nproc
      if (wide_table(task) /= received_of(task - 1)) call fail('LAPI_ADDRESS_INIT64', task)
    end do

    members(:nproc) = [(task - 1, task = 1, nproc)]
    call LAPI_ADDR_SET(hndl, nothing, 9, code)
    call LAPI_GROUP_CREATE(hndl, nproc, members, group, code)
    call check('LAPI_GROUP_CREATE', code, LAPI_SUCCESS)
    call LAPI_GFENCE(hndl, code)
    before = headers
    call LAPI_GFENCE(hndl, code)
    mc = LAPI_MC_T(LAPI_MC_XFER, 0, group, 0, 9_8, 0, 0, 0_8, 0_8, 0_8, 0_8, 0_8)
    call LAPI_XFER(hndl, mc, code)
    call check('LAPI_XFER of a multicast', code, LAPI_SUCCESS)
    call LAPI_GFENCE(hndl, code)
    call check('multicasts', headers - before, nproc)
    call LAPI_GROUP_FREE(hndl, group, code)
    call check('LAPI_GROUP_FREE', code, LAPI_SUCCESS)
    call PLAPI_GROUP_FREE(hndl, group, code)
    call check('LAPI_GROUP_FREE again', code, LAPI_ERR_GRP)

    call LAPI_GFENCE(hndl, code)
    am%Xfer_type = LAPI_AM_LW_XFER
    am%hdr_hdl = 9
    am%uhdr_len = 0
    am%udata_len = 0
    before = headers
    call LAPI_GFENCE(hndl, code)
    call LAPI_XFER(hndl, am, code)
    call check('LAPI_XFER of a light message', code, LAPI_SUCCESS)
    call LAPI_GFENCE(hndl, code)
    call check('light messages', headers - before, 1)
    am%hdr_hdl = 10
    call LAPI_XFER(hndl, am, code)
    call check('a light message to nobody', code, LAPI_ERR_NO_HNDLR_SET)

    states = -1
    call LAPI_SETCNTR_WSTATUS(hndl, org, nproc, members, states, code)
    call check('LAPI_SETCNTR_WSTATUS', code, LAPI_SUCCESS)
    call check('a status to begin with', states(nproc), LAPI_MSG_INITIAL)
    do task = 0, nproc - 1
      call LAPI_RMW(hndl, FETCH_AND_ADD, task, counted_of(task), 0, answer, org, code)
    end do
    call LAPI_NOPOLL_WAIT(hndl, org, nproc, current, code)
    call check('LAPI_NOPOLL_WAIT', code, LAPI_SUCCESS)
    do task = 1, nproc
      call check('a status', states(task), LAPI_MSG_RECVD)
    end do
    call LAPI_SETCNTR_WSTATUS(hndl, org, 0, LAPI_ADDR_NULL, LAPI_ADDR_NULL, code)
    call check('LAPI_SETCNTR_WSTATUS without a list', code, LAPI_SUCCESS)
    call LAPI_GFENCE(hndl, code)
  end subroutine

  subroutine exchange_procedure(procedure, table)
    integer(8), external :: procedure
    integer(LAPI_ADDR_TYPE) :: table(*), mine
    integer :: code
    call LAPI_ADDRESS(procedure, mine, code)
    call check('LAPI_ADDRESS of a procedure', code, LAPI_SUCCESS)
    call LAPI_ADDRESS_INIT(hndl, mine, table, code)
    call check('LAPI_ADDRESS_INIT of a procedure', code, LAPI_SUCCESS)
  end subroutine
end program
