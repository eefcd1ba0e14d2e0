/* options.c: see options.h. */
#include "libref/base/options.h"
#include "libref/base/nearest.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

enum { HELP = 'h', OPERAND = 1, LONG_HELP = 2, FIRST = 256 }; /* among getopt's codes, those below FIRST are letters */

int vn_complain(const char *command, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vn_say(stderr, "vernier %s: ", command);
	vn_say_args(stderr, format, args);
	va_end(args);
	vn_say(stderr, "\n(vernier %s --help)\n", command);
	return 2;
}

/* A command's options in getopt's two forms. */
typedef struct getopt_options {
	struct option    longs[VN_MOST_OPTIONS + 2];
	char             shorts[2 * VN_MOST_OPTIONS + 4];
	const vn_option *operand; /* NULL: operands are left in argv */
} getopt_options;

static int has_argument(const vn_option *o)
{
	return o->kind == VN_OPTIONAL ? optional_argument : o->argument ? required_argument : no_argument;
}

static bool has_option(const vn_command *c, const char *name)
{
	for (int i = 0; i < c->n; i++)
		if (vn_option_is_of(c, &c->option[i]) && strcmp(c->option[i].name, name) == 0)
			return true;
	return false;
}

/* Whether getopt takes this text, without its dashes, for the option: it is the name, or begins it
 * and no other name. */
static bool abbreviates(const vn_command *c, const char *text, const char *name)
{
	const size_t n = strcspn(text, "=");

	if (!n || strncmp(text, name, n) != 0)
		return false;
	for (int i = 0; name[n] && i < c->n; i++)
		if (vn_option_is_of(c, &c->option[i]) && strcmp(c->option[i].name, name) != 0 &&
		    strncmp(text, c->option[i].name, n) == 0)
			return false;
	return true;
}

bool vn_option_is_given(const vn_command *c, const char *name, int argc, char **argv)
{
	bool given = false;

	for (int i = 1; has_option(c, name) && i < argc && strcmp(argv[i], "--") != 0; i++)
		given = given || (strncmp(argv[i], "--", 2) == 0 && abbreviates(c, argv[i] + 2, name));
	return given;
}

/* The other command's options are included too: otherwise their names would be taken as
 * abbreviations of this command's longer names. */
static void describe_options(const vn_command *c, getopt_options *d)
{
	char *end = d->shorts;
	int   n = 0;

	*d = (getopt_options) { .operand = NULL };
	for (int i = 0; i < c->n; i++)
		if (!c->option[i].name && c->option[i].kind != VN_HEADING)
			d->operand = &c->option[i];
	if (d->operand)
		*end++ = '-'; /* report operands in order */
	*end++ = ':';     /* tell a missing argument from an unknown option */
	*end++ = HELP;
	for (int i = 0; i < c->n; i++) {
		const vn_option *o = &c->option[i];
		if (!o->name || (!vn_option_is_of(c, o) && has_option(c, o->name)))
			continue;
		d->longs[n++] = (struct option) { o->name, has_argument(o), NULL, FIRST + i };
		if (o->letter && vn_option_is_of(c, o)) {
			*end++ = o->letter;
			if (o->argument)
				*end++ = ':';
		}
	}
	d->longs[n] = (struct option) { "help", no_argument, NULL, LONG_HELP };
}

/* The option for a code from getopt; NULL: none. */
static const vn_option *find_option(const vn_command *c, const getopt_options *d, int code)
{
	if (code >= FIRST)
		return &c->option[code - FIRST];
	if (code == OPERAND)
		return d->operand;
	for (int i = 0; i < c->n; i++)
		if (vn_option_is_of(c, &c->option[i]) && c->option[i].letter && c->option[i].letter == code)
			return &c->option[i];
	return NULL;
}

static vn_status read_number(const vn_option *o, const char *value, int64_t *x, vn_error *err)
{
	return vn_text_whole(value, o->low, o->high, x)
	           ? VN_OK
	           : vn_fail(err, VN_ERR_USAGE, "--%s takes a whole number from %" PRId64 " to %" PRId64 ", not '%s'",
	                     o->name, o->low, o->high, value);
}

static vn_status read_choice(const vn_option *o, const char *value, int *chosen, vn_error *err)
{
	const char *words = vn_option_words(o);
	const int   i = vn_text_word(words, value);
	char        all[200];
	vn_nearest  near;

	if (i >= 0) {
		*chosen = i;
		return VN_OK;
	}
	vn_nearest_start(&near, value);
	vn_nearest_try_words(&near, words);
	return vn_fail(err, VN_ERR_USAGE, "--%s takes %s, not '%s'%s", o->name, vn_text_words(words, all, sizeof all),
	               value, vn_nearest_hint(&near));
}

