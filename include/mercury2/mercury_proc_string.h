/*
 * mercury_proc_string.h - Mercury 2.4: strings as parameters. Decoding allocates them with
 * malloc(). HG_FREE frees them.
 */
#ifndef MERCURY_PROC_STRING_H
#define MERCURY_PROC_STRING_H

#include "mercury_proc.h"
#include "mercury_string_object.h"

typedef const char *hg_const_string_t;
typedef char *hg_string_t;

HG_PUBLIC hg_return_t hg_proc_hg_const_string_t(hg_proc_t proc, void *data)
    HG_LABEL(hg_proc_hg_const_string_t);
HG_PUBLIC hg_return_t hg_proc_hg_string_t(hg_proc_t proc, void *data)
    HG_LABEL(hg_proc_hg_string_t);
HG_PUBLIC hg_return_t hg_proc_hg_string_object_t(hg_proc_t proc, void *string)
    HG_LABEL(hg_proc_hg_string_object_t);

#endif /* MERCURY_PROC_STRING_H */
