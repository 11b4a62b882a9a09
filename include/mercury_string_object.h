/* mercury_string_object.h - a string with a flag that says whether it must be freed. */
#ifndef MERCURY_STRING_OBJECT_H
#define MERCURY_STRING_OBJECT_H

#include "mercury_types.h"

typedef struct hg_string_object {
  char *data;         /* the string, or NULL */
  hg_bool_t is_const; /* the string is read-only */
  hg_bool_t is_owned; /* hg_string_object_free frees the string with free() */
} hg_string_object_t;

#ifdef __cplusplus
extern "C" {
#endif

/* Initialises an object without a string. */
HG_EXPORT hg_return_t hg_string_object_init(hg_string_object_t *string);

/*
 * Initialise an object with a string, without copying it. If is_owned is true, the string must come
 * from malloc().
 */
HG_EXPORT hg_return_t hg_string_object_init_char(hg_string_object_t *string, char *s,
                                                 hg_bool_t is_owned);
HG_EXPORT hg_return_t hg_string_object_init_const_char(hg_string_object_t *string,
                                                       const char *s, hg_bool_t is_owned);

/* Frees the string if it is owned. The object then has no string. */
HG_EXPORT hg_return_t hg_string_object_free(hg_string_object_t *string);

/* Initialises an object that owns a copy of the string. */
HG_EXPORT hg_return_t hg_string_object_dup(hg_string_object_t string,
                                           hg_string_object_t *new_string);

/* Stores s in the object, which does not own it, and returns the previous string. */
HG_EXPORT char *hg_string_object_swap(hg_string_object_t *string, char *s);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_STRING_OBJECT_H */
