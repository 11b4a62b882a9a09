/* na_sm.h - Mercury 2.4: the number of the host, as gethostid returns it. */
#ifndef NA_SM_H
#define NA_SM_H

#include "na_types.h"

#include <stdio.h>
#include <stdlib.h>

typedef long na_sm_id_t;

/* Characters of a host number in text. */
#define NA_SM_HOST_ID_LEN 11

/* gethostid under a name of our own: strict C hides its declaration. */
HG_PUBLIC long na_sm_gethostid_(void) __asm__("gethostid");

static NA_INLINE na_return_t NA_SM_Host_id_get(na_sm_id_t *id_p)
{
  if (!id_p)
    return NA_INVALID_ARG;
  *id_p = na_sm_gethostid_();
  return NA_SUCCESS;
}

/* Writes at most NA_SM_HOST_ID_LEN + 1 bytes. Returns NA_OVERFLOW if the text has been cut. */
static NA_INLINE na_return_t NA_SM_Host_id_to_string(na_sm_id_t id, char *string)
{
  int len;
  if (!string)
    return NA_INVALID_ARG;
  len = snprintf(string, NA_SM_HOST_ID_LEN + 1, "%ld", id);
  return len < 0 || len > NA_SM_HOST_ID_LEN ? NA_OVERFLOW : NA_SUCCESS;
}

/* Returns NA_PROTOCOL_ERROR if the text does not begin with a number. */
static NA_INLINE na_return_t NA_SM_String_to_host_id(const char *string, na_sm_id_t *id_p)
{
  char *end;
  long id;
  if (!string || !id_p)
    return NA_INVALID_ARG;
  id = strtol(string, &end, 10);
  if (end == string)
    return NA_PROTOCOL_ERROR;
  *id_p = id;
  return NA_SUCCESS;
}

static NA_INLINE void NA_SM_Host_id_copy(na_sm_id_t *dst_p, na_sm_id_t src)
{
  *dst_p = src;
}

/* Returns true if the numbers are equal. */
static NA_INLINE bool NA_SM_Host_id_cmp(na_sm_id_t id1, na_sm_id_t id2)
{
  return id1 == id2;
}

#endif /* NA_SM_H */
