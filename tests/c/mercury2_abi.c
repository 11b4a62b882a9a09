/* Types and codes have the layouts and values of Mercury 2.4; networks; the log. The interfaces of 2.4
 * and of 2013 are separate, also by name. */
// TEST: n=1
#define _GNU_SOURCE
#include "mercury2_check.h"

#include <dlfcn.h>
#include <mercury_core_header.h>
#include <mercury_request.h>
#include <mercury_time.h>
#include <mercury_util.h>
#include <na.h>
#include <net/if.h>

#define IS(name, what, value) typedef char is_##name[(what) == (value) ? 1 : -1]
IS(ret_first, HG_SUCCESS, 0);
IS(ret_perm, HG_PERMISSION, 1);
IS(ret_noentry, HG_NOENTRY, 2);
IS(ret_again, HG_AGAIN, 4);
IS(ret_nomem, HG_NOMEM, 5);
IS(ret_fault, HG_FAULT, 7);
IS(ret_busy, HG_BUSY, 8);
IS(ret_invalid, HG_INVALID_ARG, 11);
IS(ret_overflow, HG_OVERFLOW, 13);
IS(ret_msgsize, HG_MSGSIZE, 14);
IS(ret_timeout, HG_TIMEOUT, 20);
IS(ret_canceled, HG_CANCELED, 21);
IS(ret_checksum, HG_CHECKSUM_ERROR, 24);
IS(ret_other, HG_OTHER_ERROR, 26);
IS(ret_max, HG_RETURN_MAX, 27);
IS(na_max, NA_RETURN_MAX, 24);
IS(na_get, NA_CB_GET, 6);
IS(na_cb, sizeof(struct na_cb_info), 56);
IS(na_cb_arg, offsetof(struct na_cb_info, arg), 40);
IS(old_names, HG_NO_MATCH, HG_NOENTRY);
IS(cb_bulk, HG_CB_BULK, 3);
IS(pull, HG_BULK_PULL, 1);
IS(rw, HG_BULK_READWRITE, 3);
IS(encode, HG_ENCODE, 0);
IS(decode, HG_DECODE, 1);
IS(crc64, HG_CRC64, 2);
IS(nohash, HG_NOHASH, 3);
IS(id, sizeof(hg_id_t), 8);
IS(size, sizeof(hg_size_t), 8);
IS(info, sizeof(struct hg_info), 40);
IS(info_id, offsetof(struct hg_info, id), 24);
IS(info_context, offsetof(struct hg_info, context_id), 32);
IS(cb, sizeof(struct hg_cb_info), 48);
IS(cb_arg, offsetof(struct hg_cb_info, arg), 32);
IS(cb_type, offsetof(struct hg_cb_info, type), 40);
IS(cb_ret, offsetof(struct hg_cb_info, ret), 44);
IS(cb_size, offsetof(struct hg_cb_info_bulk, size), 24);
IS(core_cb, sizeof(struct hg_core_cb_info), 24);
IS(core_info, sizeof(struct hg_core_info), 40);
IS(na_info, sizeof(struct na_init_info_4_0), 48);
IS(init_class, offsetof(struct hg_init_info, na_class), 48);
IS(init_sm, offsetof(struct hg_init_info, auto_sm), 64);
IS(init_sum, offsetof(struct hg_init_info, checksum_level), 80);
IS(init_early, offsetof(struct hg_init_info, release_input_early), 88);
IS(init_overflow, offsetof(struct hg_init_info, no_overflow), 96);
IS(init, sizeof(struct hg_init_info), 112);
IS(counters, sizeof(struct hg_diag_counters), 72);
IS(attr, sizeof(struct hg_bulk_attr), 16);
IS(string, sizeof(hg_string_object_t), 16);
IS(version, HG_VERSION(2, 4), 0x20004);
IS(identifier, HG_CORE_IDENTIFIER, 0xd7);
IS(protocol, HG_CORE_PROTOCOL_VERSION, 5);
IS(core_checksums, HG_CORE_HAS_CHECKSUMS, 128);
IS(long_width, HG_UTIL_ATOMIC_LONG_WIDTH, sizeof(long));
IS(stamp, HG_UTIL_STAMP_MAX, 128);
HG_ATTR_PACKED_PUSH struct packed {
  char first;
  int second;
} HG_ATTR_PACKED_POP;
IS(packed, sizeof(struct packed), 5);
#ifndef HG_HAS_MULTI_PROGRESS
#error "threads may make progress in one context"
#endif

typedef int (*version)(unsigned int *, unsigned int *, unsigned int *);

static int lines;
static int count_line(FILE *stream, const char *format, ...)
{
  (void)stream;
  lines += strcmp(format, "%s") == 0;
  return 1;
}

