/* selftest_files.c: mutations of files: truncated, damaged, unfinished, or with links to
 * elsewhere. */
#include "compare/selftest/selftest_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- as bytes ------------------------------------------------------------------------------ */

static int64_t size_of(const char *path)
{
	struct stat s;
	return stat(path, &s) == 0 ? (int64_t)s.st_size : 0;
}

static bool remove_file(const char *path)
{
	return unlink(path) == 0;
}
static bool empty_file(const char *path)
{
	return truncate(path, 0) == 0;
}
static bool halve_file(const char *path)
{
	return truncate(path, size_of(path) / 2) == 0;
}
static bool head_alone(const char *path)
{
	return truncate(path, 96) == 0;
}
static bool byte_less(const char *path)
{
	return truncate(path, size_of(path) - 1) == 0;
}
static bool replace_by_folder(const char *path)
{
	return unlink(path) == 0 && mkdir(path, 0700) == 0;
}

static bool overwrite_bytes(const char *path, int64_t at, int64_t n, int with)
{
	FILE *f = fopen(path, "r+b");
	bool  good = f && fseek(f, at, SEEK_SET) == 0;
	for (int64_t i = 0; good && i < n; i++)
		good = fputc(with, f) != EOF;
	return (!f || fclose(f) == 0) && good;
}

static bool no_hdf5(const char *path)
{
	return overwrite_bytes(path, 0, 8, 'x');
}
static bool no_start(const char *path)
{
	return overwrite_bytes(path, 8, 88, 0xff);
}
static bool text_file(const char *path)
{
	FILE *f = fopen(path, "w");
	return f && fputs("version https://git-lfs.github.com/spec/v1\n", f) >= 0 && fclose(f) == 0;
}

/* ---- as HDF5 --------------------------------------------------------------------------------- */

static void soft_link(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_point(e, p->at, VN_EDIT_SOFT, p->there);
}
static void dangling_link(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_point(e, p->at, VN_EDIT_SOFT, "/nowhere");
}
static void external_link(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_point(e, p->at, VN_EDIT_EXTERNAL, vn_recording_path(p->original));
}

/* A group that contains itself. */
static void group_circle(vn_edit *e, const vn_mutation_context *p)
{
	char step[VN_EDIT_PATH], in[VN_EDIT_PATH + 16];
	*strchr(strcpy(step, p->at) + 1, '/') = '\0';
	snprintf(in, sizeof in, "%s/layer7777", step);
	vn_edit_point(e, in, VN_EDIT_HARD, step);
}

/* Bytes that changed after the run, under the old digest. */
static void numbers_changed(vn_edit *e, const vn_mutation_context *p)
{
	vn_tensor t = p->t;
	t.data = p->u.data;
	vn_edit_numbers(e, p->at, &t, false);
}

static void last_bit(vn_edit *e, const vn_mutation_context *p)
{
	const size_t   bytes = (size_t)vn_shape_count(&p->t.shape) * vn_dtype_size(p->t.dtype);
	vn_tensor      t = p->t;
	unsigned char *raw = malloc(bytes);
	if (!raw) {
		vn_edit_fail(e, p->at, "no memory");
		return;
	}
	memcpy(raw, p->t.data, bytes);
	raw[bytes / 2 / vn_dtype_size(p->t.dtype) * vn_dtype_size(p->t.dtype)] ^= 1;
	t.data = raw;
	vn_edit_numbers(e, p->at, &t, false);
	free(raw);
}

