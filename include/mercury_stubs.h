/*
 * mercury_stubs.h - generates complete functions from a description: the client's, which ships a
 * call, and the server's, which runs it. mercury_macros.h includes this header.
 *
 * For int open_file(const char *path, int32_t flags, int32_t *event):
 *
 *   MERCURY_GEN_PROC(open_in_t, ((hg_const_string_t)(path)) ((int32_t)(flags)))
 *   MERCURY_GEN_PROC(open_out_t, ((int32_t)(ret)) ((int32_t)(event)))
 *
 *   MERCURY_GEN_RPC_STUB(ship_open, open_file,
 *       MERCURY_GEN_TRUE, int32_t, -1,
 *       MERCURY_GEN_TRUE, open_in_t, ((hg_const_string_t)(path)) ((int32_t)(flags)),
 *       MERCURY_GEN_TRUE, open_out_t, ((int32_t)(event)),
 *       MERCURY_GEN_FALSE, MERCURY_GEN_FALSE)
 *
 * defines ship_open with the parameters of open_file, and
 *
 *   MERCURY_HANDLER_GEN_CALLBACK_STUB(open_cb, open_file,
 *       MERCURY_GEN_TRUE, int32_t,
 *       MERCURY_GEN_TRUE, open_in_t, ((hg_const_string_t)(path)) ((int32_t)(flags)),
 *       MERCURY_GEN_TRUE, open_out_t, ((int32_t)(event)),
 *       MERCURY_GEN_FALSE, MERCURY_GEN_FALSE)
 *
 * defines the callback that calls open_file, for MERCURY_REGISTER("open_file", ..., open_cb).
 *
 * If the function has a return value, the output struct begins with ret. Output parameters are
 * pointers. They must not be strings or bulk handles, because the client's stub frees the decoded
 * output before it returns.
 *
 * With bulk data, the function has a buffer (void *) and its size (hg_uint64_t) between input and
 * output parameters, and the input struct has the last field ((hg_bulk_t)(bulk_handle)). If
 * bulk_read is true, the server reads the client's buffer; otherwise the server writes it.
 *
 * The client finds its server through the environment variable that HG_PORT_NAME names, by default
 * MERCURY_PORT_NAME. On failure a client's stub returns the failure value (-1 above), or nothing if
 * the function has no return value.
 */
#ifndef MERCURY_STUBS_H
#define MERCURY_STUBS_H

#include <stdlib.h>

#define MERCURY_GEN_FALSE 0
#define MERCURY_GEN_TRUE 1

#ifndef HG_PORT_NAME
#define HG_PORT_NAME "MERCURY_PORT_NAME"
#endif

/* Programs may define this macro to log calls at the server. */
#ifndef MERCURY_HANDLER_GEN_LOG_MESSAGE
#define MERCURY_HANDLER_GEN_LOG_MESSAGE(func_name)
#endif

/* HG_PP_WHEN(1)(tokens) expands to the tokens, HG_PP_WHEN(0)(tokens) to nothing. */
#define HG_PP_WHEN(flag) HG_PP_CAT(HG_PP_WHEN_, flag)
#define HG_PP_WHEN_1(...) __VA_ARGS__
#define HG_PP_WHEN_0(...)
#define HG_PP_NOT(flag) HG_PP_CAT(HG_PP_NOT_, flag)
#define HG_PP_NOT_0 1
#define HG_PP_NOT_1 0
#define HG_PP_OR(a, b) HG_PP_CAT(HG_PP_CAT(HG_PP_OR_, a), b)
#define HG_PP_OR_00 0
#define HG_PP_OR_01 1
#define HG_PP_OR_10 1
#define HG_PP_OR_11 1

/* Lists of parameters. Each entry begins with a comma, and the first comma is dropped. */
#define HG_PP_REST(first, ...) __VA_ARGS__
#define HG_GEN_PARAMS(with_any, ...) \
  (HG_PP_WHEN(with_any)(HG_PP_REST(~ __VA_ARGS__)) HG_PP_WHEN(HG_PP_NOT(with_any))(void))
#define HG_GEN_ARGUMENTS(with_any, ...) (HG_PP_WHEN(with_any)(HG_PP_REST(~ __VA_ARGS__)))

/*
 * (type)(name): a parameter, an output parameter, a field of the input, the address of a field of
 * the output.
 */
