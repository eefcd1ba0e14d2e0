/* selftest_shapes.c: the right name, and numbers in another shape, format or basis. */
#include "compare/selftest/selftest_internal.h"

#include "libref/base/arrange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives the target another shape, padded with zeros. */
static void reshape_tensor(vn_edit *e, const vn_mutation_context *p, vn_shape shape)
{
	vn_tensor    t = { p->t.dtype, shape, NULL };
	const size_t width = vn_dtype_size(t.dtype), n = (size_t)vn_shape_count(&shape),
				 had = (size_t)vn_shape_count(&p->t.shape);
	void *data = calloc(n + 1, width);

	if (!data) {
		vn_edit_fail(e, p->at, "no memory");
		return;
	}
	memcpy(data, p->t.data, (n < had ? n : had) * width);
	t.data = data;
	vn_edit_replace(e, p->at, &t, VN_EDIT_PLAIN);
	free(data);
}

#define RESHAPED(name, rank, ...) \
	static void name(vn_edit *e, const vn_mutation_context *p) \
	{ \
		reshape_tensor(e, p, (vn_shape) { rank, { __VA_ARGS__ } }); \
	}

/* Transposes the first two axes, numbers included. */
static void exchange_elements(vn_edit *e, const vn_mutation_context *p, int64_t first, int64_t second, int64_t together)
{
	const size_t   width = vn_dtype_size(p->t.dtype) * (size_t)together;
	vn_tensor      t = { p->t.dtype, { together > 1 ? 3 : 2, { second, first, together } }, NULL };
	unsigned char *data = malloc((size_t)(first * second) * width + 1);

	if (!data) {
		vn_edit_fail(e, p->at, "no memory");
		return;
	}
	vn_arrange_bytes(data, p->t.data, &(vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = first, .b = second }, 1,
	                 (size_t)(first * second), width);
	t.data = data;
	vn_edit_replace(e, p->at, &t, VN_EDIT_PLAIN);
	free(data);
}

static void heads_first(vn_edit *e, const vn_mutation_context *p)
{
	exchange_elements(e, p, p->T, p->H, p->K);
}
static void columns_first(vn_edit *e, const vn_mutation_context *p)
{
	exchange_elements(e, p, p->T, p->W, 1);
}
RESHAPED(heads_transposed, 3, p->T, p->K, p->H)
RESHAPED(shape_transposed, 2, p->W, p->T)
RESHAPED(heads_flattened, 2, p->T, p->H * p->K)
RESHAPED(batch_of_one, 3, 1, p->T, p->W)
RESHAPED(trailing_one, 3, p->T, p->W, 1)
RESHAPED(row_less, 2, p->T - 1, p->W)
RESHAPED(last_row_alone, 2, 1, p->W)
RESHAPED(column_less, 2, p->T, p->W - 1)
RESHAPED(column_more, 2, p->T, p->W + 1)
RESHAPED(one_list, 1, p->T * p->W)
RESHAPED(no_columns, 2, p->T, 0)
static void many_axes(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_many_axes(e, p->at, &p->t);
}

static void one_number(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_text(e, p->at, "axes", "");
	reshape_tensor(e, p, (vn_shape) { 0, { 0 } });
}

static void axes_exchanged(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_text(e, p->at, "axes",
	             strcmp(p->target->axes, "token dim head") == 0 ? "token head dim" : "token dim head");
}

static void other_basis(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_text(e, p->at, "basis", strcmp(p->target->basis, "ffn") == 0 ? "hidden" : "ffn");
}

/* ---- formats -------------------------------------------------------------------------------- */

static void said_otherwise(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_text(e, p->at, "dtype", p->t.dtype == VN_F64 ? "f16" : "f64");
}

/* Gives the same bytes another format of that width. For 32 and 64 bits there is only one such
 * format, so the byte order changes instead. */
static void bits_relabelled(vn_edit *e, const vn_mutation_context *p)
{
	vn_tensor t = p->t;

	if (t.dtype == VN_F16)
		vn_edit_text(e, p->at, "dtype", "bf16");
	if (t.dtype == VN_BF16)
		vn_edit_text(e, p->at, "dtype", NULL);
	else if (t.dtype != VN_F16)
		vn_edit_text(e, p->at, "digest", NULL); /* the digest covers the numbers, which change; the bytes do not */
	t.dtype = t.dtype == VN_F16 ? VN_BF16 : t.dtype == VN_BF16 ? VN_F16 : t.dtype;
	vn_edit_replace(e, p->at, &t, t.dtype == p->t.dtype ? VN_EDIT_BIG_ENDIAN : VN_EDIT_PLAIN);
}

