/* recording_numbers.c: returns the numbers of whole tensors: mapped, loaded (recording_load.c), or
 * gathered; see recording.h. */
#include "capture/recording/recording_internal.h"
#include "capture/recording/verify.h"

#include "libref/base/map.h"
#include "libref/base/system.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static vn_status map_file(vn_recording *r, vn_error *err)
{
	void *p = mmap(NULL, (size_t)r->bytes, PROT_READ, MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED)
		return vn_fail(err, VN_ERR_IO, "%s: cannot be mapped: %s", r->path, strerror(errno));
	vn_map_not_inherited(p, (size_t)r->bytes); /* children that read other files do not need this one */
	vn_mapped_add(p, (size_t)r->bytes, r->path);
	r->map = p;
	return VN_OK;
}

/* Releases what was loaded to read the tensors that a gathered one is made of. */
static void release_parts(const vn_recording *r, const vn_gathered *g)
{
	for (int k = 0; k < g->n; k++) {
		int           entry;
		vn_recording *of = vn_gathered_part(r, g, k, &entry);
		vn_recording_release(of, entry);
	}
}

/* Reads a whole tensor into scratch memory, unless that is done. The mapping is shared, so that its
 * pages can be given back like those of a file. */
static vn_status make_tensor(vn_recording *r, int i, vn_scratch *made, vn_error *err)
{
	const vn_entry *e = &r->entry[i];
	const size_t    bytes = (size_t)vn_shape_count(&e->shape) * vn_dtype_size(e->dtype);
	vn_region       all = { .from = { 0 } };
	if (made->data || bytes == 0)
		return VN_OK;
	if (!vn_scratch_make(made, bytes))
		return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory for %zu bytes", r->path, e->name, bytes);
	vn_scratch_keep(made);
	memcpy(all.size, e->shape.dim, sizeof all.size);
	const vn_status st = vn_recording_read_region(r, i, &all, made->data, err);
	if (st)
		vn_scratch_end(made);
	r->in_files += made->file != 0;
	return st;
}

/* unchecked: for a caller that takes data before the digest is checked; NULL otherwise. */
static vn_status data_of(vn_recording *r, int i, const void **data, bool *unchecked, vn_error *err)
{
	vn_entry_source *s = &r->source[i = vn_recording_primary(r, i)];
	vn_view         *v = s->view;
	vn_status        st = VN_OK;

	*data = NULL;
	if (s->bytes == 0)
		return v || s->gathered ? VN_OK : vn_proof_ask(r, i, err);
	if (v) {
		st = make_tensor(r, i, &v->made, err);
		*data = v->made.data;
	} else if (s->offset >= 0) {
		if (!r->map && (st = map_file(r, err)))
			return st;
		*data = r->map + s->offset;
		return unchecked ? vn_proof_lend(r, i, unchecked, err) : vn_proof_ask(r, i, err);
	} else if (s->gathered && s->gathered->whole) {
		return data_of(r->base[s->gathered->base], s->gathered->entry, data, unchecked, err);
	} else if (s->gathered) {
		if (!(st = make_tensor(r, i, &s->loaded, err)))
			release_parts(r, s->gathered);
		*data = s->loaded.data;
	} else {
		return vn_recording_load(r, i, data, err);
	}
	return st;
}

vn_status vn_recording_data(vn_recording *r, int i, const void **data, vn_error *err)
{
	return data_of(r, i, data, NULL, err);
}

vn_status vn_recording_lend(vn_recording *r, int i, const void **data, bool *unchecked, vn_error *err)
{
	*unchecked = false;
	return data_of(r, i, data, unchecked, err);
}

void vn_recording_release(vn_recording *r, int i)
{
	vn_entry_source *s = &r->source[i = vn_recording_primary(r, i)];
	vn_view         *v = s->view;
	if (v)
		vn_recording_end(r, &v->made);
	vn_recording_end(r, &s->loaded);
	if (s->gathered)
		release_parts(r, s->gathered);
}

/* Where the bytes of a mapped entry are; NULL if it is not mapped.
 * *file: the recording of that file. */
static const vn_entry_source *find_stored(const vn_recording *r, int i, const vn_recording **file)
{
	const vn_entry_source *s = &r->source[i = vn_recording_primary(r, i)];
	*file = r;
	if (s->view || s->offset < 0)
		return !s->view && s->gathered && s->gathered->whole
		           ? find_stored(r->base[s->gathered->base], s->gathered->entry, file)
		           : NULL;
	return s;
}

bool vn_recording_same_bytes(const vn_recording *a, int i, const vn_recording *b, int j)
{
	const vn_recording    *fa, *fb;
	const vn_entry_source *x = find_stored(a, i, &fa), *y = find_stored(b, j, &fb);
	return x && y && x->offset == y->offset && x->bytes == y->bytes && fa->device == fb->device &&
	       fa->inode == fb->inode && a->entry[i].dtype == b->entry[j].dtype &&
	       vn_shape_equal(&a->entry[i].shape, &b->entry[j].shape);
}

static bool map_all(vn_recording *r)
{
	vn_error why;
	bool     all = r->map || r->fd < 0 || map_file(r, &why) == VN_OK;
	for (int i = 0; i < r->n_bases; i++)
		all = map_all(r->base[i]) && all;
	return all;
}

bool vn_recording_share(vn_recording *r)
{
	const vn_recording *file;
	for (int i = 0; i < r->n_entries; i++)
		if (!find_stored(r, i, &file) && vn_shape_count(&r->entry[i].shape) > 0)
			return false;
	return map_all(r);
}

void vn_recording_unmap(vn_recording *r)
{
	for (int i = 0; i < r->n_entries; i++) /* what was read ahead, too */
		vn_recording_release(r, i);
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_unmap(r->base[i]);
	if (!r->map)
		return;
	vn_mapped_drop(r->map);
	munmap((void *)(uintptr_t)r->map, (size_t)r->bytes);
	r->map = NULL;
}

void vn_recording_forget(vn_recording *r)
{
	r->read = 0;
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_forget(r->base[i]);
	if (r->map)
		madvise((void *)(uintptr_t)r->map, (size_t)r->bytes, MADV_DONTNEED);
	for (int i = 0; i < r->n_entries && r->in_files > 0; i++) {
		vn_scratch_forget(&r->source[i].loaded);
		if (r->source[i].view)
			vn_scratch_forget(&r->source[i].view->made);
	}
}

enum { AROUND = 64 << 10, READ_MOST = 64 << 20 };

void vn_recording_was_read(vn_recording *r, int i)
{
	const vn_entry *e = vn_recording_entry(r, i);
	r->read += vn_shape_count(&e->shape) * (int64_t)vn_dtype_size(e->dtype) + AROUND;
	if (r->read >= READ_MOST)
		vn_recording_forget(r);
}

vn_status vn_entry_tensor(vn_recording *r, int entry, vn_tensor *t, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	*t = (vn_tensor) { .dtype = e->dtype, .shape = e->shape };
	return vn_recording_data(r, entry, &t->data, err);
}