#define HG_GEN_IN(field) , HG_GEN_IN_TYPE field HG_GEN_IN_
#define HG_GEN_IN_(field) , HG_GEN_IN_TYPE field HG_GEN_IN
#define HG_GEN_IN_TYPE(type) type HG_GEN_SAME
#define HG_GEN_SAME(name) name
#define HG_GEN_IN_END
#define HG_GEN_IN__END
#define HG_GEN_OUT(field) , HG_GEN_OUT_TYPE field HG_GEN_OUT_
#define HG_GEN_OUT_(field) , HG_GEN_OUT_TYPE field HG_GEN_OUT
#define HG_GEN_OUT_TYPE(type) type *HG_GEN_SAME
#define HG_GEN_OUT_END
#define HG_GEN_OUT__END
#define HG_GEN_USE(field) , HG_GEN_USE_TYPE field HG_GEN_USE_
#define HG_GEN_USE_(field) , HG_GEN_USE_TYPE field HG_GEN_USE
#define HG_GEN_USE_TYPE(type) HG_GEN_OF_INPUT
#define HG_GEN_OF_INPUT(name) hg_in_.name
#define HG_GEN_USE_END
#define HG_GEN_USE__END
#define HG_GEN_INTO(field) , HG_GEN_INTO_TYPE field HG_GEN_INTO_
#define HG_GEN_INTO_(field) , HG_GEN_INTO_TYPE field HG_GEN_INTO
#define HG_GEN_INTO_TYPE(type) HG_GEN_INTO_OUTPUT
#define HG_GEN_INTO_OUTPUT(name) &hg_out_.name
#define HG_GEN_INTO_END
#define HG_GEN_INTO__END

/*
 * (type)(name): copies a parameter into the input struct, or a field of the output struct to a
 * parameter.
 */
#define HG_GEN_SET(field) HG_GEN_SET_TYPE field HG_GEN_SET_
#define HG_GEN_SET_(field) HG_GEN_SET_TYPE field HG_GEN_SET
#define HG_GEN_SET_TYPE(type) HG_GEN_SET_NAME
#define HG_GEN_SET_NAME(name) hg_in_.name = name;
#define HG_GEN_SET_END
#define HG_GEN_SET__END
#define HG_GEN_TAKE(field) HG_GEN_TAKE_TYPE field HG_GEN_TAKE_
#define HG_GEN_TAKE_(field) HG_GEN_TAKE_TYPE field HG_GEN_TAKE
#define HG_GEN_TAKE_TYPE(type) HG_GEN_TAKE_NAME
#define HG_GEN_TAKE_NAME(name) *name = hg_out_.name;
#define HG_GEN_TAKE_END
#define HG_GEN_TAKE__END

/* Reports a failure and jumps to the end of the stub. */
#define HG_GEN_FAIL(text)   \
  do {                      \
    HG_ERROR_DEFAULT(text); \
    goto hg_done_;          \
  } while (0)

/* ----------------------------------------------------------------- client */

