/*
 * proc_vectors.h - reads tests/data/proc_vectors.txt, relative to the repository's root or to the
 * directory in PORTOLAN_TEST_DATA. Include check.h and mercury_proc.h first.
 */
#ifndef PROC_VECTORS_H
#define PROC_VECTORS_H

#define VECTOR_FIELDS 16
#define VECTOR_BYTES 512

typedef struct {
  char type[16];
  char value[80];
} vector_field;

typedef struct {
  int line;
  char name[32];
  hg_proc_hash_t hash;
  int count;
  vector_field field[VECTOR_FIELDS];
  long size;
  unsigned char bytes[VECTOR_BYTES];
} vector;

static inline int vector_digit(int c)
{
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads pairs of hex digits up to the first other character; returns the number of bytes. */
static inline long vector_hex(const char *text, unsigned char *bytes, long room)
{
  long n = 0;
  while (vector_digit(text[0]) >= 0 && vector_digit(text[1]) >= 0) {
    CHECK(n < room, "no room for '%s'", text);
    bytes[n++] = (unsigned char)(16 * vector_digit(text[0]) + vector_digit(text[1]));
    text += 2;
  }
  return n;
}

/* Copies a string and decodes %xx to a byte. */
static inline void vector_string(const char *text, char *out)
{
  for (; *text; text++)
    if (*text == '%') {
      vector_hex(text + 1, (unsigned char *)out++, 1000000);
      text += 2;
    } else {
      *out++ = *text;
    }
  *out = 0;
}

static inline char *vector_trim(char *text)
{
  char *end = text + strlen(text);
  while (*text == ' ')
    text++;
  while (end > text && (end[-1] == ' ' || end[-1] == '\n'))
    *--end = 0;
  return text;
}

static inline FILE *vector_open(void)
{
  const char *directory = getenv("PORTOLAN_TEST_DATA");
  char path[1000];
  FILE *file;
  snprintf(path, sizeof path, "%s/proc_vectors.txt", directory ? directory : "tests/data");
  file = fopen(path, "r");
  CHECK(file != NULL, "no %s: PORTOLAN_TEST_DATA names the directory", path);
  return file;
}

/* Reads the next vector; returns 0 at the end. */
static inline int vector_next(FILE *file, vector *v)
{
  static int line;
  char text[2000], *part[4], *word;
  if (ftell(file) == 0)
    line = 0;
  do {
    if (fgets(text, sizeof text, file) == NULL) {
      fclose(file);
      return 0;
    }
    line++;
  } while (text[0] == '#');
  memset(v, 0, sizeof *v);
  v->line = line;
  part[0] = text;
  for (int i = 1; i < 4; i++) {
    part[i] = strchr(part[i - 1], '|');
    CHECK(part[i] != NULL, "line %d is malformed", line);
    *part[i]++ = 0;
  }
  snprintf(v->name, sizeof v->name, "%s", vector_trim(part[0]));
  CHECK(hg_proc_hash_from_name(vector_trim(part[1]), &v->hash) == HG_SUCCESS,
        "line %d: no checksum '%s'", line, part[1]);
  v->size = vector_hex(vector_trim(part[3]), v->bytes, VECTOR_BYTES);
  for (word = strtok(part[2], " "); word != NULL; word = strtok(NULL, " ")) {
    char *colon = strchr(word, ':');
    vector_field *f = &v->field[v->count++];
    CHECK(v->count <= VECTOR_FIELDS, "line %d has many fields", line);
    if (colon != NULL)
      *colon++ = 0;
    snprintf(f->type, sizeof f->type, "%s", word);
    snprintf(f->value, sizeof f->value, "%s", colon ? colon : "");
  }
  return 1;
}

#endif /* PROC_VECTORS_H */