static vn_status add_to_list(const vn_option *o, const char *value, char *to, vn_error *err)
{
	const char **list = (const char **)(void *)(to + o->at);
	int         *n = (int *)(void *)(to + o->count);

	if (*n == o->most)
		return vn_fail(err, VN_ERR_USAGE, "--%s can be given at most %d times", o->name, o->most);
	list[(*n)++] = value;
	return VN_OK;
}

static vn_status store_value(const vn_option *o, const char *value, void *command, vn_error *err)
{
	char     *to = command;
	void     *field = to + o->at;
	int64_t   n = 0;
	vn_status st = VN_OK;

	switch (o->kind) {
	case VN_FLAG: *(bool *)field = true; break;
	case VN_OPTIONAL: *(const char **)field = value ? value : ""; break;
	case VN_TEXT: *(const char **)field = value; break;
	case VN_CHOICE: return read_choice(o, value, field, err);
	case VN_LIST: return add_to_list(o, value, to, err);
	case VN_WHOLE: return read_number(o, value, field, err);
	case VN_DOUBLE:
		return vn_text_real(value, (double)o->low, (double)o->high, field)
		           ? VN_OK
		           : vn_fail(err, VN_ERR_USAGE, "--%s takes a number from %" PRId64 " to %" PRId64 ", not '%s'",
		                     o->name, o->low, o->high, value);
	case VN_INT:
		if (!(st = read_number(o, value, &n, err)))
			*(int *)field = (int)n;
		break;
	case VN_TAKE:
	case VN_TAKE_EACH:
	case VN_BITS: return o->take(command, o, value, err);
	case VN_HEADING: break;
	}
	return st;
}

static bool may_repeat(const vn_option *o)
{
	return o->kind == VN_FLAG || o->kind == VN_LIST || o->kind == VN_TAKE_EACH || o->kind == VN_BITS;
}

static void say_number(vn_option_said *say, void *context, const vn_option *o, int64_t x, bool set)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, x);
	if (set)
		say(context, o, text);
}

static void say_option(const vn_option *o, const char *from, vn_option_said *say, void *context)
{
	const void *field = from + o->at;

	switch (o->kind) {
	case VN_FLAG:
		if (*(const bool *)field)
			say(context, o, NULL);
		break;
	case VN_OPTIONAL:
	case VN_TEXT:
		if (*(const char *const *)field)
			say(context, o, *(const char *const *)field);
		break;
	case VN_LIST:
		for (int i = 0; i < *(const int *)(const void *)(from + o->count); i++)
			say(context, o, ((const char *const *)field)[i]);
		break;
	case VN_INT: say_number(say, context, o, *(const int *)field, *(const int *)field >= o->low); break;
	case VN_WHOLE: say_number(say, context, o, *(const int64_t *)field, *(const int64_t *)field >= o->low); break;
	case VN_CHOICE: say_number(say, context, o, *(const int *)field, true); break;
	case VN_BITS: say_number(say, context, o, *(const unsigned *)field, *(const unsigned *)field != 0); break;
	case VN_DOUBLE:
	case VN_TAKE:
	case VN_TAKE_EACH:
	case VN_HEADING: break;
	}
}

void vn_options_each(const vn_command *c, const void *from, vn_option_said *say, void *context)
{
	for (int i = 0; i < c->n; i++)
		if (vn_option_is_of(c, &c->option[i]))
			say_option(&c->option[i], from, say, context);
}

/* ---- what the user's settings give ----------------------------------------------------------- */

enum { MOST_SETTINGS = 8 };

static struct {
	vn_option_setting *find;
	const vn_command  *command;  /* of the last command line */
	bool               no_files; /* --no-config */
	int                n;
	struct {
		const char *name, *from;
	} took[MOST_SETTINGS];
} settings;

void vn_options_settings(vn_option_setting *find)
{
	settings.find = find;
}

const char *vn_option_origin(const char *name)
{
	for (int i = 0; i < settings.n; i++)
		if (strcmp(settings.took[i].name, name) == 0)
			return settings.took[i].from;
	return NULL;
}

/* *value is NULL if no setting gives it. */
static vn_status find_setting(const char *name, const char **value, const char **from, vn_error *err)
{
	*value = *from = NULL;
	return settings.find ? settings.find(settings.command->name, name, !settings.no_files, value, from, err) : VN_OK;
}

