/* mercury_event.h - Mercury 2.4: events over eventfd, counted as by a semaphore. */
#ifndef MERCURY_EVENT_H
#define MERCURY_EVENT_H

#include "mercury_util_config.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * Returns a file descriptor that is readable until hg_event_get has been called once for each
 * hg_event_set, or a negative number.
 */
static HG_UTIL_INLINE int hg_event_create(void)
{
  return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
}

static HG_UTIL_INLINE int hg_event_destroy(int fd)
{
  return close(fd) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_event_set(int fd)
{
  return eventfd_write(fd, 1) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

/* Writes whether the event was set, and undoes one hg_event_set. */
static HG_UTIL_INLINE int hg_event_get(int fd, bool *notified)
{
  eventfd_t count = 0;
  if (eventfd_read(fd, &count) != 0 && errno != EAGAIN)
    return HG_UTIL_FAIL;
  *notified = count != 0;
  return HG_UTIL_SUCCESS;
}

#endif /* MERCURY_EVENT_H */
