/* label.c: see label.h. */
#include "capture/store/label.h"

#include <stdio.h>

static void describe_point(vn_tensor_label *l, const vn_point_info *i)
{
	snprintf(l->point, sizeof l->point, "%s", i->name);
	snprintf(l->basis, sizeof l->basis, "%s", i->basis);
	snprintf(l->axes, sizeof l->axes, "%s", i->axes);
}

vn_tensor_label vn_label_of_value(const vn_plan *p, int value)
{
	const vn_value *v = &p->value[value];
	vn_tensor_label l = { .order = value, .layer = v->layer };

	snprintf(l.name, sizeof l.name, "%s", v->name);
	snprintf(l.op, sizeof l.op, "%s", vn_op_name(p->node[v->node].op));
	describe_point(&l, vn_point_get(v->point));
	return l;
}

const vn_point_info *vn_label_point(const char *name)
{
	const bool in_layer = vn_name_layer(name) >= 0;
	vn_point   p;
	if (!vn_point_from_name(vn_name_in_layer(name), &p) || (vn_point_get(p)->place == VN_INSIDE_LAYER) != in_layer)
		return NULL;
	return vn_point_get(p);
}

vn_tensor_label vn_label_of_name(const char *name)
{
	const vn_point_info *i = vn_label_point(name);
	vn_tensor_label      l = { .order = -1, .layer = vn_name_layer(name) };

	snprintf(l.name, sizeof l.name, "%s", name);
	if (i)
		describe_point(&l, i);
	return l;
}
