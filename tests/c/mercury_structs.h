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

MERCURY_GEN_PROC(many_t,
                 ((int64_t)(f0)) ((uint64_t)(f1)) ((double)(f2)) ((hg_size_t)(f3))
                 ((int64_t)(f4)) ((uint64_t)(f5)) ((double)(f6)) ((hg_size_t)(f7))
                 ((int64_t)(f8)) ((uint64_t)(f9)) ((double)(f10)) ((hg_size_t)(f11))
                 ((int64_t)(f12)) ((uint64_t)(f13)) ((double)(f14)) ((hg_size_t)(f15))
                 ((int64_t)(f16)) ((uint64_t)(f17)) ((double)(f18)) ((hg_size_t)(f19))
                 ((int64_t)(f20)) ((uint64_t)(f21)) ((double)(f22)) ((hg_size_t)(f23))
                 ((int64_t)(f24)) ((uint64_t)(f25)) ((double)(f26)) ((hg_size_t)(f27))
                 ((int64_t)(f28)) ((uint64_t)(f29)) ((double)(f30)) ((hg_size_t)(f31))
                 ((int64_t)(f32)) ((uint64_t)(f33)) ((double)(f34)) ((hg_size_t)(f35))
                 ((int64_t)(f36)) ((uint64_t)(f37)) ((double)(f38)) ((hg_size_t)(f39))
                 ((int64_t)(f40)) ((uint64_t)(f41)) ((double)(f42)) ((hg_size_t)(f43))
                 ((int64_t)(f44)) ((uint64_t)(f45)) ((double)(f46)) ((hg_size_t)(f47))
                 ((int64_t)(f48)) ((uint64_t)(f49)) ((double)(f50)) ((hg_size_t)(f51))
                 ((int64_t)(f52)) ((uint64_t)(f53)) ((double)(f54)) ((hg_size_t)(f55))
                 ((int64_t)(f56)) ((uint64_t)(f57)) ((double)(f58)) ((hg_size_t)(f59))
                 ((int64_t)(f60)) ((uint64_t)(f61)) ((double)(f62)) ((hg_size_t)(f63)))

