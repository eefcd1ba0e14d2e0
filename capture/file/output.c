/* output.c: see output.h. */
#include "capture/file/output.h"

#include "libref/base/files.h"
#include "libref/base/map.h"
#include "libref/base/printed.h"
#include "libref/base/temporary.h"
#include "libref/base/text.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* In containers process ids repeat, so the file of a killed process may be in the way.
 * -2: the path is too long. */
static int open_temporary(vn_output *o)
{
	enum { TRIES = 100 };
	int fd = -1;

	for (int i = 0; i < TRIES; i++) {
		char again[16] = "";
		if (i > 0)
			snprintf(again, sizeof again, ".%d", i);
		if (snprintf(o->temporary, sizeof o->temporary, "%s.%ld%s.partial", o->path, (long)getpid(), again) >=
		    (int)sizeof o->temporary)
			return -2;
		if ((fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) >= 0 || errno != EEXIST)
			break;
	}
	return fd;
}

vn_status vn_output_open(vn_output *o, const char *path, vn_place_kind kind, bool force, vn_error *err)
{
	*o = (vn_output) { .path = path, .kind = kind, .force = force, .mark = vn_trouble_mark() };
	vn_status st = vn_maps_unchanged(err);
	if (!path)
		o->file = stdout;
	if (!path || st || (st = vn_place_check(path, kind, force, err)))
		return st;
	vn_temporary_begin();
	const int fd = open_temporary(o);
	const int failed = errno;
	vn_temporary_add(fd >= 0 ? o->temporary : NULL);
	if (fd >= 0)
		vn_output_note(fd);
	if (fd == -2)
		return vn_fail(err, VN_ERR_USAGE, "%s: the path is too long", path);
	if (fd < 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot write: %s", path, strerror(failed));
	o->file = kind == VN_PLACE_NUMBERS ? fdopen(fd, "w") : vn_printed_open(fd, false);
	if (!o->file) {
		vn_temporary_forget(o->temporary);
		close(fd);
		unlink(o->temporary);
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory to write it", path);
	}
	return VN_OK;
}

/* Another program may have written the path since it was opened: with force, the kind of file
 * is checked again. */
static vn_status rename_output(const vn_output *o, vn_error *err)
{
	vn_status st = vn_maps_unchanged(err);
	if (st || (o->force && (st = vn_place_check(o->path, o->kind, true, err))))
		return st;
	const int moved = o->force ? rename(o->temporary, o->path) : vn_file_move(o->temporary, o->path);
	if (moved != 0 && !o->force && errno == EEXIST)
		return vn_fail(err, VN_ERR_IO,
		               "%s: another program has created it in the meantime, and it stays; run this "
		               "command again with --force, or with another name",
		               o->path);
	return moved == 0 ? VN_OK : vn_fail(err, VN_ERR_IO, "%s: %s", o->path, strerror(errno));
}

static int errno_or_eio(void)
{
	return errno ? errno : EIO;
}

/* Flushes the stream, and closes that of a file. Returns the errno of a failed write; 0: none
 * failed. */
static int end_stream(const vn_output *o)
{
	int why = 0;

	if (fflush(o->file) != 0)
		why = errno_or_eio();
	else if (ferror(o->file))
		why = EIO; /* a write failed earlier, so errno is of something else */
	if (why && o->kind != VN_PLACE_NUMBERS)
		why = vn_printed_errno();
	if (o->path && fclose(o->file) != 0 && !why)
		why = errno_or_eio();
	return why;
}

/* Returns st, or why stdout is not complete. why: of end_stream. */
static vn_status check_stdout(const vn_output *o, vn_status st, int why, vn_error *err)
{
	const char *lost = vn_printed_lost();

	if (lost && (st || why)) /* the writer knows that it failed, but not why */
		return vn_fail(err, VN_ERR_IO, "standard output cannot be written: %s", lost);
	if (!st && why)
		return vn_fail(err, VN_ERR_IO, "standard output cannot be written: %s", strerror(why));
	return st ? st : vn_trouble_since(o->mark, "the report", err);
}

vn_status vn_output_close(vn_output *o, vn_status st, vn_error *err)
{
	const char *name = o->path ? o->path : "standard output";

	if (st == VN_ERR_IO && ferror(o->file)) /* the writer knows neither the file nor the reason */
		vn_fail(err, st, "%s: the report cannot be written: %s", name, strerror(vn_printed_errno()));
	const int why = end_stream(o);
	if (!o->path)
		return check_stdout(o, st, why, err);
	if (!st && why)
		st = vn_fail(err, VN_ERR_IO, "%s: %s", o->path, strerror(why));
	st = st ? st : vn_trouble_since(o->mark, o->path, err);
	st = st ? st : rename_output(o, err);
	if (st)
		unlink(o->temporary);
	vn_temporary_forget(o->temporary); /* not earlier, or a signal would leave the file behind */
	return st;
}

bool vn_text_close(FILE *to, char **text)
{
	bool good = to && !ferror(to);

	good = to && fclose(to) == 0 && good && *text;
	if (!good) {
		free(*text);
		*text = NULL;
		vn_trouble_note(NULL);
	}
	return good;
}

/* The place of a word in a list "a|b|c"; -1. */
static int place_of(const char *list, const char *word)
{
	const size_t n = strlen(word);
	int          at = 0;

	for (const char *p = list; *p; at++) {
		const size_t length = strcspn(p, "|");
		if (length == n && strncasecmp(p, word, n) == 0)
			return at;
		p += length + (p[length] == '|');
	}
	return -1;
}

vn_status vn_output_ending(const char *path, const char *known, int *which, vn_error *err)
{
	const char *name = path ? strrchr(path, '/') : NULL, *dot = path ? strrchr(name ? name : path, '.') : NULL;
	char        list[100] = "";

	*which = -1;
	if (!dot || !dot[1] || place_of("txt|text|log|out", dot + 1) >= 0)
		return VN_OK;
	*which = place_of(known, strcasecmp(dot + 1, "htm") == 0        ? "html"
	                         : strcasecmp(dot + 1, "markdown") == 0 ? "md"
	                                                                : dot + 1);
	for (const char *p = known; *p; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|'))
		vn_text_add(list, sizeof list, "%s.%.*s", p == known ? "" : ", ", (int)strcspn(p, "|"), p);
	return *which >= 0 ? VN_OK
	                   : vn_fail(err, VN_ERR_USAGE,
	                             "%s: no report has the file ending %s: use %s or .txt, or select "
	                             "the form with --format",
	                             path, dot, list);
}
