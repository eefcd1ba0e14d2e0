/* test_safetensors.c: every rule of the format, each with a file that breaks
 * that rule alone. Rules: specs/models.md, "safetensors". */
#include "libref/model/safetensors.h"
#include "tests/support/suite.h"
#include "tests/support/toy_model.h"

static const unsigned char zeros[256];

/* Writes a file with this header and n bytes of data, and opens it (NULL: refused, text in e). */
static vn_safetensors *parse(const char *header, size_t n, vn_status *st, vn_error *e)
{
	vn_safetensors       *f = NULL;
	size_t                bytes;
	static unsigned char *whole; /* the file borrows it until the next call */

	free(whole);
	whole = toy_join(header, zeros, n, &bytes);
	*st = vn_safetensors_parse("f.safetensors", whole, bytes, &f, e);
	return f;
}

static void opens(const char *header, size_t n, size_t count)
{
	vn_status       st;
	vn_error        e = { "" };
	vn_safetensors *f = parse(header, n, &st, &e);

	if (st)
		fprintf(stderr, "refused: %s\n", e.text);
	CU_ASSERT_EQUAL(st, VN_OK);
	CU_ASSERT(f && vn_safetensors_count(f) == count);
	vn_safetensors_close(f);
}

/* Refused, and the message names the file, the tensor and the rule. */
static void refused(const char *header, size_t n, const char *tensor, const char *rule)
{
	vn_status       st;
	vn_error        e = { "" };
	vn_safetensors *f = parse(header, n, &st, &e);
	const bool      named = strstr(e.text, "f.safetensors") && strstr(e.text, tensor) && strstr(e.text, rule);

	CU_ASSERT_EQUAL(st, VN_ERR_FORMAT);
	CU_ASSERT_PTR_NULL(f);
	CU_ASSERT(named);
	if (!named || !st)
		fprintf(stderr, "wanted '%s' and '%s', have '%s'\n", tensor, rule, e.text);
	vn_safetensors_close(f);
}

/* ---- good files ------------------------------------------------------------------ */

static void a_good_file_gives_its_tensors_sorted_by_name(void)
{
	vn_status       st;
	vn_error        e = { "untouched" };
	vn_safetensors *f = parse("{\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
	                          "\"a\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[24,32]},"
	                          "\"__metadata__\":{\"format\":\"pt\"}}",
	                          32, &st, &e);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(vn_safetensors_count(f), 2);
	const vn_source_tensor *a = vn_safetensors_at(f, 0), *b = vn_safetensors_find(f, "b");
	CU_ASSERT_STRING_EQUAL(a->name, "a");
	CU_ASSERT_STRING_EQUAL(a->dtype, "BF16");
	CU_ASSERT_EQUAL(a->rank, 1);
	CU_ASSERT_EQUAL(a->bytes, 8);
	CU_ASSERT_PTR_EQUAL(b, vn_safetensors_at(f, 1));
	CU_ASSERT_EQUAL(b->rank, 2);
	CU_ASSERT_EQUAL(b->dim[0], 2);
	CU_ASSERT_EQUAL(b->dim[1], 3);
	CU_ASSERT_PTR_EQUAL(a->data, b->data + 24);
	CU_ASSERT_STRING_EQUAL(vn_safetensors_path(f), "f.safetensors");
	CU_ASSERT_STRING_EQUAL(e.text, "untouched");
	vn_safetensors_close(f);
}