/* An error is a line of the log, or nothing at the level none. It is never printed past the log. */
static void failure_is_logged(const char *with)
{
  for (int is_on = 0; is_on < 2; is_on++) {
    const int kept = dup(STDERR_FILENO);
    FILE *caught = tmpfile();
    CHECK(kept >= 0 && caught && dup2(fileno(caught), STDERR_FILENO) >= 0, "standard error");
    HG_Set_log_level(is_on ? "info" : "none");
    lines = 0;
    hg_class_t *none = HG_Init("ofi+verbs", HG_TRUE);
    dup2(kept, STDERR_FILENO);
    close(kept);
    CHECK(none == NULL, "ofi+verbs is a network");
    CHECK(lines == is_on, "%s: %d lines of the log at level %s", with, lines, is_on ? "info" : "none");
    CHECK(fseek(caught, 0, SEEK_END) == 0 && ftell(caught) == 0, "%s: %ld bytes past the log", with,
          ftell(caught));
    fclose(caught);
  }
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury2_abi", &argc, &argv);
  /* Load by the path beside this library: in some MPIs UCX interposes dlopen, which then searches
   * with UCX's own library path. */
  Dl_info ours;
  char path[4096];
  CHECK(dladdr((void *)(uintptr_t)HG_Version_get, &ours) != 0, "no file has HG_Version_get");
  const char *end = strrchr(ours.dli_fname, '/');
  snprintf(path, sizeof path, "%.*slibmercury2.so.0",
           end == NULL ? 0 : (int)(end + 1 - ours.dli_fname), ours.dli_fname);
  void *library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL, "%s: %s", path, dlerror());

  unsigned int major = 9, minor = 9, patch = 9;
  MUST(HG_Version_get(&major, &minor, &patch));
  CHECK(major == 2 && minor == 4 && patch == 1, "the version is %u.%u.%u", major, minor, patch);
  version by_name;
  void *whole = dlopen("libportolan.so.0", RTLD_NOW);
  CHECK(whole != NULL, "libportolan.so.0: %s", dlerror());
  *(void **)&by_name = dlsym(whole, "HG_Version_get");
  CHECK(by_name(&major, &minor, &patch) == 0 && major == 0 && minor == 7,
        "the version of 2013 is %u.%u", major, minor);
  *(void **)&by_name = dlsym(library, "HG_Version_get");
  CHECK(by_name(&major, &minor, NULL) == 0 && major == 2 && minor == 4, "by name it is %u.%u", major, minor);

#define X(code) \
  CHECK(strcmp(HG_Error_to_string(code), #code) == 0, #code " is %s", HG_Error_to_string(code));
  HG_RETURN_VALUES
#undef X
  CHECK(strcmp(HG_Error_to_string((hg_return_t)77), "HG_RETURN_MAX") == 0, "77 has a name");

  struct na_protocol_info *list = NULL;
  int found = 0;
  MUST(HG_Get_na_protocol_info(NULL, &list));
  for (struct na_protocol_info *p = list; p; p = p->next)
    found += strcmp(p->class_name, "mpi") == 0 && p->protocol_name && p->device_name;
  CHECK(found == 1, "%d networks over MPI", found);
  HG_Free_na_protocol_info(list);
  MUST(HG_Get_na_protocol_info("ofi+tcp", &list));
  found = 0;
  for (struct na_protocol_info *p = list; p; p = p->next) {
    CHECK(strcmp(p->protocol_name, "tcp") == 0 && if_nametoindex(p->device_name) > 0, "ofi+tcp over %s",
          p->device_name);
    found += strcmp(p->device_name, "lo") == 0;
  }
  CHECK(found == 1, "%d networks over lo", found);
  HG_Free_na_protocol_info(list);
  MUST(HG_Get_na_protocol_info("na+sm", &list));
  CHECK(list && !list->next && strcmp(list->device_name, "shm") == 0, "na+sm");
  HG_Free_na_protocol_info(list);
  MUST_BE(HG_PROTONOSUPPORT, HG_Get_na_protocol_info("ofi+verbs", &list));
  CHECK(strstr(portolan_last_error(), "ofi+tcp") != NULL, "%s", portolan_last_error());
  MUST_BE(HG_INVALID_ARG, HG_Get_na_protocol_info(NULL, NULL));
  HG_Free_na_protocol_info(NULL);

  /* The program chooses where log output goes. */
  HG_Set_log_func(count_line);
  HG_Set_log_stream("warning", stderr);
  HG_Set_log_subsys("hg");
  failure_is_logged("no class");
  hg_class_t *self = HG_Init("self", HG_TRUE);
  CHECK(self != NULL, "self: %s", portolan_last_error());
  CHECK(strcmp(HG_Class_get_name(self), "self") == 0, "the class is %s", HG_Class_get_name(self));
  HG_Diag_dump_counters();
  failure_is_logged("a class without MPI");
  MUST(HG_Finalize(self));
  hg_class_t *mpi = HG_Init("mpi", HG_FALSE);
  CHECK(mpi != NULL, "mpi: %s", portolan_last_error());
  CHECK(strcmp(HG_Class_get_name(mpi), "mpi") == 0 && strcmp(HG_Class_get_protocol(mpi), "static") == 0,
        "the class is %s, %s", HG_Class_get_name(mpi), HG_Class_get_protocol(mpi));
  failure_is_logged("a class over MPI");
  HG_Cleanup();
  MUST(HG_Finalize(mpi));
  HG_Set_log_func(NULL);
  dlclose(library);
  dlclose(whole);
  return check_end_mpi();
}