/* Remembers a setting that the command took. as: "--limits", "MODEL"; NULL: its effect is seen. */
static void keep_setting(const char *name, const char *as, const char *value, const char *from)
{
	assert(settings.n < MOST_SETTINGS);
	settings.took[settings.n].name = name;
	settings.took[settings.n++].from = from;
	if (as && !settings.command->tells)
		vn_say(stderr, "vernier %s: note: %s %s: from %s\n", settings.command->name, as, value, from);
}

int vn_option_settled_model(const char **model)
{
	const char *from;
	vn_error    err;

	if (find_setting("model", model, &from, &err))
		return vn_complain(settings.command->name, "%s", err.text);
	if (*model)
		keep_setting("model", "MODEL", *model, from);
	return 0;
}

static bool is_given(const vn_command *c, const bool *given, const char *names)
{
	for (int i = 0; i < c->n; i++)
		if (given[i] && c->option[i].name && vn_text_is_word(names, c->option[i].name))
			return true;
	return false;
}

/* Takes a setting for an option that no argument gave. A word that this command's option does not
 * take is for others. */
static vn_status settle_option(const vn_option *o, void *to, vn_error *err)
{
	const char *value, *from;
	char        as[40];
	vn_status   st = find_setting(o->name, &value, &from, err);

	if (st || !value || (o->kind == VN_CHOICE && vn_text_word(vn_option_words(o), value) < 0) ||
	    (st = store_value(o, value, to, err)))
		return st;
	snprintf(as, sizeof as, "--%s", o->name);
	keep_setting(o->name, o->kind == VN_CHOICE ? NULL : as, value, from);
	return VN_OK;
}

static vn_status settle_options(const vn_command *c, const bool *given, void *to, vn_error *err)
{
	vn_status st = VN_OK;

	settings.command = c;
	settings.n = 0;
	settings.no_files = is_given(c, given, "no-config");
	for (int i = 0; i < c->n && !st; i++) {
		const vn_option *o = &c->option[i];
		if (o->set_without && !given[i] && vn_option_is_of(c, o) && !is_given(c, given, o->set_without) &&
		    (!o->set_with || is_given(c, given, o->set_with)))
			st = settle_option(o, to, err);
	}
	return st;
}

/* ---- options beside others ------------------------------------------------------------------- */

/* Is an option one that a given option excludes, or that excludes a given one? */
static bool is_excluded(const vn_command *c, const bool *given, const vn_option *o)
{
	for (int i = 0; i < c->n; i++)
		if (given[i] && c->option[i].not_with && vn_text_is_word(c->option[i].not_with, o->name))
			return true;
	return o->not_with && is_given(c, given, o->not_with);
}

/* Names the options that o needs, without those that are excluded, unless all are. */
static int complain_needs(const vn_command *c, const bool *given, const vn_option *o)
{
	char any[200] = "";
	bool excluded = false;

	for (int all = 0; all < 2 && !*any; all++) {
		excluded = all;
		for (int i = 0; i < c->n; i++) {
			const vn_option *other = &c->option[i];
			if (vn_option_is_of(c, other) && vn_text_is_word(o->needs, other->name) &&
			    (all || !is_excluded(c, given, other)))
				vn_text_add(any, sizeof any, "%s--%s%s%s", *any ? " or " : "", other->name, other->argument ? " " : "",
				            other->argument ? other->argument : "");
		}
	}
	return vn_complain(c->name, "--%s needs %s%s", o->name, any, excluded ? ", which other options exclude" : "");
}

/* Returns 0, or 2 after an error message. What excludes each other comes first: it may exclude what
 * another needs. */
static int check_others(const vn_command *c, const bool *given)
{
	for (int i = 0; i < c->n; i++) {
		const vn_option *o = &c->option[i];
		for (int k = 0; given[i] && o->not_with && k < c->n; k++)
			if (given[k] && c->option[k].name && vn_text_is_word(o->not_with, c->option[k].name))
				return o->because
				           ? vn_complain(c->name, "--%s %s: --%s cannot be used with it", o->name, o->because,
				                         c->option[k].name)
				           : vn_complain(c->name, "--%s and --%s exclude each other", o->name, c->option[k].name);
	}
	for (int i = 0; i < c->n; i++) {
		const vn_option *o = &c->option[i];
		if (given[i] && o->needs && !is_given(c, given, o->needs))
			return complain_needs(c, given, o);
	}
	return 0;
}

vn_status vn_take_nothing(void *to, const vn_option *o, const char *value, vn_error *err)
{
	(void)to;
	(void)o;
	(void)value;
	(void)err;
	return VN_OK;
}

/* ---- an option that there is not ------------------------------------------------------------ */

