/* selftest_names.c: mutations of names: the right numbers under another name, in another place, or
 * missing. */
#include "compare/selftest/selftest_internal.h"

#include <stdio.h>
#include <string.h>

/* Path of the group that holds a tensor of a layer: "/step.0/layer3". */
static char *folder_of(const char *at, char *path)
{
	snprintf(path, VN_EDIT_PATH, "%s", at);
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return path;
}

static char *name_beside(const char *at, const char *name, char *path)
{
	char in[VN_EDIT_PATH];
	snprintf(path, VN_EDIT_PATH, "%.150s/%.30s", folder_of(at, in), name);
	return path;
}

static void remove_tensor(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_unlink(e, p->at);
}

static void layer_gone(vn_edit *e, const vn_mutation_context *p)
{
	char in[VN_EDIT_PATH];
	vn_edit_unlink(e, folder_of(p->at, in));
}

static void step_gone(vn_edit *e, const vn_mutation_context *p)
{
	char in[VN_EDIT_PATH];
	snprintf(in, sizeof in, "/step.%d", p->step);
	vn_edit_unlink(e, in);
}

/* Renumbers the last step: an earlier one would break the order and be refused. */
static void step_renumbered(vn_edit *e, const vn_mutation_context *p)
{
	char           from[VN_EDIT_PATH], to[VN_EDIT_PATH];
	const vn_step *s;
	const int      last = vn_recording_steps(p->original, &s) - 1;
	snprintf(from, sizeof from, "/step.%d", s[last].number);
	snprintf(to, sizeof to, "/step.%d", s[last].number + 7);
	vn_edit_move(e, from, to);
}

static void step_misspelt(vn_edit *e, const vn_mutation_context *p)
{
	char from[VN_EDIT_PATH], to[VN_EDIT_PATH];
	snprintf(from, sizeof from, "/step.%d", p->step);
	snprintf(to, sizeof to, "/step.0%d", p->step);
	vn_edit_move(e, from, to);
}

static void name_misspelt(vn_edit *e, const vn_mutation_context *p)
{
	char to[VN_EDIT_PATH];
	vn_edit_move(e, p->at, name_beside(p->at, "Atn_norm", to));
}

static void another_layer(vn_edit *e, const vn_mutation_context *p)
{
	char        to[VN_EDIT_PATH];
	const char *last = strrchr(p->at, '/');
	snprintf(to, sizeof to, "/step.%d/layer1023%s", p->step, last);
	vn_edit_move(e, p->at, to);
}

static void a_blank(vn_edit *e, const vn_mutation_context *p)
{
	char to[VN_EDIT_PATH];
	snprintf(to, sizeof to, "%.180s ", p->at);
	vn_edit_move(e, p->at, to);
}

static void upper_case(vn_edit *e, const vn_mutation_context *p)
{
	char to[VN_EDIT_PATH];
	snprintf(to, sizeof to, "%s", p->at);
	for (char *c = strrchr(to, '/'); *c; c++)
		*c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
	vn_edit_move(e, p->at, to);
}

static void control_characters(vn_edit *e, const vn_mutation_context *p)
{
	char to[VN_EDIT_PATH];
	vn_edit_move(e, p->at, name_beside(p->at, "q\033[2Jproj", to));
}

static void tensor_added(vn_edit *e, const vn_mutation_context *p)
{
	char to[VN_EDIT_PATH];
	vn_edit_point(e, name_beside(p->at, "attn_again", to), VN_EDIT_HARD, p->at);
	vn_edit_replace(e, to, &p->t, VN_EDIT_PLAIN); /* replacing an alias of the target would not be found */
}

/* Swaps the datasets themselves, so that name and attributes disagree. */
static void names_swapped(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_swap(e, p->at, p->there);
}

/* Swaps the numbers, as an engine that confused two buffers would. */
static void numbers_swapped(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_numbers(e, p->at, &p->u, true);
	vn_edit_numbers(e, p->there, &p->t, true);
}

static void layers_swapped(vn_edit *e, const vn_mutation_context *p)
{
	char a[VN_EDIT_PATH], b[VN_EDIT_PATH];
	vn_edit_swap(e, folder_of(p->at, a), folder_of(p->there, b));
}

static void other_tensor_linked(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_point(e, p->at, VN_EDIT_HARD, p->there);
}

static void orders_swapped(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_whole(e, p->at, "order", p->other->order);
	vn_edit_whole(e, p->there, "order", p->target->order);
}

