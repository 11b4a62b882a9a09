/*
 * mercury_string_object.h - a string that knows whether it is to be freed.
 */
#ifndef MERCURY_STRING_OBJECT_H
#define MERCURY_STRING_OBJECT_H

#include "mercury_types.h"

typedef struct hg_string_object {
  char *data;         /* the string, or NULL */
  hg_bool_t is_const; /* it must not be written to */
  hg_bool_t is_owned; /* hg_string_object_free frees it, by free() */
} hg_string_object_t;

#ifdef __cplusplus
extern "C" {
#endif

/* Makes an object without a string. */
HG_EXPORT hg_return_t hg_string_object_init(hg_string_object_t *string);

/* Makes an object of a string, without copying it; with is_owned, from malloc(). */
HG_EXPORT hg_return_t hg_string_object_init_char(hg_string_object_t *string, char *s,
                                                 hg_bool_t is_owned);
HG_EXPORT hg_return_t hg_string_object_init_const_char(hg_string_object_t *string,
                                                       const char *s, hg_bool_t is_owned);

/* Frees the string, if it is owned; the object has none then. */
HG_EXPORT hg_return_t hg_string_object_free(hg_string_object_t *string);

/* Makes an object that owns a copy of the string. */
HG_EXPORT hg_return_t hg_string_object_dup(hg_string_object_t string,
                                           hg_string_object_t *new_string);

/* Puts s into the object, which does not own it, and returns what was in it. */
HG_EXPORT char *hg_string_object_swap(hg_string_object_t *string, char *s);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_STRING_OBJECT_H */
