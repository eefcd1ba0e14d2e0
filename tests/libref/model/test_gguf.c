/* test_gguf.c: GGUF files read, and everything that can be wrong with one. */
#include "libref/model/gguf.h"
#include "tests/support/suite.h"
#include "tests/support/toy_gguf.h"
#include "tests/support/toy_model.h"

#include <math.h>

static char dir[256];

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q8_0 = 8, Q2_K = 10, Q4_K = 12, I32 = 26, BF16 = 30 };

/* Copies the bytes to memory of exactly their size, so that a sanitizer sees one byte too far. */
static vn_status parse(toy_gguf *g, size_t bytes, vn_gguf **f, unsigned char **kept, vn_error *e)
{
	*kept = malloc(bytes + (bytes == 0));
	CU_ASSERT_PTR_NOT_NULL_FATAL(*kept);
	memcpy(*kept, g->p, bytes);
	e->text[0] = '\0';
	return vn_gguf_parse("x.gguf", *kept, bytes, f, e);
}

static void refused(toy_gguf *g, vn_status want, const char *word, const char *other)
{
	vn_gguf       *f;
	vn_error       e;
	unsigned char *kept;
	vn_status      st = parse(g, g->n, &f, &kept, &e);
	const bool     named = strstr(e.text, "x.gguf: ") == e.text && strstr(e.text, word) && strstr(e.text, other);

	CU_ASSERT_EQUAL(st, want);
	CU_ASSERT_PTR_NULL(f);
	CU_ASSERT(named);
	if (st != want || !named)
		fprintf(stderr, "status %d, wanted '%s' and '%s', have '%s'\n", (int)st, word, other, e.text);
	vn_gguf_close(f);
	free(kept);
	gg_free(g);
}

static vn_gguf *good(toy_gguf *g, unsigned char **kept)
{
	vn_gguf  *f = NULL;
	vn_error  e;
	vn_status st = parse(g, g->n, &f, kept, &e);

	if (st)
		fprintf(stderr, "refused: %s\n", e.text);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
	gg_free(g);
	return f;
}

/* Two keys, three tensors of three formats. */
static void build(toy_gguf *g, uint32_t version)
{
	static unsigned char data[4096];

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i * 7);
	gg_start(g, version);
	gg_key_text(g, "general.architecture", "qwen2");
	gg_key_u32(g, "qwen2.block_count", 3);
	gg_tensor(g, "z.weight", 5, 3, F32, 60);
	gg_tensor(g, "a.weight", 64, 2, Q8_0, 136);
	gg_tensor(g, "m.bias", 7, 0, BF16, 14);
	gg_data(g, data, 64 + 160 + 14);
}

static void tensors_are_found_by_name_in_our_order_of_axes(void)
{
	for (uint32_t version = 2; version <= 3; version++) {
		toy_gguf       g;
		unsigned char *kept;
		build(&g, version);
		vn_gguf *f = good(&g, &kept);
		CU_ASSERT_EQUAL_FATAL(vn_gguf_count(f), 3);
		CU_ASSERT_STRING_EQUAL(vn_gguf_at(f, 0)->name, "a.weight");
		CU_ASSERT_STRING_EQUAL(vn_gguf_at(f, 2)->name, "z.weight");
		const vn_gguf_tensor *z = vn_gguf_find(f, "z.weight"), *a = vn_gguf_find(f, "a.weight"),
							 *m = vn_gguf_find(f, "m.bias");
		CU_ASSERT_FATAL(z && a && m);
		CU_ASSERT(vn_shape_equal(&z->t.shape, &(vn_shape) { 2, { 3, 5 } }));
		CU_ASSERT(vn_shape_equal(&a->t.shape, &(vn_shape) { 2, { 2, 64 } }));
		CU_ASSERT(vn_shape_equal(&m->t.shape, &(vn_shape) { 1, { 7 } }));
		CU_ASSERT(z->t.dtype == VN_F32 && a->t.dtype == VN_Q8_0 && m->t.dtype == VN_BF16);
		CU_ASSERT(z->bytes == 60 && a->bytes == 136 && m->bytes == 14);
		const unsigned char *base = z->t.data;
		CU_ASSERT(base[0] == 0 && base[1] == 7);
		CU_ASSERT_PTR_EQUAL(a->t.data, base + 64);
		CU_ASSERT_PTR_EQUAL(m->t.data, base + 64 + 160);
		CU_ASSERT_STRING_EQUAL(a->path, "x.gguf");
		CU_ASSERT_PTR_NULL(vn_gguf_find(f, "a.weigh"));
		vn_gguf_close(f);
		free(kept);
	}
}

