/* Sizes, offsets and values that compiled programs rely on. If DEBIAN_HEADER is defined, the
 * program uses the armci.h of this Debian release, which must have the same layout. */
// TEST: armci
// TEST: n=2 build=debian-header
#include "check.h"

#include <stddef.h>

#if defined(DEBIAN_HEADER) && defined(PORTOLAN_ERR_ARG)
#error "this is our armci.h, not Debian's"
#endif

#define SIZE(type, want) CHECK_EQ(sizeof(type), want)
#define OFFSET(type, field, want) CHECK_EQ(offsetof(type, field), want)

#if defined(OPEN_MPI)
enum { HANDLE = 8 };                /* an MPI handle is a pointer */
#else
enum { HANDLE = 4 };                /* an MPI handle is an int */
#endif

static void values(void)
{
  CHECK_EQ(ARMCI_ACC_INT, 0);
  CHECK_EQ(ARMCI_ACC_LNG, 1);
  CHECK_EQ(ARMCI_ACC_FLT, 2);
  CHECK_EQ(ARMCI_ACC_DBL, 3);
  CHECK_EQ(ARMCI_ACC_CPL, 4);
  CHECK_EQ(ARMCI_ACC_DCP, 5);
#ifndef DEBIAN_HEADER
  CHECK_EQ(ARMCI_ACC_DCPL, 5);
#endif

  CHECK_EQ(ARMCI_FETCH_AND_ADD, 0);
  CHECK_EQ(ARMCI_FETCH_AND_ADD_LONG, 1);
  CHECK_EQ(ARMCI_SWAP, 2);
  CHECK_EQ(ARMCI_SWAP_LONG, 3);

  CHECK_EQ(SCOPE_ALL, 0);
  CHECK_EQ(SCOPE_NODE, 1);
  CHECK_EQ(SCOPE_MASTERS, 2);

  CHECK_EQ(ARMCI_INT, 0);
  CHECK_EQ(ARMCI_LONG, 1);
  CHECK_EQ(ARMCI_LONG_LONG, 2);
  CHECK_EQ(ARMCI_FLOAT, 3);
  CHECK_EQ(ARMCI_DOUBLE, 4);

  CHECK_EQ(ARMCI_DOMAIN_SMP, 0);
  CHECK_EQ(ARMCI_MPI, 3);

#ifndef DEBIAN_HEADER
  CHECK_EQ(ARMCI_SUCCESS, 0);
  CHECK_EQ(PORTOLAN_ERR_ARG, 1);
  CHECK_EQ(PORTOLAN_ERR_RANK, 2);
  CHECK_EQ(PORTOLAN_ERR_ADDRESS, 3);
  CHECK_EQ(PORTOLAN_ERR_MEMORY, 4);
  CHECK_EQ(PORTOLAN_ERR_STATE, 5);
  CHECK_EQ(PORTOLAN_ERR_HANDLE, 6);
  CHECK_EQ(PORTOLAN_ERR_TYPE, 7);
  CHECK_EQ(PORTOLAN_ERR_MPI, 8);
  CHECK_EQ(PORTOLAN_ERR_INTERNAL, 9);
  CHECK_EQ(PORTOLAN_ERR_MISMATCH, 10);
#endif
}

