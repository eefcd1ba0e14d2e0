/* ref.c: the reference engine, see ref.h: creating it, and its calls. A call allocates room for
 * values and states, and then runs node by node (node.c). */
#include "libref/exec/convert.h"
#include "libref/exec/ref_internal.h"

#include "libref/base/room.h"
#include "libref/ops/blas.h"
#include "libref/plan/gemm.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls --------------------------------------------------------------------------- */

static vn_status make_room(vn_ref *r, int64_t tokens, vn_error *err)
{
	size_t bytes;

	if (tokens <= r->room_tokens)
		return VN_OK;
	free(r->memory);
	r->memory = NULL;
	r->room_tokens = 0;
	if (__builtin_mul_overflow((size_t)r->slots.total, (size_t)tokens * r->size, &bytes) ||
	    !(r->memory = vn_room_large(bytes)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the values of %" PRId64 " tokens", tokens);
	r->room_tokens = tokens;
	return VN_OK;
}

static vn_status check_call(const vn_ref *r, const int32_t *ids, int64_t tokens, vn_error *err)
{
	if (tokens < 1)
		return vn_fail(err, VN_ERR_USAGE, "the prompt is empty: give at least one token");
	if (tokens > r->plan->context - r->position)
		return vn_fail(err, VN_ERR_USAGE, "%" PRId64 " tokens exceed the model's context of %d", r->position + tokens,
		               r->plan->context);
	for (int64_t i = 0; i < tokens; i++)
		if (ids[i] < 0 || ids[i] >= r->plan->vocab)
			return vn_fail(err, VN_ERR_USAGE, "token %" PRId64 ": id %" PRId32 " is outside the vocabulary (0 to %d)",
			               i, ids[i], r->plan->vocab - 1);
	return VN_OK;
}

static vn_status begin_call(void *ref, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	vn_ref   *r = ref;
	vn_status st;

	if (r->call.open)
		return vn_fail(err, VN_ERR_USAGE, "the call before has not ended");
	if ((st = check_call(r, ids, tokens, err)) || (st = make_room(r, tokens, err)) ||
	    (st = vn_states_begin(&r->states, r->position, tokens, err)))
		return st;
	r->call.open = true;
	r->call.ids = ids;
	r->call.tokens = tokens;
	r->call.taps = taps;
	for (int i = 0; i < r->slots.n; i++)
		r->holder[i] = -1;
	if (r->progress) {
		vn_gemm_shares(r->plan, tokens, r->position + tokens, r->share);
		vn_progress_begin(&r->call.progress,
		                  &(vn_progress) { .what = "node", .total = r->plan->n_nodes, .share = r->share });
	}
	return VN_OK;
}

static vn_status run_nodes(void *ref, int from, int to, vn_error *err)
{
	vn_ref   *r = ref;
	vn_status st = VN_OK;

	if (!r->call.open)
		return vn_fail(err, VN_ERR_USAGE, "no call has begun");
	if (from < 0 || to > r->plan->n_nodes)
		return vn_fail(err, VN_ERR_USAGE, "nodes %d to %d are not in the plan, which has %d nodes", from, to,
		               r->plan->n_nodes);
	for (int i = from; !st && i < to; i++) {
		if (!(st = vn_ref_interrupted(r, err)))
			st = vn_ref_node(r, NULL, i, err);
		vn_progress_at(&r->call.progress, i + 1);
	}
	return st;
}

/* Finds a value's numbers and their count; NULL after an error.
 * to_write: the caller will write them. */
static void *find_value(vn_ref *r, int value, bool to_write, int64_t *n, vn_error *err)
{
	if (!r->call.open) {
		vn_fail(err, VN_ERR_USAGE, "no call has begun");
		return NULL;
	}
	if (value < 0 || value >= r->plan->n_values) {
		vn_fail(err, VN_ERR_USAGE, "value %d is not in the plan, which has %d values", value, r->plan->n_values);
		return NULL;
	}
	const char *name = r->plan->value[value].name;
	const int   root = vn_plan_root(r->plan, value), state = r->plan->value[root].state;
	const void *now = NULL;
	if (state >= 0 && to_write) {
		if (r->plan->state[state].input < 0) {
			*n = vn_state_row(&r->plan->state[state]);
			return vn_states_open(&r->states, state);
		}
		vn_fail(err, VN_ERR_USAGE, "%s is a state and cannot be written: write the inputs of its node", name);
		return NULL;
	}
	if (state < 0 && r->slots.slot[root] < 0) {
		vn_fail(err, VN_ERR_USAGE, "%s is never kept in memory: read it with a tap", name);
		return NULL;
	}
	*n = r->call.tokens * vn_value_row(&r->plan->value[root]);
	if (state < 0 && to_write)
		return vn_ref_at(r, root);
	now = state >= 0 ? vn_states_see(&r->states, state, n) : vn_ref_holds(r, root) ? vn_ref_at(r, root) : NULL;
	if (!now)
		vn_fail(err, VN_ERR_USAGE, "%s is not in memory: it was neither computed nor written, or is already freed",
		        name);
	return (void *)(uintptr_t)now;
}

static vn_status read_value(void *ref, int value, void *data, vn_error *err)
{
	vn_ref     *r = ref;
	int64_t     n;
	const void *at = find_value(r, value, false, &n, err);

	if (!at)
		return VN_ERR_USAGE;
	const vn_dtype as = vn_policy_dtype(r->policy, vn_value_wide(r->plan, value));
	vn_convert(data, as, at, r->eval->width, (size_t)n, r->threads); /* exact: already rounded */
	return VN_OK;
}

vn_status vn_ref_write(vn_ref *r, int value, const void *data, vn_dtype from, vn_error *err)
{
	int64_t n;
	void   *at = find_value(r, value, true, &n, err);

	if (!at)
		return VN_ERR_USAGE;
	const int root = vn_plan_root(r->plan, value), state = r->plan->value[root].state;
	vn_convert(at, r->eval->width, data, from, (size_t)n, r->threads);
	if (state >= 0)
		vn_states_made(&r->states, state);
	else
		vn_ref_placed(r, root);
	return VN_OK;
}

static vn_status write_value(void *ref, int value, const void *data, vn_error *err)
{
	const vn_ref *r = ref;
	const bool    known = value >= 0 && value < r->plan->n_values;

	return vn_ref_write(ref, value, data, vn_policy_dtype(r->policy, known && vn_value_wide(r->plan, value)), err);
}

/* Taps are handed over immediately, so there is nothing to do. */
static vn_status flush_taps(void *ref, vn_error *err)
{
	(void)ref, (void)err;
	return VN_OK;
}

static vn_status end_call(void *ref, bool keep, vn_error *err)
{
	vn_ref *r = ref;
	(void)err;
	if (!r->call.open)
		return VN_OK;
	vn_progress_stop(&r->call.progress);
	vn_states_end(&r->states, keep);
	if (keep && r->position == 0)
		r->prompt = r->call.tokens;
	if (keep)
		r->position += r->call.tokens;
	memset(&r->call, 0, sizeof r->call);
	return VN_OK;
}

static vn_status run_forward(void *ref, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	vn_ref   *r = ref;
	vn_status st = begin_call(r, ids, tokens, taps, err);

	if (st)
		return st;
	st = run_nodes(r, 0, r->plan->n_nodes, err);
	end_call(r, !st, NULL);
	return st;
}

vn_status vn_ref_run_both(vn_ref *r, vn_ref *also, int node, vn_error *err)
{
	vn_status st;

	if (r->call.open && also->call.open && node >= 0 && node < r->plan->n_nodes && node < also->plan->n_nodes &&
	    vn_ref_shares(r, also, node)) {
		if (!(st = vn_ref_interrupted(r, err)))
			st = vn_ref_node(r, also, node, err);
		vn_progress_at(&r->call.progress, node + 1);
		return st;
	}
	return (st = run_nodes(r, node, node + 1, err)) ? st : run_nodes(also, node, node + 1, err);
}

/* ---- the engine ---------------------------------------------------------------------- */

static int64_t position_of(const void *ref)
{
	const vn_ref *r = ref;
	return r->position;
}

static void reset_run(void *ref)
{
	vn_ref *r = ref;
	end_call(r, false, NULL);
	r->position = r->prompt = 0;
}

static void write_facts(const void *ref, vn_facts *f)
{
	const vn_ref *r = ref;
	vn_facts_set(f, "engine", "ref");
	vn_facts_set(f, "engine_version", "%s", VERNIER_VERSION);
	vn_facts_set(f, "device", "cpu");
	vn_facts_set(f, "precision", "%s", vn_policy_name(r->policy));
	vn_facts_set(f, "threads", "%d", r->threads);
	vn_facts_set(f, "blas", "%s", vn_blas_version());
	vn_facts_set(f, "blas_kernel", "%s", vn_blas_core());
	vn_facts_set(f, "rope_angles", "float32");
}

void vn_ref_rounds(vn_ref *r, vn_policy p)
{
	p.storage = r->policy.storage;
	p.sums = r->policy.sums;
	r->policy = p;
}

static void destroy_ref(void *ref)
{
	vn_ref *r = ref;
	if (!r)
		return;
	end_call(r, false, NULL);
	vn_states_destroy(&r->states);
	VN_FREE(r->convert, r->holder, r->share, r->memory, r->piece);
	vn_slots_finish(&r->slots);
	free(r);
}

vn_status vn_ref_create(const vn_plan *plan, const vn_tensor *weights, const vn_ref_options *o, vn_ref **ref,
                        vn_error *err)
{
	vn_status st = vn_plan_check(plan, err);
	vn_ref   *r;

	*ref = NULL;
	if (st)
		return st;
	if (!(r = *ref = calloc(1, sizeof *r)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory");
	r->plan = plan;
	r->weights = weights;
	r->policy = o->policy;
	r->eval = vn_eval_for(o->policy);
	r->size = vn_dtype_size(r->eval->width);
	r->threads = o->threads > 0 ? o->threads : omp_get_num_procs();
	r->progress = o->progress;
	r->stop = o->stop;
	r->stop_ctx = o->stop_ctx;
	r->made = o->made;
	r->made_ctx = o->made_ctx;
	r->need = o->need;
	r->need_ctx = o->need_ctx;
	r->convert = malloc((size_t)VN_REF_CONVERT * 8);
	if ((st = vn_states_create(&r->states, plan, r->size, err)))
		goto fail;
	if (!r->convert || !vn_slots_assign(&r->slots, plan) ||
	    !(r->holder = malloc(((size_t)r->slots.n + 1) * sizeof *r->holder)) ||
	    !(r->share = malloc(((size_t)plan->n_nodes + 1) * sizeof *r->share))) {
		st = vn_fail(err, VN_ERR_NOMEM, "no memory");
		goto fail;
	}
	if ((st = vn_blas_prepare(r->threads, err)))
		goto fail;
	return VN_OK;
fail:
	destroy_ref(r);
	*ref = NULL;
	return st;
}

/* clang-format off */
const vn_engine_ops vn_ref_ops = {
	.forward = run_forward, .position = position_of, .reset = reset_run, .facts = write_facts, .destroy = destroy_ref,
	.begin = begin_call, .run = run_nodes, .read = read_value, .write = write_value, .flush = flush_taps,
		.end = end_call,
};
/* clang-format on */
