program lapi
  implicit none
  include 'lapif.h'
  integer :: handle, code
  type(LAPI_INFO_T) :: info

  info = LAPI_INFO_T(0, 0, 0, 0, 0, 0, 0_8, 0_8, 0_8, 0_8)
  call LAPI_INIT(handle, info, code)
  if (code /= LAPI_SUCCESS) stop 1
  call LAPI_TERM(handle, code)
  if (code /= LAPI_SUCCESS) stop 1
end program
