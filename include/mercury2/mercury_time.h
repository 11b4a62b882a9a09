/* mercury_time.h - Mercury 2.4: times of the monotonic clock. */
#ifndef MERCURY_TIME_H
#define MERCURY_TIME_H

#include "mercury_util_config.h"

#include <time.h>

typedef struct timespec hg_time_t;

static HG_UTIL_INLINE int hg_time_get_current(hg_time_t *tv)
{
  return clock_gettime(CLOCK_MONOTONIC, tv) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

/* Reads the clock with a resolution of a few milliseconds. */
static HG_UTIL_INLINE int hg_time_get_current_ms(hg_time_t *tv)
{
  return clock_gettime(CLOCK_MONOTONIC_COARSE, tv) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE double hg_time_to_double(hg_time_t tv)
{
  return (double)tv.tv_sec + (double)tv.tv_nsec * 1e-9;
}

static HG_UTIL_INLINE hg_time_t hg_time_from_double(double seconds)
{
  hg_time_t tv;
  tv.tv_sec = (time_t)seconds;
  tv.tv_nsec = (long)((seconds - (double)tv.tv_sec) * 1e9);
  return tv;
}

/* Rounds up to whole milliseconds. */
static HG_UTIL_INLINE unsigned int hg_time_to_ms(hg_time_t tv)
{
  return (unsigned int)(tv.tv_sec * 1000 + (tv.tv_nsec + 999999) / 1000000);
}

static HG_UTIL_INLINE hg_time_t hg_time_from_ms(unsigned int milliseconds)
{
  hg_time_t tv;
  tv.tv_sec = (time_t)(milliseconds / 1000);
  tv.tv_nsec = (long)(milliseconds % 1000) * 1000000;
  return tv;
}

static HG_UTIL_INLINE bool hg_time_less(hg_time_t in1, hg_time_t in2)
{
  return in1.tv_sec != in2.tv_sec ? in1.tv_sec < in2.tv_sec : in1.tv_nsec < in2.tv_nsec;
}

static HG_UTIL_INLINE hg_time_t hg_time_add(hg_time_t in1, hg_time_t in2)
{
  in1.tv_sec += in2.tv_sec;
  in1.tv_nsec += in2.tv_nsec;
  if (in1.tv_nsec >= 1000000000) {
    in1.tv_sec++;
    in1.tv_nsec -= 1000000000;
  }
  return in1;
}

static HG_UTIL_INLINE hg_time_t hg_time_subtract(hg_time_t in1, hg_time_t in2)
{
  in1.tv_sec -= in2.tv_sec;
  in1.tv_nsec -= in2.tv_nsec;
  if (in1.tv_nsec < 0) {
    in1.tv_sec--;
    in1.tv_nsec += 1000000000;
  }
  return in1;
}

/* Returns in2 - in1 in seconds. */
static HG_UTIL_INLINE double hg_time_diff(hg_time_t in2, hg_time_t in1)
{
  return hg_time_to_double(hg_time_subtract(in2, in1));
}

static HG_UTIL_INLINE int hg_time_sleep(const hg_time_t time)
{
  return nanosleep(&time, NULL) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

#define HG_UTIL_STAMP_MAX 128 /* bytes of a time as text */

/* Returns the local time as text, or NULL. The text is valid until the thread's next call. */
static HG_UTIL_INLINE char *hg_time_stamp(void)
{
  static __thread char stamp[HG_UTIL_STAMP_MAX];
  struct tm local;
  time_t now = time(NULL);
  if (!localtime_r(&now, &local) || !strftime(stamp, sizeof stamp, "%a, %d %b %Y %T %Z", &local))
    return NULL;
  return stamp;
}

#endif /* MERCURY_TIME_H */
