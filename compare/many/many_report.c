/* many_report.c: see many_report.h. */
#include "compare/many/many_report.h"
#include "compare/comparison/checkpoint.h"
#include "compare/result/words.h"

#include "libref/base/text.h"

#include <math.h>
#include <string.h>

const char *const vn_many_verdicts[3] = { "within", "outside", "trouble" };

const char *vn_many_legend(const vn_many *m)
{
	return m->vote ? "nmse between each and the one marked =, then nmse over the floor (" VN_FLOOR_MEANS
	                 ") where it is known; ! is not with the majority"
	               : "nmse against the reference, then nmse over the floor (" VN_FLOOR_MEANS
	                 ") where it is known; ! is outside the limits";
}

const char *vn_many_say_cell(const vn_many_cell *x, char text[VN_MANY_CELL])
{
	if (!x)
		return strcpy(text, "-");
	strcpy(text, x->fails ? "! " : "");
	if (x->self)
		vn_text_add(text, VN_MANY_CELL, "=");
	else if (!x->measured)
		vn_text_add(text, VN_MANY_CELL, "%s", vn_checkpoint_status_text(x->status));
	else
		vn_text_add(text, VN_MANY_CELL, "%.1e", isnan(x->nmse) ? (double)NAN : x->nmse);
	if (x->measured && !isnan(x->nmse) && !isnan(x->over_floor))
		vn_text_add(text, VN_MANY_CELL, x->over_floor < 1000 ? " %.3gx" : " %.1ex", x->over_floor);
	return text;
}

const char *vn_many_say_odd(const vn_many *m, int row, char text[VN_MANY_LETTERS])
{
	if (vn_many_odd(m, row) == VN_MANY_ALL)
		return strcpy(text, "all");
	*text = 0;
	for (int i = 0; i < m->n; i++) {
		const vn_many_cell *x = vn_many_cell_of(m, row, i);
		if (x && x->fails)
			vn_text_add(text, VN_MANY_LETTERS, "%s%c", *text ? ", " : "", vn_many_letter(i));
	}
	return text;
}

const char *vn_many_say_verdict(const vn_many_candidate *x, char text[VN_MANY_VERDICT])
{
	if (x->status == 2)
		snprintf(text, VN_MANY_VERDICT, "%s: %s", vn_many_said(x, "verdict"), vn_many_said(x, "trouble"));
	else
		snprintf(text, VN_MANY_VERDICT, "%s: %s%s%s", vn_many_said(x, "verdict"), vn_many_said(x, "counts"),
		         *vn_many_said(x, "start") ? " " : "", vn_many_said(x, "start"));
	return text;
}

const char *vn_many_say_all(const vn_many *m)
{
	static const char *const verdict[3][3] = { { "all within limits", "OUTSIDE limits", "not all could be compared" },
		                                       { "all agree", "NOT all agree", "not all could be compared" },
		                                       { "all agree", "NOT all agree without a warning (--strict)",
		                                         "not all could be compared" } };
	return verdict[m->vote + m->strict][vn_many_status(m)];
}

static void say_those(const vn_many *m, int status, const char *what, char text[VN_MANY_WHO])
{
	const int n = vn_many_count(m, status);
	if (n == 0)
		return;
	if (m->n == 1) {
		vn_text_add(text, VN_MANY_WHO, "1 %s %s", m->vote ? "recording" : "candidate", what);
		return;
	}
	if (*text)
		vn_text_add(text, VN_MANY_WHO, ", %d %s (", n, what);
	else
		vn_text_add(text, VN_MANY_WHO, "%d of %d %s %s (", n, m->n, m->vote ? "recordings" : "candidates", what);
	for (int i = 0, k = 0; i < m->n; i++)
		if (m->candidate[i].status == status)
			vn_text_add(text, VN_MANY_WHO, "%s%c", k++ ? " " : "", vn_many_letter(i));
	vn_text_add(text, VN_MANY_WHO, ")");
}

const char *vn_many_say_who(const vn_many *m, char text[VN_MANY_WHO])
{
	*text = 0;
	say_those(m, 1,
	          m->strict ? "not with the majority, or with a warning"
	          : m->vote ? "not with the majority"
	                    : "outside",
	          text);
	say_those(m, 2, "not compared", text);
	say_those(m, 0, m->vote ? "with the majority" : "within", text);
	return text;
}
