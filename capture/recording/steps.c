/* steps.c: see steps.h. */
#include "capture/recording/steps.h"
#include "libref/base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

bool vn_steps_disorder(const vn_recording *r, char words[VN_STEPS_WORDS])
{
	const vn_step *s;
	const int      n = vn_recording_steps(r, &s);
	for (int i = 1; i < n; i++) {
		const int64_t end = s[i - 1].position + s[i - 1].tokens;
		if (s[i].position < end) {
			snprintf(words, VN_STEPS_WORDS,
			         "step.%d begins at token %" PRId64 ", but step.%d ends at %" PRId64 " already", s[i].number,
			         s[i].position, s[i - 1].number, end);
			return true;
		}
	}
	return false;
}

bool vn_steps_again(const vn_recording *r, const vn_recording *other, char words[VN_STEPS_WORDS])
{
	const vn_step *s;
	const int32_t *id, *at, *its;
	const int      calls = vn_recording_batch(r) ? 0 : vn_recording_calls(r, &s);
	const int64_t  n = vn_recording_tokens(r, &id, &at), m = other ? vn_recording_tokens(other, &its, NULL) : 0;
	int64_t        same = 0;

	while (same < n && same < m && its[same] == id[same])
		same++;
	for (int k = 1; k < calls; k++) {
		const int64_t i = s[k].position;
		if (i < 1 || i >= n || id[i] != id[i - 1] || (at[i] != at[i - 1] && (i != same || same == m)))
			continue;
		snprintf(words, VN_STEPS_WORDS, "step.%d begins with token %" PRId64 " again%s", s[k].number, i - 1,
		         at[i] == at[i - 1] ? ", at the same position: the cache holds it twice"
		                            : ": run twice (then the cache holds it twice), or chosen");
		return true;
	}
	return false;
}

static int64_t stated_tokens(const vn_recording *r)
{
	const int32_t *id, *at;
	const int64_t  batch = vn_recording_batch(r);
	return vn_recording_complete(r) ? vn_recording_tokens(r, &id, &at) / (batch ? batch : 1) : 0;
}

/* The token count of the longest run; a run that was cut off counts the tokens
 * its steps reached. */
static int64_t tokens_of(const vn_recording *const *r, int n)
{
	int64_t most = 0;
	for (int i = 0; i < n; i++) {
		const vn_step *s;
		const int      steps = vn_recording_steps(r[i], &s);
		int64_t        own = stated_tokens(r[i]);
		for (int k = 0; k < steps; k++)
			own = s[k].position + s[k].tokens > own ? s[k].position + s[k].tokens : own;
		most = steps && own > most ? own : most;
	}
	return most;
}

/* The last step of any run that ends at or before token `at`; -1: none. */
static int step_before(const vn_recording *const *r, int n, int64_t at)
{
	int found = -1;
	for (int i = 0; i < n; i++) {
		const vn_step *s;
		const int      steps = vn_recording_steps(r[i], &s);
		for (int k = 0; k < steps; k++)
			if (s[k].position + s[k].tokens <= at && s[k].number > found)
				found = s[k].number;
	}
	return found;
}

int64_t vn_steps_gap(const vn_recording *const *r, int n, char words[VN_STEPS_WORDS])
{
	const int64_t all = tokens_of(r, n);
	int64_t      *change = vn_alloc_zero((size_t)all + 1, sizeof *change); /* steps from one token to the next */
	int64_t       first = -1, last = -1, now = 0, missing = 0;

	for (int i = 0; i < n; i++) {
		const vn_step *s;
		const int      steps = vn_recording_steps(r[i], &s);
		for (int k = 0; k < steps; k++) {
			change[s[k].position]++;
			change[s[k].position + s[k].tokens]--;
		}
	}
	for (int64_t t = 0; t < all; t++) {
		now += change[t];
		if (now > 0)
			continue;
		missing++;
		first = first < 0 ? t : first;
		last = last < 0 || last == t - 1 ? t : last; /* of the first group only */
	}
	free(change);
	if (!missing)
		return 0;
	const int     before = step_before(r, n, first);
	const int64_t more = missing - (last - first + 1);
	char          where[32], to[32] = "", rest[32] = "";
	snprintf(where, sizeof where, before < 0 ? "the first" : "after step.%d", before);
	if (first != last)
		snprintf(to, sizeof to, " to %" PRId64, last);
	if (more)
		snprintf(rest, sizeof rest, " and %" PRId64 " more", more);
	snprintf(words, VN_STEPS_WORDS, "token%s %" PRId64 "%s (%s)%s", first == last ? "" : "s", first, to, where, rest);
	return missing;
}