static void what_is_not_there_is_not_found(void)
{
	vn_status       st;
	vn_safetensors *f = parse("{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"__metadata__\":{}}", 1,
	                          &st, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_PTR_NULL(vn_safetensors_find(f, "a"));
	CU_ASSERT_PTR_NULL(vn_safetensors_find(f, "bb"));
	CU_ASSERT_PTR_NULL(vn_safetensors_find(f, ""));
	CU_ASSERT_PTR_NULL(vn_safetensors_find(f, "__metadata__"));
	CU_ASSERT_PTR_NULL(vn_safetensors_meta(f, "format"));
	vn_safetensors_close(f);
}

static void metadata_is_read_when_it_is_a_string(void)
{
	vn_status       st;
	vn_safetensors *f = parse("{\"__metadata__\":{\"provenance\":\"trained\",\"n\":1}}", 0, &st, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(vn_safetensors_count(f), 0);
	CU_ASSERT_STRING_EQUAL(vn_safetensors_meta(f, "provenance"), "trained");
	CU_ASSERT_PTR_NULL(vn_safetensors_meta(f, "n"));
	vn_safetensors_close(f);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f = parse("{\"__metadata__\":7}", 0, &st, NULL));
	CU_ASSERT_PTR_NULL(vn_safetensors_meta(f, "provenance"));
	vn_safetensors_close(f);
}

static void unusual_files_are_legal(void)
{
	opens("{}", 0, 0);
	opens("{}        ", 0, 0);                                                      /* padded with spaces */
	opens("{\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 1); /* rank 0: one element */
	opens("{\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, 1);
	opens("{\"z\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[0,0]},"
	      "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
	      "\"y\":{\"dtype\":\"F64\",\"shape\":[2,0],\"data_offsets\":[3,3]}}",
	      3, 3); /* empty ones at both ends */
	opens("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
	      "\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[1,9]}}",
	      9, 2); /* not aligned */
	opens("{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
	      "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
	      2, 2); /* header not in order of data */
	opens("{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, 1); /* rank 8 */
	opens("{\"\\u00e4\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":null}}", 1, 1);
	opens("{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]},"
	      "\"b\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[1,4]}}",
	      4, 2); /* fill whole bytes */
}

static void every_dtype_of_the_format_is_known_by_its_width(void)
{
	const struct {
		const char *name;
		int         bits;
	} row[] = {
		{ "BOOL", 8 },        { "U8", 8 },          { "I8", 8 },   { "F8_E4M3", 8 }, { "F8_E5M2", 8 }, { "F8_E8M0", 8 },
		{ "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 }, { "F4", 4 },   { "F6_E2M3", 6 }, { "F6_E3M2", 6 }, { "I32", 32 },
		{ "U32", 32 },        { "F32", 32 },        { "I64", 64 }, { "U64", 64 },    { "F64", 64 },    { "C64", 64 },
		{ "I16", 16 },        { "U16", 16 },        { "F16", 16 }, { "BF16", 16 },
	};
	char header[256];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%d]}}", row[i].name,
		         row[i].bits);
		opens(header, (size_t)row[i].bits, 1);
		snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%d]}}", row[i].name,
		         row[i].bits + 1);
		refused(header, (size_t)row[i].bits + 1, ": t:", "shape and dtype need");
	}
}

static void an_unaligned_tensor_is_found_where_it_lies(void)
{
	const char     *header = "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
							 "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[3,11]}}";
	const float     want[] = { 1.5f, -2.25f };
	unsigned char   data[11] = { 0 };
	size_t          bytes;
	vn_safetensors *f;
	float           have[2];

	memcpy(data + 3, want, 8);
	unsigned char *whole = toy_join(header, data, 11, &bytes);
	CU_ASSERT_EQUAL_FATAL(vn_safetensors_parse("f", whole, bytes, &f, NULL), VN_OK);
	memcpy(have, vn_safetensors_find(f, "b")->data, 8);
	CU_ASSERT_EQUAL(memcmp(have, want, 8), 0);
	vn_safetensors_close(f);
	free(whole);
}

/* ---- rule 1: the header ------------------------------------------------------------ */

static void raw_refused(const void *data, size_t n, const char *rule)
{
	vn_safetensors *f;
	vn_error        e = { "" };

	CU_ASSERT_EQUAL(vn_safetensors_parse("f.safetensors", data, n, &f, &e), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NULL(f);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "f.safetensors"));
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, rule));
	vn_safetensors_close(f);
}

static void a_file_shorter_than_its_length_word_is_refused(void)
{
	for (size_t n = 0; n < 8; n++)
		raw_refused(n ? "\2\0\0\0\0\0\0" : NULL, n, "too short");
}

static void a_header_longer_than_the_file_is_refused(void)
{
	raw_refused("\3\0\0\0\0\0\0\0{}", 10, "does not fit");
	raw_refused("\377\377\377\377\377\377\377\377{}", 10, "does not fit");
	raw_refused("\0\0\0\0\0\0\0\200{}", 10, "does not fit");
}

/* 100 MB of header and no more, even in a file that is large enough. */
static void a_header_over_the_limit_is_refused(void)
{
	const size_t    n = 100000001;
	unsigned char  *p = malloc(8 + n);
	vn_safetensors *f;

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	memset(p + 8, ' ', n);
	p[8] = '{', p[9] = '}';
	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)((uint64_t)n >> 8 * i);
	raw_refused(p, 8 + n, "limit: 100000000");
	p[0]--;
	CU_ASSERT_EQUAL(vn_safetensors_parse("f", p, 8 + n - 1, &f, NULL), VN_OK);
	vn_safetensors_close(f);
	free(p);
}

