/*
 * mercury2_invalid_calls.h - the calls of Mercury 2.4, a row each, for mercury2_invalid.c.
 */
#ifndef MERCURY2_INVALID_CALLS_H
#define MERCURY2_INVALID_CALLS_H

/* A call that returns `none` instead of a code. */
#define GETS(none, name, ...) BAD_ROW(#name, none, (__VA_ARGS__), name(__VA_ARGS__) ? 0 : REFUSED)
#define TEXT out.text, text_size(&(hg_size_t){ sizeof out.text })
#define BUFFER to(&out.ptr), to(&out.size)

static void hg_calls(void)
{
  CODE(HG_Finalize, cls_or_null(is_good() ? HG_Init("self", HG_FALSE) : live.cls));
  GETS("`NULL`", HG_Class_get_name, cls(live.cls));
  GETS("`NULL`", HG_Class_get_protocol, cls(live.cls));
  GETS("false", HG_Class_is_listening, cls(live.cls));
  GETS("0", HG_Class_get_input_eager_size, cls(live.cls));
  GETS("0", HG_Class_get_output_eager_size, cls(live.cls));
  CODE(HG_Class_set_input_offset, cls(live.cls), offset(0));
  CODE(HG_Class_set_output_offset, cls(live.cls), offset(0));
  CODE(HG_Class_set_data, cls(live.cls), here, NULL);
  GETS("`NULL`", HG_Class_get_data, cls(live.cls));
  CODE(HG_Class_get_counters, cls(live.cls), to(&out.counters));
  CODE(HG_Class_set_handle_create_callback, cls(live.cls), NULL, NULL);
  OUTCOME("`NULL`", hg_context_made, HG_Context_create, cls(live.cls));
  OUTCOME("`NULL`", hg_context_made, HG_Context_create_id, cls(live.cls), 7);
  CODE(HG_Context_destroy, ctx_or_null(spare_context()));
  AS(unposted, HG_Context_unpost, ctx(spare_context()));
  GETS("`NULL`", HG_Context_get_class, ctx(live.ctx));
  CODE(HG_Context_set_data, ctx(live.ctx), here, NULL);
  GETS("`NULL`", HG_Context_get_data, ctx(live.ctx));
  AS(at_its_time, HG_Progress, ctx(live.ctx), 0);
  AS(at_its_time, HG_Trigger, ctx(live.ctx), 0, 1, &out.count);
  CODE(HG_Event_progress, ctx(live.ctx), &out.count);
  CODE(HG_Event_trigger, ctx(live.ctx), 1, &out.count);
  GETS("0", HG_Register_name, cls(live.cls), name_of("spare"), NULL, NULL, NULL);
  CODE(HG_Registered_name, cls(live.cls), name_of("spare"), &out.id, to(&out.flag));
  CODE(HG_Register, cls(live.cls), 5, NULL, NULL, NULL);
  CODE(HG_Registered, cls(live.cls), 5, to(&out.flag));
  CODE(HG_Registered_proc_cb, cls(live.cls), 5, &out.flag, &out.procs[0], &out.procs[1]);
  CODE(HG_Register_data, cls(live.cls), id(5), here, NULL);
  GETS("`NULL`", HG_Registered_data, cls(live.cls), 5);
  CODE(HG_Registered_disable_response, cls(live.cls), id(5), 0);
  CODE(HG_Registered_disabled_response, cls(live.cls), id(5), to(&out.flag));
  CODE(HG_Deregister, cls(live.cls), id(5));
  AS(one_more, HG_Addr_lookup1, ctx(live.ctx), hg_ended, NULL, peer("mpi://0"), HG_OP_ID_IGNORE);
  AS(addr_made, HG_Addr_lookup2, cls(live.cls), peer("mpi://0"), to(&out.addr));
  CODE(HG_Addr_free, cls(live.cls), addr_or_null(spare_addr()));
  CODE(HG_Addr_set_remove, cls(live.cls), addr(live.addr));
  AS(addr_made, HG_Addr_self, cls(live.cls), to(&out.addr));
  AS(addr_made, HG_Addr_dup, cls(live.cls), addr(live.addr), to(&out.addr));
  GETS("false", HG_Addr_cmp, cls(live.cls), addr_or_null(live.addr), live.addr);
  CODE(HG_Addr_to_string, cls(live.cls), TEXT, addr(live.addr));
  AS(handle_made, HG_Create, ctx(live.ctx), addr_or_null(live.addr), id(one_id), to(&out.handle));
  CODE(HG_Destroy, made_or_null(is_good() ? created() : live.made));
  AS(ref_taken, HG_Ref_incr, made(live.made));
  BAD_ROW("HG_Ref_get", "-1", (made(live.made)), HG_Ref_get(made(live.made)) > 0 ? 0 : REFUSED);
  GETS("`NULL`", HG_Get_info, made(live.made));
  CODE(HG_Set_data, made(live.made), here, NULL);
  GETS("`NULL`", HG_Get_data, made(live.made));
  CODE(HG_Set_target_id, made(live.made), 0);
  CODE(HG_Get_input, not_made(served(live.served)), params(&out.params));
  CODE(HG_Free_input, served(live.served), params(&out.params));
  CODE(HG_Get_input_buf, made(live.made), BUFFER);
  CODE(HG_Get_input_extra_buf, made(live.made), BUFFER);
  CODE(HG_Release_input_buf, not_made(served(live.served)));
  AS(responded, HG_Respond, not_made(served(to_answer())), NULL, NULL, &out.params);
  CODE(HG_Get_output, not_served(made(live.made)), params(&out.params));
  CODE(HG_Free_output, made(live.made), params(&out.params));
  GETS("0", HG_Get_output_payload_size, made(live.made));
  GETS("0", HG_Get_input_payload_size, made(live.made));
  CODE(HG_Get_output_buf, made(live.made), BUFFER);
  CODE(HG_Get_output_extra_buf, made(live.made), BUFFER);
  AS(one_more, HG_Forward, not_served(made(live.made)), hg_ended, NULL, &out.params);
  CODE(HG_Reset, not_served(made(live.made)), addr_or_null(live.addr), id(one_id));
  CODE(HG_Cancel, made(live.made));
#define MAKE cls(live.cls), segments(2), blocks((void *[]){ here, here + 8 }), sizes((hg_size_t[]){ 8, 8 }), flags(HG_BULK_READWRITE)
#define TAKE cls(live.cls), 1, NULL, memory((hg_size_t[]){ 8 }), HG_BULK_READWRITE
  AS(bulk_made, HG_Bulk_create, MAKE, to(&out.bulk));
  AS(bulk_made, HG_Bulk_create, TAKE, to(&out.bulk));
  AS(bulk_made, HG_Bulk_create_attr, MAKE, NULL, to(&out.bulk));
  CODE(HG_Bulk_free, bulk_or_null(spare_bulk()));
  AS(bulk_ref_taken, HG_Bulk_ref_incr, bulk(live.bulk));
  CODE(HG_Bulk_bind, bulk(live.bulk), ctx(live.ctx));
  GETS("`NULL`", HG_Bulk_get_addr, bulk(live.bulk));
  CODE(HG_Bulk_access, bulk(live.bulk), past(0), 8, HG_BULK_READWRITE, 1, &out.ptr, &out.size, &out.segments);
  GETS("0", HG_Bulk_get_size, bulk(live.bulk));
  GETS("0", HG_Bulk_get_segment_count, bulk(live.bulk));
  GETS("0", HG_Bulk_get_flags, bulk(live.bulk));
  GETS("0", HG_Bulk_get_serialize_size, bulk(live.bulk), 0);
  CODE(HG_Bulk_serialize, room(here + ROOM / 2), room_size(ROOM / 2), 0, bulk(live.bulk));
  AS(bulk_made, HG_Bulk_deserialize, cls(live.cls), to(&out.bulk), bytes(packed), bytes_size(packed_size));
#define MOVE origin(live.origin), past_origin(0), bulk(live.bulk), past(0), moved(8), NULL
#define START ctx(live.ctx), hg_ended, NULL, way(HG_BULK_PULL)
  AS(one_more, HG_Bulk_transfer, START, addr(live.addr), MOVE);
  AS(one_more, HG_Bulk_transfer_id, START, addr(live.addr), 0, MOVE);
  AS(one_more, HG_Bulk_bind_transfer, START, MOVE);
}

