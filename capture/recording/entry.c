/* entry.c: see entry.h. */
#include "capture/recording/entry.h"

#include <string.h>

const vn_point_info *vn_entry_point(const vn_entry *e)
{
	const char *dot = strchr(e->name, '.');
	vn_point    p;
	if (vn_point_from_name(*e->point ? e->point : dot ? dot + 1 : e->name, &p))
		return vn_point_get(p);
	return NULL;
}

bool vn_entry_last(const vn_entry *e)
{
	const vn_point_info *p = vn_entry_point(e);
	return p && p->place == VN_BEHIND_LAYERS;
}

bool vn_entry_last_alone(const vn_entry *e, int64_t rows)
{
	return rows > 1 && vn_entry_last(e) && vn_axes_find(vn_entry_axes(e), "token") == 0 && e->shape.rank > 0 &&
	       e->shape.dim[0] == 1;
}

vn_digest vn_entry_digest(const vn_entry *e)
{
	return e->has_digest && !e->viewed ? vn_digest_text(&e->digest) : (vn_digest) { "" };
}

const char *vn_entry_axes(const vn_entry *e)
{
	const vn_point_info *p = *e->axes ? NULL : vn_entry_point(e);
	return p ? p->axes : e->axes;
}

int64_t vn_region_count(const vn_region *box, int rank)
{
	int64_t n = 1;
	for (int a = 0; a < rank; a++)
		n *= box->size[a];
	return n;
}
