//! Services: servers and clients in processes of their own, without MPI and without a launcher.
//!
//! The test program starts itself for the other processes (`roles`). `PORTOLAN_TEST_FULL=1` makes
//! the random tests ten times as long, and `PORTOLAN_TEST_SEED` repeats one.

mod bad_network;
mod faults;
mod idle;
mod limits;
mod roles;
mod rounds;