MERCURY_GEN_PROC(huge_t,
                 ((uint8_t)(b0)) ((uint8_t)(b1)) ((uint8_t)(b2)) ((uint8_t)(b3)) ((uint8_t)(b4))
                 ((uint8_t)(b5)) ((uint8_t)(b6)) ((uint8_t)(b7)) ((uint8_t)(b8)) ((uint8_t)(b9))
                 ((uint8_t)(b10)) ((uint8_t)(b11)) ((uint8_t)(b12)) ((uint8_t)(b13)) ((uint8_t)(b14))
                 ((uint8_t)(b15)) ((uint8_t)(b16)) ((uint8_t)(b17)) ((uint8_t)(b18)) ((uint8_t)(b19))
                 ((uint8_t)(b20)) ((uint8_t)(b21)) ((uint8_t)(b22)) ((uint8_t)(b23)) ((uint8_t)(b24))
                 ((uint8_t)(b25)) ((uint8_t)(b26)) ((uint8_t)(b27)) ((uint8_t)(b28)) ((uint8_t)(b29))
                 ((uint8_t)(b30)) ((uint8_t)(b31)) ((uint8_t)(b32)) ((uint8_t)(b33)) ((uint8_t)(b34))
                 ((uint8_t)(b35)) ((uint8_t)(b36)) ((uint8_t)(b37)) ((uint8_t)(b38)) ((uint8_t)(b39))
                 ((uint8_t)(b40)) ((uint8_t)(b41)) ((uint8_t)(b42)) ((uint8_t)(b43)) ((uint8_t)(b44))
                 ((uint8_t)(b45)) ((uint8_t)(b46)) ((uint8_t)(b47)) ((uint8_t)(b48)) ((uint8_t)(b49))
                 ((uint8_t)(b50)) ((uint8_t)(b51)) ((uint8_t)(b52)) ((uint8_t)(b53)) ((uint8_t)(b54))
                 ((uint8_t)(b55)) ((uint8_t)(b56)) ((uint8_t)(b57)) ((uint8_t)(b58)) ((uint8_t)(b59))
                 ((uint8_t)(b60)) ((uint8_t)(b61)) ((uint8_t)(b62)) ((uint8_t)(b63)) ((uint8_t)(b64))
                 ((uint8_t)(b65)) ((uint8_t)(b66)) ((uint8_t)(b67)) ((uint8_t)(b68)) ((uint8_t)(b69))
                 ((uint8_t)(b70)) ((uint8_t)(b71)) ((uint8_t)(b72)) ((uint8_t)(b73)) ((uint8_t)(b74))
                 ((uint8_t)(b75)) ((uint8_t)(b76)) ((uint8_t)(b77)) ((uint8_t)(b78)) ((uint8_t)(b79))
                 ((uint8_t)(b80)) ((uint8_t)(b81)) ((uint8_t)(b82)) ((uint8_t)(b83)) ((uint8_t)(b84))
                 ((uint8_t)(b85)) ((uint8_t)(b86)) ((uint8_t)(b87)) ((uint8_t)(b88)) ((uint8_t)(b89))
                 ((uint8_t)(b90)) ((uint8_t)(b91)) ((uint8_t)(b92)) ((uint8_t)(b93)) ((uint8_t)(b94))
                 ((uint8_t)(b95)) ((uint8_t)(b96)) ((uint8_t)(b97)) ((uint8_t)(b98)) ((uint8_t)(b99))
                 ((uint8_t)(b100)) ((uint8_t)(b101)) ((uint8_t)(b102)) ((uint8_t)(b103)) ((uint8_t)(b104))
                 ((uint8_t)(b105)) ((uint8_t)(b106)) ((uint8_t)(b107)) ((uint8_t)(b108)) ((uint8_t)(b109))
                 ((uint8_t)(b110)) ((uint8_t)(b111)) ((uint8_t)(b112)) ((uint8_t)(b113)) ((uint8_t)(b114))
                 ((uint8_t)(b115)) ((uint8_t)(b116)) ((uint8_t)(b117)) ((uint8_t)(b118)) ((uint8_t)(b119))
                 ((uint8_t)(b120)) ((uint8_t)(b121)) ((uint8_t)(b122)) ((uint8_t)(b123)) ((uint8_t)(b124))
                 ((uint8_t)(b125)) ((uint8_t)(b126)) ((uint8_t)(b127)) ((uint8_t)(b128)) ((uint8_t)(b129))
                 ((uint8_t)(b130)) ((uint8_t)(b131)) ((uint8_t)(b132)) ((uint8_t)(b133)) ((uint8_t)(b134))
                 ((uint8_t)(b135)) ((uint8_t)(b136)) ((uint8_t)(b137)) ((uint8_t)(b138)) ((uint8_t)(b139))
                 ((uint8_t)(b140)) ((uint8_t)(b141)) ((uint8_t)(b142)) ((uint8_t)(b143)) ((uint8_t)(b144))
                 ((uint8_t)(b145)) ((uint8_t)(b146)) ((uint8_t)(b147)) ((uint8_t)(b148)) ((uint8_t)(b149))
                 ((uint8_t)(b150)) ((uint8_t)(b151)) ((uint8_t)(b152)) ((uint8_t)(b153)) ((uint8_t)(b154))
                 ((uint8_t)(b155)) ((uint8_t)(b156)) ((uint8_t)(b157)) ((uint8_t)(b158)) ((uint8_t)(b159))
                 ((uint8_t)(b160)) ((uint8_t)(b161)) ((uint8_t)(b162)) ((uint8_t)(b163)) ((uint8_t)(b164))
                 ((uint8_t)(b165)) ((uint8_t)(b166)) ((uint8_t)(b167)) ((uint8_t)(b168)) ((uint8_t)(b169))
                 ((uint8_t)(b170)) ((uint8_t)(b171)) ((uint8_t)(b172)) ((uint8_t)(b173)) ((uint8_t)(b174))
                 ((uint8_t)(b175)) ((uint8_t)(b176)) ((uint8_t)(b177)) ((uint8_t)(b178)) ((uint8_t)(b179))
                 ((uint8_t)(b180)) ((uint8_t)(b181)) ((uint8_t)(b182)) ((uint8_t)(b183)) ((uint8_t)(b184))
                 ((uint8_t)(b185)) ((uint8_t)(b186)) ((uint8_t)(b187)) ((uint8_t)(b188)) ((uint8_t)(b189))
                 ((uint8_t)(b190)) ((uint8_t)(b191)) ((uint8_t)(b192)) ((uint8_t)(b193)) ((uint8_t)(b194))
                 ((uint8_t)(b195)) ((uint8_t)(b196)) ((uint8_t)(b197)) ((uint8_t)(b198)) ((uint8_t)(b199))
                 ((uint8_t)(b200)) ((uint8_t)(b201)) ((uint8_t)(b202)) ((uint8_t)(b203)) ((uint8_t)(b204))
                 ((uint8_t)(b205)) ((uint8_t)(b206)) ((uint8_t)(b207)) ((uint8_t)(b208)) ((uint8_t)(b209))
                 ((uint8_t)(b210)) ((uint8_t)(b211)) ((uint8_t)(b212)) ((uint8_t)(b213)) ((uint8_t)(b214))
                 ((uint8_t)(b215)) ((uint8_t)(b216)) ((uint8_t)(b217)) ((uint8_t)(b218)) ((uint8_t)(b219))
                 ((uint8_t)(b220)) ((uint8_t)(b221)) ((uint8_t)(b222)) ((uint8_t)(b223)) ((uint8_t)(b224))
                 ((uint8_t)(b225)) ((uint8_t)(b226)) ((uint8_t)(b227)) ((uint8_t)(b228)) ((uint8_t)(b229))
                 ((uint8_t)(b230)) ((uint8_t)(b231)) ((uint8_t)(b232)) ((uint8_t)(b233)) ((uint8_t)(b234))
                 ((uint8_t)(b235)) ((uint8_t)(b236)) ((uint8_t)(b237)) ((uint8_t)(b238)) ((uint8_t)(b239))
                 ((uint8_t)(b240)) ((uint8_t)(b241)) ((uint8_t)(b242)) ((uint8_t)(b243)) ((uint8_t)(b244))
                 ((uint8_t)(b245)) ((uint8_t)(b246)) ((uint8_t)(b247)) ((uint8_t)(b248)) ((uint8_t)(b249))
                 ((uint8_t)(b250)) ((uint8_t)(b251)) ((uint8_t)(b252)) ((uint8_t)(b253)) ((uint8_t)(b254))
                 ((uint8_t)(b255)))

#endif /* MERCURY_STRUCTS_H */