#define NA_ADDR ncls(live.ncls), naddr(live.naddr)
#define NA_LIVE ncls(live.ncls), nctx(live.nctx)
#define NA_START NA_LIVE, na_ended, NULL

static void na_calls(void)
{
  CODE(NA_Finalize, ncls_or_null(is_good() ? NA_Initialize("self", false) : live.ncls));
  GETS("false", NA_Is_listening, ncls(live.ncls));
  GETS("`NULL`", NA_Get_class_name, ncls(live.ncls));
  GETS("`NULL`", NA_Get_class_protocol, ncls(live.ncls));
  OUTCOME("`NULL`", na_context_made, NA_Context_create, ncls(live.ncls));
  OUTCOME("`NULL`", na_context_made, NA_Context_create_id, ncls(live.ncls), 0);
  CODE(NA_Context_destroy, live.ncls, nctx_or_null(is_good() ? NA_Context_create(live.ncls) : live.nctx));
  AS(naddr_made, NA_Addr_lookup, ncls(live.ncls), npeer("self"), nto(&out.naddr));
  CODE(NA_Addr_set_remove, NA_ADDR);
  AS(naddr_made, NA_Addr_self, ncls(live.ncls), nto(&out.naddr));
  AS(naddr_made, NA_Addr_dup, NA_ADDR, nto(&out.naddr));
  GETS("false", NA_Addr_cmp, ncls(live.ncls), naddr_or_null(live.naddr), live.naddr);
  GETS("false", NA_Addr_is_self, NA_ADDR);
  CODE(NA_Addr_to_string, ncls(live.ncls), out.text, ntext_size(&(size_t){ sizeof out.text }), naddr(live.naddr));
  GETS("0", NA_Addr_get_serialize_size, NA_ADDR);
  CODE(NA_Addr_serialize, ncls(live.ncls), out.text, addr_room(sizeof out.text), naddr(live.naddr));
  AS(naddr_made, NA_Addr_deserialize, ncls(live.ncls), &out.naddr, packed_addr, addr_size(packed_addr_size), 0);
  GETS("0", NA_Msg_get_max_unexpected_size, ncls(live.ncls));
  GETS("0", NA_Msg_get_max_expected_size, ncls(live.ncls));
  GETS("0", NA_Msg_get_max_tag, ncls(live.ncls));
  CODE(NA_Msg_recv_unexpected, NA_START, message(large), 8, NULL, NULL);
  CODE(NA_Msg_send_unexpected, NA_START, message(large), unexpected(8), NULL, naddr(live.naddr), 0, tag(1), NULL);
  CODE(NA_Msg_recv_expected, NA_START, message(large), 8, NULL, naddr(live.naddr), 0, 2, NULL);
  CODE(NA_Msg_send_expected, NA_START, message(large), expected(8), NULL, naddr(live.naddr), 0, tag(2), NULL);
  AS(mem_made, NA_Mem_handle_create, ncls(live.ncls), region(here), region_size(8), nflags(NA_MEM_READWRITE),
     nto(&out.mem));
  AS(mem_made, NA_Mem_handle_create_segments, ncls(live.ncls), nsegments(&(struct na_segment){ here, 8 }),
     nsegment_count(1), NA_MEM_READWRITE, &out.mem);
  GETS("0", NA_Mem_handle_get_max_segments, ncls(live.ncls));
  CODE(NA_Mem_register, ncls(live.ncls), mem(live.mem), of_host(NA_MEM_TYPE_HOST), 0);
  CODE(NA_Mem_deregister, ncls(live.ncls), mem(live.mem));
  GETS("0", NA_Mem_handle_get_serialize_size, ncls(live.ncls), mem(live.mem));
  CODE(NA_Mem_handle_serialize, ncls(live.ncls), here + ROOM / 2, mem_room(ROOM / 2), mem(live.mem));
  AS(mem_made, NA_Mem_handle_deserialize, ncls(live.ncls), &out.mem, mem_bytes(packed_mem), mem_bytes_size(packed_mem_size));
  CODE(NA_Msg_init_unexpected, ncls(live.ncls), large, 8);
  CODE(NA_Msg_init_expected, ncls(live.ncls), large, 8);
  OUTCOME("`NULL`", buffer_made, NA_Msg_buf_alloc, ncls(live.ncls), 8, 0, &out.ptr);
  OUTCOME("`NULL`", op_made, NA_Op_create, ncls(live.ncls), 0);
  CODE(NA_Poll, NA_LIVE, &out.count);
  AS(at_its_time, NA_Poll_wait, NA_LIVE, 0, &out.count);
  AS(at_its_time, NA_Progress, NA_LIVE, 0);
  CODE(NA_Trigger, nctx(live.nctx), 100, &out.count);
  CODE(NA_Put, NA_START, registered(live.remote), npast(0), writable(remote(live.remote)), npast_remote(0), nmoved(8),
       naddr(live.naddr), 0, NULL);
  CODE(NA_Get, NA_START, writable(registered(live.remote)), npast(0), remote(live.remote), npast_remote(0), nmoved(8),
       naddr(live.naddr), 0, NULL);
}

