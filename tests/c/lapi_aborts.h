/*
 * lapi_aborts.h - errors at the target of a LAPI call that end the job. lapi_errors.c runs these
 * cases, and lapi_invalid.c lists them.
 */
#ifndef LAPI_ABORTS_H
#define LAPI_ABORTS_H

#define LAPI_ABORTS(X)                                                                        \
  X("null-return", "a header handler returns NULL, and its data has not come whole",          \
    LAPI_ERR_TGT_ADDR_NULL, AM_ERR, null_return)                                              \
  X("bad-flags", "a header handler sets unknown ctl_flags", LAPI_ERR_UNKNOWN, AM_ERR, bad_flags) \
  X("dgsp", "a header handler sets dgsp_handle", LAPI_ERR_UNKNOWN, AM_ERR, dgsp)              \
  X("no-index", "an index at which the target sets no header handler within TIMEOUT", LAPI_ERR_HDR_HNDLR_NULL, \
    AM_ERR, no_index)                                                                         \
  X("no-code", "an address of data for the header handler", LAPI_ERR_HDR_HNDLR_NULL, AM_ERR, no_code) \
  X("bad-counter", "a target counter that the target has not mapped", LAPI_ERR_TGT_ADDR_NULL, \
    AM_ERR, bad_counter)                                                                      \
  X("bad-rmw", "a variable that the target has not mapped", LAPI_ERR_TGT_ADDR_NULL, RMW_ERR, bad_rmw) \
  X("const-counter", "a target counter in memory that the target cannot write", LAPI_ERR_TGT_ADDR_NULL, \
    AM_ERR, const_counter)                                                                    \
  X("const-rmw", "a variable in memory that the target cannot write", LAPI_ERR_TGT_ADDR_NULL, \
    RMW_ERR, const_rmw)                                                                       \
  X("odd-rmw", "a variable that is not aligned", LAPI_ERR_TGT_ADDR_NULL, RMW_ERR, odd_rmw)    \
  X("odd-counter", "a target counter that is not aligned", LAPI_ERR_TGT_ADDR_NULL, AM_ERR, odd_counter) \
  X("bad-put", "a put to memory that the target has not mapped, unless the call finds it",   \
    LAPI_ERR_TGT_ADDR_NULL, PUT_ERR, bad_put)                                                 \
  X("bad-get", "a get from memory that the target has not mapped, unless the call finds it", \
    LAPI_ERR_TGT_ADDR_NULL, GET_ERR, bad_get)                                                 \
  X("null-vector", "a header handler of LAPI_Amsendv returns NULL", LAPI_ERR_TGT_VEC_NULL, AM_ERR, null_vector) \
  X("other-vector", "a header handler of LAPI_Amsendv returns a vector of other lengths",     \
    LAPI_ERR_VEC_LEN_DIFF, AM_ERR, other_vector)

#endif /* LAPI_ABORTS_H */
