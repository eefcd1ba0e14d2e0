/* report_html.c: a comparison as one HTML page without network or other files (report_page.h).
 * Where scripts are forbidden, the verdict and the place where the error starts are still shown. */
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/report/report.h"
#include "compare/report/report_page.h"
#include "compare/result/folds.h"
#include "compare/result/words.h"
#include "compare/text/markup.h"
#include "compare/weights/weights_report.h"

#include "libref/base/say.h"
#include "libref/base/shell.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A command line as it is typed in another folder. */

/* Reads a word as vn_shell_add quotes it. Returns what follows; NULL: no word is left. */
static const char *next_word(const char *at, char word[VN_SHELL_LINE])
{
	bool   quoted = false;
	size_t n = 0;

	while (*at == ' ')
		at++;
	if (!*at)
		return NULL;
	for (; *at && (quoted || *at != ' '); at++) {
		if (*at == '\'')
			quoted = !quoted;
		else if (*at == '\\' && !quoted && at[1])
			word[n++] = *++at;
		else
			word[n++] = *at;
	}
	word[n] = '\0';
	return at;
}

/* Writes the path of a file from a folder; both are absolute, and without links. */
static bool path_from(const char *folder, const char *file, char to[PATH_MAX])
{
	size_t same = 0, n = 0;

	for (size_t i = 0; folder[i] && folder[i] == file[i]; i++)
		if (file[i] == '/')
			same = i + 1;
	const size_t whole = strlen(folder);
	if (strncmp(folder, file, whole) == 0 && file[whole] == '/')
		same = whole + 1;
	for (size_t i = same; same <= whole && i <= whole; i++)
		if (folder[i] == '/' || !folder[i]) {
			if (n + 4 > PATH_MAX)
				return false;
			memcpy(to + n, "../", 4);
			n += 3;
		}
	return snprintf(to + n, PATH_MAX - n, "%s", file + same) < (int)(PATH_MAX - n);
}

/* Writes the folder of a file, which may not exist yet. */
static bool folder_of(const char *file, char folder[PATH_MAX])
{
	char        name[PATH_MAX];
	const char *slash = strrchr(file, '/');

	if (!slash)
		return realpath(".", folder) != NULL;
	return snprintf(name, sizeof name, "%.*s", (int)(slash - file + 1), file) < (int)sizeof name &&
	       realpath(name, folder) != NULL;
}

/* Writes the command for the folder of the file `from`: words that are files here become their
 * paths from there. The command itself if that does not fit, or if a path cannot be found.
 * Returns text. */
static const char *relative_command(const char *command, const char *from, char text[VN_SHELL_LINE])
{
	char folder[PATH_MAX], here[PATH_MAX], file[PATH_MAX], moved[PATH_MAX], word[VN_SHELL_LINE];

	snprintf(text, VN_SHELL_LINE, "%s", command);
	if (strlen(command) >= VN_SHELL_LINE || !folder_of(from, folder) || !realpath(".", here) ||
	    strcmp(folder, here) == 0)
		return text;
	vn_shell_begin(text);
	for (const char *at = command; (at = next_word(at, word));) {
		const bool is_file = *word != '/' && *word != '-' && realpath(word, file) != NULL;
		const char *new = is_file &&path_from(folder, file, moved) ? moved : word;
		vn_shell_add(text, VN_SHELL_LINE, new);
	}
	if (!*text) {
		snprintf(text, VN_SHELL_LINE, "%s", command);
		return text;
	}
	vn_shell_end(text);
	memmove(text, text + 1, strlen(text)); /* the first space */
	return text;
}

enum { NAMED = 6 };

static void name_of(const vn_checkpoint *p, FILE *out)
{
	char label[VN_LABEL];
	vn_html_say(out, "<code class=\"name\">%s</code>", vn_label(p, label));
}

static void print_line(FILE *out, const char *title, const char *text)
{
	vn_html_say(out, "<dt>%s</dt><dd>%s</dd>\n", title, text);
}

static void print_origins(const vn_document *doc, FILE *out)
{
	if (doc->n_origins == 0 || (doc->n_origins == 1 && doc->origin[0] == doc->divergence))
		return;
	vn_say(out, "<dt>%s</dt><dd>", doc->n_origins > 1 ? "origins" : "origin");
	vn_fold   fold[NAMED];
	char      text[VN_WORDS];
	const int n = vn_folds_of(doc->checkpoint, doc->origin, doc->n_origins, fold, NAMED);
	int       told = 0;
	for (int i = 0; i < n && i < NAMED; i++) {
		if (i)
			fputs("<br>", out);
		name_of(&doc->checkpoint[fold[i].first], out);
		if (fold[i].n > 1)
			vn_html_say(out, ": %s", vn_fold_say(doc->checkpoint, &fold[i], text));
		told += fold[i].n;
	}
	if (told < doc->n_origins)
		fprintf(out, "<br>and %d more", doc->n_origins - told);
	vn_html_say(out, "<br><span class=\"dim\">Origins: %s.</span></dd>\n", vn_document_text(doc->origins_are));
}

