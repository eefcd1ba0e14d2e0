/* checkpoint.c: see checkpoint.h. */
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"

#include "libref/base/text.h"
#include "libref/base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *word;
	vn_allow    bit;
} words[] = {
	{ "token_ids", VN_ALLOW_TOKEN_IDS }, { "positions", VN_ALLOW_TOKEN_IDS },   { "config", VN_ALLOW_CONFIG },
	{ "weights", VN_ALLOW_WEIGHTS },     { "incomplete", VN_ALLOW_INCOMPLETE }, { "missing", VN_ALLOW_MISSING },
	{ "extra", VN_ALLOW_EXTRA },         { "precision", VN_ALLOW_PRECISION },   { "replicas", VN_ALLOW_REPLICAS },
	{ "claims", VN_ALLOW_CLAIMS },       { "floor", VN_ALLOW_FLOOR },           { "ranks", VN_ALLOW_RANKS },
	{ "steps", VN_ALLOW_STEPS },         { "itself", VN_ALLOW_ITSELF },         { "digest", VN_ALLOW_DIGEST },
	{ "agreed", VN_ALLOW_AGREED },
};
const char *const vn_allow_names =
	"token_ids|positions|config|weights|incomplete|missing|extra|precision|replicas|claims|floor|ranks|steps|itself|"
	"digest|agreed";

const char *vn_allow_parse(const char *list, unsigned *set)
{
	while (*list) {
		const size_t n = strcspn(list, ",");
		unsigned     bit = 0;
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			if (strlen(words[i].word) == n && memcmp(words[i].word, list, n) == 0)
				bit = words[i].bit;
		if (!bit)
			return list;
		*set |= bit;
		list += n + (list[n] == ',');
	}
	return NULL;
}

void vn_allow_list(unsigned set, char list[VN_ALLOW_WORDS])
{
	*list = 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (set & words[i].bit)
			vn_text_add(list, VN_ALLOW_WORDS, "%s%s", *list ? "," : "", words[i].word);
}

static const char *const status_text[VN_N_CHECKPOINT_STATUSES] = {
	[VN_WITHIN] = "within",       [VN_OUTSIDE] = "outside",     [VN_ACCUMULATED] = "accumulated",
	[VN_UNLIMITED] = "unlimited", [VN_MISSING] = "missing",     [VN_EXTRA] = "extra",
	[VN_EMPTY] = "empty",         [VN_MISSHAPEN] = "misshapen", [VN_UNREADABLE] = "unreadable",
	[VN_AGREED] = "agreed",       [VN_EQUAL] = "equal",
};

const char *vn_checkpoint_status_text(vn_checkpoint_status s)
{
	return status_text[s];
}

double vn_checkpoint_limit_fraction(const vn_checkpoint *p)
{
	double most = NAN;

	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		most = fmax(most, vn_check_limit_fraction(&k));
	}
	return most;
}

void vn_checkpoint_say(vn_checkpoint *p, const char *format, ...)
{
	char    text[200];
	va_list args;
	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	free(p->detail);
	p->detail = strdup(text); /* axes and basis are untrusted text */
}

double vn_check_limit_fraction(const vn_check *k)
{
	if (!(fabs(k->value) <= 1.7976931348623157e308))
		return (double)INFINITY;
	const bool   higher = k->form != VN_OVER_FLOOR && vn_metric_get(k->metric)->better == VN_HIGHER;
	const double far = higher ? 1 - k->value : k->value, near = higher ? 1 - k->limit : k->limit;
	if (!(far > 0))
		return 0;
	return near > 0 ? far / near : (double)INFINITY;
}

double vn_metric_shown(const vn_checkpoint *p, vn_metric m)
{
	const bool count = vn_metric_get(m)->kind == VN_KIND_COUNT;
	return p->m.n > 0 && p->m.has[m] && (count || p->m.finite > 0) ? p->m.value[m] : (double)NAN;
}

double vn_floor_value(const vn_checkpoint *p, vn_metric m)
{
	return p->has_floor ? p->floor[m] : (double)NAN;
}

void vn_remarks_refuse(const vn_opened *o, vn_remarks *remarks, vn_allow bit, const char *word, const char *format, ...)
{
	char    text[VN_LINE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (o->request.options->allow & bit)
		vn_lines_add(&remarks->notes, "allowed (%s): %s", word, text);
	else
		vn_lines_refuse(&remarks->refusals, word, "%s", text);
}

void vn_opened_forget(const vn_opened *o)
{
	vn_recording_forget(o->ref);
	vn_recording_forget(o->cand);
}

void vn_opened_was_read(const vn_opened *o, const vn_checkpoint *p)
{
	vn_recording_was_read(o->ref, p->ref);
	vn_recording_was_read(o->cand, p->cand);
}

const char *vn_point_of(const vn_checkpoint *p)
{
	const char *dot = p->layer >= 0 ? strchr(p->name, '.') : NULL;
	return dot ? dot + 1 : vn_name_in_layer(p->name);
}

const char *vn_label(const vn_checkpoint *p, char *text)
{
	VN_FREED char *name = vn_utf8_escape(p->name, strlen(p->name)); /* two names stay two */
	if (p->step == 0)
		snprintf(text, VN_LABEL, "%s", name ? name : p->name);
	else
		snprintf(text, VN_LABEL, "step.%d/%s", p->step, name ? name : p->name);
	return vn_text_clean(text, VN_LABEL);
}