static void layouts(void)
{
#ifndef DEBIAN_HEADER
  armci_giov_t iov;
#endif
  armcix_mutex_hdl_t set = NULL;
  int size = 0;

  SIZE(int, 4);
  SIZE(long, 8);
  SIZE(void *, 8);
  SIZE(MPI_Comm, HANDLE);
  SIZE(MPI_Win, HANDLE);

  SIZE(armci_size_t, 8);
  CHECK((armci_size_t)-1 < 0, "armci_size_t is unsigned");
  MPI_Type_size(ARMCII_MPI_SIZE_T, &size);
  CHECK_EQ(size, sizeof(armci_size_t));
  SIZE(armci_domain_t, 4);

  SIZE(armci_hdl_t, 8);
  OFFSET(armci_hdl_t, target, 0);
  OFFSET(armci_hdl_t, aggregate, 4);
  SIZE(struct armci_hdl_s, 8);

  SIZE(armci_giov_t, 24);
  OFFSET(armci_giov_t, src_ptr_array, 0);
  OFFSET(armci_giov_t, dst_ptr_array, 8);
  OFFSET(armci_giov_t, bytes, 16);
  OFFSET(armci_giov_t, ptr_array_len, 20);
#ifndef DEBIAN_HEADER
  CHECK((void *)&iov.src_ptr_ar == (void *)&iov.src_ptr_array, "src_ptr_ar lies elsewhere");
  CHECK((void *)&iov.dst_ptr_ar == (void *)&iov.dst_ptr_array, "dst_ptr_ar lies elsewhere");
  CHECK(&iov.ptr_ar_len == &iov.ptr_array_len, "ptr_ar_len lies elsewhere");
#endif

  SIZE(ARMCI_Group, HANDLE == 4 ? 32 : 40);
  OFFSET(ARMCI_Group, comm, 0);
  OFFSET(ARMCI_Group, noncoll_pgroup_comm, HANDLE);
  OFFSET(ARMCI_Group, grp_to_abs, 2 * HANDLE);
  OFFSET(ARMCI_Group, abs_to_grp, 2 * HANDLE + 8);
  OFFSET(ARMCI_Group, rank, 2 * HANDLE + 16);
  OFFSET(ARMCI_Group, size, 2 * HANDLE + 20);

#ifndef DEBIAN_HEADER
  SIZE(stride_info_t, 120);
  OFFSET(stride_info_t, base_ptr, 0);
  OFFSET(stride_info_t, stride_levels, 8);
  OFFSET(stride_info_t, stride_arr, 12);
  OFFSET(stride_info_t, seg_count, 44);
  OFFSET(stride_info_t, size, 80);
  OFFSET(stride_info_t, pos, 84);
  OFFSET(stride_info_t, itr, 88);
  CHECK_EQ(ARMCI_MAX_STRIDE_LEVEL, 8);
#endif

  SIZE(armcix_mutex_hdl_t, 8);
  SIZE(*set, HANDLE == 4 ? 56 : 64);
  OFFSET(struct armcix_mutex_hdl_s, my_count, 0);
  OFFSET(struct armcix_mutex_hdl_s, max_count, 4);
  OFFSET(struct armcix_mutex_hdl_s, grp, 8);
  OFFSET(struct armcix_mutex_hdl_s, windows, HANDLE == 4 ? 40 : 48);
  OFFSET(struct armcix_mutex_hdl_s, bases, HANDLE == 4 ? 48 : 56);
}

#ifndef DEBIAN_HEADER
/* Assigns the calls to function pointers of the types that programs declare. */
static void signatures(void)
{
  int (*init)(MPI_Comm) = ARMCI_Init_mpi_comm;
  int (*twin)(MPI_Comm) = PARMCI_Init_mpi_comm;
  int (*notify)(int) = armci_notify;
  int (*wait)(int, int *) = armci_notify_wait;
  MPI_Comm (*comm)(ARMCI_Group *) = armci_group_comm;
  void (*start)(int *, char ***) = armci_msg_init;
  void (*end)(void) = armci_msg_finalize;
  void (*first)(stride_info_t *, void *, int, const int *, const int *) = armci_stride_info_init;
  CHECK(portolan_version() != NULL && portolan_version()[0] != '\0', "the library has no version");
  CHECK(init && twin && notify && wait && comm && start && end && first, "a call is missing");
}
#endif

/* Checks that the linked library was built for this MPI: its group has the layout that this
 * program sees. */
static void same_library(void)
{
  struct {
    ARMCI_Group group;
    unsigned char guard[64];
  } box;
  int size = -1, rank = -1;

  memset(&box, 0xab, sizeof box);
  ARMCI_Group_get_world(&box.group);
  for (int i = 0; i < 64; i++)
    CHECK(box.guard[i] == 0xab, "the library's ARMCI_Group is larger than the header's");
  CHECK_EQ(box.group.rank, me);
  CHECK_EQ(box.group.size, nproc);
  MPI_Comm_size(box.group.comm, &size);
  MPI_Comm_rank(box.group.comm, &rank);
  CHECK_EQ(size, nproc);
  CHECK_EQ(rank, me);
}

int main(int argc, char **argv)
{
  check_start("abi", &argc, &argv);
  values();
  layouts();
#ifndef DEBIAN_HEADER
  signatures();
#endif
  same_library();
  return check_end();
}
