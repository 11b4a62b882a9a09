/*
 * mercury_structs.h - structs for the tests of Mercury's macros, also compiled as C++. Include
 * mercury_macros.h first.
 */
#ifndef MERCURY_STRUCTS_H
#define MERCURY_STRUCTS_H

MERCURY_GEN_PROC(open_in_t, ((hg_const_string_t)(path)) ((int32_t)(flags)) ((uint32_t)(mode)))

MERCURY_GEN_PROC(numbers_t,
                 ((int8_t)(a)) ((uint8_t)(b)) ((int16_t)(c)) ((uint16_t)(d))
                 ((int32_t)(e)) ((hg_uint32_t)(f)) ((hg_int64_t)(g)) ((uint64_t)(h))
                 ((float)(i)) ((double)(j)) ((bool)(k)))

/* A struct within another. The fields may be laid out over several lines. */
MERCURY_GEN_PROC(inner_t, ((hg_string_t)(name))((uint64_t)(size)))
MERCURY_GEN_PROC( nested_t, \
    ((int32_t) (first))     \
    ((inner_t) (inner))     \
    ((int64_t) (second))    \
    ((inner_t) (other))     \
    ((hg_string_t) (last)) )

/* An existing struct. Only some of its fields are sent. */
typedef struct foreign {
  long a, b;
  int not_sent[3];
} foreign_t;
MERCURY_GEN_STRUCT_PROC(foreign_t, ((int64_t)(a)) ((int64_t)(b)))

MERCURY_GEN_PROC(kinds_t,
                 ((hg_bool_t)(flag)) ((hg_ptr_t)(pointer)) ((hg_size_t)(size)) ((size_t)(length))
                 ((hg_id_t)(id)) ((char)(letter)) ((hg_string_object_t)(object)))

/* 64 fields of 8 bytes, f00 to f77, and 256 of a byte, b000 to b377. */
#define WORDS(n) ((int64_t)(f##n##0)) ((uint64_t)(f##n##1)) ((double)(f##n##2)) ((hg_size_t)(f##n##3)) \
                ((int64_t)(f##n##4)) ((uint64_t)(f##n##5)) ((double)(f##n##6)) ((hg_size_t)(f##n##7))
#define EIGHT(n) ((uint8_t)(b##n##0)) ((uint8_t)(b##n##1)) ((uint8_t)(b##n##2)) ((uint8_t)(b##n##3)) \
                 ((uint8_t)(b##n##4)) ((uint8_t)(b##n##5)) ((uint8_t)(b##n##6)) ((uint8_t)(b##n##7))
#define ALL64(n) EIGHT(n##0) EIGHT(n##1) EIGHT(n##2) EIGHT(n##3) EIGHT(n##4) EIGHT(n##5) EIGHT(n##6) EIGHT(n##7)
MERCURY_GEN_PROC(many_t, WORDS(0) WORDS(1) WORDS(2) WORDS(3) WORDS(4) WORDS(5) WORDS(6) WORDS(7))
MERCURY_GEN_PROC(huge_t, ALL64(0) ALL64(1) ALL64(2) ALL64(3))

#endif /* MERCURY_STRUCTS_H */