static void a_header_that_is_no_json_object_is_refused(void)
{
	raw_refused("\0\0\0\0\0\0\0\0", 8, "not a JSON object");
	refused("[]", 0, "", "not a JSON object");
	refused(" {}", 0, "", "not a JSON object");
	refused("{", 0, "", "header");
	refused("{}x", 0, "", "header");
	refused("{\"a\":}", 0, "", "header");
	refused("{\"a\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "",
	        "decode byte 0xff");                         /* not UTF-8 */
	raw_refused("\4\0\0\0\0\0\0\0{}\0\0", 12, "header"); /* padding is spaces, not zeros */
	refused("{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "",
	        "header"); /* a NUL in a name */
}

static void a_deeply_nested_header_is_refused(void)
{
	static char header[20000];

	strcpy(header, "{\"a\":");
	memset(header + 5, '[', 9000);
	memset(header + 9005, ']', 9000);
	strcpy(header + 18005, "}");
	refused(header, 0, "", "header");
}

static void a_name_that_comes_twice_is_refused(void)
{
	refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
	        "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
	        2, "\"a\"", "duplicate");
	refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "\"__metadata__\"", "duplicate");
	refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "\"shape\"",
	        "duplicate");
}

static void an_entry_without_its_three_fields_is_refused(void)
{
	const char *bad[] = {
		"{\"tt\":7}",
		"{\"tt\":null}",
		"{\"tt\":[]}",
		"{\"tt\":{}}",
		"{\"tt\":{\"shape\":[1],\"data_offsets\":[0,1]}}",
		"{\"tt\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}",
		"{\"tt\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}",
		"{\"tt\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}",
		"{\"tt\":{\"dtype\":\"U8\",\"shape\":[1]}}",
		"{\"tt\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}",
		"{\"tt\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}",
		"{\"tt\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":{\"0\":0}}}",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		refused(bad[i], 1, "tt", "dtype, shape and data_offsets");
}

static void an_unknown_dtype_is_refused_by_name(void)
{
	refused("{\"tt\":{\"dtype\":\"F128\",\"shape\":[1],\"data_offsets\":[0,16]}}", 16, "tt", "unknown dtype 'F128'");
	refused("{\"tt\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tt", "unknown dtype 'f32'");
	refused("{\"tt\":{\"dtype\":\"\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tt", "unknown dtype ''");
}

static void a_size_that_is_no_whole_number_is_refused(void)
{
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, "tt", "shape entry 0");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[1,1.0],\"data_offsets\":[0,1]}}", 1, "tt", "shape entry 1");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[\"1\"],\"data_offsets\":[0,1]}}", 1, "tt", "shape entry 0");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[true],\"data_offsets\":[0,1]}}", 1, "tt", "shape entry 0");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[null],\"data_offsets\":[0,1]}}", 1, "tt", "shape entry 0");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, "tt", "rank 9");
}

/* ---- rule 2: sizes ------------------------------------------------------------------ */

static void offsets_outside_the_data_are_refused(void)
{
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}", 1, "tt", "outside");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 1, "tt", "outside the 1 bytes");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-1,0]}}", 1, "tt", "outside");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1.0]}}", 1, "tt", "outside");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[\"0\",1]}}", 1, "tt", "outside");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9223372036854775806,9223372036854775807]}}", 1,
	        "tt", "outside");
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,9223372036854775808]}}", 1, "",
	        "header"); /* no int64 */
}

static void a_span_that_is_not_shape_times_dtype_is_refused(void)
{
	refused("{\"tt\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "tt",
	        "span 4 bytes, shape and dtype need 8");
	refused("{\"tt\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "tt",
	        "span 8 bytes, shape and dtype need 4");
	refused("{\"tt\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[0,0]}}", 0, "tt", "need 2");
	refused("{\"tt\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[0,2]}}", 2, "tt", "need 0");
}

/* 2^32 * 2^32 elements are 0 in 64 bits, and 2^61 doubles are 0 bytes. */
static void a_product_that_overflows_is_refused(void)
{
	refused("{\"tt\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "tt",
	        "overflows");
	refused("{\"tt\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0, "tt", "bits");
}

static void numbers_that_end_inside_a_byte_are_refused(void)
{
	refused("{\"tt\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "tt", "whole bytes");
	refused("{\"tt\":{\"dtype\":\"F6_E3M2\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, "tt", "whole bytes");
}

/* ---- rule 3: tiling ------------------------------------------------------------------ */

static void a_hole_is_refused(void)
{
	refused("{\"aa\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
	        "\"bb\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}",
	        3, "bb", "leaving a hole");
	refused("{\"aa\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "aa", "leaving a hole");
}

static void an_overlap_is_refused(void)
{
	refused("{\"aa\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
	        "\"bb\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
	        3, "bb", "overlapping");
	refused("{\"aa\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
	        "\"bb\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
	        2, "", "overlapping");
	refused("{\"aa\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
	        "\"zz\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}}",
	        2, "zz", "overlapping");
}

static void bytes_behind_the_last_tensor_are_refused(void)
{
	refused("{\"aa\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2, "",
	        "end at byte 1, but the file has 2");
	refused("{}", 1, "", "end at byte 0, but the file has 1");
}

/* ---- files on disk ------------------------------------------------------------------- */

static char dir[256];

static void a_file_on_disk_opens_and_a_truncated_one_does_not(void)
{
	const char     *header = "{\"tt\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}";
	size_t          bytes;
	unsigned char  *whole = toy_join(header, zeros, 16, &bytes);
	vn_safetensors *f;
	vn_error        e;

	toy_write(dir, "t.safetensors", whole, bytes);
	CU_ASSERT_EQUAL_FATAL(vn_safetensors_open(toy_path(dir, "t.safetensors"), &f, &e), VN_OK);
	CU_ASSERT_STRING_EQUAL(vn_safetensors_at(f, 0)->name, "tt");
	vn_safetensors_close(f);
	for (size_t n = 0; n < bytes; n++) {
		toy_write(dir, "t.safetensors", whole, n);
		CU_ASSERT_EQUAL(vn_safetensors_open(toy_path(dir, "t.safetensors"), &f, &e), VN_ERR_FORMAT);
		CU_ASSERT_PTR_NULL(f);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "t.safetensors"));
	}
	free(whole);
}

static void a_file_that_is_not_there_says_so(void)
{
	vn_safetensors *f;
	vn_error        e;

	CU_ASSERT_EQUAL(vn_safetensors_open(toy_path(dir, "none"), &f, &e), VN_ERR_NOTFOUND);
	CU_ASSERT_PTR_NULL(f);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "none"));
	CU_ASSERT_EQUAL(vn_safetensors_open(dir, &f, &e), VN_ERR_IO);
	vn_safetensors_close(NULL);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_good_file_gives_its_tensors_sorted_by_name),
		TEST(what_is_not_there_is_not_found),
		TEST(metadata_is_read_when_it_is_a_string),
		TEST(unusual_files_are_legal),
		TEST(every_dtype_of_the_format_is_known_by_its_width),
		TEST(an_unaligned_tensor_is_found_where_it_lies),
		TEST(a_file_shorter_than_its_length_word_is_refused),
		TEST(a_header_longer_than_the_file_is_refused),
		TEST(a_header_over_the_limit_is_refused),
		TEST(a_header_that_is_no_json_object_is_refused),
		TEST(a_deeply_nested_header_is_refused),
		TEST(a_name_that_comes_twice_is_refused),
		TEST(an_entry_without_its_three_fields_is_refused),
		TEST(an_unknown_dtype_is_refused_by_name),
		TEST(a_size_that_is_no_whole_number_is_refused),
		TEST(offsets_outside_the_data_are_refused),
		TEST(a_span_that_is_not_shape_times_dtype_is_refused),
		TEST(a_product_that_overflows_is_refused),
		TEST(numbers_that_end_inside_a_byte_are_refused),
		TEST(a_hole_is_refused),
		TEST(an_overlap_is_refused),
		TEST(bytes_behind_the_last_tensor_are_refused),
		TEST(a_file_on_disk_opens_and_a_truncated_one_does_not),
		TEST(a_file_that_is_not_there_says_so),
		CU_TEST_INFO_NULL,
	};

	toy_directory(dir);
	const int failures = run_suite("safetensors", tests);
	toy_remove(dir);
	return failures;
}
