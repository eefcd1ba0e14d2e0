/* recording_numbers.c: the numbers of a recording: mapped, read by HDF5 in a child, gathered; see recording.h. */
#include "capture/recording_inside.h"

#include "capture/child.h"
#include "libref/base/mapped.h"

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
	vn_mapped_add(p, (size_t)r->bytes, r->path);
	r->map = p;
	return VN_OK;
}

/* Compressed, chunked, compact or big-endian: HDF5 reads it, in a child. */
static vn_status load(vn_recording *r, int i, vn_error *err)
{
	vn_extent *s = &r->source[i];
	vn_scan    scan = { .fd = r->fd, .path = r->path, .bytes = r->bytes,
	                    .tensor = { .dtype = (int32_t)r->entry[i].dtype, .address = s->address } };
	vn_child   child;
	int        kind = -1;
	void      *data = NULL;
	size_t     bytes;
	vn_status  st;

	strcpy(scan.tensor.name, r->entry[i].name);
	scan.to_bytes = s->bytes;
	scan.to = mmap(NULL, (size_t)s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (scan.to == MAP_FAILED)
		return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory for %" PRId64 " bytes", r->path, r->entry[i].name, s->bytes);
	st = vn_child_start(&child, r->path, vn_scan_numbers, &scan, err);
	if (!st && !(st = vn_child_receive(&child, &kind, &data, &bytes, err)) && kind != VN_FRAME_DONE)
		st = vn_fail(err, VN_ERR_FORMAT, "%s", bytes > 4 ? (char *)data + 4 : r->path);
	free(data);
	vn_child_end(&child);
	if (st)
		munmap(scan.to, (size_t)s->bytes);
	else
		s->loaded = scan.to;
	return st;
}

/* Of a derived recording: gathered from what it is made of. */
static vn_status make(vn_recording *r, int i, vn_error *err)
{
	vn_extent *s = &r->source[i];
	void *to = mmap(NULL, (size_t)s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (to == MAP_FAILED)
		return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory for %" PRId64 " bytes", r->path, r->entry[i].name, s->bytes);
	const vn_status st = vn_gathered_make(r, s->gathered, to, err);
	if (st)
		munmap(to, (size_t)s->bytes);
	else
		s->loaded = to;
	return st;
}

static int primary(const vn_recording *r, int i)
{
	return r->entry[i].same_as >= 0 ? r->entry[i].same_as : i;
}

/* As the file has them. */
static vn_status file_data(vn_recording *r, int i, const void **data, vn_error *err)
{
	vn_extent *s = &r->source[i];
	vn_status  st = VN_OK;

	if (s->offset >= 0) {
		if (!r->map && (st = map_file(r, err)))
			return st;
		*data = r->map + s->offset;
		return VN_OK;
	}
	if (s->gathered && s->gathered->whole)
		return vn_recording_data(r->base[s->gathered->base], s->gathered->entry, data, err);
	if (!s->loaded && (st = s->gathered ? make(r, i, err) : load(r, i, err)))
		return st;
	*data = s->loaded;
	return VN_OK;
}

vn_status vn_recording_data(vn_recording *r, int i, const void **data, vn_error *err)
{
	const vn_extent *s = &r->source[i = primary(r, i)];
	const size_t     bytes = s->view ? (size_t)vn_shape_count(&s->view->shape) * vn_dtype_size(r->entry[i].dtype) : 0;
	vn_status        st;

	*data = NULL;
	if (s->bytes == 0)
		return VN_OK;
	if ((st = file_data(r, i, data, err)) || !s->view)
		return st;
	if (!s->view->made) {
		/* Shared, so that its pages may be given back like those of a file. */
		void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory for %zu bytes", r->path, r->entry[i].name, bytes);
		vn_view_make(s->view, *data, r->entry[i].dtype, p);
		s->view->made = p;
	}
	*data = s->view->made;
	return VN_OK;
}

void vn_recording_release(vn_recording *r, int i)
{
	vn_extent *s = &r->source[primary(r, i)];
	vn_view   *v = s->view;
	if (v && v->made)
		munmap(v->made, (size_t)vn_shape_count(&v->shape) * vn_dtype_size(r->entry[primary(r, i)].dtype));
	if (v)
		v->made = NULL;
	if (s->loaded)
		munmap(s->loaded, (size_t)s->bytes);
	s->loaded = NULL;
	if (s->gathered && s->gathered->whole)
		vn_recording_release(r->base[s->gathered->base], s->gathered->entry);
}

void vn_recording_forget(vn_recording *r)
{
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_forget(r->base[i]);
	if (r->map)
		madvise((void *)(uintptr_t)r->map, (size_t)r->bytes, MADV_DONTNEED);
}
