/*
 * mercury_request.h - waits for callbacks, with any progress and trigger functions.
 *
 * hg_request_wait triggers ready callbacks and makes progress until a callback has called
 * hg_request_complete or the timeout expires.
 */
#ifndef MERCURY_REQUEST_H
#define MERCURY_REQUEST_H

#include "mercury_atomic.h"
#include "mercury_util_config.h"

typedef struct hg_request_class hg_request_class_t;
typedef struct hg_request hg_request_t;
typedef int (*hg_request_progress_func_t)(unsigned int timeout, void *arg);
typedef int (*hg_request_trigger_func_t)(unsigned int timeout, unsigned int *flag, void *arg);

HG_PUBLIC hg_request_class_t *hg_request_init(hg_request_progress_func_t progress,
    hg_request_trigger_func_t trigger, void *arg) HG_LABEL(hg_request_init);
HG_PUBLIC void hg_request_finalize(hg_request_class_t *request_class, void **arg)
    HG_LABEL(hg_request_finalize);
HG_PUBLIC hg_request_t *hg_request_create(hg_request_class_t *request_class)
    HG_LABEL(hg_request_create);
HG_PUBLIC void hg_request_destroy(hg_request_t *request) HG_LABEL(hg_request_destroy);
HG_PUBLIC void hg_request_reset(hg_request_t *request) HG_LABEL(hg_request_reset);
HG_PUBLIC void hg_request_complete(hg_request_t *request) HG_LABEL(hg_request_complete);
HG_PUBLIC int hg_request_wait(hg_request_t *request, unsigned int timeout, unsigned int *flag)
    HG_LABEL(hg_request_wait);
HG_PUBLIC int hg_request_waitall(int count, hg_request_t *request[], unsigned int timeout,
    unsigned int *flag) HG_LABEL(hg_request_waitall);
HG_PUBLIC void hg_request_set_data(hg_request_t *request, void *data)
    HG_LABEL(hg_request_set_data);
HG_PUBLIC void *hg_request_get_data(hg_request_t *request) HG_LABEL(hg_request_get_data);

#endif /* MERCURY_REQUEST_H */