/* Writes at most `most` of the lines, under a title. */
static void print_titled(const char *title, int most, const json_t *lines, FILE *out)
{
	for (int i = 0; i < vn_document_lines(lines) && i < most; i++)
		print_line(out, i ? "" : title, vn_document_line(lines, i));
}

/* Where the error begins. */
static void print_place(const vn_document *doc, int first, FILE *out)
{
	const vn_checkpoint *p = &doc->checkpoint[first];
	const char          *op = vn_document_about(doc, p).op;
	vn_say(out, "<dt>%s</dt><dd>", doc->divergence >= 0 ? "first divergence" : "first finding");
	name_of(p, out);
	if (p->layer >= 0)
		fprintf(out, " layer %d", p->layer);
	if (*op)
		vn_html_say(out, ", op %s", op);
	if (doc->n_origins == 1 && p->origin)
		vn_html_say(out, "<br><span class=\"dim\">The only origin: %s.</span>", vn_document_text(doc->origins_are));
	fputs("</dd>\n", out);
}

/* What is wrong there. */
static void print_reasons(const vn_document *doc, int first, FILE *out)
{
	char                 text[VN_WORDS];
	const vn_checkpoint *p = &doc->checkpoint[first];
	const json_t        *profile = json_object_get(vn_document_detail(doc, first), "profile");

	vn_html_say(out, "<dt>%s</dt><dd>%s", p->worst >= 0 ? "broken rule" : "finding", vn_judge_say_failure(p, text));
	if (vn_judge_worst_why(p))
		vn_html_say(out, "<br><q>%s</q>", vn_judge_worst_why(p));
	fputs("</dd>\n", out);
	print_titled("profile", INT_MAX, json_object_get(profile, "words"), out);
	print_origins(doc, out);
	print_titled("cleared", 1, doc->cleared, out);
}

void vn_page_next(const char *command, bool first, const char *path, FILE *out)
{
	char text[VN_SHELL_LINE];

	vn_html_say(out, "<dt>%s</dt><dd class=\"next\"><code>%s</code></dd>\n", first ? "next" : "",
	            path ? relative_command(command, path, text) : command);
}

static void print_story(const vn_document *doc, const char *path, FILE *out)
{
	const int first = doc->first;
	vn_html_say(out, "<p class=\"dim\">vernier compare: <code>%s</code> judged by <code>%s</code></p>\n",
	            vn_document_member(doc->candidate, "path"), vn_document_member(doc->reference, "path"));
	vn_html_say(out, "<h1 class=\"%s\">%s</h1>\n<p>%s</p>\n<dl>\n", doc->within ? "within" : "outside",
	            vn_document_text(doc->verdict_words), vn_document_text(doc->summary));
	if (first >= 0 || json_is_true(json_object_get(doc->strict, "decided")))
		print_titled("warning", NAMED, doc->warnings, out);
	if (first >= 0)
		print_place(doc, first, out);
	/* what it is and what to type come before the reasons: a phone shows both at once */
	print_titled("explained", INT_MAX, doc->explained, out);
	for (int i = 0; i < vn_document_lines(doc->next); i++)
		vn_page_next(vn_document_line(doc->next, i), i == 0, path, out);
	vn_weights_html(doc->weights, out);
	if (first >= 0)
		print_reasons(doc, first, out);
	else
		print_origins(doc, out);
	print_titled("baseline", NAMED, doc->changes, out);
	print_titled("measured", NAMED, doc->measured, out);
	if (json_is_string(doc->floor))
		print_line(out, "floor", "the unit of this page: " VN_FLOOR_MEANS);
	fputs("</dl>\n", out);
}

vn_status vn_report_html(const vn_document *doc, const vn_report_options *o, FILE *out, vn_error *err)
{
	const char       *rest = vn_page_until(NULL, "@TITLE@", out);
	vn_report_options page = *o;

	vn_xml_text(out, vn_document_text(doc->verdict_words));
	fputs(": ", out);
	vn_xml_text(out, vn_document_member(doc->candidate, "path"));
	rest = vn_page_until(rest, "@STORY@", out);
	print_story(doc, o->path, out);
	rest = vn_page_until(rest, "@DATA@", out);
	page.page = true;
	FILE *data = vn_page_data(out);
	return vn_page_end(data, rest, vn_report_json(doc, &page, data, err), out, err);
}
