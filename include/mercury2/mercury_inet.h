/* mercury_inet.h - Mercury 2.4: network byte order, also of 64-bit numbers. */
#ifndef MERCURY_INET_H
#define MERCURY_INET_H

#include "mercury_byteswap.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>

#ifndef htonll
#define htonll(x) htobe64(x)
#endif
#ifndef ntohll
#define ntohll(x) be64toh(x)
#endif

#endif /* MERCURY_INET_H */