const vn_mutation vn_selftest_files[] = {
	{ "absent", "no file", .file = remove_file, .want = FAILS(VN_ERR_IO, "No such file") },
	{ "empty-file", "an empty file", .file = empty_file, .want = FAILS(VN_ERR_FORMAT, "is empty") },
	{ "folder", "a directory of that name", .file = replace_by_folder, .want = FAILS(VN_ERR_IO, "a directory") },
	{ "pointer", "a Git LFS pointer", .file = text_file, .want = FAILS(VN_ERR_FORMAT, "not an HDF5 file") },
	{ "truncated", "the second half is missing", .file = halve_file, .want = FAILS(VN_ERR_FORMAT, "HDF5") },
	{ "byte-less", "the last byte is missing", .file = byte_less, .want = FAILS(VN_ERR_FORMAT, "HDF5") },
	{ "head-alone", "cut to 96 bytes", .file = head_alone, .want = FAILS(VN_ERR_FORMAT, "HDF5") },
	{ "signature", "another signature", .file = no_hdf5, .want = FAILS(VN_ERR_FORMAT, "not an HDF5 file") },
	{ "superblock", "the superblock overwritten", .file = no_start, .want = FAILS(VN_ERR_FORMAT, "HDF5") },
	{ "incomplete", "the run was interrupted", .whole = { "/", "complete", 0 },
	  .want = REFUSED("incomplete", "incomplete") },
	{ "incomplete-reference", "the reference's run was interrupted", .side = VN_SIDE_REF,
	  .whole = { "/", "complete", 0 }, .want = REFUSED("incomplete", "incomplete") },
	{ "complete-unsaid", "no mark that the run is complete", .text = { "/", "complete", NULL },
	  .want = FAILS(VN_ERR_FORMAT, "complete") },
	{ "format", "another format's name", .text = { "/", "format", "someone's" },
	  .want = FAILS(VN_ERR_FORMAT, "not a recording") },
	{ "version", "a later version of the format", .whole = { "/", "format_version", 2 },
	  .want = FAILS(VN_ERR_FORMAT, "format_version") },
	{ "soft-link", "a soft link to another tensor", VN_NEEDS_PAIR, .edit = soft_link,
	  .want = FAILS(VN_ERR_FORMAT, "a soft link") },
	{ "dangling-link", "a soft link to nowhere", VN_NEEDS_TENSOR, .edit = dangling_link,
	  .want = FAILS(VN_ERR_FORMAT, "a soft link") },
	{ "external-link", "a link into another file", VN_NEEDS_TENSOR, .edit = external_link,
	  .want = FAILS(VN_ERR_FORMAT, "an external link") },
	{ "circle", "a group inside itself", VN_NEEDS_TENSOR, .edit = group_circle,
	  .want = FAILS(VN_ERR_FORMAT, "a group with two names") },
	{ "elsewhere", "numbers in another file", VN_NEEDS_TENSOR, .stored = VN_EDIT_ELSEWHERE,
	  .want = FAILS(VN_ERR_FORMAT, "in another file") },
	{ "virtual", "a view of another dataset", VN_NEEDS_TENSOR, .stored = VN_EDIT_VIRTUAL,
	  .want = FAILS(VN_ERR_FORMAT, "virtual") },
	{ "unwritten", "numbers that were never written", VN_NEEDS_TENSOR, .stored = VN_EDIT_UNWRITTEN,
	  .want = FAILS(VN_ERR_FORMAT, "never written") },
	{ "chunk-missing", "a chunk of them was never written", VN_NEEDS_TENSOR, .stored = VN_EDIT_GAP,
	  .want = FAILS(VN_ERR_FORMAT, "stored") },
	{ "packed-chunk-missing", "the same, compressed", VN_NEEDS_TENSOR, .stored = VN_EDIT_PACKED_GAP,
	  .want = FAILS(VN_ERR_FORMAT, "never written") },
	{ "packed-rot", "a changed byte in compressed numbers", VN_NEEDS_TENSOR, .stored = VN_EDIT_ROTTEN,
	  .want = { .status = VN_UNREADABLE } },
	{ "rot", "numbers changed, digest kept", VN_NEEDS_PAIR, .claim = VN_CLAIM_DIGEST, .edit = numbers_changed,
	  .want = REFUSED("digest", "do not match its digest") },
	{ "bit", "the last bit of a number flipped, digest kept", VN_NEEDS_TENSOR, .claim = VN_CLAIM_DIGEST,
	  .edit = last_bit, .want = REFUSED("digest", "do not match its digest") },
	{ "bit-reference", "the same in the reference", VN_NEEDS_TENSOR, .side = VN_SIDE_REF, .claim = VN_CLAIM_DIGEST,
	  .edit = last_bit, .want = REFUSED("digest", "do not match its digest") },
	{ "digest", "a malformed digest", VN_NEEDS_TENSOR, .text = { NULL, "digest", "0123" },
	  .want = FAILS(VN_ERR_FORMAT, "digest") },
	{ "statistics", "a negative number of NaN", VN_NEEDS_TENSOR, .claim = VN_CLAIM_STATISTICS,
	  .whole = { NULL, "nan", -1 }, .want = FAILS(VN_ERR_FORMAT, "nan -1") },
	{ .name = NULL }
};