static void other_layer(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_whole(e, p->at, "layer", p->target->layer + 1);
}
static void other_point(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_text(e, p->at, "point", p->other->point);
}
#define STATUS(s) \
	{ \
		.status = s \
	}

const vn_mutation vn_selftest_names[] = {
	{ "missing", "a tensor is missing", VN_NEEDS_TENSOR, .edit = remove_tensor, .want = STATUS(VN_MISSING) },
	{ "missing-logits", "the logits are missing", VN_NEEDS_SCORES, .edit = remove_tensor, .want = STATUS(VN_MISSING) },
	{ "missing-layer", "a whole layer is missing", VN_NEEDS_TENSOR, .edit = layer_gone,
	  .want = { .status = VN_MISSING, .many = true } },
	{ "missing-step", "a whole step is missing", VN_NEEDS_STEPS, .edit = step_gone,
	  .want = { .status = VN_MISSING, .many = true } },
	{ "missing-in-reference", "a tensor is not in the reference", VN_NEEDS_TENSOR, VN_SIDE_REF, .edit = remove_tensor,
	  .want = STATUS(VN_EXTRA) },
	{ "extra", "an unknown tensor", VN_NEEDS_TENSOR, .edit = tensor_added,
	  .want = { .status = VN_EXTRA, .anywhere = true } },
	{ "misspelt", "a tensor whose name is not a checkpoint name", VN_NEEDS_TENSOR, .edit = name_misspelt,
	  .want = { .status = VN_MISSING, .many = true } },
	{ "another-layer", "a tensor in a layer that the model does not have", VN_NEEDS_TENSOR, .edit = another_layer,
	  .want = { .status = VN_MISSING, .many = true } },
	{ "blank-behind", "a name with a trailing blank", VN_NEEDS_TENSOR, .edit = a_blank,
	  .want = { .status = VN_MISSING, .many = true } },
	{ "upper-case", "a name in capitals", VN_NEEDS_TENSOR, .edit = upper_case,
	  .want = { .status = VN_MISSING, .many = true } },
	{ "control-characters", "a name that would clear the terminal", VN_NEEDS_TENSOR, .edit = control_characters,
	  .want = FAILS(VN_ERR_FORMAT, "control characters") },
	{ "step-renumbered", "the last step under another number", VN_NEEDS_STEPS, .edit = step_renumbered,
	  .want = { .status = VN_MISSING, .many = true, .anywhere = true } },
	{ "step-misspelt", "a step called step.01", VN_NEEDS_STEPS, .edit = step_misspelt,
	  .want = FAILS(VN_ERR_FORMAT, "is not the name of a step") },
	{ "buffers-swapped", "two points of a layer exchanged", VN_NEEDS_PAIR, .edit = numbers_swapped,
	  .want = { .status = VN_OUTSIDE, .metric = VN_M_NMSE, .many = true, .like = VN_LAYOUT_MATCH_OTHER } },
	{ "names-swapped", "two tensors with exchanged names", VN_NEEDS_PAIR, .plan = true, .edit = names_swapped,
	  .want = REFUSED("claims", "its point is") },
	{ "layers-swapped", "two layers with exchanged names", VN_NEEDS_LAYERS, .plan = true, .edit = layers_swapped,
	  .want = REFUSED("claims", "its layer is") },
	{ "second-name-elsewhere", "a second name that points to another tensor", VN_NEEDS_NAMES, .plan = true,
	  .edit = other_tensor_linked, .want = REFUSED("claims", "its point is") },
	{ "first-name-elsewhere", "a second name that points to another layer's tensor", VN_NEEDS_LAYERS, .plan = true,
	  .edit = other_tensor_linked, .want = REFUSED("claims", "its layer is") },
	{ "order-swapped", "two tensors exchanged in the execution order", VN_NEEDS_PAIR, .plan = true,
	  .claim = VN_CLAIM_ORDER, .edit = orders_swapped, .want = REFUSED("claims", "order") },
	{ "layer-changed", "a tensor labelled with the next layer", VN_NEEDS_TENSOR, .plan = true, .edit = other_layer,
	  .want = REFUSED("claims", "its layer is") },
	{ "point-changed", "a tensor labelled with another point", VN_NEEDS_PAIR, .plan = true, .edit = other_point,
	  .want = REFUSED("claims", "its point is") },
	{ "op-changed", "a tensor labelled with another operation", VN_NEEDS_TENSOR, .plan = true,
	  .text = { NULL, "op", "delta_rule" }, .want = REFUSED("claims", "its op is") },
	{ .name = NULL }
};