static void a_file_cut_anywhere_is_refused(void)
{
	toy_gguf g;
	vn_gguf *f;
	vn_error e;

	build(&g, 3);
	for (size_t n = 0; n < g.n; n++) {
		unsigned char *kept;
		CU_ASSERT_EQUAL(parse(&g, n, &f, &kept, &e), VN_ERR_FORMAT);
		CU_ASSERT_PTR_NULL(f);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "x.gguf: "));
		free(kept);
	}
	gg_free(&g);
}

static void a_header_that_is_none_is_refused(void)
{
	const struct {
		uint32_t    version;
		const char *word;
	} row[] = {
		{ 0, "version 0" },
		{ 1, "version 1" },
		{ 4, "version 4" },
		{ 0x03000000u, "big-endian" },
	};
	toy_gguf g;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		build(&g, row[i].version);
		refused(&g, VN_ERR_UNSUPPORTED, "header", row[i].word);
	}
	build(&g, 3);
	g.p[3] = 'E';
	refused(&g, VN_ERR_FORMAT, "not a GGUF file", "47 47 55 45");
	build(&g, 3);
	gg_count(&g, g.n_tensors_at, 1u << 20);
	refused(&g, VN_ERR_FORMAT, "header", "1048579 tensors");
	build(&g, 3);
	gg_count(&g, g.n_keys_at, UINT64_MAX / 2);
	refused(&g, VN_ERR_FORMAT, "header", "keys");
	build(&g, 3);
	gg_count(&g, g.n_tensors_at, 1); /* then data are read as an entry */
	refused(&g, VN_ERR_FORMAT, "tensor", "");
}

/* ---- metadata ------------------------------------------------------------------------- */

