/* fuzz_record.c: the importer reads what vernier_record.h writes: texts, ids, shapes and strided
 * numbers come back unchanged, or one of the two refuses with one line.
 *
 * Input: bytes that choose shape, strides and ids; then texts, each followed by a NUL: key, value,
 * config. */
#include "capture/import/dump.h"
#include "libref/base/utf8.h"
#include "tests/fuzz/mutate.h"

#define VERNIER_RECORD_IMPLEMENTATION
#include "capture/include/vernier_record.h"

enum { CHOICES = 24, NUMBERS = 4096 };

static const char *next_text(char **at, const char *end)
{
	char *text = *at;
	*at = text < end ? text + strlen(text) + 1 : text;
	return text < end ? text : "";
}

static bool is_utf8(const char *text)
{
	return vn_utf8_good(text, strlen(text)) == strlen(text);
}

static void check_manifest(const uint8_t *choice, const char *key, const char *value, const char *config)
{
	vernier_record r = { .dir = "fuzz", .step = -1 };
	char          *text = NULL;
	size_t         n = 0;
	int32_t        ids[4], positions[4];
	vn_error       e = { "" };
	vn_dump       *d = calloc(1, sizeof *d);
	const size_t   n_ids = choice[0] % 4 + 1u;

	for (size_t i = 0; i < n_ids; i++) {
		ids[i] = (int32_t)((uint32_t)choice[i + 1] << (choice[i + 1] % 25));
		positions[i] = choice[5 + i];
	}
	if (!d || !(d->path = strdup("fuzz")) || !(r.manifest = open_memstream(&text, &n)))
		exit(2);
	fputs("{\"vernier_dump\":1}\n", r.manifest);
	const bool said = vernier_record_say(&r, key, value) == 0,
			   put = said && vernier_record_config(&r, config) == 0 &&
	                 vernier_record_step_at(&r, ids, choice[9] & 1 ? positions : NULL, n_ids) == 0;
	MUST(put == !vernier_record_close(&r) && (put || fuzz_one_line(vernier_record_error(&r))));
	const vn_status st = vn_manifest_parse(d, "fuzz/manifest.jsonl", text, n, &e);
	const bool      utf8 = is_utf8(key) && is_utf8(value) && is_utf8(config); /* as the header asks for */
	MUST(!st || fuzz_one_line(e.text));
	MUST(!put || !st || !utf8 ||
	     vn_dump_fact_wrong(d, key, value)); /* only the importer knows which keys there cannot be */
	if (put && !st && utf8) {
		const char *back = vn_facts_get(&d->run, key);
		MUST(d->complete && back && strncmp(back, value, strlen(back)) == 0 &&
		     (strlen(back) == strlen(value) || strlen(value) > 255));
		MUST(d->config && strcmp(d->config, config) == 0);
	}
	if (put && !st)
		MUST(d->n_ids == (int64_t)n_ids && memcmp(d->ids, ids, n_ids * sizeof *ids) == 0);
	vn_dump_close(d);
	free(text);
}

/* Copies the strided numbers one after the other. */
static void slow_numbers(char *to, const char *data, size_t width, int rank, const int64_t *shape,
                         const int64_t *stride)
{
	const int64_t count = vn_shape_count(
		&(vn_shape) { .rank = rank, .dim = { shape[0], shape[1], shape[2], shape[3] } });

	for (int64_t i = 0; i < count; i++) {
		const char *from = data;
		int64_t     rest = i;
		for (int a = rank - 1; a >= 0; a--) {
			from += rest % shape[a] * stride[a];
			rest /= shape[a];
		}
		memcpy(to + (size_t)i * width, from, width);
	}
}

static void check_numbers(const uint8_t *choice)
{
	static const char *const dtypes[] = { "f32", "f16", "bf16", "f64", "i32", "f8_e4m3", "f8_e5m2" };
	static char              data[NUMBERS * 8], slow[NUMBERS * 8];
	char                     header[320], *text = NULL;
	int64_t   shape[VERNIER_RECORD_MAX_RANK] = { 1, 1, 1, 1, 1, 1 }, stride[VERNIER_RECORD_MAX_RANK] = { 0 }, count = 1;
	size_t    width, n = 0;
	const int rank = choice[10] % 5;
	const char kind = vernier_record_kind_(dtypes[choice[11] % 7], &width);
	vn_npy     npy;

	for (size_t i = 0; !data[100] && i < sizeof data; i++) /* once */
		data[i] = (char)(i * 37 >> 3);
	const char *from = data + sizeof data / 2;
	for (int a = 0; a < rank; a++) {
		shape[a] = choice[12 + a] % 8; /* 7 * 7 * 7 * 7 numbers, at most 7 * 4 * 64 bytes to either side */
		stride[a] = ((int64_t)(choice[16 + a] % 128) - 64) * (choice[20] & 1 ? (int64_t)width : 1);
		count *= shape[a];
	}
	for (int a = rank - 1, n_run = (int)width; a >= 0 && choice[20] & 2; n_run *= (int)shape[a--]) /* as it is wanted */
		if (choice[20] >> 2 & 1u << a)
			stride[a] = n_run;
	if (count > NUMBERS)
		return;
	for (int a = 0; a < rank; a++)
		if (llabs(stride[a]) * shape[a] > (int64_t)sizeof data / 10)
			return;
	const size_t at = vernier_record_header_(header, sizeof header, kind, width, rank, shape);
	FILE        *f = open_memstream(&text, &n);
	MUST(at && at % 64 == 0 && f);
	fwrite(header, 1, at, f);
	MUST(vernier_record_numbers_out_(f, from, width, rank, shape, stride));
	if (fclose(f) != 0)
		exit(2);
	MUST(!vn_npy_parse("fuzz", text, n, n, &npy, NULL) && npy.at == at && npy.bytes == (size_t)count * width &&
	     n == at + npy.bytes);
	MUST(npy.shape.rank == rank && memcmp(npy.shape.dim, shape, (size_t)rank * sizeof *shape) == 0 &&
	     !npy.layout.fortran && !npy.layout.swapped);
	slow_numbers(slow, from, width, rank, shape, stride);
	MUST(memcmp(text + at, slow, npy.bytes) == 0);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < CHOICES)
		return 0;
	char       *texts = fuzz_text(data + CHOICES, size - CHOICES), *at = texts, *end = texts + size - CHOICES;
	const char *key = next_text(&at, end), *value = next_text(&at, end), *config = next_text(&at, end);

	check_manifest(data, key, value, config);
	check_numbers(data);
	free(texts);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static size_t make_seed(int i, uint8_t *out)
{
	static const char *const seeds[] = { "device\0my \"gpu\"\n\0{\"model_type\": \"gpt2\"}",
		                                 "k\0\xc3\xa4\\\x01\xff\0{}" };
	static const size_t      sizes[] = { 39, 10 };

	for (int k = 0; k < CHOICES; k++)
		out[k] = (uint8_t)(i ? 7 * k : k < 20 ? 3 : 255);
	memcpy(out + CHOICES, seeds[i], sizes[i]);
	return CHOICES + sizes[i];
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 2, NULL, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif
