/*
 * iterator.h - the name under which older programs include stride_info_t and the calls
 * armci_stride_info_*. armci.h declares them.
 */
#ifndef PORTOLAN_ITERATOR_H
#define PORTOLAN_ITERATOR_H

#include <armci.h>

#endif /* PORTOLAN_ITERATOR_H */
