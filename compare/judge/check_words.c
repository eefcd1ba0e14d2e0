/* check_words.c: see check_words.h. */
#include "compare/judge/check_words.h"
#include "compare/comparison/checks.h"
#include "compare/judge/judge.h"

#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The limit with the fewest digits that read back to the same value. */
static const char *say_limit(double limit, char *text, size_t room)
{
	for (int digits = 3; digits <= 17; digits++) {
		snprintf(text, room, "%.*g", digits, limit);
		if (strtod(text, NULL) == limit)
			break;
	}
	return text;
}

/* That of an operation: of a span it depends on the degrees of freedom, with as many digits as a
 * double has. */
static const char *say_operation_limit(double limit, char *text, size_t room)
{
	snprintf(text, room, "%.4g", limit);
	return text;
}

/* The value with enough digits to show on which side of the limit it is. */
static const char *say_value(double value, double limit, int digits, char *text, size_t room)
{
	for (; digits <= 17; digits++) {
		snprintf(text, room, "%.*g", digits, value);
		const double shown = strtod(text, NULL);
		if (value > limit ? shown > limit : value < limit ? shown < limit : true)
			break;
	}
	return text;
}

/* Only the file name of the rule's path: the report's head shows the folder. */
const char *vn_judge_say_check(const vn_checkpoint *p, const vn_check *k, char text[VN_WORDS])
{
	char                  key[VN_KEY_TEXT], value[40], limit[40];
	const vn_metric_info *info = vn_metric_get(k->metric);
	const bool            higher = k->form != VN_OVER_FLOOR && info->better == VN_HIGHER;
	vn_limit_key(k->form, k->metric, key);
	text[0] = 0;
	if (k->note)
		vn_text_add(text, VN_WORDS, "%s: %s", key, k->note);
	else if (k->form == VN_OF_OPERATION)
		vn_text_add(text, VN_WORDS,
		            "%s %s x floor, limit %s (the error of this operation alone, recomputed on the candidate's inputs)",
		            key, say_value(k->value, k->limit, 3, value, sizeof value),
		            say_operation_limit(k->limit, limit, sizeof limit));
	else /* near 1 the leading digits carry no information: 0.99998 against 0.99999 */
		vn_text_add(text, VN_WORDS, "%s %s%s, limit %s", key,
		            say_value(k->value, k->limit, higher ? 7 : 3, value, sizeof value),
		            k->form != VN_OVER_FLOOR && info->better == VN_NEAR_ONE ? " from 1" : "",
		            say_limit(k->limit, limit, sizeof limit));
	if (k->rule && k->rule->key[k->form][k->metric].deep)
		vn_text_add(text, VN_WORDS, " (by depth, %s to %s)",
		            say_limit(k->rule->key[k->form][k->metric].value, value, sizeof value),
		            say_limit(k->rule->key[k->form][k->metric].last, limit, sizeof limit));
	if (k->steps)
		vn_text_add(text, VN_WORDS, " over %d steps", k->steps);
	const bool    channel = info->worst == VN_WORST_CHANNEL;
	const int64_t place = vn_metric_worst_of(&p->m, k->metric);
	if (place >= 0 && !k->note && (channel || !k->steps))
		vn_text_add(text, VN_WORDS, " at %s %" PRId64, channel ? "channel" : "token",
		            channel ? place : p->first_token + place);
	if (k->rule && k->line == 0)
		vn_text_add(text, VN_WORDS, " (%s)", k->rule->file);
	else if (k->form == VN_OF_OPERATION)
		return text;
	else if (k->rule)
		vn_text_add(text, VN_WORDS, " (%s:%d)", vn_text_file(k->rule->file), k->line);
	else
		vn_text_add(text, VN_WORDS,
		            k->note == vn_not_gathered                           ? " (always, unless --allow ranks)"
		            : p->invalid_floor && k->note == p->detail           ? " (always, unless --allow floor)"
		            : k->note && (k->note == p->vacuous || !p->m.finite) ? " (always, unless the limits allow constant)"
		                                                                 : " (always, unless the limits set it)");
	return text;
}

const char *vn_judge_worst_why(const vn_checkpoint *p)
{
	if (p->worst < 0)
		return NULL;
	const vn_check k = vn_check_at(p, p->worst);
	return k.rule ? vn_rule_why(k.rule, k.form, k.metric) : NULL;
}

const char *vn_judge_say_failure(const vn_checkpoint *p, char text[VN_WORDS])
{
	if (p->worst >= 0) {
		const vn_check worst = vn_check_at(p, p->worst);
		vn_judge_say_check(p, &worst, text);
		if (p->since > VN_FIXED && isfinite(p->was))
			vn_text_add(text, VN_WORDS, "; %.3g in the baseline", p->was);
		else if (p->since == VN_NEW)
			vn_text_add(text, VN_WORDS, "; new since the baseline");
		return text;
	}
	snprintf(text, VN_WORDS, "%s%s%s%s%s", vn_checkpoint_status_text(p->status), p->detail ? ": " : "",
	         p->detail ? p->detail : "", p->contents ? "; " : "", p->contents ? p->contents : "");
	return text;
}
