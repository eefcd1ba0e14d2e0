/* printed.c: see printed.h. */
#include "libref/base/printed.h"
#include "libref/base/system.h"
#include "libref/base/temporary.h"
#include "libref/base/trouble.h"
#include "libref/base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program that a person reads long output in: less, or VERNIER_PAGER, or PAGER. */

extern char **environ;

static const char *find_pager(void)
{
	const char *own = getenv("VERNIER_PAGER"), *usual = getenv("PAGER");
	return own ? own : usual ? usual : "less";
}

/* Is the first word a program? The shell would notice only after the output is lost. */
static bool is_there(const char *command)
{
	const size_t n = strcspn(command, " \t");
	const char  *folder = getenv("PATH");
	char         path[PATH_MAX];

	if (memchr(command, '/', n) || strpbrk(command, "|&;<>()$`\\\"'*?[#~=%"))
		return true; /* for the shell */
	for (size_t m; folder; folder = folder[m] ? folder + m + 1 : NULL) {
		m = strcspn(folder, ":");
		if (snprintf(path, sizeof path, "%.*s/%.*s", (int)m, folder, (int)n, command) < (int)sizeof path &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Starts it, if standard output is a terminal that can show it, and its program is there. Returns
 * the pipe that it reads, and its process in *pid; -1: there is no pager. SIGINT and SIGQUIT then
 * belong to it: they no longer end this process. The value "cat" or "" means no pager. */
static int start_pager(pid_t *pid)
{
	const char                *pager = find_pager(), *terminal = getenv("TERM");
	posix_spawn_file_actions_t how;
	int                        ends[2];

	if (!isatty(STDOUT_FILENO) || !terminal || strcmp(terminal, "dumb") == 0 || !*pager || strcmp(pager, "cat") == 0 ||
	    !is_there(pager) || vn_pipe(ends) != 0)
		return -1;
	char       command[PATH_MAX];
	char      *words[] = { (char[]) { "sh" }, (char[]) { "-c" }, command, NULL };
	const bool fits = snprintf(command, sizeof command, "%s", pager) < (int)sizeof command;
	setenv("LESS", "FRX", 0); /* as git: no pause if all fits, colours, and the text stays on the screen */
	bool started = fits && posix_spawn_file_actions_init(&how) == 0;
	if (started) {
		started = posix_spawn_file_actions_adddup2(&how, ends[0], STDIN_FILENO) == 0 &&
		          posix_spawn(pid, "/bin/sh", &how, NULL, words, environ) == 0;
		posix_spawn_file_actions_destroy(&how);
	}
	close(ends[0]);
	if (!started) {
		close(ends[1]);
		return -1;
	}
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	vn_temporary_reader(*pid);
	return ends[1];
}

/* Ends its input, and waits until the reader leaves it. */
static void end_pager(int pipe, pid_t pid)
{
	pid_t r;

	close(pipe);
	VN_UNINTERRUPTED(r, waitpid(pid, NULL, 0));
	vn_temporary_reader(0);
	(void)r;
}

enum { HELD = 8, PIECE = 1 << 16 };

typedef struct printed {
	int    fd, marks;
	bool   colour, within; /* within: the line has more than blanks */
	char   held[HELD];     /* the start of a character, colour or command whose end has not arrived */
	size_t n_held;
	char   out[PIECE];
	size_t n_out;
	int    lost;            /* errno of a failed write; 0: none */
	bool   may_leave, left; /* its reader may leave, has left; later output is dropped */
	bool   paged;           /* the first output starts a pager */
	pid_t  pager;           /* 0: none */
} printed;

static _Thread_local int last_lost; /* errno of the last failure of any stream */

/* ---- to the descriptor -------------------------------------------------------------------- */

static void open_pager(printed *p)
{
	const int pipe = start_pager(&p->pager);
	if (pipe >= 0) {
		p->fd = pipe;
		p->may_leave = true;
	}
}

static void put_all(printed *p, const char *text, size_t n)
{
	if (p->paged && n > 0) {
		p->paged = false;
		open_pager(p);
	}
	while (n > 0 && !p->lost && !p->left) {
		const ssize_t k = write(p->fd, text, n);
		if (k < 0 && errno == EPIPE && p->may_leave) {
			p->left = true;
		} else if (k < 0 && errno != EINTR) {
			p->lost = last_lost = errno;
			if (vn_trouble_is(p->lost))
				vn_trouble_note(strerror(p->lost));
		}
		text += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
}

static void flush_buffer(printed *p)
{
	put_all(p, p->out, p->n_out);
	p->n_out = 0;
}

static void buffer_text(printed *p, const char *text, size_t n)
{
	if (n > PIECE - p->n_out)
		flush_buffer(p);
	if (n > PIECE) {
		put_all(p, text, n);
		return;
	}
	memcpy(p->out + p->n_out, text, n);
	p->n_out += n;
}

/* ---- what goes there ----------------------------------------------------------------------- */

enum { NONE = 0, INCOMPLETE = -1 };

/* Length of the colour escape at text. */
static int colour_length(const char *text, size_t n)
{
	size_t k = 2;
	if (n < 2)
		return INCOMPLETE;
	if (text[1] != '[')
		return NONE;
	while (k < n && k < 4 && isdigit((unsigned char)text[k]))
		k++;
	return k == n ? INCOMPLETE : text[k] == 'm' ? (int)k + 1 : NONE;
}

/* Printable text. Runners of CI obey lines that begin with two colons (::add-mask::). */
static void buffer_plain(printed *p, const char *text, size_t n)
{
	size_t blanks = 0;

	while (!p->within && blanks < n && text[blanks] == ' ')
		blanks++;
	buffer_text(p, text, blanks);
	const size_t colon = blanks + 1 < n && !p->within && text[blanks] == ':' && text[blanks + 1] == ':';
	buffer_text(p, "\\u{3a}", colon ? 6 : 0);
	p->within |= blanks < n;
	buffer_text(p, text + blanks + colon, n - blanks - colon);
}

/* Takes the complete characters of the text, but no start of a command, and returns the bytes
 * taken. last: no more follows, so everything is taken. */
static size_t take_text(printed *p, const char *text, size_t n, bool last)
{
	char         code[VN_UTF8_CODE];
	const size_t whole = n; /* what follows a character's start says whether it is cut */
	n -= last ? 0 : vn_utf8_command_begun(text, n);
	for (size_t at = 0;;) {
		const size_t plain = vn_utf8_plain(text + at, n - at, &p->marks);
		buffer_plain(p, text + at, plain);
		at += plain;
		if (at == n)
			return n;
		const int colour = p->colour && text[at] == '\033' ? colour_length(text + at, whole - at) : NONE;
		if (!last && (colour == INCOMPLETE || vn_utf8_cut(text + at, whole - at)))
			return at;
		if (text[at] == '\n' || text[at] == '\t' || colour > 0) {
			buffer_text(p, text + at, colour > 0 ? (size_t)colour : 1);
			p->within &= text[at] != '\n';
			at += colour > 0 ? (size_t)colour : 1;
			p->marks = 0;
		} else {
			at += vn_utf8_code(text + at, n - at, code);
			buffer_text(p, code, strlen(code));
			p->within = true;
		}
	}
}

/* ---- the stream ------------------------------------------------------------------------------ */

static ssize_t write_printed(void *cookie, const char *text, size_t n)
{
	printed *p = cookie;
	size_t   at = 0;

	while (p->n_held > 0 && at < n) { /* one byte at a time, until the pending start is complete or invalid */
		p->held[p->n_held++] = text[at++];
		const size_t used = take_text(p, p->held, p->n_held, p->n_held == HELD);
		memmove(p->held, p->held + used, p->n_held - used);
		p->n_held -= used;
	}
	const size_t used = take_text(p, text + at, n - at, false);
	memcpy(p->held + p->n_held, text + at + used, n - at - used);
	p->n_held += n - at - used;
	flush_buffer(p);
	return p->lost ? 0 : (ssize_t)n;
}

static int close_printed(void *cookie)
{
	printed *p = cookie;
	take_text(p, p->held, p->n_held, true);
	flush_buffer(p);
	const int  lost = p->lost;
	const bool shut = close(p->fd) == 0;
	free(p);
	errno = lost ? lost : errno;
	return lost || !shut ? -1 : 0;
}

static FILE *open_printed(int fd, bool colour, printed **made)
{
	printed *p = *made = calloc(1, sizeof *p);
	FILE    *f;

	if (!p)
		return NULL;
	p->fd = fd;
	p->colour = colour;
	if (!(f = vn_stream_open(p, write_printed, close_printed)))
		free(p);
	return f;
}

static printed *standard_output, *standard_error; /* kept to the end */

void vn_printed_colours(void)
{
	if (standard_output)
		standard_output->colour = true;
}

FILE *vn_printed_open(int fd, bool colour)
{
	printed *p;
	return open_printed(fd, colour, &p);
}

bool vn_printed_start(void)
{
	static char buffer[1 << 16]; /* most output then leaves in one write, before a reader such as head has left */
	FILE       *out = open_printed(STDOUT_FILENO, isatty(STDOUT_FILENO), &standard_output),
		 *err = open_printed(STDERR_FILENO, isatty(STDERR_FILENO), &standard_error);

	if (!out || !err)
		return false;
	setvbuf(out, buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof buffer);
	setvbuf(err, NULL, _IOLBF, BUFSIZ); /* each line is one write */
	standard_output->may_leave = signal(SIGPIPE, SIG_IGN) != SIG_IGN;
	stdout = out;
	stderr = err;
	return true;
}

void vn_printed_page(void)
{
	if (standard_output)
		standard_output->paged = true;
}

void vn_printed_end(void)
{
	printed *p = standard_output;

	if (!p || !p->pager)
		return;
	end_pager(p->fd, p->pager);
	p->pager = 0;
	p->fd = STDOUT_FILENO;
	p->left = false; /* who leaves a pager has seen the terminal, and gets the verdict */
}

bool vn_printed_left(void)
{
	return standard_output && standard_output->left;
}

void vn_printed_leave(void)
{
	sigset_t pipe;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigprocmask(SIG_UNBLOCK, &pipe, NULL);
	raise(SIGPIPE);
	_exit(128 + SIGPIPE); /* as a shell says it */
}

const char *vn_printed_lost(void)
{
	const int why = standard_output ? standard_output->lost : 0;
	return why == EBADF ? "it is closed" : why ? strerror(why) : NULL;
}

int vn_printed_errno(void)
{
	return last_lost ? last_lost : EIO;
}
