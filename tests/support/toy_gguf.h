/* toy_gguf.h: writes GGUF files byte by byte, valid and broken ones.
 *
 * The order of the calls is that of the file: header, keys, tensors, data. No code is shared with
 * the reader. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GG_ROOM = 1 << 20 };
enum { GG_U8, GG_I8, GG_U16, GG_I16, GG_U32, GG_I32, GG_F32, GG_BOOL, GG_STRING, GG_ARRAY, GG_U64, GG_I64, GG_F64 };

typedef struct toy_gguf {
	unsigned char *p;
	size_t         n;
	size_t         n_tensors_at, n_keys_at; /* where the counts are */
	uint64_t       offset;                  /* of the next tensor's data */
} toy_gguf;

static inline void gg_bytes(toy_gguf *g, const void *p, size_t n)
{
	if (g->n + n > GG_ROOM)
		exit(2);
	if (n)
		memcpy(g->p + g->n, p, n);
	g->n += n;
}

static inline void gg_u32(toy_gguf *g, uint32_t x)
{
	gg_bytes(g, &x, 4);
}
static inline void gg_u64(toy_gguf *g, uint64_t x)
{
	gg_bytes(g, &x, 8);
}

static inline void gg_count(toy_gguf *g, size_t at, uint64_t more)
{
	uint64_t n;
	memcpy(&n, g->p + at, 8);
	n += more;
	memcpy(g->p + at, &n, 8);
}

static inline void gg_start(toy_gguf *g, uint32_t version)
{
	*g = (toy_gguf) { .p = malloc(GG_ROOM) };
	if (!g->p)
		exit(2);
	gg_bytes(g, "GGUF", 4);
	gg_u32(g, version);
	g->n_tensors_at = g->n;
	gg_u64(g, 0);
	g->n_keys_at = g->n;
	gg_u64(g, 0);
}

static inline void gg_string(toy_gguf *g, const char *s)
{
	gg_u64(g, strlen(s));
	gg_bytes(g, s, strlen(s));
}

/* A key and its type; the value comes next. */
static inline void gg_key(toy_gguf *g, const char *key, uint32_t type)
{
	gg_count(g, g->n_keys_at, 1);
	gg_string(g, key);
	gg_u32(g, type);
}

static inline void gg_key_text(toy_gguf *g, const char *key, const char *s)
{
	gg_key(g, key, GG_STRING);
	gg_string(g, s);
}
static inline void gg_key_u32(toy_gguf *g, const char *key, uint32_t x)
{
	gg_key(g, key, GG_U32);
	gg_u32(g, x);
}
static inline void gg_key_f32(toy_gguf *g, const char *key, float x)
{
	gg_key(g, key, GG_F32);
	gg_bytes(g, &x, 4);
}

static inline void gg_key_array(toy_gguf *g, const char *key, uint32_t type, uint64_t n)
{
	gg_key(g, key, GG_ARRAY);
	gg_u32(g, type);
	gg_u64(g, n);
}

static inline void gg_entry(toy_gguf *g, const char *name, int rank, const uint64_t *dims, uint32_t type,
                            uint64_t offset)
{
	gg_count(g, g->n_tensors_at, 1);
	gg_string(g, name);
	gg_u32(g, (uint32_t)rank);
	for (int i = 0; i < rank; i++)
		gg_u64(g, dims[i]);
	gg_u32(g, type);
	gg_u64(g, offset);
}

/* Writes the entry of a tensor of that many bytes, whose data follows the last tensor's. outer 0:
 * rank 1. */
static inline void gg_tensor(toy_gguf *g, const char *name, uint64_t inner, uint64_t outer, uint32_t type, size_t bytes)
{
	gg_entry(g, name, outer ? 2 : 1, (const uint64_t[]) { inner, outer }, type, g->offset);
	g->offset += (bytes + 31) / 32 * 32;
}

static inline void gg_pad(toy_gguf *g)
{
	while (g->n % 32)
		gg_bytes(g, "", 1);
}

static inline void gg_data(toy_gguf *g, const void *p, size_t bytes)
{
	gg_pad(g);
	gg_bytes(g, p, bytes);
}

static inline void gg_free(toy_gguf *g)
{
	free(g->p);
	g->p = NULL;
}
