/*
 * mercury_hash_table.h - Mercury 2.4: a hash table with separate chains. An insertion with a key
 * that the table contains replaces the entry.
 */
#ifndef HG_HASH_TABLE_H
#define HG_HASH_TABLE_H

#include "mercury_util_config.h"

#include <stdlib.h>

typedef void *hg_hash_table_key_t;
typedef void *hg_hash_table_value_t;
typedef unsigned int (*hg_hash_table_hash_func_t)(hg_hash_table_key_t value);
/* Returns a value other than 0 if the keys are equal. */
typedef int (*hg_hash_table_equal_func_t)(hg_hash_table_key_t value1, hg_hash_table_key_t value2);
typedef void (*hg_hash_table_key_free_func_t)(hg_hash_table_key_t value);
typedef void (*hg_hash_table_value_free_func_t)(hg_hash_table_value_t value);

typedef struct hg_hash_table_entry {
  hg_hash_table_key_t key;
  hg_hash_table_value_t value;
  struct hg_hash_table_entry *next;
} hg_hash_table_entry_t;

typedef struct hg_hash_table {
  hg_hash_table_entry_t **chains;
  unsigned int chain_count; /* a power of 2 */
  unsigned int entries;
  hg_hash_table_hash_func_t hash;
  hg_hash_table_equal_func_t equal;
  hg_hash_table_key_free_func_t free_key;
  hg_hash_table_value_free_func_t free_value;
} hg_hash_table_t;

typedef struct hg_hash_table_iter {
  hg_hash_table_t *hash_table;
  hg_hash_table_entry_t *next_entry;
  unsigned int next_chain;
} hg_hash_table_iter_t;

#define HG_HASH_TABLE_NULL ((void *)0)

/* Returns NULL if memory is exhausted. */
static HG_UTIL_INLINE hg_hash_table_t *hg_hash_table_new(hg_hash_table_hash_func_t hash_func,
                                                         hg_hash_table_equal_func_t equal_func)
{
  hg_hash_table_t *table = (hg_hash_table_t *)calloc(1, sizeof *table);
  if (!table)
    return NULL;
  table->chain_count = 64;
  table->hash = hash_func;
  table->equal = equal_func;
  table->chains = (hg_hash_table_entry_t **)calloc(table->chain_count, sizeof *table->chains);
  if (!table->chains) {
    free(table);
    return NULL;
  }
  return table;
}

/* Sets the functions that free the keys and values of removed entries. Each may be NULL. */
static HG_UTIL_INLINE void hg_hash_table_register_free_functions(
    hg_hash_table_t *table, hg_hash_table_key_free_func_t key_free_func,
    hg_hash_table_value_free_func_t value_free_func)
{
  table->free_key = key_free_func;
  table->free_value = value_free_func;
}

static HG_UTIL_INLINE void hg_hash_table_drop_(hg_hash_table_t *table,
                                               hg_hash_table_entry_t *entry)
{
  if (table->free_key)
    table->free_key(entry->key);
  if (table->free_value)
    table->free_value(entry->value);
}

static HG_UTIL_INLINE void hg_hash_table_free(hg_hash_table_t *table)
{
  unsigned int i;
  for (i = 0; i < table->chain_count; i++)
    while (table->chains[i]) {
      hg_hash_table_entry_t *entry = table->chains[i];
      table->chains[i] = entry->next;
      hg_hash_table_drop_(table, entry);
      free(entry);
    }
  free(table->chains);
  free(table);
}

/* Returns the place of the entry with this key, or of the end of its chain. */
static HG_UTIL_INLINE hg_hash_table_entry_t **hg_hash_table_place_(hg_hash_table_t *table,
                                                                   hg_hash_table_key_t key)
{
  hg_hash_table_entry_t **at = &table->chains[table->hash(key) & (table->chain_count - 1)];
  while (*at && !table->equal((*at)->key, key))
    at = &(*at)->next;
  return at;
}

