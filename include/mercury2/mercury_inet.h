/* mercury_inet.h - Mercury 2.4: network byte order, also of 64-bit numbers. */
#ifndef MERCURY_INET_H
#define MERCURY_INET_H

#include "mercury_byteswap.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HG_INET_64_(x) bswap_64(x)
#else
#define HG_INET_64_(x) (x)
#endif
#ifndef htonll
#define htonll(x) HG_INET_64_(x)
#endif
#ifndef ntohll
#define ntohll(x) HG_INET_64_(x)
#endif

#endif /* MERCURY_INET_H */