#define MERCURY_GEN_RPC_STUB(gen_func_name, func_name, with_ret, ret_type, ret_fail, with_input, \
                             in_struct_type_name, in_params, with_output, out_struct_type_name,  \
                             out_params, with_bulk, bulk_read)                                   \
  HG_GEN_STUB_TYPE(with_ret, ret_type)                                                           \
  gen_func_name HG_GEN_PARAMS(                                                                   \
      HG_PP_OR(HG_PP_OR(with_input, with_output), with_bulk),                                    \
      HG_PP_WHEN(with_input)(HG_PP_EACH(HG_GEN_IN, in_params))                                   \
          HG_PP_WHEN(with_bulk)(, void *bulk_buf, hg_uint64_t bulk_count)                        \
              HG_PP_WHEN(with_output)(HG_PP_EACH(HG_GEN_OUT, out_params)))                       \
  {                                                                                              \
    HG_PP_WHEN(HG_PP_OR(with_input, with_bulk))(in_struct_type_name hg_in_;)                     \
    HG_PP_WHEN(HG_PP_OR(with_output, with_ret))(out_struct_type_name hg_out_;)                   \
    HG_PP_WHEN(with_ret)(ret_type hg_value_ = ret_fail;)                                         \
    HG_PP_WHEN(with_bulk)(hg_bulk_t bulk_handle = HG_BULK_NULL; size_t hg_size_ = bulk_count;)   \
    const char *hg_server_ = getenv(HG_PORT_NAME);                                               \
    na_class_t *hg_network_ = NULL;                                                              \
    na_addr_t hg_addr_;                                                                          \
    hg_bool_t hg_have_addr_ = HG_FALSE, hg_flag_ = HG_FALSE;                                     \
    hg_id_t hg_id_ = 0;                                                                          \
    hg_request_t hg_request_ = HG_REQUEST_NULL;                                                  \
    hg_status_t hg_status_ = HG_FALSE;                                                           \
                                                                                                 \
    HG_Initialized(&hg_flag_, &hg_network_);                                                     \
    if (!hg_flag_) {                                                                             \
      hg_network_ = NA_Initialize(hg_server_, 0);                                                \
      if (hg_network_ == NULL)                                                                   \
        HG_GEN_FAIL("Could not initialize the network");                                         \
      if (HG_Init(hg_network_) != HG_SUCCESS) {                                                  \
        NA_Finalize(hg_network_);                                                                \
        HG_GEN_FAIL("Could not initialize Mercury");                                             \
      }                                                                                          \
    }                                                                                            \
    if (NA_Addr_lookup_wait(hg_network_, hg_server_, &hg_addr_) != NA_SUCCESS)                   \
      HG_GEN_FAIL("Could not look up the server");                                               \
    hg_have_addr_ = HG_TRUE;                                                                     \
    HG_Registered(#func_name, &hg_flag_, &hg_id_);                                               \
    if (!hg_flag_)                                                                               \
      hg_id_ = HG_Register(                                                                      \
          #func_name,                                                                            \
          HG_GEN_STUB_PROC(HG_PP_OR(with_input, with_bulk), in_struct_type_name),                \
          HG_GEN_STUB_PROC(HG_PP_OR(with_output, with_ret), out_struct_type_name), NULL);        \
    HG_PP_WHEN(with_bulk)(                                                                       \
        if (HG_Bulk_handle_create(1, &bulk_buf, &hg_size_, HG_GEN_STUB_ACCESS(bulk_read),        \
                                  &bulk_handle) != HG_SUCCESS)                                   \
            HG_GEN_FAIL("Could not create the bulk handle");                                     \
        hg_in_.bulk_handle = bulk_handle;)                                                       \
    HG_PP_WHEN(with_input)(HG_PP_EACH(HG_GEN_SET, in_params))                                    \
    if (HG_Forward(hg_addr_, hg_id_,                                                             \
                   HG_GEN_STUB_ADDRESS(HG_PP_OR(with_input, with_bulk), hg_in_),                 \
                   HG_GEN_STUB_ADDRESS(HG_PP_OR(with_output, with_ret), hg_out_),                \
                   &hg_request_) != HG_SUCCESS)                                                  \
      HG_GEN_FAIL("Could not forward the call");                                                 \
    if (HG_Wait(hg_request_, HG_MAX_IDLE_TIME, &hg_status_) != HG_SUCCESS || !hg_status_)        \
      HG_GEN_FAIL("The call did not complete");                                                  \
    HG_PP_WHEN(with_ret)(hg_value_ = hg_out_.ret;)                                               \
    HG_PP_WHEN(with_output)(HG_PP_EACH(HG_GEN_TAKE, out_params))                                 \
  hg_done_:                                                                                      \
    if (hg_request_ != HG_REQUEST_NULL)                                                          \
      HG_Request_free(hg_request_);                                                              \
    HG_PP_WHEN(with_bulk)(if (bulk_handle != HG_BULK_NULL) HG_Bulk_handle_free(bulk_handle);)    \
    if (hg_have_addr_)                                                                           \
      NA_Addr_free(hg_network_, hg_addr_);                                                       \
    return HG_PP_WHEN(with_ret)(hg_value_);                                                      \
  }

#define HG_GEN_STUB_TYPE(with_ret, ret_type) \
  HG_PP_WHEN(with_ret)(ret_type) HG_PP_WHEN(HG_PP_NOT(with_ret))(void)
#define HG_GEN_STUB_PROC(with, type) \
  HG_PP_WHEN(with)(HG_PP_CAT(hg_proc_, type)) HG_PP_WHEN(HG_PP_NOT(with))(NULL)
#define HG_GEN_STUB_ADDRESS(with, name) \
  HG_PP_WHEN(with)(&name) HG_PP_WHEN(HG_PP_NOT(with))(NULL)
#define HG_GEN_STUB_ACCESS(bulk_read) \
  HG_PP_WHEN(bulk_read)(HG_BULK_READ_ONLY) HG_PP_WHEN(HG_PP_NOT(bulk_read))(HG_BULK_READWRITE)

/* ----------------------------------------------------------------- server */

#define MERCURY_HANDLER_GEN_CALLBACK_STUB(gen_func_name, func_name, with_ret, ret_type,          \
                                          with_input, in_struct_type_name, in_params,            \
                                          with_output, out_struct_type_name, out_params,         \
                                          with_bulk, bulk_read)                                  \
  static hg_return_t gen_func_name(hg_handle_t handle)                                           \
  {                                                                                              \
    hg_return_t hg_ret_ = HG_SUCCESS;                                                            \
    HG_PP_WHEN(HG_PP_OR(with_input, with_bulk))(in_struct_type_name hg_in_;                      \
                                                hg_bool_t hg_have_input_ = HG_FALSE;)            \
    HG_PP_WHEN(HG_PP_OR(with_output, with_ret))(out_struct_type_name hg_out_;)                   \
    HG_PP_WHEN(with_bulk)(void *bulk_buf = NULL; size_t hg_size_ = 0;                            \
                          hg_bulk_t hg_block_ = HG_BULK_NULL;)                                   \
    HG_PP_WHEN(HG_PP_OR(with_output, with_ret))(memset(&hg_out_, 0, sizeof hg_out_);)            \
    HG_PP_WHEN(HG_PP_OR(with_input, with_bulk))(                                                 \
        hg_ret_ = HG_Handler_get_input(handle, &hg_in_);                                         \
        if (hg_ret_ != HG_SUCCESS) HG_GEN_FAIL("Could not get the input");                       \
        hg_have_input_ = HG_TRUE;)                                                               \
    HG_PP_WHEN(with_bulk)(                                                                       \
        hg_size_ = HG_Bulk_handle_get_size(hg_in_.bulk_handle);                                  \
        bulk_buf = calloc(hg_size_ > 0 ? hg_size_ : 1, 1);                                       \
        if (bulk_buf == NULL) {                                                                  \
          hg_ret_ = HG_NOMEM;                                                                    \
          HG_GEN_FAIL("No memory for the bulk data");                                            \
        }                                                                                        \
        hg_ret_ = HG_Bulk_handle_create(1, &bulk_buf, &hg_size_, HG_BULK_READWRITE, &hg_block_); \
        if (hg_ret_ != HG_SUCCESS) HG_GEN_FAIL("Could not create the bulk handle");)             \
    HG_PP_WHEN(with_bulk)(HG_PP_WHEN(bulk_read)(HG_GEN_STUB_TRANSFER(HG_BULK_PULL)))             \
    MERCURY_HANDLER_GEN_LOG_MESSAGE(#func_name);                                                 \
    HG_PP_WHEN(with_ret)(hg_out_.ret =)                                                          \
    func_name HG_GEN_ARGUMENTS(HG_PP_OR(HG_PP_OR(with_input, with_output), with_bulk),           \
                               HG_PP_WHEN(with_input)(HG_PP_EACH(HG_GEN_USE, in_params))         \
                                   HG_PP_WHEN(with_bulk)(, bulk_buf, (hg_uint64_t)hg_size_)      \
                                       HG_PP_WHEN(with_output)(                                  \
                                           HG_PP_EACH(HG_GEN_INTO, out_params)));                \
    HG_PP_WHEN(with_bulk)(                                                                       \
        HG_PP_WHEN(HG_PP_NOT(bulk_read))(HG_GEN_STUB_TRANSFER(HG_BULK_PUSH)))                    \
    hg_ret_ = HG_Handler_start_output(                                                           \
        handle, HG_GEN_STUB_ADDRESS(HG_PP_OR(with_output, with_ret), hg_out_));                  \
    if (hg_ret_ != HG_SUCCESS)                                                                   \
      HG_GEN_FAIL("Could not start the output");                                                 \
  hg_done_:                                                                                      \
    HG_PP_WHEN(with_bulk)(if (hg_block_ != HG_BULK_NULL) HG_Bulk_handle_free(hg_block_);         \
                          free(bulk_buf);)                                                       \
    HG_PP_WHEN(HG_PP_OR(with_input, with_bulk))(                                                 \
        if (hg_have_input_) HG_Handler_free_input(handle, &hg_in_);)                             \
    HG_Handler_free(handle);                                                                     \
    return hg_ret_;                                                                              \
  }

#define HG_GEN_STUB_TRANSFER(operation)                                                \
  {                                                                                    \
    hg_bulk_request_t hg_transfer_ = HG_BULK_REQUEST_NULL;                             \
    hg_ret_ = HG_Bulk_transfer(operation, HG_Handler_get_addr(handle),                 \
                               hg_in_.bulk_handle, 0, hg_block_, 0, hg_size_,          \
                               &hg_transfer_);                                         \
    if (hg_ret_ == HG_SUCCESS)                                                         \
      hg_ret_ = HG_Bulk_wait(hg_transfer_, HG_MAX_IDLE_TIME, HG_STATUS_IGNORE);        \
    if (hg_ret_ != HG_SUCCESS)                                                         \
      HG_GEN_FAIL("Could not transfer the bulk data");                                 \
  }

#endif /* MERCURY_STUBS_H */