/* Doubles the number of chains. Without memory the table keeps its chains. */
static HG_UTIL_INLINE void hg_hash_table_grow_(hg_hash_table_t *table)
{
  const unsigned int count = table->chain_count * 2;
  unsigned int i;
  hg_hash_table_entry_t **chains = (hg_hash_table_entry_t **)calloc(count, sizeof *chains);
  if (!chains)
    return;
  for (i = 0; i < table->chain_count; i++)
    while (table->chains[i]) {
      hg_hash_table_entry_t *entry = table->chains[i];
      hg_hash_table_entry_t **to = &chains[table->hash(entry->key) & (count - 1)];
      table->chains[i] = entry->next;
      entry->next = *to;
      *to = entry;
    }
  free(table->chains);
  table->chains = chains;
  table->chain_count = count;
}

/* Returns 1, or 0 if memory is exhausted. */
static HG_UTIL_INLINE int hg_hash_table_insert(hg_hash_table_t *table, hg_hash_table_key_t key,
                                               hg_hash_table_value_t value)
{
  hg_hash_table_entry_t **at;
  if (table->entries >= table->chain_count)
    hg_hash_table_grow_(table);
  at = hg_hash_table_place_(table, key);
  if (*at) {
    hg_hash_table_drop_(table, *at);
  } else {
    *at = (hg_hash_table_entry_t *)calloc(1, sizeof **at);
    if (!*at)
      return 0;
    table->entries++;
  }
  (*at)->key = key;
  (*at)->value = value;
  return 1;
}

/* Returns HG_HASH_TABLE_NULL if the table does not contain the key. */
static HG_UTIL_INLINE hg_hash_table_value_t hg_hash_table_lookup(hg_hash_table_t *table,
                                                                 hg_hash_table_key_t key)
{
  hg_hash_table_entry_t *entry = *hg_hash_table_place_(table, key);
  return entry ? entry->value : HG_HASH_TABLE_NULL;
}

/* Returns 1, or 0 if the table does not contain the key. */
static HG_UTIL_INLINE int hg_hash_table_remove(hg_hash_table_t *table, hg_hash_table_key_t key)
{
  hg_hash_table_entry_t **at = hg_hash_table_place_(table, key), *entry = *at;
  if (!entry)
    return 0;
  *at = entry->next;
  hg_hash_table_drop_(table, entry);
  free(entry);
  table->entries--;
  return 1;
}

static HG_UTIL_INLINE unsigned int hg_hash_table_num_entries(hg_hash_table_t *table)
{
  return table->entries;
}

static HG_UTIL_INLINE void hg_hash_table_seek_(hg_hash_table_iter_t *iter)
{
  while (!iter->next_entry && iter->next_chain < iter->hash_table->chain_count)
    iter->next_entry = iter->hash_table->chains[iter->next_chain++];
}

/*
 * Begins an iteration. The table must not change meanwhile, except that the last entry returned may
 * be removed.
 */
static HG_UTIL_INLINE void hg_hash_table_iterate(hg_hash_table_t *table,
                                                 hg_hash_table_iter_t *iter)
{
  iter->hash_table = table;
  iter->next_entry = NULL;
  iter->next_chain = 0;
  hg_hash_table_seek_(iter);
}

static HG_UTIL_INLINE int hg_hash_table_iter_has_more(hg_hash_table_iter_t *iter)
{
  return iter->next_entry != NULL;
}

/* Returns HG_HASH_TABLE_NULL after the last entry. */
static HG_UTIL_INLINE hg_hash_table_value_t hg_hash_table_iter_next(hg_hash_table_iter_t *iter)
{
  hg_hash_table_entry_t *entry = iter->next_entry;
  if (!entry)
    return HG_HASH_TABLE_NULL;
  iter->next_entry = entry->next;
  hg_hash_table_seek_(iter);
  return entry->value;
}

#endif /* HG_HASH_TABLE_H */
