/* toy_model.h: writes model directories in a temporary place.
 *
 * The toy model is a qwen2 of two layers, whose weights are generated from their names (the fill
 * rule, toy_value). A test can change everything before it is written, and so break exactly one
 * thing.
 *
 * Errors  a disk that refuses ends the test program: nothing here is under test.
 */
#pragma once

#include "libref/base/dtype.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TOY_V = 32,
	TOY_D = 16,
	TOY_F = 24,
	TOY_L = 2,
	TOY_H = 4,
	TOY_G = 2,
	TOY_K = 4,
	TOY_CONTEXT = 64,
	TOY_MOST = 64
};

#define TOY_CONFIG \
	"{\"model_type\": \"qwen2\", \"vocab_size\": 32, \"hidden_size\": 16, \"intermediate_size\": 24, " \
	"\"num_hidden_layers\": 2," \
	" \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"rope_theta\": 10000.0, \"rms_norm_eps\": 1e-6," \
	" \"tie_word_embeddings\": true, \"max_position_embeddings\": 64}"

/* ---- files ------------------------------------------------------------------ */

static inline void toy_die(const char *what)
{
	perror(what);
	exit(2);
}

/* Makes a new directory; dir (256 bytes) gets its path. toy_remove removes it. */
static inline void toy_directory(char *dir)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, 256, "%s/vernier-test-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		toy_die(dir);
}

static inline int toy_remove_one(const char *path, const struct stat *s, int flag, struct FTW *f)
{
	(void)s, (void)flag, (void)f;
	return remove(path);
}

static inline void toy_remove(const char *dir)
{
	nftw(dir, toy_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *toy_path(const char *dir, const char *name)
{
	static char path[4][512];
	static int  turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
	return path[turn];
}

static inline void toy_write(const char *dir, const char *name, const void *data, size_t bytes)
{
	const char *path = toy_path(dir, name);
	FILE       *f = fopen(path, "wb");

	if (!f || (bytes && fwrite(data, 1, bytes, f) != bytes) || fclose(f) != 0)
		toy_die(path);
}

static inline void toy_write_text(const char *dir, const char *name, const char *text)
{
	toy_write(dir, name, text, strlen(text));
}

/* A safetensors file in memory: header, as it stands, and data. free() it. */
static inline unsigned char *toy_join(const char *header, const void *data, size_t n, size_t *bytes)
{
	const size_t   h = strlen(header);
	unsigned char *p = malloc(8 + h + n + 1);

	if (!p)
		toy_die("malloc");
	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)((uint64_t)h >> 8 * i);
	memcpy(p + 8, header, h);
	if (n)
		memcpy(p + 8 + h, data, n);
	*bytes = 8 + h + n;
	return p;
}

/* ---- the model ---------------------------------------------------------------- */

typedef struct toy_tensor {
	char           name[128];
	char           dtype[16]; /* the word in the header */
	int            rank;
	int            dim[8];
	size_t         bytes;
	unsigned char *data;
} toy_tensor;

typedef struct toy_model {
	int        n;
	toy_tensor tensor[TOY_MOST];
} toy_model;

static inline size_t toy_count(const toy_tensor *t)
{
	size_t n = 1;

	for (int i = 0; i < t->rank; i++)
		n *= (size_t)t->dim[i];
	return n;
}

/* The fill rule. x begins as toy_hash of the full HF name; each element, in row-major order, takes
 * the next x:
 *
 *   x = (1664525 x + 1013904223) mod 2^32      u = (x >> 16) / 32768 - 1, in [-1, 1)
 *   A_log, dt_bias        u
 *   biases                u/4
 *   norm weights          1 + u/4; u/4 if zero-centred (all Qwen3.5 norms but linear_attn.norm)
 *   all other tensors     u/2, conv1d and embeddings included
 *
 * Qwen3.5's exceptions are in test_qwen3_5.c. */
static inline float toy_value(const char *name, uint32_t *x)
{
	const size_t n = strlen(name);

	*x = *x * 1664525u + 1013904223u;
	const float u = (float)(*x >> 16) / 32768.0f - 1.0f;
	if (n > 5 && strcmp(name + n - 5, ".bias") == 0)
		return u / 4;
	if (strstr(name, "norm") || strstr(name, ".ln_"))
		return 1 + u / 4;
	return u / 2;
}

/* FNV-1a. "model.embed_tokens.weight" hashes to 0x403ADE76; its first u are 0.356109619,
 * -0.797393799. */
static inline uint32_t toy_hash(const char *name)
{
	uint32_t x = 2166136261u;

	for (; *name; name++)
		x = (x ^ (unsigned char)*name) * 16777619u;
	return x;
}

/* Adds a tensor by the fill rule, stored in d. dim 0 ends the shape. */
static inline toy_tensor *toy_add(toy_model *m, const char *name, vn_dtype d, int dim0, int dim1)
{
	static const char *const word[] = { "F16", "BF16", "F32", "F64" };
	toy_tensor              *t = &m->tensor[m->n++];
	uint32_t                 x = toy_hash(name);

	*t = (toy_tensor) { .rank = dim1 ? 2 : 1, .dim = { dim0, dim1 } };
	snprintf(t->name, sizeof t->name, "%s", name);
	snprintf(t->dtype, sizeof t->dtype, "%s", word[d]);
	const size_t n = toy_count(t);
	t->bytes = n * vn_dtype_size(d);
	float *f = malloc(n * sizeof *f);
	t->data = malloc(t->bytes);
	if (!f || !t->data)
		toy_die("malloc");
	for (size_t i = 0; i < n; i++)
		f[i] = toy_value(name, &x);
	vn_from_f32(t->data, d, f, n);
	free(f);
	return t;
}

static inline toy_tensor *toy_find(toy_model *m, const char *name)
{
	for (int i = 0; i < m->n; i++)
		if (strcmp(m->tensor[i].name, name) == 0)
			return &m->tensor[i];
	toy_die(name);
	return NULL;
}

static inline void toy_build(toy_model *m, vn_dtype d)
{
	char name[128];

	m->n = 0;
	toy_add(m, "model.embed_tokens.weight", d, TOY_V, TOY_D);
	for (int l = 0; l < TOY_L; l++) {
		const struct {
			const char *name;
			int         m, n;
		} row[] = {
			{ "input_layernorm.weight", TOY_D, 0 },
			{ "post_attention_layernorm.weight", TOY_D, 0 },
			{ "self_attn.q_proj.weight", TOY_H * TOY_K, TOY_D },
			{ "self_attn.q_proj.bias", TOY_H * TOY_K, 0 },
			{ "self_attn.k_proj.weight", TOY_G * TOY_K, TOY_D },
			{ "self_attn.k_proj.bias", TOY_G * TOY_K, 0 },
			{ "self_attn.v_proj.weight", TOY_G * TOY_K, TOY_D },
			{ "self_attn.v_proj.bias", TOY_G * TOY_K, 0 },
			{ "self_attn.o_proj.weight", TOY_D, TOY_H * TOY_K },
			{ "mlp.gate_proj.weight", TOY_F, TOY_D },
			{ "mlp.up_proj.weight", TOY_F, TOY_D },
			{ "mlp.down_proj.weight", TOY_D, TOY_F },
		};
		for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
			snprintf(name, sizeof name, "model.layers.%d.%s", l, row[i].name);
			toy_add(m, name, d, row[i].m, row[i].n);
		}
	}
	toy_add(m, "model.norm.weight", d, TOY_D, 0);
}

