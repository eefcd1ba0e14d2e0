/* dump_npz.c: a .npz file, a zip archive of .npy files (numpy.savez, savez_compressed). */
#include "capture/import/dump.h"

#include "capture/recording/scratch.h"
#include "libref/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* deflate makes of a byte 1032 at most; more is no deflate. */
enum { MOST_TIMES = 1100, HEAD = 1 << 16 };

typedef struct archive {
	zip_t     *zip;
	vn_scratch member; /* the one that was asked for last */
} archive;

static vn_status broken(const vn_dump *d, const char *member, const char *why, vn_error *err)
{
	char shown[VN_NAME_MAX];
	snprintf(shown, sizeof shown, "%.*s", VN_NAME_MAX - 1, member);
	return vn_fail(err, VN_ERR_FORMAT, "%s: %s: %s", d->path, shown, why);
}

/* The first n bytes of a member, all of which there must be. */
static vn_status read_member(vn_dump *d, size_t which, const char *name, void *to, size_t n, vn_error *err)
{
	archive    *s = d->state;
	zip_file_t *f = zip_fopen_index(s->zip, which, 0);
	size_t      at = 0;
	zip_int64_t got = 1;
	if (!f)
		return broken(d, name, zip_strerror(s->zip), err);
	while (at < n && (got = zip_fread(f, (char *)to + at, n - at)) > 0)
		at += (size_t)got;
	/* The sum of the archive is checked at the end, which is looked for behind the last byte. */
	char one;
	if (at == n && n > 0 && got >= 0)
		got = zip_fread(f, &one, 1);
	const vn_status st = at == n && got >= 0 ? VN_OK : broken(d, name, got < 0 ? zip_file_strerror(f) : "ends too early", err);
	zip_fclose(f);
	return st;
}

static vn_status bytes_of(vn_dump *d, const vn_array *a, const unsigned char **data, vn_error *err)
{
	archive   *s = d->state;
	zip_stat_t x;
	vn_scratch_end(&s->member);
	if (zip_stat_index(s->zip, a->which, 0, &x) != 0)
		return broken(d, a->name, zip_strerror(s->zip), err);
	if (!vn_scratch_make(&s->member, (size_t)x.size))
		return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory for %llu bytes", d->path, a->name, (unsigned long long)x.size);
	const vn_status st = read_member(d, a->which, a->name, s->member.data, (size_t)x.size, err);
	*data = (const unsigned char *)s->member.data + a->at;
	return st;
}

static void close_archive(vn_dump *d)
{
	archive *s = d->state;
	vn_scratch_end(&s->member);
	if (s->zip)
		zip_discard(s->zip);
	free(s);
}

static vn_status add_member(vn_dump *d, size_t which, unsigned char *head, vn_error *err)
{
	archive   *s = d->state;
	zip_stat_t x;
	vn_npy     npy;
	char       name[2 * VN_NAME_MAX], where[600];
	int        step;
	const zip_uint64_t need = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
	if (zip_stat_index(s->zip, which, ZIP_FL_ENC_RAW, &x) != 0 || (x.valid & need) != need)
		return broken(d, "a member", zip_strerror(s->zip), err);
	const size_t n = strlen(x.name);
	if (n < 5 || strcmp(x.name + n - 4, ".npy") != 0 || n - 4 >= sizeof name)
		return broken(d, x.name, "is no .npy file", err);
	if (x.size / MOST_TIMES > x.comp_size)
		return broken(d, x.name, "cannot be so small", err);
	snprintf(name, sizeof name, "%.*s", (int)(n - 4), x.name);
	snprintf(where, sizeof where, "%.400s: %.150s", d->path, x.name);
	vn_text_clean(where, sizeof where);
	const size_t some = x.size < HEAD ? (size_t)x.size : HEAD;
	vn_status    st = read_member(d, which, x.name, head, some, err);
	if (st || (st = vn_npy_parse(where, head, some, (size_t)x.size, &npy, err)))
		return st;
	vn_array *a = vn_dump_add(d, where, vn_dump_step_of(name, &step), NULL, NULL, err);
	if (!a)
		return VN_ERR_FORMAT;
	a->step = step;
	a->which = which;
	a->at = npy.at;
	a->laid = npy.laid;
	a->shape = npy.shape;
	return VN_OK;
}

vn_status vn_dump_open_npz(vn_dump *d, vn_error *err)
{
	archive       *s = d->state = calloc(1, sizeof *s);
	unsigned char *head = malloc(HEAD);
	int            why = 0;
	vn_status      st = VN_OK;
	d->kind = "npz";
	d->bytes = bytes_of;
	d->close = s ? close_archive : NULL;
	if (!s || !head) {
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", d->path);
	} else if (!(s->zip = zip_open(d->path, ZIP_RDONLY, &why))) {
		zip_error_t e;
		zip_error_init_with_code(&e, why);
		st = vn_fail(err, VN_ERR_FORMAT, "%s: not a .npz file: %s", d->path, zip_error_strerror(&e));
		zip_error_fini(&e);
	}
	for (zip_int64_t i = 0, n = st ? 0 : zip_get_num_entries(s->zip, 0); i < n && !st; i++)
		st = add_member(d, (size_t)i, head, err);
	free(head);
	return st;
}