static void every_type_of_value_can_be_read(void)
{
	toy_gguf       g;
	unsigned char *kept;
	int64_t        n = -7;
	double         x = -7;
	bool           b = false;
	vn_gguf_text   t = { NULL, 0 };

	gg_start(&g, 3);
	gg_key(&g, "u8", GG_U8), gg_bytes(&g, "\xff", 1);
	gg_key(&g, "i8", GG_I8), gg_bytes(&g, "\xff", 1);
	gg_key(&g, "u16", GG_U16), gg_bytes(&g, "\xfe\xff", 2);
	gg_key(&g, "i16", GG_I16), gg_bytes(&g, "\xfe\xff", 2);
	gg_key(&g, "u32", GG_U32), gg_u32(&g, 4000000000u);
	gg_key(&g, "i32", GG_I32), gg_u32(&g, 4000000000u);
	gg_key(&g, "u64", GG_U64), gg_u64(&g, INT64_MAX);
	gg_key(&g, "big", GG_U64), gg_u64(&g, 1ull << 63);
	gg_key(&g, "i64", GG_I64), gg_u64(&g, UINT64_MAX);
	gg_key_f32(&g, "f32", 1e-6f);
	gg_key(&g, "f64", GG_F64), gg_bytes(&g, (const double[]) { 0.1 }, 8);
	gg_key(&g, "yes", GG_BOOL), gg_bytes(&g, "\x01", 1);
	gg_key(&g, "text", GG_STRING), gg_u64(&g, 5), gg_bytes(&g, "a\0b\nc", 5);
	gg_key_array(&g, "words", GG_STRING, 3), gg_string(&g, "one"), gg_string(&g, ""), gg_string(&g, "three");
	gg_key_array(&g, "numbers", GG_I32, 2), gg_u32(&g, 5), gg_u32(&g, UINT32_MAX);
	gg_key_array(&g, "empty", GG_F32, 0);
	gg_key_array(&g, "reals", GG_F32, 2), gg_bytes(&g, (const float[]) { 1e6f, 0.1f }, 8);
	vn_gguf *f = good(&g, &kept);

	const struct {
		const char *key;
		int64_t     want;
	} whole[] = {
		{ "u8", 255 },         { "i8", -1 },          { "u16", 65534 },     { "i16", -2 },
		{ "u32", 4000000000 }, { "i32", -294967296 }, { "u64", INT64_MAX }, { "i64", -1 },
	};
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		CU_ASSERT(vn_gguf_int_at(vn_gguf_get(f, whole[i].key), 0, &n) && n == whole[i].want);
		CU_ASSERT(vn_gguf_real_at(vn_gguf_get(f, whole[i].key), 0, &x) && x == (double)whole[i].want);
		CU_ASSERT_FALSE(vn_gguf_bool_at(vn_gguf_get(f, whole[i].key), 0, &b));
		CU_ASSERT_FALSE(vn_gguf_int_at(vn_gguf_get(f, whole[i].key), 1, &n));
	}
	n = 3;
	CU_ASSERT(!vn_gguf_int_at(vn_gguf_get(f, "big"), 0, &n) && n == 3);
	CU_ASSERT(!vn_gguf_int_at(vn_gguf_get(f, "f32"), 0, &n) && !vn_gguf_int_at(vn_gguf_get(f, "text"), 0, &n));
	CU_ASSERT(vn_gguf_real_at(vn_gguf_get(f, "f32"), 0, &x) && x == 1e-6); /* not 9.99999997e-7 */
	CU_ASSERT(vn_gguf_real_at(vn_gguf_get(f, "f64"), 0, &x) && x == 0.1);
	CU_ASSERT(vn_gguf_real_at(vn_gguf_get(f, "reals"), 0, &x) && x == 1e6);
	CU_ASSERT(vn_gguf_real_at(vn_gguf_get(f, "reals"), 1, &x) && x == 0.1);
	CU_ASSERT(vn_gguf_bool_at(vn_gguf_get(f, "yes"), 0, &b) && b);
	CU_ASSERT(vn_gguf_text_at(vn_gguf_get(f, "text"), 0, &t) && t.bytes == 5 && memcmp(t.data, "a\0b\nc", 5) == 0);
	CU_ASSERT(vn_gguf_text_at(vn_gguf_get(f, "words"), 2, &t) && t.bytes == 5 && memcmp(t.data, "three", 5) == 0);
	CU_ASSERT(vn_gguf_text_at(vn_gguf_get(f, "words"), 1, &t) && t.bytes == 0);
	CU_ASSERT(!vn_gguf_text_at(vn_gguf_get(f, "words"), 3, &t) && !vn_gguf_text_at(vn_gguf_get(f, "u8"), 0, &t));
	CU_ASSERT(vn_gguf_int_at(vn_gguf_get(f, "numbers"), 1, &n) && n == -1);
	CU_ASSERT(vn_gguf_get(f, "empty")->n == 0 && vn_gguf_get(f, "empty")->array &&
	          !vn_gguf_real_at(vn_gguf_get(f, "empty"), 0, &x));
	CU_ASSERT(!vn_gguf_get(f, "nothing") && !vn_gguf_int_at(NULL, 0, &n) && !vn_gguf_real_at(NULL, 0, &x));
	CU_ASSERT(!vn_gguf_text_at(NULL, 0, &t) && !vn_gguf_bool_at(NULL, 0, &b) && !vn_gguf_is(NULL, ""));
	CU_ASSERT(!vn_gguf_is(vn_gguf_get(f, "text"), "a") && !vn_gguf_is(vn_gguf_get(f, "words"), "one"));
	vn_gguf_close(f);
	free(kept);
}