static inline void toy_free(toy_model *m)
{
	for (int i = 0; i < m->n; i++)
		free(m->tensor[i].data);
	m->n = 0;
}

/* Tensors [first, last) into one file; metadata is JSON, or NULL. */
static inline void toy_save_part(const toy_model *m, int first, int last, const char *dir, const char *file,
                                 const char *metadata)
{
	static char header[65536];
	size_t      at = 0, bytes, h;

	h = (size_t)snprintf(header, sizeof header, "{");
	if (metadata)
		h += (size_t)snprintf(header + h, sizeof header - h, "\"__metadata__\":%s%s", metadata,
		                      first < last ? "," : "");
	for (int i = first; i < last; i++) {
		const toy_tensor *t = &m->tensor[i];
		h += (size_t)snprintf(header + h, sizeof header - h, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
		                      i > first ? "," : "", t->name, t->dtype);
		for (int j = 0; j < t->rank; j++)
			h += (size_t)snprintf(header + h, sizeof header - h, "%s%d", j ? "," : "", t->dim[j]);
		h += (size_t)snprintf(header + h, sizeof header - h, "],\"data_offsets\":[%zu,%zu]}", at, at + t->bytes);
		at += t->bytes;
	}
	snprintf(header + h, sizeof header - h, "}");
	unsigned char *data = malloc(at + 1);
	if (!data)
		toy_die("malloc");
	at = 0;
	for (int i = first; i < last; i++) {
		memcpy(data + at, m->tensor[i].data, m->tensor[i].bytes);
		at += m->tensor[i].bytes;
	}
	unsigned char *whole = toy_join(header, data, at, &bytes);
	toy_write(dir, file, whole, bytes);
	free(whole);
	free(data);
}

static inline void toy_save(const toy_model *m, const char *dir, const char *config)
{
	toy_write_text(dir, "config.json", config);
	toy_save_part(m, 0, m->n, dir, "model.safetensors", NULL);
}
