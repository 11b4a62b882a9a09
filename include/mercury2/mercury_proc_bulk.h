/*
 * mercury_proc_bulk.h - Mercury 2.4: bulk handles as parameters. A null handle is decoded as null.
 */
#ifndef MERCURY_PROC_BULK_H
#define MERCURY_PROC_BULK_H

#include "mercury_bulk.h"
#include "mercury_proc.h"

HG_PUBLIC hg_return_t hg_proc_hg_bulk_t(hg_proc_t proc, void *data) HG_LABEL(hg_proc_hg_bulk_t);

#endif /* MERCURY_PROC_BULK_H */