static void na_faults(void)
{
#define NOTHING(name, ...) BAD_ROW(#name, "nothing happens", (__VA_ARGS__), (name(__VA_ARGS__), REFUSED))
  NOTHING(NA_Addr_free, ncls(live.ncls), naddr_or_null(live.naddr));
  NOTHING(NA_Mem_handle_free, ncls(live.ncls), mem_or_null(live.mem));
  CODE(NA_Cancel, NA_LIVE, nop(NULL));
}

static void core_calls(void)
{
  CODE(HG_Core_finalize, core_or_null(is_good() ? HG_Core_init("self", HG_FALSE) : live.core));
  CODE(HG_Core_set_more_data_callback, core(live.core), NULL, NULL);
  GETS("`NULL`", HG_Core_class_get_name, core(live.core));
  GETS("`NULL`", HG_Core_class_get_protocol, core(live.core));
  GETS("false", HG_Core_class_is_listening, core(live.core));
  GETS("`NULL`", HG_Core_class_get_na, core(live.core));
  GETS("0", HG_Core_class_get_input_eager_size, core(live.core));
  GETS("0", HG_Core_class_get_output_eager_size, core(live.core));
  CODE(HG_Core_class_set_data, core(live.core), here, NULL);
  GETS("`NULL`", HG_Core_class_get_data, core(live.core));
  CODE(HG_Core_class_get_counters, core(live.core), to(&out.counters));
  OUTCOME("`NULL`", core_context_made, HG_Core_context_create, core(live.core));
  OUTCOME("`NULL`", core_context_made, HG_Core_context_create_id, core(live.core), 7);
  CODE(HG_Core_context_destroy, cctx_or_null(is_good() ? HG_Core_context_create(live.core) : live.cctx));
  GETS("`NULL`", HG_Core_context_get_class, cctx(live.cctx));
  GETS("`NULL`", HG_Core_context_get_na, cctx(live.cctx));
  CODE(HG_Core_context_set_data, cctx(live.cctx), here, NULL);
  GETS("`NULL`", HG_Core_context_get_data, cctx(live.cctx));
  CODE(HG_Core_context_set_handle_create_callback, cctx(live.cctx), NULL, NULL);
  CODE(HG_Core_context_post, cctx(live.cctx));
  AS(at_its_time, HG_Core_progress, cctx(live.cctx), 0);
  AS(at_its_time, HG_Core_trigger, cctx(live.cctx), 0, 1, &out.count);
  CODE(HG_Core_event_progress, cctx(live.cctx), &out.count);
  CODE(HG_Core_event_trigger, cctx(live.cctx), 1, &out.count);
  CODE(HG_Core_register, core(live.core), 5, core_cb);
  CODE(HG_Core_registered, core(live.core), 5, to(&out.flag));
  CODE(HG_Core_register_data, core(live.core), id(5), here, NULL);
  GETS("`NULL`", HG_Core_registered_data, core(live.core), 5);
  CODE(HG_Core_registered_disable_response, core(live.core), id(5), 0);
  CODE(HG_Core_registered_disabled_response, core(live.core), id(5), to(&out.flag));
  CODE(HG_Core_deregister, core(live.core), id(5));
  AS(caddr_made, HG_Core_addr_lookup2, core(live.core), peer("mpi://0"), to(&out.caddr));
  CODE(HG_Core_addr_free, caddr_or_null(spare_caddr()));
  CODE(HG_Core_addr_set_remove, caddr(live.caddr));
  GETS("`NULL`", HG_Core_addr_get_na, caddr(live.caddr));
  AS(caddr_made, HG_Core_addr_self, core(live.core), to(&out.caddr));
  AS(caddr_made, HG_Core_addr_dup, caddr(live.caddr), to(&out.caddr));
  GETS("false", HG_Core_addr_cmp, caddr_or_null(live.caddr), live.caddr);
  GETS("false", HG_Core_addr_is_self, caddr(live.caddr));
  CODE(HG_Core_addr_to_string, TEXT, caddr(live.caddr));
  GETS("0", HG_Core_addr_get_serialize_size, caddr(live.caddr), 0);
  CODE(HG_Core_addr_serialize, out.text, sizeof out.text, 0, caddr(live.caddr));
  AS(caddr_made, HG_Core_addr_deserialize, core(live.core), to(&out.caddr), packed_core, packed_core_size, 0);
  AS(chandle_made, HG_Core_create, cctx(live.cctx), caddr_or_null(live.caddr), id(6), to(&out.chandle));
  CODE(HG_Core_destroy, chandle_or_null(spare_chandle()));
  CODE(HG_Core_reset, chandle(live.chandle), caddr_or_null(live.caddr), id(6));
  AS(cref_taken, HG_Core_ref_incr, chandle(live.chandle));
  BAD_ROW("HG_Core_ref_get", "-1", (chandle(live.chandle)), HG_Core_ref_get(chandle(live.chandle)) > 0 ? 0 : REFUSED);
  CODE(HG_Core_set_data, chandle(live.chandle), here, NULL);
  GETS("`NULL`", HG_Core_get_data, chandle(live.chandle));
  GETS("`NULL`", HG_Core_get_info, chandle(live.chandle));
  CODE(HG_Core_set_target_id, chandle(live.chandle), 0);
  CODE(HG_Core_get_input, chandle(live.chandle), BUFFER);
  CODE(HG_Core_cancel, chandle(live.chandle));
}

