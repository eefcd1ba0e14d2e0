/* fuzz_gguf.c: any bytes as a GGUF file, and as a model.
 *
 * What opens must be readable without further checks: every byte of every tensor,
 * every key in every way. Then the file is taken as a source: config, names,
 * changes undone; and as a model, with all of its weights converted. */
#include "libref/model/gguf_source.h"
#include "libref/model/model.h"
#include "tests/fuzz/mutate.h"

#include <dirent.h>

static volatile double sum;

static void line(vn_status st, const vn_error *e, const void *left)
{
	if (st ? !fuzz_one_line(e->text) || left : !left) /* one clear line, and nothing left open */
		abort();
}

static void read_tensors(const vn_gguf *f, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < vn_gguf_count(f); i++) {
		const vn_gguf_tensor *t = vn_gguf_at(f, i);
		const uint8_t        *p = t->t.data;
		if (vn_gguf_find(f, t->name) != t || t->t.shape.rank < 0 || t->t.shape.rank > 4 || p < data ||
		    p + t->bytes > data + size || t->bytes != vn_dtype_bytes(t->t.dtype, (size_t)vn_shape_count(&t->t.shape)))
			abort();
		for (size_t k = 0; k < t->bytes; k++)
			sum += p[k];
	}
}

static void read_metadata(const vn_gguf *f)
{
	static const char *const keys[] = {
		"general.architecture", "general.alignment", "tokenizer.ggml.tokens", "qwen2.block_count", "x", ""
	};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const vn_gguf_value *v = vn_gguf_get(f, keys[i]);
		for (size_t k = 0; v && k <= v->n; k++) {
			vn_gguf_text t = { "", 0 };
			int64_t      n = 0;
			double       x = 0;
			bool         b = false;
			const int    can = vn_gguf_text_at(v, k, &t) +
			                ((int)vn_gguf_int_at(v, k, &n) | (int)vn_gguf_real_at(v, k, &x)) +
			                vn_gguf_bool_at(v, k, &b);
			if (can > (k < v->n))
				abort();
			for (size_t j = 0; j < t.bytes; j++)
				sum += t.data[j];
			sum += (double)n + x + b;
		}
	}
}

static void read_model(vn_source *s)
{
	vn_model *m = NULL;
	vn_error  e = { "" };
	vn_status st;

	for (size_t i = 0; i < s->n; i++) {
		const vn_source_tensor *t = &s->tensor[i];
		if (vn_source_find(s, t->name) != t)
			abort();
		for (size_t k = 0; k < t->bytes; k++)
			sum += t->data[k];
	}
	st = vn_model_of_source("fuzz", s, &m, &e);
	line(st, &e, m);
	if (st)
		return;
	vn_weight_row *rows = calloc((size_t)vn_model_plan(m)->n_weights + 1, sizeof *rows);
	if (!rows)
		exit(2);
	vn_model_table(m, 1, rows);
	free(rows);
	vn_model_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_gguf   *f = NULL;
	vn_source *s = NULL;
	vn_error   e = { "" };
	vn_status  st = vn_gguf_parse("fuzz", data, size, &f, &e);

	line(st, &e, f);
	if (st)
		return 0;
	read_tensors(f, data, size);
	read_metadata(f);
	e.text[0] = '\0';
	if (!(s = calloc(1, sizeof *s)))
		exit(2);
	st = vn_source_of_gguf(f, s, &e);
	line(st, &e, st ? NULL : s);
	if (st)
		vn_source_close(s);
	else
		read_model(s);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
enum { SEEDS = 64 };

static char path[SEEDS][512];
static int  n_paths;

/* The small twins of the fixtures: every architecture. */
static void find_seeds(void)
{
	DIR           *d = opendir(VERNIER_SOURCE "/fixtures/gguf");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strstr(e->d_name, "-tiny.") && strstr(e->d_name, ".gguf") && n_paths < SEEDS)
			snprintf(path[n_paths++], sizeof *path, VERNIER_SOURCE "/fixtures/gguf/%s", e->d_name);
	if (d)
		closedir(d);
	qsort(path, (size_t)n_paths, sizeof *path, (int (*)(const void *, const void *))strcmp);
}

static size_t append_bytes(uint8_t *out, size_t at, const void *p, size_t n)
{
	memcpy(out + at, p, n);
	return at + n;
}

static size_t make_seed(int i, uint8_t *out)
{
	size_t at = 0;

	if (i < n_paths) {
		FILE *f = fopen(path[i], "rb");
		at = f ? fread(out, 1, FUZZ_ROOM, f) : 0;
		if (f)
			fclose(f);
		return at;
	}
	/* a header, one key, one tensor */
	at = append_bytes(out, at, "GGUF\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 24);
	at = append_bytes(out, at, "\1\0\0\0\0\0\0\0x\11\0\0\0\10\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0ab", 35);
	at = append_bytes(out, at, "\1\0\0\0\0\0\0\0t\1\0\0\0\40\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0", 33);
	while (at % 32)
		out[at++] = 0;
	memset(out + at, 0x5a, 34);
	return at + 34;
}

/* Mutates the numbers that break a binary format: lengths, counts, types, offsets. */
static size_t repair(uint8_t *data, size_t size, uint64_t chance)
{
	static const uint64_t odd[] = {
		0,        1,          2,          3,         4,          7,         8,  9,   12,  13,       14,
		26,       30,         31,         32,        33,         63,        64, 255, 256, 1u << 30, (1u << 30) + 1,
		1u << 31, UINT32_MAX, 1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX
	};
	const size_t head = size < 4096 ? size : 4096; /* data are dull */

	if (head < 16)
		return size;
	for (uint64_t n = chance % 3; n; n--) {
		chance = fuzz_random(&chance);
		const uint64_t x = odd[(chance >> 8) % (sizeof odd / sizeof *odd)];
		memcpy(data + (chance >> 24) % (head - 8), &x, chance % 2 ? 4 : 8);
	}
	return size;
}

int main(int argc, char **argv)
{
	find_seeds();
	const fuzz_plan plan = { make_seed, n_paths + 1, repair, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif
