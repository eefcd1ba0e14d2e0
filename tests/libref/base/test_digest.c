/* test_digest.c: fingerprints of bytes. */
#include "libref/base/digest.h"
#include "tests/support/suite.h"

#include <string.h>

/* XXH3-128 with seed 0 of no bytes, as xxHash's own documentation and tools give it. */
static void nothing_has_the_published_fingerprint(void)
{
	CU_ASSERT_STRING_EQUAL(vn_digest_of("", 0).hex, "99aa06d3014798d86001c324468d497f");
}

static void pieces_of_any_size_give_the_fingerprint_of_the_whole(void)
{
	unsigned char data[5000];

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i * i >> 3);
	const vn_digest whole = vn_digest_of(data, sizeof data);
	for (size_t step = 1; step < 3000; step = 3 * step + 1) {
		vn_digester *d = vn_digester_create();
		CU_ASSERT_PTR_NOT_NULL_FATAL(d);
		for (size_t i = 0; i < sizeof data; i += step)
			vn_digester_add(d, data + i, sizeof data - i < step ? sizeof data - i : step);
		CU_ASSERT_STRING_EQUAL(vn_digester_finish(d).hex, whole.hex);
	}
}

static void one_bit_changes_the_fingerprint(void)
{
	char            data[100] = { 0 };
	const vn_digest before = vn_digest_of(data, sizeof data);

	data[57] ^= 1;
	CU_ASSERT_STRING_NOT_EQUAL(vn_digest_of(data, sizeof data).hex, before.hex);
	CU_ASSERT_EQUAL(strspn(before.hex, "0123456789abcdef"), 32);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(nothing_has_the_published_fingerprint),
		TEST(pieces_of_any_size_give_the_fingerprint_of_the_whole),
		TEST(one_bit_changes_the_fingerprint),
		CU_TEST_INFO_NULL,
	};
	return run_suite("digest", tests);
}
