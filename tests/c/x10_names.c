/* LAPI's query names, without lapi.h. */
// TEST: x10
#include "x10_names.h"

int main(int argc, char **argv) { return names("x10_names", &argc, &argv); }