/* Every float a config may have written comes back as the decimal it was. */
static void a_float_is_the_shortest_decimal_that_means_it(void)
{
	const double want[] = { 1e-5,   1e-6,      1e-12, 10000, 500000, 1e6, 1e7,  150000,       0.25, 0.1,
		                    0.7071, 1.0857264, -2.5,  0,     8,      32,  40.5, 3.4028235e38, 1e-45 };

	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		toy_gguf       g;
		unsigned char *kept;
		double         x = 77;
		gg_start(&g, 3);
		gg_key_f32(&g, "x", (float)want[i]);
		vn_gguf *f = good(&g, &kept);
		CU_ASSERT(vn_gguf_real_at(vn_gguf_get(f, "x"), 0, &x) && x == want[i]);
		vn_gguf_close(f);
		free(kept);
	}
}

static void metadata_that_breaks_a_rule_is_named(void)
{
	toy_gguf g;

	gg_start(&g, 3);
	gg_key_u32(&g, "twice", 1);
	gg_key_u32(&g, "other", 1);
	gg_key_u32(&g, "twice", 1);
	refused(&g, VN_ERR_FORMAT, "metadata 'twice'", "twice in the file");
	gg_start(&g, 3);
	gg_key_u32(&g, "", 1);
	refused(&g, VN_ERR_FORMAT, "metadata 1 of 1", "name is empty");
	gg_start(&g, 3);
	gg_key_u32(&g, "a", 1);
	g.p[g.n - 9] = '\0';
	refused(&g, VN_ERR_FORMAT, "metadata 1 of 1", "NUL");
	gg_start(&g, 3);
	gg_key(&g, "deep", GG_ARRAY), gg_u32(&g, GG_ARRAY), gg_u64(&g, 1), gg_u32(&g, GG_U8), gg_u64(&g, 0);
	refused(&g, VN_ERR_FORMAT, "metadata 'deep'", "array of arrays");
	gg_start(&g, 3);
	gg_key(&g, "kind", 13), gg_u64(&g, 0);
	refused(&g, VN_ERR_FORMAT, "metadata 'kind'", "type 13");
	gg_start(&g, 3);
	gg_key_array(&g, "kind", 77, 1), gg_u64(&g, 0);
	refused(&g, VN_ERR_FORMAT, "metadata 'kind'", "type 77");
	gg_start(&g, 3);
	gg_key(&g, "long", GG_STRING), gg_u64(&g, (1u << 30) + 1);
	refused(&g, VN_ERR_FORMAT, "metadata 'long'", "at most 1073741824");
	gg_start(&g, 3);
	gg_key(&g, "long", GG_STRING), gg_u64(&g, 4), gg_bytes(&g, "abc", 3);
	refused(&g, VN_ERR_FORMAT, "metadata 'long'", "4 bytes");
	gg_start(&g, 3);
	gg_key(&g, "long", GG_STRING), gg_u64(&g, UINT64_MAX);
	refused(&g, VN_ERR_FORMAT, "metadata 'long'", "18446744073709551615");
	gg_start(&g, 3);
	gg_key_array(&g, "many", GG_U8, (1u << 30) + 1);
	refused(&g, VN_ERR_FORMAT, "metadata 'many'", "at most 1073741824");
	gg_start(&g, 3);
	gg_key_array(&g, "many", GG_U64, 2), gg_u64(&g, 0), gg_u32(&g, 0);
	refused(&g, VN_ERR_FORMAT, "metadata 'many'", "2 elements of 8 bytes");
	gg_start(&g, 3);
	gg_key_array(&g, "words", GG_STRING, 2), gg_string(&g, "one"), gg_u64(&g, 9), gg_u32(&g, 0);
	refused(&g, VN_ERR_FORMAT, "metadata 'words'", "9 bytes");
}

