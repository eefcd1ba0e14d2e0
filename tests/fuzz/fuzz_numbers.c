/* fuzz_numbers.c: any text as a number, a range, the name of a format or of a precision.
 *
 * Input: bounds of 8 bytes each, and the text. Simple parsers that are obviously right must
 * agree. */
#include "capture/run/arguments.h"
#include "libref/plan/policy.h"
#include "tests/fuzz/mutate.h"

#include <float.h>
#include <math.h>

/* The number of bytes of digits with an optional minus whose value fits; else 0. */
static size_t slow_digits(const char *text, int64_t *x)
{
	const bool   minus = *text == '-';
	const size_t first = minus, end = first + strspn(text + first, "0123456789");
	uint64_t     n = 0;

	for (size_t i = first; i < end; i++) {
		const uint64_t most = (uint64_t)INT64_MAX + minus, digit = (uint64_t)(text[i] - '0');
		if (n > (most - digit) / 10)
			return 0;
		n = 10 * n + digit;
	}
	if (end == first)
		return 0;
	*x = minus && n ? -(int64_t)(n - 1) - 1 : (int64_t)n;
	return end;
}

static void check_whole(const char *text, int64_t low, int64_t high)
{
	int64_t      x = 77, want = 77;
	const size_t n = slow_digits(text, &want);
	const char  *end = vn_text_digits(text, &x);

	MUST(end ? n && end == text + n && x == want : !n && x == 77);
	x = 77;
	const bool good = n && !text[n] && want >= low && want <= high;
	MUST(vn_text_whole(text, low, high, &x) == good && x == (good ? want : 77));
}

static void check_real(const char *text)
{
	double     x = 77, again;
	char       said[64];
	const bool good = vn_text_real(text, -1e9, 1e9, &x);

	MUST(good ? fabs(x) <= 1e9 : x == 77); /* neither a NaN nor an infinity */
	MUST(!good || strspn(text, "0123456789+-.eE") == strlen(text));
	snprintf(said, sizeof said, "%.17g", good ? x : 0.0);
	MUST(vn_text_real(said, -1e9, 1e9, &again) && again == (good ? x : 0.0)); /* what is written is read */
}

/* "3" or "3-7" */
static void check_range(const char *text)
{
	int64_t      first, last, a = 0, b = 0;
	const size_t n = *text == '-' ? 0 : slow_digits(text, &a),
				 m = n && text[n] == '-' && text[n + 1] != '-' ? slow_digits(text + n + 1, &b) : 0;
	const bool one = n && !text[n], two = m && !text[n + 1 + m];
	vn_error   e = { "" };

	if (one)
		b = a;
	const bool good = (one || two) && a <= INT32_MAX && b <= INT32_MAX && a <= b;
	if (vn_arguments_read_range("--layers", text, &first, &last, &e))
		MUST(!good && fuzz_one_line(e.text));
	else
		MUST(good && first == a && last == b && !*e.text);
}

static void check_names(const char *text)
{
	vn_dtype  d;
	vn_policy p, q;

	if (vn_dtype_from_name(text, &d))
		MUST(strcasecmp(text, vn_dtype_name(d)) == 0);
	if (vn_policy_from_name(text, &p))
		MUST(strcmp(text, vn_policy_name(p)) == 0 && vn_policy_from_word(text, &q) && vn_policy_same(p, q));
	if (vn_policy_from_word(text, &p))
		MUST(vn_policy_from_name(vn_policy_name(p), &q) && vn_policy_same(p, q));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t bound[2] = { 0, INT32_MAX };

	if (size >= sizeof bound) {
		memcpy(bound, data, sizeof bound);
		data += sizeof bound;
		size -= sizeof bound;
	}
	char *text = fuzz_text(data, size);
	check_whole(text, bound[0], bound[1]);
	check_real(text);
	check_range(text);
	check_names(text);
	free(text);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
	static const char *const seeds[] = {
		"0",   "-7",  "9223372036854775807", "-9223372036854775808", "0-3", "3-1", "1e-3",
		"0x1", "f16", "torch.bfloat16",      "aaaaaaaaAAAAAAAA12"
	};

	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
