/* vernier_record.h: records the tensors of an inference engine, from C or C++, without any library.
 *
 * It writes a directory of .npy files and a manifest (`vernier help dump.md`), from which `vernier
 * import` makes a checkpoint file. C99 or C++11; it needs only the standard library, mkdir, open
 * and getpid. Copy this file into your project, and in one source file write
 *
 *     #define VERNIER_RECORD_IMPLEMENTATION
 *     #include "vernier_record.h"
 *
 *     vernier_record rec;
 *     int64_t        shape[3] = { n_tokens, n_heads, head_dim };
 *     vernier_record_open(&rec, "dump", "my engine", "f32");
 *     vernier_record_step(&rec, ids, n_tokens);
 *     vernier_record_put(&rec, "layer3.q_rope", "token head dim", "f32", q, 3, shape);
 *     if (vernier_record_close(&rec) != 0)
 *         fprintf(stderr, "%s\n", vernier_record_error(&rec));
 *
 * Errors   Functions return 0 on success and -1 on failure. The first failure is kept: every later
 *          call does nothing and returns -1. So it is enough to check vernier_record_close. Nothing
 *          here ends the program.
 * Crashes  A file gets its final name once it is whole, and is listed in the manifest after that.
 *          If the program ends early, the whole tensors can be read. Only vernier_record_close
 *          marks the recording complete.
 * Threads  At most one thread at a time may use a vernier_record.
 * Forks    A recording belongs to the process that opened it. In a child forked later, every call
 *          fails, and vernier_record_close marks nothing.
 * Text     UTF-8.
 * Size     Every tensor is written. To write only tensors that differ from a reference, use
 *          vernier_capture_against of vernier_capture.h.
 * Memory   Data is written from the caller's buffer, which may change as soon as a call returns.
 */
#ifndef VERNIER_RECORD_H
#define VERNIER_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VERNIER_RECORD_MAX_RANK = 6 };

/* Fields are private. */
typedef struct vernier_record {
	char    dir[1024], error[256];
	FILE   *manifest;
	long    tensors;
	int     step, failed; /* step: the current one, -1 before the first */
	int64_t tokens;       /* in all steps so far */
	char    source_line[128];
	long    owner; /* the process that opened it */
} vernier_record;

/* Creates the directory if it does not exist; it must not hold a recording already. A file that
 * exists is never replaced: a tensor whose file it would be is an error. Reports name
 * the run by engine and precision ("f32", "f16", "bf16", or a word of the engine's own; NULL: not
 * stated). Initialises *r, also on failure. */
int vernier_record_open(vernier_record *r, const char *dir, const char *engine, const char *precision);

/* Adds a fact about the run, such as "device" or "commit". A key has at most 31 bytes and may be
 * given once. A value is cut to 255 bytes. */
int vernier_record_say(vernier_record *r, const char *key, const char *value);

/* Adds the model's config: the text of its config.json. `vernier import` then needs no --model to
 * know axes and families. */
int vernier_record_config(vernier_record *r, const char *json);

/* Lists a weight that the engine has loaded, under the name and in the numbers, the order and the
 * format of the model's file: a weight that was never loaded, or loaded wrongly, is then seen. Only
 * its digest and statistics are written. dtype, data, shape: as of vernier_record_put. */
int vernier_record_weight(vernier_record *r, const char *name, const char *dtype, const void *data, int rank,
                          const int64_t *shape);

/* Begins a step: one forward call, which is the prompt or any later call on the same cache. ids
 * (n): the input tokens. positions (n): their positions; vernier_record_step continues those of the
 * previous step, from 0. */
int vernier_record_step(vernier_record *r, const int32_t *ids, size_t n);
int vernier_record_step_at(vernier_record *r, const int32_t *ids, const int32_t *positions, size_t n);

/* Writes one tensor of the current step.
 *   name   a checkpoint name ("layer3.q_rope", see `vernier points`), or the engine's own
 *          name for use with a name map. A step cannot hold two tensors of one name.
 *   dims   one word per axis, outermost first: "token head dim". Several words that share an axis
 *          stand in parentheses: "token (head dim)". NULL: the axes that the checkpoint has by
 *          definition.
 *   dtype  "f32", "f16", "bf16", "f64", "i32", "f8_e4m3" or "f8_e5m2"
 *   data   row-major, in this machine's byte order. May be NULL if an axis has length 0.
 *   shape  (rank) the length of each axis; rank is at most 6. */
int vernier_record_put(vernier_record *r, const char *name, const char *dims, const char *dtype, const void *data,
                       int rank, const int64_t *shape);

/* Sets the source line of the next tensor, which reports show as FILE:LINE. VERNIER_RECORD_HERE
 * sets its own line. The put functions do not set it, because most programs call them in one helper
 * function, so every tensor would get that function's line. A long path loses its beginning. */
int vernier_record_at(vernier_record *r, const char *file, int line);
#define VERNIER_RECORD_HERE(r) vernier_record_at((r), __FILE__, __LINE__)

