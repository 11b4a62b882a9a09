/* MPI's header, with the conversions of handles to Fortran's integers. The standard binary interface
 * of MPI excludes Fortran, and converts handles to C's int. The Rust bindings of MPI need the old
 * names. */
#ifndef PORTOLAN_ABI_MPI_H
#define PORTOLAN_ABI_MPI_H
/* MPICH's wrapper defines this macro, but bindgen sees only include directories. */
#ifndef MPI_ABI
#define MPI_ABI 1
#endif
#include_next <mpi.h>
#ifndef MPI_ABI_VERSION
#error "this header is for the standard binary interface of MPI (mpicc_abi)"
#endif

typedef int MPI_Fint;
#define MPI_Comm_c2f(handle) MPI_Comm_toint(handle)
#define MPI_Comm_f2c(number) MPI_Comm_fromint(number)
#define MPI_Errhandler_c2f(handle) MPI_Errhandler_toint(handle)
#define MPI_Errhandler_f2c(number) MPI_Errhandler_fromint(number)
#define MPI_File_c2f(handle) MPI_File_toint(handle)
#define MPI_File_f2c(number) MPI_File_fromint(number)
#define MPI_Group_c2f(handle) MPI_Group_toint(handle)
#define MPI_Group_f2c(number) MPI_Group_fromint(number)
#define MPI_Info_c2f(handle) MPI_Info_toint(handle)
#define MPI_Info_f2c(number) MPI_Info_fromint(number)
#define MPI_Message_c2f(handle) MPI_Message_toint(handle)
#define MPI_Message_f2c(number) MPI_Message_fromint(number)
#define MPI_Op_c2f(handle) MPI_Op_toint(handle)
#define MPI_Op_f2c(number) MPI_Op_fromint(number)
#define MPI_Request_c2f(handle) MPI_Request_toint(handle)
#define MPI_Request_f2c(number) MPI_Request_fromint(number)
#define MPI_Type_c2f(handle) MPI_Type_toint(handle)
#define MPI_Type_f2c(number) MPI_Type_fromint(number)
#define MPI_Win_c2f(handle) MPI_Win_toint(handle)
#define MPI_Win_f2c(number) MPI_Win_fromint(number)

#endif
