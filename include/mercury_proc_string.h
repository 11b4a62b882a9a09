/*
 * mercury_proc_string.h - strings as parameters.
 *
 * Decoding allocates strings with malloc(). HG_FREE frees them and sets them to NULL. A NULL string
 * is encoded and decoded as NULL.
 */
#ifndef MERCURY_PROC_STRING_H
#define MERCURY_PROC_STRING_H

#include "mercury_proc.h"
#include "mercury_string_object.h"

typedef char *hg_string_t;
typedef const char *hg_const_string_t;

#ifdef __cplusplus
extern "C" {
#endif

HG_EXPORT hg_return_t hg_proc_hg_string_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_hg_const_string_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_hg_string_object_t(hg_proc_t proc, void *data);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_PROC_STRING_H */
