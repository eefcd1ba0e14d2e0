/* compare_again.c: the command line once more, for the commands that a report proposes. */
#include "compare/compare_line.h"

#include "libref/base/text.h"

#include <inttypes.h>
#include <string.h>

static void say_allowed(unsigned allow, char again[VN_SHELL_LINE])
{
	char     words[300] = "", one[40];
	unsigned set;

	for (const char *p = vn_allow_names; *p; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|')) {
		snprintf(one, sizeof one, "%.*s", (int)strcspn(p, "|"), p);
		set = 0;
		if (!vn_allow_parse(one, &set) && (allow & set))
			vn_text_add(words, sizeof words, "%s%s", *words ? "," : "", one);
	}
	if (*words)
		vn_shell_option(again, "--allow", words);
}

/* Writes the options that select the files and the part to compare, for the commands that a report proposes. */
void vn_compare_again(const vn_compare_line *k, char again[VN_SHELL_LINE])
{
	char number[24];

	vn_shell_begin(again);
	vn_shell_add(again, VN_SHELL_LINE, k->ref);
	if (k->n_ranks > 1)
		vn_shell_add(again, VN_SHELL_LINE, "--shard");
	for (int i = 0; i < k->n_ranks; i++)
		vn_shell_add(again, VN_SHELL_LINE, k->n_ranks > 1 ? k->ranks[i] : k->cand);
	for (int i = 0; i < k->sides.n_names; i++)
		vn_shell_option(again, "--names", k->sides.names[i]);
	for (int i = 0; i < k->sides.n_ref_names; i++)
		vn_shell_option(again, "--ref-names", k->sides.ref_names[i]);
	for (int i = 0; i < k->how.o.n_points; i++)
		vn_shell_option(again, "--points", k->how.point[i]);
	snprintf(number, sizeof number, "%" PRId64, (int64_t)k->sides.batch_row);
	if (k->sides.batch_row >= 0)
		vn_shell_option(again, "--batch-row", number);
	snprintf(number, sizeof number, "%" PRId64, (int64_t)k->sides.ref_batch_row);
	if (k->sides.ref_batch_row >= 0)
		vn_shell_option(again, "--ref-batch-row", number);
	if (k->limits)
		vn_shell_option(again, "--limits", k->limits);
	if (k->how.o.trust)
		vn_shell_add(again, VN_SHELL_LINE, "--trust-digests");
	say_allowed(k->how.o.allow, again);
	vn_shell_end(again);
}