static void alignment_must_be_what_the_format_allows(void)
{
	const uint32_t bad[] = { 0, 1, 4, 24, 33, 0x80000001u };
	toy_gguf       g;
	unsigned char *kept;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		gg_start(&g, 3);
		gg_key_u32(&g, "general.alignment", bad[i]);
		refused(&g, VN_ERR_FORMAT, "metadata 'general.alignment'", "power of two");
	}
	gg_start(&g, 3);
	gg_key(&g, "general.alignment", GG_U64), gg_u64(&g, 32);
	refused(&g, VN_ERR_FORMAT, "metadata 'general.alignment'", "u32");
	for (uint32_t good_one = 8; good_one <= 256; good_one *= 2) {
		gg_start(&g, 3);
		gg_key_u32(&g, "general.alignment", good_one);
		gg_entry(&g, "a", 1, (const uint64_t[]) { 3 }, F32, 0);
		gg_entry(&g, "b", 1, (const uint64_t[]) { 1 }, F32, (12 + good_one - 1) / good_one * good_one);
		while (g.n % good_one)
			gg_bytes(&g, "", 1);
		gg_bytes(&g, (const float[]) { 1, 2, 3 }, 12);
		while (g.n % good_one)
			gg_bytes(&g, "", 1);
		gg_bytes(&g, (const float[]) { 4 }, 4);
		vn_gguf *f = good(&g, &kept);
		float    x;
		memcpy(&x, vn_gguf_find(f, "b")->t.data, 4);
		CU_ASSERT_EQUAL(x, 4);
		vn_gguf_close(f);
		free(kept);
	}
}

/* ---- tensors -------------------------------------------------------------------------- */

static void one_tensor(toy_gguf *g, const char *name, int rank, const uint64_t *dims, uint32_t type, uint64_t offset)
{
	static const unsigned char data[1024];

	gg_start(g, 3);
	gg_entry(g, name, rank, dims, type, offset);
	gg_data(g, data, sizeof data);
}

static void a_tensor_that_breaks_a_rule_is_named(void)
{
	const char *long_name = "0123456789012345678901234567890123456789012345678901234567890123";
	const struct {
		int         rank;
		uint64_t    dims[5];
		uint32_t    type;
		uint64_t    offset;
		vn_status   st;
		const char *word;
	} row[] = {
		{ 5, { 1, 1, 1, 1, 1 }, F32, 0, VN_ERR_FORMAT, "rank 5" },
		{ 2, { 1ull << 40, 1ull << 40 }, F32, 0, VN_ERR_FORMAT, "overflow" },
		{ 1, { UINT64_MAX }, F32, 0, VN_ERR_FORMAT, "overflow" },
		{ 1, { 1ull << 62 }, F32, 0, VN_ERR_FORMAT, "overflow" },
		{ 1, { 4 }, 5, 0, VN_ERR_UNSUPPORTED, "ggml type 5 is unknown" },
		{ 1, { 4 }, 99, 0, VN_ERR_UNSUPPORTED, "ggml type 99 is unknown" },
		{ 1, { 4 }, UINT32_MAX, 0, VN_ERR_UNSUPPORTED, "is unknown" },
		{ 1, { 256 }, Q2_K, 0, VN_ERR_UNSUPPORTED, "Q2_K is not supported" },
		{ 1, { 4 }, I32, 0, VN_ERR_UNSUPPORTED, "I32 is not supported" },
		{ 2, { 33, 32 }, Q8_0, 0, VN_ERR_FORMAT, "rows have 33 elements, expected a multiple of 32 (a Q8_0 block)" },
		{ 2, { 128, 2 }, Q4_K, 0, VN_ERR_FORMAT, "expected a multiple of 256 (a Q4_K block)" },
		{ 0, { 0 }, Q4_0, 0, VN_ERR_FORMAT, "rows have 1 elements" },
		{ 1, { 4 }, F32, 32, VN_ERR_FORMAT, "offset 32, expected 0" },
		{ 1, { 4 }, F32, 1, VN_ERR_FORMAT, "offset 1, expected 0" },
		{ 1, { 257 }, F32, 0, VN_ERR_FORMAT, "1028 bytes" },
		{ 2, { 256, 8 }, Q4_K, 0, VN_ERR_FORMAT, "1152 bytes" },
	};
	toy_gguf g;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		one_tensor(&g, "blk.0.attn_q.weight", row[i].rank, row[i].dims, row[i].type, row[i].offset);
		refused(&g, row[i].st, "tensor 'blk.0.attn_q.weight'", row[i].word);
	}
	one_tensor(&g, "", 1, (const uint64_t[]) { 4 }, F32, 0);
	refused(&g, VN_ERR_FORMAT, "tensor 1 of 1", "name is empty");
	one_tensor(&g, long_name, 1, (const uint64_t[]) { 4 }, F32, 0);
	refused(&g, VN_ERR_FORMAT, long_name, "64 bytes");
	gg_start(&g, 3);
	gg_tensor(&g, "a", 8, 0, F32, 32), gg_tensor(&g, "b", 8, 0, F32, 32), gg_tensor(&g, "a", 8, 0, F32, 32);
	gg_data(&g, (const float[24]) { 0 }, 96);
	refused(&g, VN_ERR_FORMAT, "tensor 'a'", "twice");
	gg_start(&g, 3);
	gg_tensor(&g, "a", 8, 0, F32, 32);
	gg_entry(&g, "b", 1, (const uint64_t[]) { 8 }, F32, 0); /* on top of the first */
	gg_data(&g, (const float[24]) { 0 }, 96);
	refused(&g, VN_ERR_FORMAT, "tensor 'b'", "offset 0, expected 32");
}

