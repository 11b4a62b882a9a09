/*
 * mercury_invalid_others.h - faults of the other arguments of na.h and mercury*.h, and calls in the
 * wrong state: rows for mercury_invalid.c.
 */
#ifndef MERCURY_INVALID_OTHERS_H
#define MERCURY_INVALID_OTHERS_H

#define NA(call, fault, code, expression) CASE("NA_" call, fault, code, NA_##expression)
#define HG(call, fault, code, expression) CASE("HG_" call, fault, code, HG_##expression)

static void na_arguments(void)
{
  GIVES("NA_Initialize", "a null information string", "`NULL`", NA_Initialize(NULL, NA_FALSE) == NULL);
  GIVES("NA_Initialize", "an empty one", "`NULL`", NA_Initialize("", NA_FALSE) == NULL);
  GIVES("NA_Initialize", "a network that is none", "`NULL`", NA_Initialize("verbs", NA_FALSE) == NULL);
  NA("Finalize", "a class that has contexts", NA_BUSY, Finalize(network));
  NA("Progress", "a context of another class", NA_INVALID_ARG, Progress(network, alien_context, 0));
  NA("Context_destroy", "a context of another class", NA_INVALID_ARG, Context_destroy(alien, context));
  NA("Cancel", "a null operation", NA_INVALID_ARG, Cancel(network, context, NULL));
  NA("Cancel", "an address of memory for the operation", NA_INVALID_ARG,
     Cancel(network, context, (na_op_id_t)(void *)here));
  GIVES("NA_Error_to_string", "code 4711", "a text with the number",
        strstr(NA_Error_to_string((na_return_t)4711), "4711") != NULL);
}

static void na_memory(void)
{
  NA("Put", "remote memory that is read-only", NA_PERMISSION,
     Put(network, context, na_ended, NULL, live.mem, 0, read_only, 0, 8, live.addr, &op));
  NA("Get", "local memory that is read-only", NA_PERMISSION,
     Get(network, context, na_ended, NULL, read_only, 0, live.remote, 0, 8, live.addr, &op));
  if (bad_mode == LISTING || nproc > 1) {
    NA("Put", "remote memory that is not the peer's", NA_INVALID_ARG,
       Put(network, context, na_ended, NULL, live.mem, 0, live.remote, 0, 8, next, &op));
  }
}

/* ------------------------------------------------------------- calls of 2013 */

static int answered_twice(void)
{
  const hg_request_t request = request_of(kept_id);
  const hg_handle_t handle = kept;
  MUST(HG_Handler_start_output(handle, &out.params));
  const int rc = HG_Handler_start_output(handle, &out.params);
  MUST(HG_Handler_free(handle));
  MUST(HG_Request_free(request));
  return rc;
}

static void hg_arguments(void)
{
  HG("Init", "a null class", HG_INVALID_ARG, Init(NULL));
  HG("Init", "a class that was finalised", HG_INVALID_ARG, Init(gone.cls));
  HG("Init", "a second time", HG_BUSY, Init(network));
  NA("Finalize", "a class that carries calls", NA_BUSY, Finalize(network));
  HG("Initialized", "no place for the flag", HG_INVALID_ARG, Initialized(NULL, NULL));
  GIVES("HG_Register", "a null name", "0", HG_Register(NULL, NULL, NULL, NULL) == 0);
  GIVES("HG_Register", "an empty name", "0", HG_Register("", NULL, NULL, NULL) == 0);
  HG("Registered", "a null name", HG_INVALID_ARG, Registered(NULL, &out.flag, &out.id));
  HG("Registered", "no place for the flag", HG_INVALID_ARG, Registered("one", NULL, &out.id));
  HG("Wait_all", "-1 requests", HG_INVALID_ARG, Wait_all(-1, &live.request, 0, NULL));
  HG("Wait_all", "a null array of requests", HG_INVALID_ARG, Wait_all(1, NULL, 0, NULL));
  HG("Version_get", "null results", HG_SUCCESS, Version_get(NULL, NULL, NULL));
  GIVES("HG_Error_to_string", "code 4711", "a text with the number",
        strstr(HG_Error_to_string((hg_return_t)4711), "4711") != NULL);
  HG("Handler_start_response", "SIZE_MAX bytes of memory", HG_INVALID_ARG,
     Handler_start_response(live.served, here, SIZE_MAX));
  CASE("HG_Handler_start_output", "a call that was answered", HG_INVALID_ARG, answered_twice());
}

static void bulk_arguments(void)
{
  HG("Bulk_init", "a null class", HG_INVALID_ARG, Bulk_init(NULL));
  HG("Bulk_init", "a second time", HG_BUSY, Bulk_init(network));
  HG("Bulk_initialized", "no place for the flag", HG_INVALID_ARG, Bulk_initialized(NULL, NULL));
  HG("Bulk_handle_create", "null sizes", HG_INVALID_ARG,
     Bulk_handle_create(1, (void *[]){ here }, NULL, HG_BULK_READWRITE, &out.bulk));
  HG("Bulk_handle_create", "SIZE_MAX segments to be allocated", HG_INVALID_ARG,
     Bulk_handle_create(SIZE_MAX, NULL, &(size_t){ 8 }, HG_BULK_READWRITE, &out.bulk));
#define MOVES(fault, way, from, into) \
  HG("Bulk_transfer", fault, HG_PERMISSION, Bulk_transfer(way, live.addr, from, 0, into, 0, 8, &out.ptr))
  MOVES("pushing to what is read-only", HG_BULK_PUSH, read_only_bulk, live.bulk);
  MOVES("pulling into what is read-only", HG_BULK_PULL, live.origin, read_only_bulk);
}

#endif /* MERCURY_INVALID_OTHERS_H */
