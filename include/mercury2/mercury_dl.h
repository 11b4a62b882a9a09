/* mercury_dl.h - Mercury 2.4: shared libraries that are loaded at run time. */
#ifndef MERCURY_DL_H
#define MERCURY_DL_H

#include "mercury_util_config.h"

#include <dlfcn.h>
#include <string.h>

#define HG_DL_HANDLE void *

/* Returns the latest error as text, or NULL if there was none since the last call. */
static HG_UTIL_INLINE const char *hg_dl_error(void)
{
  return dlerror();
}

/* Returns NULL on failure. Functions are bound when they are first called. */
static HG_UTIL_INLINE HG_DL_HANDLE hg_dl_open(const char *file)
{
  return dlopen(file, RTLD_LAZY);
}

/* Returns 0, or another number on failure. */
static HG_UTIL_INLINE int hg_dl_close(HG_DL_HANDLE handle)
{
  return dlclose(handle);
}

/* Returns NULL if the library does not define the name. */
static HG_UTIL_INLINE void *hg_dl_sym(HG_DL_HANDLE handle, const char *name)
{
  return dlsym(handle, name);
}

/* dladdr under a name of our own: <dlfcn.h> may have been included without _GNU_SOURCE. */
struct hg_dl_place_ {
  const char *file;
  void *base;
  const char *symbol;
  void *address;
};
HG_PUBLIC int hg_dl_addr_(const void *address, struct hg_dl_place_ *place) __asm__("dladdr");

/* Writes the path of the file that contains this address, cut to path_size bytes. */
static HG_UTIL_INLINE int hg_dl_get_path(const void *addr, char *path, size_t path_size)
{
  struct hg_dl_place_ place;
  size_t len;
  if (!path || path_size == 0 || hg_dl_addr_(addr, &place) == 0 || !place.file)
    return HG_UTIL_FAIL;
  len = strlen(place.file);
  if (len >= path_size)
    len = path_size - 1;
  memcpy(path, place.file, len);
  path[len] = '\0';
  return HG_UTIL_SUCCESS;
}

#endif /* MERCURY_DL_H */