static void core_faults(void)       /* mercury2_core.c has good calls of these */
{
  AS(one_more, HG_Core_addr_lookup1, cctx(live.cctx), NULL, NULL, peer("mpi://0"), HG_CORE_OP_ID_IGNORE);
  CODE(HG_Core_context_unpost, cctx(live.cctx));
  GETS("`NULL`", HG_Core_get_rpc_data, chandle(live.chandle));
  GETS("0", HG_Core_get_input_payload_size, chandle(live.chandle));
  GETS("0", HG_Core_get_output_payload_size, chandle(live.chandle));
  CODE(HG_Core_release_input, chandle(live.chandle));
  CODE(HG_Core_get_output, chandle(live.chandle), BUFFER);
  CODE(HG_Core_forward, chandle(live.chandle), NULL, NULL, 0, 8);
  CODE(HG_Core_respond, chandle(live.chandle), NULL, NULL, 0, 8);
}

static void proc_calls(void)        /* mercury_invalid.c tests the other procs, which are the same */
{
  AS(proc_made, hg_proc_create, proc_class(live.cls), hash(HG_CRC64), &made_proc);
  AS(proc_made, hg_proc_create_set, proc_class(live.cls), proc_buffer(here), 8, what(HG_ENCODE), HG_NOHASH, &made_proc);
  CODE(hg_proc_reset, proc(encoder), proc_bytes, 64, HG_ENCODE);
#define TYPE(type) CODE(hg_proc_##type, proc(encoder), &number)
  TYPE(int8_t); TYPE(int16_t); TYPE(int32_t); TYPE(int64_t);
  TYPE(uint8_t); TYPE(uint16_t); TYPE(uint32_t); TYPE(uint64_t);
  CODE(hg_proc_hg_string_t, proc(encoder), &(char *){ out.text });
  CODE(hg_proc_hg_const_string_t, proc(encoder), &(const char *){ "" });
  CODE(hg_proc_bytes, proc(encoder), &number, 8);
  CODE(hg_proc_set_size, proc(encoder), 64);
  CODE(hg_proc_flush, proc(encoder));
  NO_FAULT(hg_proc_free); NO_FAULT(hg_proc_set_extra_buf_is_mine); NO_FAULT(hg_proc_restore_ptr);
  NO_FAULT(hg_proc_hg_bulk_t); NO_FAULT(hg_proc_checksum_get);
  NO_FAULT(hg_proc_checksum_verify); NO_FAULT(hg_proc_checksum_update); NO_FAULT(hg_proc_hg_string_object_t);
  NO_FAULT(hg_proc_get_class); NO_FAULT(hg_proc_get_handle); NO_FAULT(hg_proc_get_extra_buf);
  NO_FAULT(hg_proc_save_ptr); NO_FAULT(hg_proc_get_op); NO_FAULT(hg_proc_get_flags); NO_FAULT(hg_proc_get_size);
  NO_FAULT(hg_proc_get_size_used); NO_FAULT(hg_proc_get_size_left); NO_FAULT(hg_proc_get_extra_size);
  NO_FAULT(hg_proc_set_handle); NO_FAULT(hg_proc_set_flags);
  CODE(hg_string_object_init, string(&object));
  CODE(hg_string_object_init_char, string(&object), out.text, 0);
  CODE(hg_string_object_init_const_char, string(&object), "text", 0);
  CODE(hg_string_object_dup, object, string(&copy));
  CODE(hg_string_object_free, string(&copy));
  NO_FAULT(hg_string_object_swap);
}