static void odd_but_lawful_tensors_are_read(void)
{
	toy_gguf       g;
	unsigned char *kept;

	gg_start(&g, 3);
	gg_entry(&g, "scalar", 0, NULL, F32, 0);
	gg_entry(&g, "none", 2, (const uint64_t[]) { 5, 0 }, F32, 32);
	gg_entry(&g, "four", 4, (const uint64_t[]) { 1, 2, 3, 1 }, F16, 32);
	gg_data(&g, "12345678901234567890123456789012abcdefghijkl", 44); /* no padding behind the last */
	vn_gguf *f = good(&g, &kept);
	CU_ASSERT_EQUAL(vn_gguf_find(f, "scalar")->bytes, 4);
	CU_ASSERT_EQUAL(vn_gguf_find(f, "none")->bytes, 0);
	CU_ASSERT(vn_shape_equal(&vn_gguf_find(f, "four")->t.shape, &(vn_shape) { 4, { 1, 3, 2, 1 } }));
	CU_ASSERT_EQUAL(memcmp(vn_gguf_find(f, "four")->t.data, "abcdefghijkl", 12), 0);
	vn_gguf_close(f);
	free(kept);
	gg_start(&g, 2); /* nothing at all */
	f = good(&g, &kept);
	CU_ASSERT(vn_gguf_count(f) == 0 && !vn_gguf_find(f, "a") && !vn_gguf_get(f, "a"));
	vn_gguf_close(f);
	free(kept);
}

/* ---- several files ---------------------------------------------------------------------- */

static void write_part(const char *name, uint32_t no, uint32_t count, int tensors, const char *tensor, float x)
{
	toy_gguf g;

	gg_start(&g, 3);
	gg_key_u32(&g, "split.no", no);
	gg_key_u32(&g, "split.count", count);
	gg_key_u32(&g, "split.tensors.count", (uint32_t)tensors);
	if (no == 0)
		gg_key_text(&g, "general.architecture", "qwen2");
	if (tensor)
		gg_tensor(&g, tensor, 1, 0, F32, 4);
	gg_data(&g, &x, tensor ? 4 : 0);
	toy_write(dir, name, g.p, g.n);
	gg_free(&g);
}

static void split_refused(const char *name, vn_status want, const char *word, const char *other)
{
	vn_gguf   *f;
	vn_error   e = { "" };
	vn_status  st = vn_gguf_open(toy_path(dir, name), &f, &e);
	const bool named = strstr(e.text, word) && strstr(e.text, other);

	CU_ASSERT_EQUAL(st, want);
	CU_ASSERT_PTR_NULL(f);
	CU_ASSERT(named);
	if (st != want || !named)
		fprintf(stderr, "status %d, wanted '%s' and '%s', have '%s'\n", (int)st, word, other, e.text);
}

