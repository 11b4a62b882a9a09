/* Functions for MPI names that are macros in one MPI or absent from the Rust bindings. None of them
 * communicates. */
#include <mpi.h>
#include <stddef.h>

/* Returns 1 for MPICH and its derivatives, 2 for Open MPI, 3 for the standard ABI, 0 for another
 * MPI. */
int portolan_shim_flavour(void)
{
#if defined(MPI_ABI_VERSION)
    return 3;
#elif defined(OPEN_MPI)
    return 2;
#elif defined(MPICH_VERSION) || defined(MPICH)
    return 1;
#else
    return 0;
#endif
}

/* The numbers are those of `mpi::Datatype` in Rust. */
MPI_Datatype portolan_shim_type(int which)
{
    switch (which) {
    case 0: return MPI_BYTE;
    case 1: return MPI_INT;
    case 2: return MPI_LONG;
    case 3: return MPI_FLOAT;
    case 4: return MPI_DOUBLE;
    case 5: return MPI_C_FLOAT_COMPLEX;
    case 6: return MPI_C_DOUBLE_COMPLEX;
    case 7: return MPI_SHORT;
    default: return MPI_DATATYPE_NULL;
    }
}

void *portolan_shim_in_place(void) { return MPI_IN_PLACE; }
int portolan_shim_mode_nocheck(void) { return MPI_MODE_NOCHECK; }
MPI_Comm portolan_shim_comm_null(void) { return MPI_COMM_NULL; }
MPI_Request portolan_shim_request_null(void) { return MPI_REQUEST_NULL; }
MPI_Win portolan_shim_win_null(void) { return MPI_WIN_NULL; }

static MPI_Comm_delete_attr_function *finalize_hook;

static int run_hook(MPI_Comm comm, int key, void *value, void *extra)
{
    return finalize_hook ? finalize_hook(comm, key, value, extra) : MPI_SUCCESS;
}

/* Registers `hook`, which runs at the start of MPI_Finalize while MPI still works. */
int portolan_shim_at_finalize(MPI_Comm_delete_attr_function *hook, int *key)
{
    int rc = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, run_hook, key, NULL);
    if (rc != MPI_SUCCESS)
        return rc;
    finalize_hook = hook;
    return MPI_Comm_set_attr(MPI_COMM_SELF, *key, (void *)finalize_hook);
}

/* Removes the hook without running it. */
int portolan_shim_forget_finalize(int *key)
{
    finalize_hook = NULL;
    int rc = MPI_Comm_delete_attr(MPI_COMM_SELF, *key);
    int free_rc = MPI_Comm_free_keyval(key);
    return rc != MPI_SUCCESS ? rc : free_rc;
}
