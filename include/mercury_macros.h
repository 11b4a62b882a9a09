/*
 * mercury_macros.h - generates parameter structs and their procs from one description, and
 * registers functions.
 *
 *   MERCURY_GEN_PROC(open_in_t, ((hg_const_string_t)(path)) ((int32_t)(flags)))
 *
 * defines the struct open_in_t and hg_proc_open_in_t(proc, pointer). A field may have any type T
 * for which hg_proc_T is defined, including generated types. The number of fields is not limited.
 * The macros need a C99 or C++11 preprocessor, but not Boost.
 */
#ifndef MERCURY_MACROS_H
#define MERCURY_MACROS_H

#include "mercury.h"
#include "mercury_handler.h"
#include "mercury_bulk.h"
#include "mercury_proc.h"
#include "mercury_proc_string.h"

#define HG_GEN_UNDO_BEGIN hg_proc_undo_begin
#define HG_GEN_UNDO_END hg_proc_undo_end
#include "mercury_pp.h"

/*
 * MERCURY_REGISTER(func_name, in, out, rpc_cb), where in and out are structs with procs. Clients
 * may omit rpc_cb.
 */
#define MERCURY_REGISTER(...) \
  HG_PP_PICK(__VA_ARGS__, HG_GEN_REGISTER_4, HG_GEN_REGISTER_3, ~)(__VA_ARGS__)
#define HG_PP_PICK(a, b, c, d, chosen, ...) chosen
#define HG_GEN_REGISTER_3(func_name, in, out) \
  HG_Register(func_name, HG_PP_CAT(hg_proc_, in), HG_PP_CAT(hg_proc_, out), NULL)
#define HG_GEN_REGISTER_4(func_name, in, out, rpc_cb) \
  HG_Register(func_name, HG_PP_CAT(hg_proc_, in), HG_PP_CAT(hg_proc_, out), rpc_cb)

/* Like MERCURY_REGISTER, for a server. The callback is the second argument. */
#define MERCURY_HANDLER_REGISTER(func_name, func_callback, in, out) \
  HG_GEN_REGISTER_4(func_name, in, out, func_callback)

#include "mercury_stubs.h"

#endif /* MERCURY_MACROS_H */