static void the_first_of_several_files_opens_all(void)
{
	vn_gguf *f = NULL;
	float    x;

	write_part("m-00001-of-00003.gguf", 0, 3, 2, NULL, 0);
	write_part("m-00002-of-00003.gguf", 1, 3, 2, "b", 2);
	write_part("m-00003-of-00003.gguf", 2, 3, 2, "a", 3);
	CU_ASSERT_EQUAL_FATAL(vn_gguf_open(toy_path(dir, "m-00001-of-00003.gguf"), &f, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_gguf_count(f), 2);
	memcpy(&x, vn_gguf_find(f, "a")->t.data, 4);
	CU_ASSERT_EQUAL(x, 3);
	memcpy(&x, vn_gguf_find(f, "b")->t.data, 4);
	CU_ASSERT_EQUAL(x, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(vn_gguf_find(f, "b")->path, "m-00002-of-00003.gguf"));
	CU_ASSERT(vn_gguf_is(vn_gguf_get(f, "general.architecture"), "qwen2"));
	vn_gguf_close(f);

	split_refused("m-00002-of-00003.gguf", VN_ERR_USAGE, "part 2 of 3", "give the first part");
	write_part("m-00003-of-00003.gguf", 2, 3, 2, "b", 3);
	split_refused("m-00001-of-00003.gguf", VN_ERR_FORMAT, "tensor 'b'", "twice");
	write_part("m-00003-of-00003.gguf", 2, 3, 2, NULL, 3);
	split_refused("m-00001-of-00003.gguf", VN_ERR_FORMAT, "1 tensors", "expected 2");
	write_part("m-00003-of-00003.gguf", 1, 3, 2, "a", 3);
	split_refused("m-00001-of-00003.gguf", VN_ERR_FORMAT, "m-00003-of-00003.gguf", "part 2 of 3, expected 3 of 3");
	toy_write_text(dir, "m-00003-of-00003.gguf", "no");
	split_refused("m-00001-of-00003.gguf", VN_ERR_FORMAT, "m-00003-of-00003.gguf", "header");
	unlink(toy_path(dir, "m-00003-of-00003.gguf"));
	split_refused("m-00001-of-00003.gguf", VN_ERR_NOTFOUND, "m-00003-of-00003.gguf", "");
	write_part("first.gguf", 0, 3, 2, NULL, 0);
	split_refused("first.gguf", VN_ERR_FORMAT, "first.gguf", "NAME-00001-of-00003.gguf");
	write_part("m-00001-of-99999.gguf", 0, 99999, 2, NULL, 0);
	split_refused("m-00001-of-99999.gguf", VN_ERR_FORMAT, "99999 files", "at most");
	write_part("alone.gguf", 0, 1, 1, "a", 1);
	CU_ASSERT_EQUAL_FATAL(vn_gguf_open(toy_path(dir, "alone.gguf"), &f, NULL), VN_OK);
	vn_gguf_close(f);
	vn_gguf_close(NULL);
	split_refused("nowhere.gguf", VN_ERR_NOTFOUND, "nowhere.gguf", "");
	toy_write(dir, "empty.gguf", "", 0);
	split_refused("empty.gguf", VN_ERR_FORMAT, "empty.gguf", "header");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(tensors_are_found_by_name_in_our_order_of_axes),
		TEST(a_file_cut_anywhere_is_refused),
		TEST(a_header_that_is_none_is_refused),
		TEST(every_type_of_value_can_be_read),
		TEST(a_float_is_the_shortest_decimal_that_means_it),
		TEST(metadata_that_breaks_a_rule_is_named),
		TEST(alignment_must_be_what_the_format_allows),
		TEST(a_tensor_that_breaks_a_rule_is_named),
		TEST(odd_but_lawful_tensors_are_read),
		TEST(the_first_of_several_files_opens_all),
		CU_TEST_INFO_NULL,
	};

	toy_directory(dir);
	const int failures = run_suite("gguf", tests);
	toy_remove(dir);
	return failures;
}