static void whole_numbers(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_text(e, p->at, "dtype", NULL);
	vn_edit_replace(e, p->at, &p->t, VN_EDIT_COUNTED);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void step_says(vn_edit *e, const vn_mutation_context *p, const char *key, int by)
{
	char           at[VN_EDIT_PATH];
	const vn_step *s = vn_recording_step(p->original, p->step);
	const int64_t  was = strcmp(key, "position") == 0 ? s->position
	                     : strcmp(key, "tokens") == 0 ? s->tokens
	                     : strcmp(key, "rows") == 0   ? s->rows
	                                                  : s->first_row;

	*strchr(strcpy(at, p->at) + 1, '/') = '\0';
	vn_edit_whole(e, at, key, was + by);
}

static void position_less(vn_edit *e, const vn_mutation_context *p)
{
	step_says(e, p, "position", -1);
}
static void rows_less(vn_edit *e, const vn_mutation_context *p)
{
	step_says(e, p, "rows", -1);
}
static void tokens_too_many(vn_edit *e, const vn_mutation_context *p)
{
	step_says(e, p, "tokens", 1000);
}

/* A step may omit its row count; one that states it contradicts itself. */
static void tokens_less(vn_edit *e, const vn_mutation_context *p)
{
	step_says(e, p, "tokens", -1);
	step_says(e, p, "rows", 0);
}

/* The group of a step. */
static void step_group(int step, char path[VN_EDIT_PATH])
{
	snprintf(path, VN_EDIT_PATH, "/step.%d", step);
}

static void remove_step(vn_edit *e, int step)
{
	char at[VN_EDIT_PATH];
	step_group(step, at);
	vn_edit_unlink(e, at);
}

static void step_lost(vn_edit *e, const vn_mutation_context *p)
{
	remove_step(e, p->other->step);
}

static void first_lost(vn_edit *e, const vn_mutation_context *p)
{
	const vn_step *s;
	vn_recording_steps(p->original, &s);
	remove_step(e, s[0].number);
}

static void last_lost(vn_edit *e, const vn_mutation_context *p)
{
	const vn_step *s;
	const int      n = vn_recording_steps(p->original, &s);
	remove_step(e, s[n - 1].number);
}

static void steps_exchanged(vn_edit *e, const vn_mutation_context *p)
{
	char at[VN_EDIT_PATH], there[VN_EDIT_PATH];
	step_group(p->step, at);
	step_group(p->other->step, there);
	vn_edit_swap(e, at, there);
}

#define MISSHAPEN(why) \
	{ \
		.status = VN_MISSHAPEN, .misfit = why \
	}
#define REORDERED \
	{ \
		.status = VN_MISSHAPEN, .reordered = true \
	}

const vn_mutation vn_selftest_shapes[] = {
	{ "heads-by-dims", "(T,H,K) as (T,K,H)", VN_NEEDS_HEADS, .edit = heads_transposed,
	  .want = MISSHAPEN(VN_MISFIT_SHAPE) },
	{ "heads-first", "(T,H,K) transposed to (H,T,K)", VN_NEEDS_HEADS, .edit = heads_first, .want = REORDERED },
	{ "columns-first", "(T,D) transposed to (D,T)", VN_NEEDS_TENSOR, .edit = columns_first, .want = REORDERED },
	{ "flattened", "heads and head dims as one axis", VN_NEEDS_HEADS, .edit = heads_flattened, .want = REORDERED },
	{ "trailing-axis", "a last axis of length one", VN_NEEDS_TENSOR, .edit = trailing_one, .want = REORDERED },
	{ "column-less", "one column fewer", VN_NEEDS_TENSOR, .edit = column_less, .want = MISSHAPEN(VN_MISFIT_SHAPE) },
	{ "column-more", "a column of padding", VN_NEEDS_TENSOR, .edit = column_more, .want = MISSHAPEN(VN_MISFIT_SHAPE) },
	{ "empty", "no columns", VN_NEEDS_TENSOR, .edit = no_columns, .want = MISSHAPEN(VN_MISFIT_SHAPE) },
	{ "empty-in-both", "no columns on either side", VN_NEEDS_TENSOR, VN_SIDE_BOTH, .edit = no_columns,
	  .want = { .status = VN_EMPTY, .misfit = VN_MISFIT_EMPTY } },
	{ "shape-transposed", "(T,D) as (D,T)", VN_NEEDS_TENSOR, .edit = shape_transposed,
	  .want = MISSHAPEN(VN_MISFIT_ROWS) },
	{ "batch-of-one", "a first axis of length one", VN_NEEDS_TENSOR, .edit = batch_of_one, .want = REORDERED },
	{ "row-less", "one token fewer", VN_NEEDS_TENSOR, .edit = row_less, .want = MISSHAPEN(VN_MISFIT_ROWS) },
	{ "last-row-alone", "only the last token, although all were asked for", VN_NEEDS_TENSOR, .edit = last_row_alone,
	  .want = MISSHAPEN(VN_MISFIT_ROWS) },
	{ "one-list", "all axes as one", VN_NEEDS_TENSOR, .edit = one_list, .want = MISSHAPEN(VN_MISFIT_ROWS) },
	{ "seven-axes", "too many axes", VN_NEEDS_TENSOR, .edit = many_axes, .want = FAILS(VN_ERR_FORMAT, "rank 7") },
	{ "one-number", "a single number", VN_NEEDS_TENSOR, .edit = one_number, .want = MISSHAPEN(VN_MISFIT_SHAPE) },
	{ "axes-said-otherwise", "the dims string reversed", VN_NEEDS_HEADS, .edit = axes_exchanged,
	  .want = MISSHAPEN(VN_MISFIT_AXES) },
	{ "basis-said-otherwise", "another basis", VN_NEEDS_TENSOR, .claim = VN_CLAIM_BASIS, .edit = other_basis,
	  .want = MISSHAPEN(VN_MISFIT_BASIS) },
	{ "format-said-otherwise", "a dtype attribute that does not fit the numbers", VN_NEEDS_TENSOR,
	  .edit = said_otherwise, .want = FAILS(VN_ERR_FORMAT, "attribute dtype") },
	{ "bits-relabelled", "the same bytes as another format", VN_NEEDS_TENSOR, .edit = bits_relabelled,
	  .want = { .status = VN_OUTSIDE, .metric = VN_N_METRICS } },
	{ "whole-numbers", "numbers of an unsupported type", VN_NEEDS_TENSOR, .edit = whole_numbers,
	  .want = FAILS(VN_ERR_FORMAT, "its type is not one of") },
	{ "position-less", "a step one token earlier in the cache", VN_NEEDS_STEPS, .edit = position_less,
	  .want = REFUSED("steps", "steps: in the candidate") },
	{ "position-less-in-both", "a step one token earlier in the cache, on both sides", VN_NEEDS_STEPS, VN_SIDE_BOTH,
	  .edit = position_less, .want = REFUSED("steps", "steps: in the reference") },
	{ "step-lost-in-both", "both sides lack one step", VN_NEEDS_STEPS, VN_SIDE_BOTH, .edit = step_lost,
	  .want = REFUSED("steps", "steps: no step") },
	{ "prompt-lost-in-both", "both sides lack the prompt", VN_NEEDS_STEPS, VN_SIDE_BOTH, .edit = first_lost,
	  .want = REFUSED("steps", "steps: no step") },
	{ "last-step-lost-in-both", "both sides lack the last step", VN_NEEDS_STEPS, VN_SIDE_BOTH, .edit = last_lost,
	  .want = REFUSED("steps", "steps: no step") },
	{ "steps-exchanged-in-both", "two steps with exchanged numbers on both sides", VN_NEEDS_STEPS, VN_SIDE_BOTH,
	  .edit = steps_exchanged, .want = REFUSED("steps", "steps: in the reference") },
	{ "tokens-less", "a prompt of one token fewer", VN_NEEDS_TENSOR, .edit = tokens_less,
	  .want = FAILS(VN_ERR_FORMAT, "tokens") },
	{ "rows-less", "one kept row fewer than recorded", VN_NEEDS_TENSOR, .edit = rows_less,
	  .want = { .status = VN_MISSHAPEN, .many = true, .misfit = VN_MISFIT_ROWS } },
	{ "tokens-too-many", "a step of more tokens than the run has", VN_NEEDS_TENSOR, .edit = tokens_too_many,
	  .want = FAILS(VN_ERR_FORMAT, "tokens") },
	{ .name = NULL }
};
