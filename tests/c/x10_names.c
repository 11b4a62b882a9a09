/* LAPI's names of the queries, without lapi.h. */
#include "x10_names.h"

int main(int argc, char **argv) { return names("x10_names", &argc, &argv); }
