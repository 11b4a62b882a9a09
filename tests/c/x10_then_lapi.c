/* LAPI's names of the queries, with lapi.h after x10/x10lib.h. */
// TEST: x10
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <x10/x10lib.h>
#include <lapi.h>
#include "x10_names.h"

int main(int argc, char **argv) { return names("x10_then_lapi", &argc, &argv); }