/* Same as vernier_record_put, for data with strides: element (i, j...) is at data + i * stride[0] +
 * j * stride[1]... Strides are in bytes and may be negative or 0. op: the engine's name for the
 * operation that made the tensor ("ROPE"), or NULL. */
int vernier_record_put_strided(vernier_record *r, const char *name, const char *dims, const char *dtype,
                               const void *data, int rank, const int64_t *shape, const int64_t *stride, const char *op);

/* Marks the recording complete in the manifest and closes it. Returns -1 if anything has failed
 * since open. */
int vernier_record_close(vernier_record *r);

/* Closes the recording without marking it complete. What was written remains. */
void vernier_record_abandon(vernier_record *r);

/* Returns the first error as one line, or "" if there was none. Also valid after
 * vernier_record_close. */
const char *vernier_record_error(const vernier_record *r);

#ifdef __cplusplus
}
#endif
#endif

#ifdef VERNIER_RECORD_IMPLEMENTATION
#ifndef VERNIER_RECORD_IMPLEMENTED
#define VERNIER_RECORD_IMPLEMENTED

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <direct.h>
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

static int vernier_record_fail_(vernier_record *r, const char *format, ...)
{
	va_list args;
	char   *c;
	if (!r->failed) {
		va_start(args, format);
		vsnprintf(r->error, sizeof r->error, format, args);
		va_end(args);
		for (c = r->error; *c; c++) /* names may hold any bytes; the error is one line */
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				*c = '?';
	}
	r->failed = 1;
	return -1;
}

/* ---- lines of the manifest ------------------------------------------------------------------- */

/* A growing string. data is NULL if there was no memory. */
typedef struct vernier_record_text_ {
	char  *data;
	size_t n, room;
} vernier_record_text_;

static void vernier_record_add_(vernier_record_text_ *t, const char *bytes, size_t n)
{
	if (!t->data)
		return;
	if (t->n + n > t->room) {
		const size_t room = 2 * (t->n + n);
		char        *more = (char *)realloc(t->data, room);
		if (!more) {
			free(t->data);
			t->data = NULL;
			return;
		}
		t->data = more;
		t->room = room;
	}
	memcpy(t->data + t->n, bytes, n);
	t->n += n;
}

static vernier_record_text_ vernier_record_begin_(const char *with)
{
	vernier_record_text_ t;
	t.n = 0;
	t.room = 512;
	t.data = (char *)malloc(t.room);
	vernier_record_add_(&t, with, strlen(with));
	return t;
}

static void vernier_record_plain_(vernier_record_text_ *t, const char *text)
{
	vernier_record_add_(t, text, strlen(text));
}

static void vernier_record_number_(vernier_record_text_ *t, int64_t x)
{
	char text[24];
	snprintf(text, sizeof text, "%lld", (long long)x);
	vernier_record_plain_(t, text);
}

/* Returns the length in bytes of the UTF-8 character that begins here, or 0 if the bytes are not
 * UTF-8 (JSON must be). */
static int vernier_record_character_(const unsigned char *c)
{
	const int n = *c < 0x80                          ? 1
	              : (*c & 0xe0) == 0xc0 && *c > 0xc1 ? 2
	              : (*c & 0xf0) == 0xe0              ? 3
	              : (*c & 0xf8) == 0xf0 && *c < 0xf5 ? 4
	                                                 : 0;
	int       i;
	for (i = 1; i < n; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) || (*c == 0xf0 && c[1] < 0x90) ||
	    (*c == 0xf4 && c[1] > 0x8f))
		return 0;
	return n;
}

/* Appends a JSON string with its quotes. A byte that is not UTF-8 becomes U+FFFD. */
static void vernier_record_quoted_(vernier_record_text_ *t, const char *text)
{
	const char *from = text;
	vernier_record_plain_(t, "\"");
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;
		const int           n = vernier_record_character_((const unsigned char *)text);
		char                escape[8];
		if (n && c >= 0x20 && c != '"' && c != '\\') {
			text += n - 1;
			continue;
		}
		vernier_record_add_(t, from, (size_t)(text - from));
		snprintf(escape, sizeof escape, "\\u%04x", n ? c : 0xfffdu);
		vernier_record_plain_(t, escape);
		from = text + 1;
	}
	vernier_record_add_(t, from, (size_t)(text - from));
	vernier_record_plain_(t, "\"");
}

static void vernier_record_numbers_(vernier_record_text_ *t, const int32_t *x, size_t n)
{
	size_t i;
	vernier_record_plain_(t, "[");
	for (i = 0; i < n; i++) {
		vernier_record_plain_(t, i ? "," : "");
		vernier_record_number_(t, x[i]);
	}
	vernier_record_plain_(t, "]");
}

