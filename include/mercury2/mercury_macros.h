/*
 * mercury_macros.h - Mercury 2.4: generates parameter structs and their procs from one description.
 *
 *   MERCURY_GEN_PROC(open_in_t, ((hg_const_string_t)(path)) ((int32_t)(flags)))
 *
 * defines the struct open_in_t and hg_proc_open_in_t(proc, pointer). A field may have any type T
 * for which hg_proc_T is defined, including generated types. The macros need a C99 or C++11
 * preprocessor, but not Boost. If Boost is installed, its preprocessor library is included, as
 * Mercury does. Otherwise the names BOOST_PP_CAT, _STRINGIZE, _SEQ_HEAD and _SEQ_TAIL are defined.
 */
#ifndef MERCURY_MACROS_H
#define MERCURY_MACROS_H

#include "mercury.h"
#include "mercury_bulk.h"
#include "mercury_proc.h"
#include "mercury_proc_bulk.h"
#include "mercury_proc_string.h"

HG_PUBLIC void hg_proc_undo_begin_(hg_proc_t proc) __asm__("hg_proc_undo_begin");
HG_PUBLIC void hg_proc_undo_end_(hg_proc_t proc) __asm__("hg_proc_undo_end");
#define HG_GEN_UNDO_BEGIN hg_proc_undo_begin_
#define HG_GEN_UNDO_END hg_proc_undo_end_
#include "../mercury_pp.h"

#ifdef __has_include
#if __has_include(<boost/preprocessor.hpp>)
#include <boost/preprocessor.hpp>
#endif
#endif
#ifndef BOOST_PP_CAT
#define BOOST_PP_CAT(a, b) HG_PP_CAT(a, b)
#define BOOST_PP_STRINGIZE(text) HG_PP_STRING_(text)
#define HG_PP_STRING_(...) #__VA_ARGS__
/* The first element of the sequence (a)(b)(c), and the sequence of all others. */
#define BOOST_PP_SEQ_HEAD(sequence) HG_PP_FIRST(HG_PP_COMMA_AFTER sequence, ~)
#define HG_PP_COMMA_AFTER(element) element,
#define HG_PP_FIRST(...) HG_PP_FIRST_(__VA_ARGS__)
#define HG_PP_FIRST_(first, ...) first
#define BOOST_PP_SEQ_TAIL(sequence) HG_PP_DROP sequence
#define HG_PP_DROP(element)
#endif

#define MERCURY_REGISTER(hg_class, func_name, in_struct_type_name, out_struct_type_name, rpc_cb) \
  HG_Register_name(hg_class, func_name, HG_PP_CAT(hg_proc_, in_struct_type_name),                \
                   HG_PP_CAT(hg_proc_, out_struct_type_name), rpc_cb)

#endif /* MERCURY_MACROS_H */