/* Lists the options that begin with name, as "--force, --force-ids". */
static int list_begun(const vn_command *c, const char *name, char *text, size_t room)
{
	int n = 0;

	for (int i = 0; i < c->n; i++)
		if (vn_option_is_of(c, &c->option[i]) && strncmp(c->option[i].name, name, strlen(name)) == 0)
			vn_text_add(text, room, "%s--%s", n++ ? ", " : "", c->option[i].name);
	return n;
}

/* Is word the end of name, as in "floor-precision"? */
static bool ends_in(const char *name, const char *word)
{
	const size_t n = strlen(name), k = strlen(word);
	return k > 2 && n > k && name[n - k - 1] == '-' && strcmp(name + n - k, word) == 0;
}

/* The name that other programs give to an option of ours. */
static const char *called_elsewhere(const char *name)
{
	static const struct {
		const char *names, *is;
	} elsewhere[] = {
		{ "atol|rtol|tol|tolerance|threshold|metric|metrics", "limits" },
		{ "prompt", "text" },
		{ "text", "prompt" },
		{ "dtype|torch-dtype", "precision" },
		{ "input-ids|token-ids", "ids" },
		{ "generate|max-new-tokens|max-tokens|n-predict", "decode" },
		{ "verbose|v", "all" },
		{ "layer|layers|tensor", "points" },
		{ "no-color|no-colour", "color=never" },
		{ "list|check", "dry-run" },
		{ "m", "model" },
		{ "p", "prompt" },
	};

	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (vn_text_is_word(elsewhere[i].names, name))
			return elsewhere[i].is;
	return name;
}

/* Reports the unknown option `given`, "--jsno" or "--jsno=x". "--json" suggests "--format json"
 * when it is a value of some option, and "--precision" suggests "--floor-precision". */
static int complain_unknown(const vn_command *c, const char *given)
{
	char       name[VN_NEAREST_MAX] = "", begun[400] = "";
	vn_nearest near;

	snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
	const char *bare = name + strspn(name, "-");
	if (*bare && name[1] == '-' && list_begun(c, bare, begun, sizeof begun) > 1)
		return vn_complain(c->name, "ambiguous option '%s': %s", name, begun);
	for (int i = 0; i < c->n; i++)
		if (vn_option_is_of(c, &c->option[i]) && ends_in(c->option[i].name, bare))
			return vn_complain(c->name, "unknown option '%s' (did you mean '--%s'?)", given, c->option[i].name);
	for (int i = 0; i < c->n; i++)
		if (vn_option_is_of(c, &c->option[i]) && vn_text_is_word(vn_option_words(&c->option[i]), bare))
			return vn_complain(c->name, "unknown option '%s' (did you mean '--%s %s'?)", given, c->option[i].name,
			                   bare);
	if (c->model && vn_text_is_word("model|m", bare))
		return vn_complain(c->name, "unknown option '%s': the model is given without an option, vernier %s %.*s", given,
		                   c->name, (int)strcspn(c->synopsis, "\n"), c->synopsis);
	for (int other = 0; other < 2; other++) {
		const char *word = other ? called_elsewhere(bare) : bare;
		vn_nearest_start(&near, word);
		for (int i = 0; i < c->n; i++)
			if (vn_option_is_of(c, &c->option[i]))
				vn_nearest_try(&near, c->option[i].name);
		if (other && strchr(word, '=') && has_option(c, "color"))
			vn_nearest_settle(&near, word);
		if (vn_nearest_found(&near))
			break;
	}
	if (vn_nearest_found(&near))
		return vn_complain(c->name, "unknown option '%s' (did you mean '--%s'?)", given, vn_nearest_found(&near));
	return vn_complain(c->name, "unknown option '%s'", given);
}

/* Reports an option without the value that it needs. */
static int complain_bare(const vn_command *c, const vn_option *o, const char *given)
{
	const char *words = o && (o->kind == VN_CHOICE || o->kind == VN_BITS) ? vn_option_words(o) : NULL;
	char        all[400];

	return !o      ? vn_complain(c->name, "%s needs a value", given)
	       : words ? vn_complain(c->name, "%s needs a value: %s", given, vn_text_words(words, all, sizeof all))
	               : vn_complain(c->name, "%s needs a value: %s %s", given, given, o->argument);
}

/* The argument in which getopt met an unknown letter: it moves on only behind the
 * last letter of one. */
static const char *unknown_argument(char *const *argv, int argc)
{
	const char  *last = argv[optind - 1], *now = optind < argc ? argv[optind] : NULL;
	const size_t n = strlen(last);

	if (optopt == 0 || !now || now[0] != '-' || now[1] == '-' || !strchr(now + 1, optopt) ||
	    (n > 1 && last[0] == '-' && last[n - 1] == optopt))
		return last;
	return now;
}

