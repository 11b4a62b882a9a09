/*
 * mercury_pp.h - preprocessor macros that generate parameter structs and their procs. Each
 * interface's mercury_macros.h includes this header after it has declared the types and defined
 * HG_GEN_UNDO_BEGIN and HG_GEN_UNDO_END. Programs must not include it directly.
 */
#ifndef MERCURY_PP_H
#define MERCURY_PP_H

/* ------------------------------------------------------------------- sequences */

/*
 * A sequence is (a)(b)(c). HG_PP_EACH(X, sequence) expands to X(a) X(b) X(c). Two macros alternate:
 * each leaves the name of the other in front of the next element. The name that remains at the end
 * is joined with _END to the name of an empty macro.
 */
#define HG_PP_CAT(a, b) HG_PP_CAT_(a, b)
#define HG_PP_CAT_(a, b) a##b
#define HG_PP_EACH(each, sequence) HG_PP_END(each sequence)
#define HG_PP_END(...) HG_PP_END_(__VA_ARGS__)
#define HG_PP_END_(...) __VA_ARGS__##_END

/* (type)(name): declares a struct member. */
#define HG_GEN_MEMBER(field) HG_GEN_MEMBER_TYPE field
#define HG_GEN_MEMBER_TYPE(type) type HG_GEN_MEMBER_NAME
#define HG_GEN_MEMBER_NAME(name) name;
#define HG_GEN_MEMBERS(field) HG_GEN_MEMBER(field) HG_GEN_MEMBERS_
#define HG_GEN_MEMBERS_(field) HG_GEN_MEMBER(field) HG_GEN_MEMBERS
#define HG_GEN_MEMBERS_END
#define HG_GEN_MEMBERS__END

/* (type)(name): processes the field, unless an earlier field has failed. */
#define HG_GEN_STEP(field) HG_GEN_STEP_TYPE field
#define HG_GEN_STEP_TYPE(type) \
  if (hg_ret_ == HG_SUCCESS) hg_ret_ = hg_proc_##type HG_GEN_STEP_NAME
#define HG_GEN_STEP_NAME(name) \
  (hg_proc_, &hg_data_->name);  \
  if (hg_ret_ == HG_SUCCESS) hg_done_++;
#define HG_GEN_STEPS(field) HG_GEN_STEP(field) HG_GEN_STEPS_
#define HG_GEN_STEPS_(field) HG_GEN_STEP(field) HG_GEN_STEPS
#define HG_GEN_STEPS_END
#define HG_GEN_STEPS__END

/* (type)(name): frees the field if it was decoded before the field that failed. */
#define HG_GEN_UNDO(field) HG_GEN_UNDO_TYPE field
#define HG_GEN_UNDO_TYPE(type) \
  if (hg_done_ > 0 && hg_done_-- > 0) (void)hg_proc_##type HG_GEN_UNDO_NAME
#define HG_GEN_UNDO_NAME(name) (hg_proc_, &hg_data_->name);
#define HG_GEN_UNDOS(field) HG_GEN_UNDO(field) HG_GEN_UNDOS_
#define HG_GEN_UNDOS_(field) HG_GEN_UNDO(field) HG_GEN_UNDOS
#define HG_GEN_UNDOS_END
#define HG_GEN_UNDOS__END

/* ------------------------------------------------------------- structs and procs */

#define HG_GEN_STRUCT(struct_type_name, fields) \
  typedef struct {                              \
    HG_PP_EACH(HG_GEN_MEMBERS, fields)          \
  } struct_type_name;

#define HG_GEN_STRUCT_PROC(struct_type_name, fields)                                   \
  static inline HG_ATTRIBUTE_UNUSED hg_return_t HG_PP_CAT(hg_proc_, struct_type_name)( \
      hg_proc_t hg_proc_, void *hg_void_)                                              \
  {                                                                                    \
    struct_type_name *hg_data_ = (struct_type_name *)hg_void_;                         \
    hg_return_t hg_ret_ = HG_SUCCESS;                                                  \
    unsigned int hg_done_ = 0;                                                         \
    HG_PP_EACH(HG_GEN_STEPS, fields)                                                   \
    if (hg_ret_ != HG_SUCCESS && hg_proc_get_op(hg_proc_) == HG_DECODE) {              \
      HG_GEN_UNDO_BEGIN(hg_proc_);                                                     \
      HG_PP_EACH(HG_GEN_UNDOS, fields)                                                 \
      HG_GEN_UNDO_END(hg_proc_);                                                       \
    }                                                                                  \
    return hg_ret_;                                                                    \
  }

/* The struct and its proc. If decoding a field fails, the earlier fields are freed. */
#define MERCURY_GEN_PROC(struct_type_name, fields) \
  HG_GEN_STRUCT(struct_type_name, fields)          \
  HG_GEN_STRUCT_PROC(struct_type_name, fields)

/* The proc of an existing struct, for all or some of its fields. */
#define MERCURY_GEN_STRUCT_PROC(struct_type_name, fields) \
  HG_GEN_STRUCT_PROC(struct_type_name, fields)

/* For functions without input or output, "void" replaces the struct name. */
#define hg_proc_void NULL

#endif /* MERCURY_PP_H */
