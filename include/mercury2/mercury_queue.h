/* mercury_queue.h - Mercury 2.4: the lists and queues of <sys/queue.h>. */
#ifndef MERCURY_QUEUE_H
#define MERCURY_QUEUE_H

#include "mercury_util_config.h"

#include <sys/queue.h>

#endif /* MERCURY_QUEUE_H */
