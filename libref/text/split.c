/* split.c: see split.h. Only this file uses PCRE2.
 *
 * Every position is tried separately (PCRE2_ANCHORED), since only then does PCRE2 count the steps
 * of a whole search and not of each of its starts. The patterns of real tokenizers match
 * everywhere, so this costs nothing.
 *
 * Patterns come from untrusted models, and run in vernier's own process. So they are interpreted,
 * never compiled to machine code (PCRE2's JIT), within limits on steps and memory.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "libref/text/split.h"

#include "libref/base/alloc.h"
#include "libref/base/utf8.h"
#include "libref/text/pattern.h"

#include <pcre2.h>
#include <stdlib.h>

/* Free allowance at each position, in PCRE2 steps and bytes looked at, and the factor by which it
 * grows when it was too small. A run of n blanks takes about n of both, once. An expression that
 * looks n bytes ahead at every position, or backtracks exponentially, soon uses up the reserve. */
enum { FREE_STEPS = 1000, FREE_BYTES = 4096, MORE = 16 };
static const uint64_t RESERVE = 20000000, RESERVE_A_BYTE = 256;

enum { LONGEST_PATTERN = 65536, MOST_STACK = 65536 /* KiB, for the interpreter */ };

struct vn_split_work {
	pcre2_match_data    *data;
	pcre2_match_context *context;
	uint64_t             reserve;
};

vn_status vn_split_create(const char *pattern, size_t bytes, bool literal, vn_split **split, vn_error *err)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	char                  *ours = NULL;
	vn_status              st = VN_OK;
	int                    code = 0;
	PCRE2_SIZE             at = 0;

	*split = NULL;
	if (!context)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for the pattern");
	else if (bytes == 0 || bytes > LONGEST_PATTERN)
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "the pattern has %zu bytes, expected 1 to %d", bytes, LONGEST_PATTERN);
	else if (!literal)
		st = vn_pattern_translate(pattern, bytes, &ours, err);
	if (st)
		goto done;
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	*split = pcre2_compile((PCRE2_SPTR)(ours ? ours : pattern), ours ? PCRE2_ZERO_TERMINATED : bytes,
	                       PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED | (literal ? PCRE2_LITERAL : PCRE2_UCP),
	                       &code, &at, context);
	if (!*split && code == PCRE2_ERROR_HEAP_FAILED)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for the pattern");
	else if (!*split) {
		PCRE2_UCHAR why[128];
		pcre2_get_error_message(code, why, sizeof why);
		/* The offset is one in the translation, so quote the translation. */
		const char *there = ours ? ours + (at > 12 ? at - 12 : 0) : "";
		st = vn_fail(err, VN_ERR_FORMAT, "the pattern does not compile: %s, near '%.24s'", (const char *)why, there);
	}
done:
	free(ours);
	pcre2_compile_context_free(context);
	return st;
}

void vn_split_destroy(vn_split *s)
{
	pcre2_code_free(s);
}

vn_split_work *vn_split_work_create(size_t bytes)
{
	vn_split_work *w = vn_alloc_zero(1, sizeof *w);

	w->data = vn_alloc_check(pcre2_match_data_create(1, NULL));
	w->context = vn_alloc_check(pcre2_match_context_create(NULL));
	pcre2_set_heap_limit(w->context, MOST_STACK);
	w->reserve = RESERVE + RESERVE_A_BYTE * bytes;
	return w;
}

void vn_split_work_destroy(vn_split_work *w)
{
	if (!w)
		return;
	pcre2_match_data_free(w->data);
	pcre2_match_context_free(w->context);
	free(w);
}

/* Takes the possible cost of the next, larger allowance from the reserve. */
static bool charge_reserve(vn_split_work *w, uint64_t *allowance)
{
	*allowance *= MORE;
	if (*allowance > w->reserve || *allowance > UINT32_MAX)
		return false;
	w->reserve -= *allowance;
	return true;
}

/* End of the bytes that a search from `at` may look at, rounded to whole characters. */
static size_t find_horizon(const char *text, size_t bytes, size_t at, uint64_t looked)
{
	size_t end = looked < bytes - at ? at + (size_t)looked : bytes;

	while (end < bytes && ((unsigned char)text[end] & 0xc0) == 0x80)
		end++;
	return end;
}

static const size_t NO_MATCH = SIZE_MAX;

/* The end of the match that begins at byte `at`, or NO_MATCH. */
static vn_status match_at(const vn_split *s, vn_split_work *w, vn_split_text x, size_t at, size_t *end, vn_error *err)
{
	uint64_t       steps = FREE_STEPS, looked = FREE_BYTES;
	const uint32_t options = PCRE2_NO_UTF_CHECK;

	for (;;) {
		const size_t sight = find_horizon(x.text, x.bytes, at, looked);
		bool         paid = true;
		pcre2_set_match_limit(w->context, (uint32_t)steps);
		/* PARTIAL_HARD reports when the match looked at the end of the visible bytes. */
		const int rc = pcre2_match(s, (PCRE2_SPTR)x.text, sight, at,
		                           options | (sight < x.bytes ? PCRE2_PARTIAL_HARD : 0), w->data, w->context);
		if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH) {
			*end = rc >= 0 ? pcre2_get_ovector_pointer(w->data)[1] : NO_MATCH;
			return VN_OK;
		}
		if (rc == PCRE2_ERROR_PARTIAL)
			paid = charge_reserve(w, &looked);
		else if (rc == PCRE2_ERROR_MATCHLIMIT)
			paid = charge_reserve(w, &steps);
		else
			return vn_fail(err, VN_ERR_UNSUPPORTED,
			               "the pattern cannot be matched at byte %zu of the text: PCRE2 error %d", at, rc);
		if (!paid)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "matching the pattern takes too many steps at byte %zu of the text",
			               at);
	}
}

vn_status vn_split_next(const vn_split *s, vn_split_work *w, vn_split_text x, size_t at, size_t *end, vn_error *err)
{
	size_t    match = at;
	vn_status st = match_at(s, w, x, at, &match, err);

	*end = match;
	if (st || (match != NO_MATCH && match > at))
		return st;
	/* No match here: the piece extends to the next position with a match, even an empty one. */
	*end = at;
	for (match = NO_MATCH; !st && match == NO_MATCH && *end < x.bytes;) {
		*end += (size_t)vn_utf8_length(x.text + *end, x.bytes - *end);
		st = match_at(s, w, x, *end, &match, err);
	}
	return st;
}
