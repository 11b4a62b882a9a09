/* kernel_uts.h - the sample trees of the unbalanced tree search: geometric, with fixed shape. T1 has
 * depth 10 and 4,130,071 nodes. A node is a SHA-1 hash and a height; its children follow from it. */
#ifndef KERNEL_UTS_H
#define KERNEL_UTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { UTS_SEED = 19, UTS_MOST_CHILDREN = 100 };

typedef struct {
  unsigned char hash[20];
  int32_t height;
} uts_node;

static inline uint32_t uts_left(uint32_t x, int n)
{
  return x << n | x >> (32 - n);
}

static inline uint32_t uts_word(const unsigned char *p)
{
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void uts_bytes(unsigned char *p, uint32_t word)
{
  for (int i = 0; i < 4; i++)
    p[i] = (unsigned char)(word >> (24 - 8 * i));
}

/* SHA-1 of at most 55 bytes. */
static inline void uts_sha1(const unsigned char *message, size_t len, unsigned char *hash)
{
  const uint32_t start[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
  unsigned char block[64] = { 0 };
  uint32_t w[80], s[5];
  memcpy(block, message, len);
  block[len] = 0x80;
  uts_bytes(block + 60, (uint32_t)(8 * len));
  for (int t = 0; t < 16; t++)
    w[t] = uts_word(block + 4 * t);
  for (int t = 16; t < 80; t++)
    w[t] = uts_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  memcpy(s, start, sizeof s);
  for (int t = 0; t < 80; t++) {
    uint32_t f, k;
    if (t < 20)
      f = (s[1] & s[2]) | (~s[1] & s[3]), k = 0x5a827999;
    else if (t < 40)
      f = s[1] ^ s[2] ^ s[3], k = 0x6ed9eba1;
    else if (t < 60)
      f = (s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3]), k = 0x8f1bbcdc;
    else
      f = s[1] ^ s[2] ^ s[3], k = 0xca62c1d6;
    const uint32_t next = uts_left(s[0], 5) + f + s[4] + k + w[t];
    s[4] = s[3], s[3] = s[2], s[2] = uts_left(s[1], 30), s[1] = s[0], s[0] = next;
  }
  for (int i = 0; i < 5; i++)
    uts_bytes(hash + 4 * i, s[i] + start[i]);
}

static inline uts_node uts_root(void)
{
  unsigned char message[20] = { 0 };
  uts_node root = { { 0 }, 0 };
  uts_bytes(message + 16, UTS_SEED);
  uts_sha1(message, 20, root.hash);
  return root;
}

/* Stores the children behind each other, and returns their number. */
static inline int uts_expand(const uts_node *node, int depth, uts_node *children)
{
  unsigned char message[24];
  int count = 0;
  if (node->height == 0 || node->height < depth) {
    const double u = (double)(uts_word(node->hash + 16) & 0x7fffffff) / 2147483648.0;
    count = (int)floor(log(1 - u) / log(1 - 1.0 / (1.0 + 4.0)));
  }
  if (count > UTS_MOST_CHILDREN)
    count = UTS_MOST_CHILDREN;
  memcpy(message, node->hash, 20);
  for (int i = 0; i < count; i++) {
    uts_bytes(message + 20, (uint32_t)i);
    uts_sha1(message, 24, children[i].hash);
    children[i].height = node->height + 1;
  }
  return count;
}

#endif /* KERNEL_UTS_H */