/* Ends the line and writes it with a single fwrite. */
static int vernier_record_line_(vernier_record *r, vernier_record_text_ *t)
{
	int good;
	vernier_record_plain_(t, "}\n");
	if (!t->data)
		return vernier_record_fail_(r, "%s: no memory for a line of the manifest", r->dir);
	good = fwrite(t->data, 1, t->n, r->manifest) == t->n;
	free(t->data);
	return good ? 0 : vernier_record_fail_(r, "%s: manifest.jsonl cannot be written: %s", r->dir, strerror(errno));
}

static long vernier_record_process_(void)
{
#ifdef _WIN32
	return 0; /* has no fork */
#else
	return (long)getpid();
#endif
}

static int vernier_record_ready_(vernier_record *r)
{
	if (!r->failed && r->owner != vernier_record_process_())
		vernier_record_fail_(r,
		                     "this process was forked from the one that opened the recording, which alone writes it");
	if (!r->failed && !r->manifest)
		vernier_record_fail_(r, "the recording is not open");
	return r->failed ? -1 : 0;
}

/* ---- a file of numbers ----------------------------------------------------------------------- */

/* Returns the letter of a dtype in .npy headers, and its size in bytes. 0, with *width 0: not a
 * known dtype. */
static char vernier_record_kind_(const char *dtype, size_t *width)
{
	static const struct {
		const char *name;
		char        kind;
		size_t      width;
	} known[] = {
		{ "f32", 'f', 4 }, { "f16", 'f', 2 },     { "bf16", 'u', 2 },    { "f64", 'f', 8 },
		{ "i32", 'i', 4 }, { "f8_e4m3", 'u', 1 }, { "f8_e5m2", 'u', 1 },
	};
	size_t i;
	*width = 0;
	for (i = 0; dtype && i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, dtype) == 0) {
			*width = known[i].width;
			return known[i].kind;
		}
	return 0;
}

/* Writes the header of a .npy file, version 1, padded so that the data begins at a multiple of 64
 * bytes. Returns its length, or 0 if it does not fit. */
static size_t vernier_record_header_(char *to, size_t room, char kind, size_t width, int rank, const int64_t *shape)
{
	const uint16_t one = 1;
	unsigned char  little;
	char           text[256];
	size_t         n, bytes;
	int            i, at;
	memcpy(&little, &one, 1);
	at = snprintf(text, sizeof text, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
	              width == 1 ? '|'
	              : little   ? '<'
	                         : '>',
	              kind, (int)width);
	for (i = 0; i < rank; i++)
		at += snprintf(text + at, sizeof text - (size_t)at, "%lld, ", (long long)shape[i]);
	at += snprintf(text + at, sizeof text - (size_t)at, "), }");
	n = (size_t)at;
	bytes = (10 + n + 1 + 63) / 64 * 64;
	if (bytes > room)
		return 0;
	memset(to, ' ', bytes);
	memcpy(to, "\x93NUMPY\x01\x00", 8);
	to[8] = (char)((bytes - 10) & 0xff);
	to[9] = (char)((bytes - 10) >> 8);
	memcpy(to + 10, text, n);
	to[bytes - 1] = '\n';
	return bytes;
}

/* Writes the elements in row-major order. Contiguous runs are written directly, short ones through
 * a buffer. Returns 0 if a write failed. */
static int vernier_record_numbers_out_(FILE *f, const char *data, size_t width, int rank, const int64_t *shape,
                                       const int64_t *stride)
{
	char    buffer[16384];
	size_t  used = 0, run = width; /* run: bytes that are contiguous */
	int64_t index[VERNIER_RECORD_MAX_RANK] = { 0 };
	int     outer = rank, a;
	for (a = 0; a < rank; a++)
		if (shape[a] == 0)
			return 1;
	while (outer > 0 && (shape[outer - 1] == 1 || stride[outer - 1] == (int64_t)run)) {
		outer--;
		run *= (size_t)shape[outer];
	}
	for (;;) {
		if (run > sizeof buffer / 4) {
			if (used && fwrite(buffer, 1, used, f) != used)
				return 0;
			used = 0;
			if (fwrite(data, 1, run, f) != run)
				return 0;
		} else {
			if (used + run > sizeof buffer) {
				if (fwrite(buffer, 1, used, f) != used)
					return 0;
				used = 0;
			}
			memcpy(buffer + used, data, run);
			used += run;
		}
		for (a = outer - 1; a >= 0; a--) {
			data += stride[a];
			if (++index[a] < shape[a])
				break;
			data -= stride[a] * shape[a];
			index[a] = 0;
		}
		if (a < 0)
			return !used || fwrite(buffer, 1, used, f) == used;
	}
}

/* 000012.layer3.q_rope.npy: the number makes the name unique, also on file systems that ignore
 * case. */
