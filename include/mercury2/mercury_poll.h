/* mercury_poll.h - Mercury 2.4: waits for many file descriptors, over epoll. */
#ifndef MERCURY_POLL_H
#define MERCURY_POLL_H

#include "mercury_util_config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

typedef struct hg_poll_set {
  int fd;
} hg_poll_set_t;

typedef union hg_poll_data {
  void *ptr;
  int fd;
  uint32_t u32;
  uint64_t u64;
} hg_poll_data_t;

struct hg_poll_event {
  uint32_t events;
  hg_poll_data_t data;
};

#define HG_POLLIN (1 << 0)
#define HG_POLLOUT (1 << 1)
#define HG_POLLERR (1 << 2)
#define HG_POLLHUP (1 << 3)
#define HG_POLLINTR (1 << 4) /* a signal has ended the wait */
#define HG_POLL_MOST_ 64u

/* Returns NULL on failure. */
static HG_UTIL_INLINE hg_poll_set_t *hg_poll_create(void)
{
  hg_poll_set_t *set = (hg_poll_set_t *)malloc(sizeof *set);
  if (!set)
    return NULL;
  set->fd = epoll_create1(EPOLL_CLOEXEC);
  if (set->fd < 0) {
    free(set);
    return NULL;
  }
  return set;
}

static HG_UTIL_INLINE int hg_poll_destroy(hg_poll_set_t *set)
{
  int rc;
  if (!set)
    return HG_UTIL_SUCCESS;
  rc = close(set->fd);
  free(set);
  return rc == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

/* Returns a file descriptor that is readable while hg_poll_wait has events. */
static HG_UTIL_INLINE int hg_poll_get_fd(const hg_poll_set_t *set)
{
  return set ? set->fd : -1;
}

static HG_UTIL_INLINE int hg_poll_add(hg_poll_set_t *set, int fd, struct hg_poll_event *event)
{
  struct epoll_event added;
  if (!set || !event || (event->events & ~(uint32_t)(HG_POLLIN | HG_POLLOUT)))
    return HG_UTIL_FAIL;
  added.events = 0;
  if (event->events & HG_POLLIN)
    added.events |= EPOLLIN;
  if (event->events & HG_POLLOUT)
    added.events |= EPOLLOUT;
  added.data.u64 = event->data.u64;
  return epoll_ctl(set->fd, EPOLL_CTL_ADD, fd, &added) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_poll_remove(hg_poll_set_t *set, int fd)
{
  if (!set)
    return HG_UTIL_FAIL;
  return epoll_ctl(set->fd, EPOLL_CTL_DEL, fd, NULL) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

/*
 * Waits for at most the given milliseconds and writes at most max_events events. A signal ends the
 * wait with one event HG_POLLINTR.
 */
static HG_UTIL_INLINE int hg_poll_wait(hg_poll_set_t *set, unsigned int timeout,
                                       unsigned int max_events, struct hg_poll_event events[],
                                       unsigned int *actual_events)
{
  struct epoll_event found[HG_POLL_MOST_];
  int count, i;
  if (!set || !events || !actual_events || max_events == 0)
    return HG_UTIL_FAIL;
  count = epoll_wait(set->fd, found, (int)(max_events < HG_POLL_MOST_ ? max_events : HG_POLL_MOST_),
                     timeout > 0x7fffffffu ? -1 : (int)timeout);
  if (count < 0 && errno != EINTR)
    return HG_UTIL_FAIL;
  if (count < 0) {
    events[0].events = HG_POLLINTR;
    events[0].data.u64 = 0;
    *actual_events = 1;
    return HG_UTIL_SUCCESS;
  }
  for (i = 0; i < count; i++) {
    const uint32_t from = found[i].events;
    events[i].events = (from & EPOLLIN ? HG_POLLIN : 0u) | (from & EPOLLOUT ? HG_POLLOUT : 0u) |
                       (from & EPOLLERR ? HG_POLLERR : 0u) |
                       (from & (EPOLLHUP | EPOLLRDHUP) ? HG_POLLHUP : 0u);
    events[i].data.u64 = found[i].data.u64;
  }
  *actual_events = (unsigned int)count;
  return HG_UTIL_SUCCESS;
}

#endif /* MERCURY_POLL_H */
