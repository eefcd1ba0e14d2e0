/* vocab_view.c: see vocab_view.h. */
#include "capture/view/vocab_view.h"

#include "capture/view/box.h"
#include "libref/plan/point.h"
#include "libref/plan/vocab_part.h"

static vn_status add_sample(vn_recording *to, const vn_recording *from, int i, int axis, vn_error *err)
{
	vn_entry e = *vn_recording_entry(from, i);
	vn_piece piece[VN_VOCAB_BLOCKS];

	for (int b = 0; b < VN_VOCAB_BLOCKS; b++) {
		piece[b] = vn_box_whole(0, i, &e);
		piece[b].to[axis] = (int64_t)b * VN_VOCAB_BLOCK;
		piece[b].size[axis] = VN_VOCAB_BLOCK;
		piece[b].from += vn_vocab_block(e.shape.dim[axis], b) * piece[b].stride[axis];
	}
	e.shape.dim[axis] = VN_VOCAB_PART;
	return vn_derive_add(to, &e, piece, VN_VOCAB_BLOCKS, VN_JOIN_PLACED, err);
}

vn_status vn_vocab_view(vn_recording **r, int64_t vocab, vn_error *err)
{
	const int           ranks = vn_recording_ranks(*r);
	const vn_recording *from = *r;
	vn_recording       *made;
	vn_status           st = vn_derive(vn_recording_path(*r), r, 1, &made, err);

	if (st)
		return st;
	*r = made;
	vn_derive_ranks(made, ranks);
	for (int i = 0; !st && i < vn_recording_count(from); i++) {
		const vn_entry *e = vn_recording_entry(from, i);
		const int       axis = vn_axes_find(vn_entry_axes(e), "vocab");
		st = axis >= 0 && axis < e->shape.rank && e->shape.dim[axis] == vocab ? add_sample(made, from, i, axis, err)
		                                                                      : vn_derive_keep(made, e, 0, i, err);
	}
	return st ? st : vn_derive_end(made, err);
}