static void vernier_record_file_(const vernier_record *r, const char *name, char *to, size_t room)
{
	int at = snprintf(to, room, "%06ld.", r->tensors), i;
	for (i = 0; name[i] && i < 80; i++) {
		const char c = name[i];
		to[at++] = (char)((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
		                          c == '.'
		                      ? c
		                      : '_');
	}
	snprintf(to + at, room - (size_t)at, ".npy");
}

/* Creates a file where nothing is; errno EEXIST: something is, and stays as it is. (C99's fopen has
 * no such mode, and does not declare fdopen.) */
static FILE *vernier_record_create_(const char *path)
{
#ifdef _WIN32
	const int fd = _open(path, _O_WRONLY | _O_CREAT | _O_EXCL, _S_IREAD | _S_IWRITE);
#else
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
#endif
	if (fd < 0)
		return NULL;
#ifdef _WIN32
	_close(fd);
#else
	close(fd);
#endif
	return fopen(path, "r+b"); /* does not truncate */
}

/* Gives a file its final name, which nothing has. */
static int vernier_record_name_(const char *part, const char *path)
{
#ifndef _WIN32 /* there, rename replaces nothing */
	FILE *own = vernier_record_create_(path);
	if (!own)
		return -1;
	fclose(own);
#endif
	return rename(part, path);
}

static int vernier_record_write_(vernier_record *r, const char *file, char kind, size_t width, const void *data,
                                 int rank, const int64_t *shape, const int64_t *stride)
{
	char         path[1200], part[1200], header[320];
	const size_t n = vernier_record_header_(header, sizeof header, kind, width, rank, shape);
	FILE        *f;
	int          good;
	snprintf(path, sizeof path, "%s/%s", r->dir, file);
	snprintf(part, sizeof part, "%s/%s.part", r->dir, file);
	errno = 0;
	if (!n || !(f = vernier_record_create_(part)))
		return vernier_record_fail_(r, "%s: cannot be written: %s", part, strerror(errno));
	setvbuf(f, NULL, _IONBF, 0); /* data goes straight to the file, without a copy */
	good = fwrite(header, 1, n, f) == n &&
	       vernier_record_numbers_out_(f, (const char *)data, width, rank, shape, stride);
	good = fclose(f) == 0 && good;
	if (!good || vernier_record_name_(part, path) != 0)
		return vernier_record_fail_(r, "%s: cannot be written: %s", path, strerror(errno));
	return 0;
}

/* ---- weights --------------------------------------------------------------------------- */

static const uint64_t      vernier_record_p32_[3] = { 0x9E3779B1u, 0x85EBCA77u, 0xC2B2AE3Du };
static const uint64_t      vernier_record_p64_[5] = { 0x9E3779B185EBCA87u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u,
	                                                  0x85EBCA77C2B2AE63u, 0x27D4EB2F165667C5u };
static const unsigned char vernier_record_secret_[192] = {
	0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
	0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
	0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
	0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
	0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
	0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
	0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
	0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
	0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
	0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
	0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

static uint64_t vernier_record_word_(const unsigned char *b, int bytes)
{
	uint64_t x = 0;
	int      i;
	for (i = bytes - 1; i >= 0; i--)
		x = x << 8 | b[i];
	return x;
}

static uint64_t vernier_record_key_(int at)
{
	return vernier_record_word_(vernier_record_secret_ + at, 8);
}

/* The product of 128 bits. */
static void vernier_record_times_(uint64_t a, uint64_t b, uint64_t *low, uint64_t *high)
{
	const uint64_t half = 0xffffffffu, al = a & half, ah = a >> 32, bl = b & half, bh = b >> 32;
	const uint64_t cross = (al * bl >> 32) + (ah * bl & half) + al * bh;
	*low = cross << 32 | (al * bl & half);
	*high = ah * bh + (ah * bl >> 32) + (cross >> 32);
}

static uint64_t vernier_record_fold_(uint64_t a, uint64_t b)
{
	uint64_t low, high;
	vernier_record_times_(a, b, &low, &high);
	return low ^ high;
}

static uint64_t vernier_record_spread_(uint64_t h)
{
	h = (h ^ h >> 37) * 0x165667919E3779F9u;
	return h ^ h >> 32;
}

static uint64_t vernier_record_spread64_(uint64_t h)
{
	h = (h ^ h >> 33) * vernier_record_p64_[1];
	h = (h ^ h >> 29) * vernier_record_p64_[2];
	return h ^ h >> 32;
}

static uint64_t vernier_record_swapped_(uint64_t x, int bytes)
{
	uint64_t y = 0;
	int      i;
	for (i = 0; i < bytes; i++)
		y = y << 8 | (x >> 8 * i & 0xff);
	return y;
}

/* Digest of 0 to 16 bytes. */
static void vernier_record_short_(const unsigned char *b, uint64_t n, uint64_t out[2])
{
	const uint64_t *p = vernier_record_p64_;
	uint64_t        x, y, low, high;
	if (n == 0) {
		out[0] = vernier_record_spread64_(vernier_record_key_(64) ^ vernier_record_key_(72));
		out[1] = vernier_record_spread64_(vernier_record_key_(80) ^ vernier_record_key_(88));
	} else if (n < 4) {
		x = (uint64_t)b[0] << 16 | (uint64_t)b[n / 2] << 24 | b[n - 1] | n << 8;
		y = vernier_record_swapped_(x, 4);
		y = (y << 13 | y >> 19) & 0xffffffffu;
		low = vernier_record_key_(0);
		high = vernier_record_key_(8);
		out[0] = vernier_record_spread64_(x ^ (low & 0xffffffffu) ^ low >> 32);
		out[1] = vernier_record_spread64_(y ^ (high & 0xffffffffu) ^ high >> 32);
	} else if (n < 9) {
		x = vernier_record_word_(b, 4) | vernier_record_word_(b + n - 4, 4) << 32;
		vernier_record_times_(x ^ vernier_record_key_(16) ^ vernier_record_key_(24), p[0] + (n << 2), &low, &high);
		high += low << 1;
		low ^= high >> 3;
		low = (low ^ low >> 35) * 0x9FB21C651E98DF25u;
		out[0] = low ^ low >> 28;
		out[1] = vernier_record_spread_(high);
	} else {
		x = vernier_record_word_(b, 8);
		y = vernier_record_word_(b + n - 8, 8);
		vernier_record_times_(x ^ y ^ vernier_record_key_(32) ^ vernier_record_key_(40), p[0], &low, &high);
		low += (n - 1) << 54;
		y ^= vernier_record_key_(48) ^ vernier_record_key_(56);
		high += y + (y & 0xffffffffu) * (vernier_record_p32_[1] - 1);
		low ^= vernier_record_swapped_(high, 8);
		vernier_record_times_(low, p[1], &x, &y);
		out[0] = vernier_record_spread_(x);
		out[1] = vernier_record_spread_(y + high * p[1]);
	}
}

static uint64_t vernier_record_mix_(const unsigned char *b, int key)
{
	return vernier_record_fold_(vernier_record_word_(b, 8) ^ vernier_record_key_(key),
	                            vernier_record_word_(b + 8, 8) ^ vernier_record_key_(key + 8));
}

static void vernier_record_mix_two_(uint64_t h[2], const unsigned char *x, const unsigned char *y, int key)
{
	h[0] = (h[0] + vernier_record_mix_(x, key)) ^ (vernier_record_word_(y, 8) + vernier_record_word_(y + 8, 8));
	h[1] = (h[1] + vernier_record_mix_(y, key + 16)) ^ (vernier_record_word_(x, 8) + vernier_record_word_(x + 8, 8));
}

/* Digest of 17 to 240 bytes. */
static void vernier_record_middle_(const unsigned char *b, uint64_t n, uint64_t out[2])
{
	const uint64_t *p = vernier_record_p64_;
	uint64_t        h[2];
	int             i;
	h[0] = n * p[0];
	h[1] = 0;
	for (i = n > 128 ? -1 : (int)((n - 1) / 32); i >= 0; i--)
		vernier_record_mix_two_(h, b + 16 * i, b + n - 16 * (i + 1), 32 * i);
	for (i = 0; n > 128 && i < (int)(n / 32); i++) {
		vernier_record_mix_two_(h, b + 32 * i, b + 32 * i + 16, i < 4 ? 32 * i : 3 + 32 * (i - 4));
		if (i == 3) {
			h[0] = vernier_record_spread_(h[0]);
			h[1] = vernier_record_spread_(h[1]);
		}
	}
	if (n > 128)
		vernier_record_mix_two_(h, b + n - 16, b + n - 32, 103);
	out[0] = vernier_record_spread_(h[0] + h[1]);
	out[1] = 0 - vernier_record_spread_(h[0] * p[0] + h[1] * p[3] + n * p[1]);
}

static void vernier_record_stripe_(uint64_t acc[8], const unsigned char *b, int key)
{
	int i;
	for (i = 0; i < 8; i++) {
		const uint64_t x = vernier_record_word_(b + 8 * i, 8), y = x ^ vernier_record_key_(key + 8 * i);
		acc[i ^ 1] += x;
		acc[i] += (y & 0xffffffffu) * (y >> 32);
	}
}

static uint64_t vernier_record_merge_(const uint64_t acc[8], int key, uint64_t sum)
{
	int i;
	for (i = 0; i < 4; i++)
		sum += vernier_record_fold_(acc[2 * i] ^ vernier_record_key_(key + 16 * i),
		                            acc[2 * i + 1] ^ vernier_record_key_(key + 16 * i + 8));
	return vernier_record_spread_(sum);
}

/* The XXH3 digest of 128 bits with seed 0, as in checkpoint files. out[1]: its upper half. */
static void vernier_record_digest_(const unsigned char *b, uint64_t n, uint64_t out[2])
{
	const uint64_t *p = vernier_record_p64_, *q = vernier_record_p32_;
	uint64_t        acc[8], i, at = 0;
	acc[0] = q[2];
	acc[1] = p[0];
	acc[2] = p[1];
	acc[3] = p[2];
	acc[4] = p[3];
	acc[5] = q[1];
	acc[6] = p[4];
	acc[7] = q[0];
	if (n <= 16)
		vernier_record_short_(b, n, out);
	else if (n <= 240)
		vernier_record_middle_(b, n, out);
	if (n <= 240)
		return;
	for (; at < (n - 1) / 1024 * 1024; at += 1024) {
		for (i = 0; i < 16; i++)
			vernier_record_stripe_(acc, b + at + 64 * i, (int)(8 * i));
		for (i = 0; i < 8; i++)
			acc[i] = (acc[i] ^ acc[i] >> 47 ^ vernier_record_key_(128 + 8 * (int)i)) * q[0];
	}
	for (i = 0; i < (n - 1 - at) / 64; i++)
		vernier_record_stripe_(acc, b + at + 64 * i, (int)(8 * i));
	vernier_record_stripe_(acc, b + n - 64, 192 - 64 - 7);
	out[0] = vernier_record_merge_(acc, 11, n * p[0]);
	out[1] = vernier_record_merge_(acc, 192 - 64 - 11, ~(n * p[1]));
}

/* The number at b as a double; NaN: of a format without a known scale. */
static double vernier_record_value_(char kind, size_t width, const void *b)
{
	float    f;
	double   d;
	int32_t  i;
	uint16_t h;
	uint32_t u;
	if (width == 2) {
		memcpy(&h, b, 2);
		if (kind == 'u') /* bfloat16 */
			u = (uint32_t)h << 16;
		else if (h >> 10 & 31 && (h >> 10 & 31) < 31)
			u = (uint32_t)(h & 0x8000) << 16 | ((uint32_t)(h >> 10 & 31) + 112) << 23 | (uint32_t)(h & 1023) << 13;
		else if ((h >> 10 & 31) == 31)
			u = (uint32_t)(h & 0x8000) << 16 | 0x7f800000u | (uint32_t)(h & 1023) << 13;
		else {
			d = (h & 1023) / 16777216.0; /* subnormal */
			return h >> 15 ? -d : d;
		}
		memcpy(&f, &u, 4);
		return (double)f;
	}
	if (width == 8)
		memcpy(&d, b, 8);
	else if (width == 4 && kind == 'f') {
		memcpy(&f, b, 4);
		d = (double)f;
	} else if (width == 4) {
		memcpy(&i, b, 4);
		d = i;
	} else {
		d = 0;
		d /= d;
	}
	return d;
}

/* The square root, since some systems have it in a library of its own. */
static double vernier_record_root_(double x)
{
	double y = x > 1 ? x : 1, last;
	do {
		last = y;
		y = (y + x / y) / 2;
	} while (y < last);
	return last;
}

/* Adds the statistics of the finite numbers, if there are any. */
static void vernier_record_statistics_(vernier_record_text_ *t, char kind, size_t width, const char *data, int64_t n)
{
	double  low = 0, high = 0, sum = 0, squares = 0;
	int64_t i, finite = 0, nan = 0, inf = 0;
	char    text[200];
	for (i = 0; i < n && width > 1; i++) {
		const double x = vernier_record_value_(kind, width, data + (size_t)i * width);
		if (x - x == 0) {
			low = finite == 0 || x < low ? x : low;
			high = finite == 0 || x > high ? x : high;
			sum += x;
			squares += x * x;
			finite++;
		} else if (x == x)
			inf++;
		else
			nan++;
	}
	if (finite == 0 || !(squares - squares == 0))
		return;
	snprintf(text, sizeof text, ",\"min\":%.17g,\"max\":%.17g,\"mean\":%.17g,\"rms\":%.17g,\"nan\":%lld,\"inf\":%lld",
	         low, high, sum / (double)finite, vernier_record_root_(squares / (double)finite), (long long)nan,
	         (long long)inf);
	vernier_record_plain_(t, text);
}

/* ---- public functions --------------------------------------------------------------------- */

int vernier_record_open(vernier_record *r, const char *dir, const char *engine, const char *precision)
{
	char                 path[1100];
	vernier_record_text_ t;
	memset(r, 0, sizeof *r);
	r->owner = vernier_record_process_();
	r->step = -1;
	if (!dir || !*dir || strlen(dir) >= sizeof r->dir)
		return vernier_record_fail_(r, "the name of the directory is empty or longer than %d bytes",
		                            (int)sizeof r->dir - 1);
	strcpy(r->dir, dir);
#ifdef _WIN32
	if (_mkdir(dir) != 0 && errno != EEXIST)
#else
	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
#endif
		return vernier_record_fail_(r, "%.200s: cannot be made: %s", dir, strerror(errno));
	snprintf(path, sizeof path, "%s/manifest.jsonl", dir);
	if (!(r->manifest = vernier_record_create_(path)))
		return errno == EEXIST ? vernier_record_fail_(r, "%.180s: already holds a recording", dir)
		                       : vernier_record_fail_(r, "%.180s: cannot be written: %s", path, strerror(errno));
	setvbuf(r->manifest, NULL, _IONBF, 0);
	t = vernier_record_begin_("{\"vernier_dump\":1");
	if (vernier_record_line_(r, &t) || vernier_record_say(r, "engine", engine ? engine : "unknown"))
		return -1;
	return precision ? vernier_record_say(r, "precision", precision) : 0;
}

int vernier_record_say(vernier_record *r, const char *key, const char *value)
{
	vernier_record_text_ t;
	char                 cut[256];
	size_t               n;
	if (vernier_record_ready_(r))
		return -1;
	if (!key || !*key || strlen(key) > 31 || !value)
		return vernier_record_fail_(
			r, key && value ? "'%.40s' is not a key of up to 31 bytes" : "'%.40s' has no key, or no value (NULL)",
			key ? key : "");
	n = strlen(value);
	if (n > 255) /* do not cut inside a character */
		for (n = 255; n > 0 && ((unsigned char)value[n] & 0xc0) == 0x80; n--)
			;
	memcpy(cut, value, n);
	cut[n] = '\0';
	t = vernier_record_begin_("{\"run\":{");
	vernier_record_quoted_(&t, key);
	vernier_record_plain_(&t, ":");
	vernier_record_quoted_(&t, cut);
	vernier_record_plain_(&t, "}");
	return vernier_record_line_(r, &t);
}

int vernier_record_config(vernier_record *r, const char *json)
{
	vernier_record_text_ t;
	if (vernier_record_ready_(r))
		return -1;
	if (!json)
		return vernier_record_fail_(r, "a config that is NULL");
	t = vernier_record_begin_("{\"config\":");
	vernier_record_quoted_(&t, json);
	return vernier_record_line_(r, &t);
}

int vernier_record_step_at(vernier_record *r, const int32_t *ids, const int32_t *positions, size_t n)
{
	vernier_record_text_ t;
	if (vernier_record_ready_(r))
		return -1;
	if (!ids && n)
		return vernier_record_fail_(r, "a step of %lld tokens has no ids (NULL)", (long long)n);
	t = vernier_record_begin_("{\"step\":");
	vernier_record_number_(&t, ++r->step);
	vernier_record_plain_(&t, ",\"ids\":");
	vernier_record_numbers_(&t, ids, n);
	if (positions) {
		vernier_record_plain_(&t, ",\"positions\":");
		vernier_record_numbers_(&t, positions, n);
	}
	r->tokens += (int64_t)n;
	return vernier_record_line_(r, &t);
}

int vernier_record_step(vernier_record *r, const int32_t *ids, size_t n)
{
	return vernier_record_step_at(r, ids, NULL, n);
}

int vernier_record_at(vernier_record *r, const char *file, int line)
{
	size_t n;
	if (vernier_record_ready_(r))
		return -1;
	if (!file)
		return vernier_record_fail_(r, "a source file that is NULL");
	for (n = strlen(file); n > 100; n--) /* the bound of a line in a checkpoint file is 127 bytes */
		file++;
	while (((unsigned char)*file & 0xc0) == 0x80) /* do not begin inside a character */
		file++;
	snprintf(r->source_line, sizeof r->source_line, "%s:%d", file, line);
	return 0;
}

/* Checks what describes a tensor. *width: bytes of a number; *count: numbers. */
static char vernier_record_check_(vernier_record *r, const char *name, const char *dtype, const void *data, int rank,
                                  const int64_t *shape, size_t *width, int64_t *count)
{
	const char kind = vernier_record_kind_(dtype, width);
	int        i;
	*count = 1;
	if (vernier_record_ready_(r))
		return 0;
	if (!name || !*name)
		vernier_record_fail_(r, "a tensor has no name");
	if (!*width)
		vernier_record_fail_(r, "%.100s: dtype '%.20s' is not one of f32, f16, bf16, f64, i32, f8_e4m3, f8_e5m2", name,
		                     dtype ? dtype : "");
	else if (rank < 0 || rank > VERNIER_RECORD_MAX_RANK || (rank && !shape))
		vernier_record_fail_(
			r, rank && !shape ? "%.100s: rank %d, and no shape (NULL)" : "%.100s: rank %d; expected 0 to %d", name,
			rank, VERNIER_RECORD_MAX_RANK);
	for (i = 0; !r->failed && i < rank; i++) {
		if (shape[i] < 0 || (shape[i] > 0 && *count > INT64_MAX / 16 / shape[i]))
			vernier_record_fail_(r, "%.100s: axis %d is %lld long", name, i, (long long)shape[i]);
		else
			*count *= shape[i];
	}
	if (!r->failed && !data && *count)
		vernier_record_fail_(r, "%.100s: data is NULL for %lld numbers", name, (long long)*count);
	return r->failed ? 0 : kind;
}

int vernier_record_weight(vernier_record *r, const char *name, const char *dtype, const void *data, int rank,
                          const int64_t *shape)
{
	size_t               width;
	int64_t              count;
	uint64_t             digest[2];
	char                 text[48];
	int                  i;
	vernier_record_text_ t;
	const char           kind = vernier_record_check_(r, name, dtype, data, rank, shape, &width, &count);
	if (!kind)
		return -1;
	vernier_record_digest_((const unsigned char *)data, (uint64_t)count * width, digest);
	t = vernier_record_begin_("{\"weight\":");
	vernier_record_quoted_(&t, name);
	vernier_record_plain_(&t, ",\"dtype\":");
	vernier_record_quoted_(&t, dtype);
	vernier_record_plain_(&t, ",\"shape\":[");
	for (i = 0; i < rank; i++) {
		vernier_record_plain_(&t, i ? "," : "");
		vernier_record_number_(&t, shape[i]);
	}
	snprintf(text, sizeof text, "],\"digest\":\"%016llx%016llx\"", (unsigned long long)digest[1],
	         (unsigned long long)digest[0]);
	vernier_record_plain_(&t, text);
	vernier_record_statistics_(&t, kind, width, (const char *)data, count);
	return vernier_record_line_(r, &t);
}

int vernier_record_put_strided(vernier_record *r, const char *name, const char *dims, const char *dtype,
                               const void *data, int rank, const int64_t *shape, const int64_t *stride, const char *op)
{
	char                 file[128];
	size_t               width;
	int                  i;
	int64_t              count;
	vernier_record_text_ t;
	const char           kind = vernier_record_check_(r, name, dtype, data, rank, shape, &width, &count);
	if (!kind)
		return -1;
	if (r->step < 0)
		return vernier_record_fail_(r, "%.100s: no step was begun before this tensor", name);
	if (rank && !stride)
		return vernier_record_fail_(r, "%.100s: rank %d, and no strides (NULL)", name, rank);
	vernier_record_file_(r, name, file, sizeof file);
	if (vernier_record_write_(r, file, kind, width, data, rank, shape, stride))
		return -1;
	r->tensors++;
	t = vernier_record_begin_("{\"tensor\":");
	vernier_record_quoted_(&t, name);
	vernier_record_plain_(&t, ",\"file\":");
	vernier_record_quoted_(&t, file);
	vernier_record_plain_(&t, ",\"dtype\":");
	vernier_record_quoted_(&t, dtype);
	vernier_record_plain_(&t, ",\"shape\":[");
	for (i = 0; i < rank; i++) {
		vernier_record_plain_(&t, i ? "," : "");
		vernier_record_number_(&t, shape[i]);
	}
	vernier_record_plain_(&t, "]");
	if (dims) {
		vernier_record_plain_(&t, ",\"dims\":");
		vernier_record_quoted_(&t, dims);
	}
	if (op) {
		vernier_record_plain_(&t, ",\"op\":");
		vernier_record_quoted_(&t, op);
	}
	if (*r->source_line) {
		vernier_record_plain_(&t, ",\"source_line\":");
		vernier_record_quoted_(&t, r->source_line);
		*r->source_line = '\0';
	}
	return vernier_record_line_(r, &t);
}

int vernier_record_put(vernier_record *r, const char *name, const char *dims, const char *dtype, const void *data,
                       int rank, const int64_t *shape)
{
	int64_t stride[VERNIER_RECORD_MAX_RANK] = { 0 }, bytes;
	size_t  width;
	int     i;
	vernier_record_kind_(dtype, &width);
	bytes = (int64_t)width;
	for (i = rank - 1; shape && i >= 0 && rank <= VERNIER_RECORD_MAX_RANK; i--) {
		stride[i] = bytes;
		/* too large: refused below */
		bytes = shape[i] > 0 && bytes <= INT64_MAX / shape[i] ? bytes * shape[i] : 0;
	}
	return vernier_record_put_strided(r, name, dims, dtype, data, rank, shape, stride, NULL);
}

int vernier_record_close(vernier_record *r)
{
	vernier_record_text_ t;
	if (!vernier_record_ready_(r)) {
		t = vernier_record_begin_("{\"complete\":");
		vernier_record_number_(&t, r->tensors);
		vernier_record_line_(r, &t);
	}
	if (r->manifest && fclose(r->manifest) != 0)
		vernier_record_fail_(r, "%s: manifest.jsonl cannot be written: %s", r->dir, strerror(errno));
	r->manifest = NULL;
	return r->failed ? -1 : 0;
}

void vernier_record_abandon(vernier_record *r)
{
	if (r->manifest)
		fclose(r->manifest);
	r->manifest = NULL;
}

const char *vernier_record_error(const vernier_record *r)
{
	return r->error;
}

#ifdef __cplusplus
}
#endif
#endif
#endif
