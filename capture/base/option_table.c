/* option_table.c: see option_table.h. */
#include "capture/base/option_table.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

enum { FIRST = 256 }; /* of getopt's numbers: those below are letters */

/* 0: none. */
static char letter_of(const vn_option *o)
{
	return o->name[1] == ',' ? *o->name : 0;
}

static const char *name_of(const vn_option *o)
{
	return letter_of(o) ? o->name + 2 : o->name;
}

void vn_options_usage(const vn_option *table, int n, FILE *to)
{
	for (int i = 0; i < n; i++) {
		char left[160];
		snprintf(left, sizeof left, "--%s%s%s", name_of(&table[i]), table[i].value ? " " : "", table[i].value ? table[i].value : "");
		fprintf(to, "  %-34s %s\n", left, table[i].means);
	}
}

/* The place of what getopt returned; n where it is none. */
static int place(const vn_option *table, int n, int c)
{
	if (c >= FIRST)
		return c - FIRST;
	for (int i = 0; i < n; i++)
		if (c && letter_of(&table[i]) == c)
			return i;
	return n;
}

vn_status vn_options_read(const vn_option *table, int n, int argc, char **argv, vn_option_taker *take, void *context, bool *help, vn_error *err)
{
	struct option longs[VN_MOST_OPTIONS + 1] = { 0 };
	char          shorts[2 * VN_MOST_OPTIONS + 2] = ":", *end = shorts + 1;
	bool          given[VN_MOST_OPTIONS] = { false };
	vn_status     st = VN_OK;
	int           c;

	assert(n <= VN_MOST_OPTIONS);
	for (int i = 0; i < n; i++) {
		longs[i] = (struct option){ name_of(&table[i]), table[i].value ? required_argument : no_argument, NULL, FIRST + i };
		if (letter_of(&table[i])) {
			*end++ = letter_of(&table[i]);
			if (table[i].value)
				*end++ = ':';
		}
	}
	*help = false;
	optind = 0; /* start afresh */
	opterr = 0;
	while (!st && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const int i = place(table, n, c);
		if (i == n)
			return vn_fail(err, VN_ERR_USAGE, c == ':' ? "option '%s' wants a value" : "unknown option '%s'", argv[optind - 1]);
		if (strcmp(name_of(&table[i]), "help") == 0) {
			*help = true;
			return VN_OK;
		}
		if (table[i].value && table[i].often == VN_ONCE && given[i])
			return vn_fail(err, VN_ERR_USAGE, "--%s is given twice", name_of(&table[i]));
		given[i] = true;
		st = take(context, i, optarg, err);
	}
	return st;
}
