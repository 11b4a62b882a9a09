/*
 * iterator.h - by this name programs of old include stride_info_t and the calls
 * armci_stride_info_*, which armci.h declares.
 */
#ifndef PORTOLAN_ITERATOR_H
#define PORTOLAN_ITERATOR_H

#include <armci.h>

#endif /* PORTOLAN_ITERATOR_H */