/* U+2010 to U+2015 and U+2212, as word processors write "--". */
static bool is_typographic(const char *word)
{
	return strncmp(word, "\xe2\x80", 2) == 0 ? (word[2] & 0xff) >= 0x90 && (word[2] & 0xff) <= 0x95
	                                         : strncmp(word, "\xe2\x88\x92", 3) == 0;
}

/* Is word i the value of the option before it? */
static bool is_value(const vn_command *c, char **argv, int i)
{
	const char  *before = argv[i - 1];
	const size_t n = strlen(before);

	for (int k = 0; i > 1 && k < c->n; k++) {
		const vn_option *o = &c->option[k];
		if (o->name && has_argument(o) == required_argument &&
		    ((strncmp(before, "--", 2) == 0 && n > 2 && strncmp(o->name, before + 2, n - 2) == 0) ||
		     (n == 2 && before[0] == '-' && before[1] == o->letter)))
			return true;
	}
	return false;
}

/* "-model" would be five options of one letter, and "-o=FILE" a file "=FILE".
 * Returns false after a message. */
static bool check_dashes(const vn_command *c, int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char  *name = argv[i] + 1;
		const size_t n = strcspn(name, "=");
		if (is_typographic(argv[i]) && !is_value(c, argv, i) && access(argv[i], F_OK) != 0) {
			vn_complain(
				c->name,
				"'%s' begins with a typographic dash: options begin with '-' or '--'; a name like this stands behind "
				"a word '--'",
				argv[i]);
			return false;
		}
		if (argv[i][0] != '-' || *name == '-' || n == 0)
			continue;
		for (int k = 0; k < c->n; k++)
			if (n > 1 && vn_option_is_of(c, &c->option[k]) && strlen(c->option[k].name) == n &&
			    strncmp(c->option[k].name, name, n) == 0) {
				vn_complain(c->name, "unknown option '-%.*s' (did you mean '--%s'?)", (int)n, name, c->option[k].name);
				return false;
			} else if (n == 1 && name[1] == '=' && c->option[k].letter == *name) {
				vn_complain(c->name, "'%s' has a '=' too much: -%c %s", argv[i], *name, name + 2);
				return false;
			}
	}
	return true;
}

/* Is the word an option of the command, "-o" or "--points" as a whole? */
static bool names_option(const vn_command *c, const char *word)
{
	if (word[0] == '-' && word[1] == '-')
		return has_option(c, word + 2) || strcmp(word, "--help") == 0;
	for (int i = 0; i < c->n && word[0] == '-' && word[1] && !word[2]; i++)
		if (vn_option_is_of(c, &c->option[i]) && c->option[i].letter == word[1])
			return true;
	return false;
}

int vn_options_read(const vn_command *c, int argc, char **argv, void *to)
{
	getopt_options d;
	bool           given[VN_MOST_OPTIONS] = { false };
	vn_error       err = { "" };
	int            code;

	assert(c->n <= VN_MOST_OPTIONS);
	if (!check_dashes(c, argc, argv))
		return 2;
	describe_options(c, &d);
	optind = 0; /* start afresh */
	opterr = 0;
	while ((code = getopt_long(argc, argv, d.shorts, d.longs, NULL)) != -1) {
		const char *last = argv[optind - 1];
		if (code == HELP || code == LONG_HELP) {
			(code == HELP ? vn_options_brief : vn_options_help)(c, stdout);
			return 1;
		}
		const vn_option *o = find_option(c, &d, code);
		if (!o)
			return code == ':' ? complain_bare(c, find_option(c, &d, optopt), last)
			                   : complain_unknown(c, unknown_argument(argv, argc));
		if (optarg == last && names_option(c, last))
			return vn_complain(c->name, "--%s needs a value, and '%s' is an option (as a value: --%s=%s)", o->name,
			                   last, o->name, last);
		if (o->only && !vn_option_is_of(c, o))
			return vn_complain(c->name, "--%s is an option of vernier %s, not of vernier %s", o->name, o->only,
			                   c->name);
		if (given[o - c->option] && !may_repeat(o))
			return vn_complain(c->name, "--%s is given twice", o->name);
		given[o - c->option] = true;
		if (store_value(o, optarg, to, &err))
			return vn_complain(c->name, "%s", err.text);
	}
	for (; d.operand && optind < argc; optind++) /* behind -- */
		if (d.operand->take(to, d.operand, argv[optind], &err))
			return vn_complain(c->name, "%s", err.text);
	if (check_others(c, given))
		return 2;
	return settle_options(c, given, to, &err) ? vn_complain(c->name, "%s", err.text) : 0;
}