/* Bad input to these calls is impossible, legal, or among the cases. Requests are plain pointers. */
static void other_calls(void)
{
  NO_FAULT(HG_Init); NO_FAULT(HG_Init_opt); NO_FAULT(HG_Init_opt2); NO_FAULT(HG_Cleanup); NO_FAULT(HG_Version_get);
  NO_FAULT(HG_Error_to_string); NO_FAULT(HG_Diag_dump_counters); NO_FAULT(HG_Set_log_func); NO_FAULT(HG_Set_log_level);
  NO_FAULT(HG_Set_log_stream); NO_FAULT(HG_Set_log_subsys); NO_FAULT(HG_Util_set_log_level);
  NO_FAULT(HG_Util_version_get); NO_FAULT(HG_Free_na_protocol_info); NO_FAULT(HG_Get_na_protocol_info);
  NO_FAULT(HG_Context_get_id); NO_FAULT(HG_Bulk_get_context_id); NO_FAULT(HG_Bulk_cancel);
  NO_FAULT(HG_Event_get_wait_fd); NO_FAULT(HG_Event_ready);
  NO_FAULT(HG_Core_init); NO_FAULT(HG_Core_init_opt); NO_FAULT(HG_Core_init_opt2); NO_FAULT(HG_Core_cleanup);
  NO_FAULT(HG_Core_context_get_id); NO_FAULT(HG_Core_context_get_completion_count);
  NO_FAULT(HG_Core_event_get_wait_fd); NO_FAULT(HG_Core_event_ready); NO_FAULT(HG_Core_free_na_protocol_info);
  NO_FAULT(HG_Core_get_na_protocol_info);
  NO_FAULT(NA_Initialize); NO_FAULT(NA_Initialize_opt); NO_FAULT(NA_Initialize_opt2); NO_FAULT(NA_Cleanup);
  NO_FAULT(NA_Version_get); NO_FAULT(NA_Error_to_string); NO_FAULT(NA_Diag_dump_counters); NO_FAULT(NA_Set_log_level);
  NO_FAULT(NA_Free_protocol_info); NO_FAULT(NA_Get_protocol_info); NO_FAULT(NA_Has_opt_feature);
  NO_FAULT(NA_Context_get_completion_count); NO_FAULT(NA_Poll_get_fd); NO_FAULT(NA_Poll_try_wait);
  NO_FAULT(NA_Msg_get_expected_header_size); NO_FAULT(NA_Msg_get_unexpected_header_size);
  NO_FAULT(NA_Msg_multi_recv_unexpected); NO_FAULT(NA_Msg_buf_free); NO_FAULT(NA_Op_destroy);
  NO_FAULT(hg_request_init); NO_FAULT(hg_request_finalize); NO_FAULT(hg_request_create);
  NO_FAULT(hg_request_destroy); NO_FAULT(hg_request_reset); NO_FAULT(hg_request_complete);
  NO_FAULT(hg_request_wait); NO_FAULT(hg_request_waitall); NO_FAULT(hg_request_set_data);
  NO_FAULT(hg_request_get_data);
}

#endif /* MERCURY2_INVALID_CALLS_H */
