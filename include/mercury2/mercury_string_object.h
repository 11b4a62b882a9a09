/*
 * mercury_string_object.h - Mercury 2.4: a string with a flag that says whether it must be freed.
 */
#ifndef MERCURY_STRING_OBJECT_H
#define MERCURY_STRING_OBJECT_H

#include "mercury_types.h"

typedef struct hg_string_object {
  char *data;
  bool is_const;
  bool is_owned;
} hg_string_object_t;

HG_PUBLIC hg_return_t hg_string_object_init(hg_string_object_t *string)
    HG_LABEL(hg_string_object_init);
HG_PUBLIC hg_return_t hg_string_object_init_char(hg_string_object_t *string, char *s, uint8_t
    is_owned) HG_LABEL(hg_string_object_init_char);
HG_PUBLIC hg_return_t hg_string_object_init_const_char(hg_string_object_t *string, const char
    *s, uint8_t is_owned) HG_LABEL(hg_string_object_init_const_char);
HG_PUBLIC hg_return_t hg_string_object_free(hg_string_object_t *string)
    HG_LABEL(hg_string_object_free);
HG_PUBLIC hg_return_t hg_string_object_dup(hg_string_object_t string, hg_string_object_t
    *new_string) HG_LABEL(hg_string_object_dup);
HG_PUBLIC char *hg_string_object_swap(hg_string_object_t *string, char *s)
    HG_LABEL(hg_string_object_swap);

#endif /* MERCURY_STRING_OBJECT_H */
