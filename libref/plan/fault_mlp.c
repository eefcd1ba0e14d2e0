/* fault_mlp.c: faults of the feed-forward part, the embedding and the output (specs/models.md, 9.7). */
#include "libref/plan/fault_inside.h"

#include <math.h>
#include <string.h>

static const char *of_mlp(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return vn_fault_point(p, n) != VN_POINT_MLP_ACT ? "it is for the activation of the feed-forward part" : vn_fault_const_why_not(r, p, n);
}

static vn_status by_width(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_fault_row with = *r;

	with.x = sqrt((double)f->plan->weight[f->plan->node[node].w[0]].shape.dim[1]);
	return vn_fault_change_each(&with, f, node, 0, vn_fault_times, err);
}

/* x: rows by which the table is moved; those at its end come round. */
static int64_t other_row(const vn_fault_row *r, const vn_shape *s, int64_t at, int64_t *n)
{
	const int64_t V = s->dim[0], D = s->dim[1];

	*n = D - at % D;
	return (at / D + (int64_t)r->x + V) % V * D + at % D;
}

static vn_status moved_table(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_places(r, f, node, 0, other_row, err);
}

static const char *last_norm(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_point(p, n) != VN_POINT_FINAL_NORM ? "it is for the last norm" : NULL;
}

static vn_status of_embedding(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].in[0] = vn_fault_value(f->plan, -1, VN_POINT_EMBED);
	return VN_OK;
}

static const char *output(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_point(p, n) != VN_POINT_LOGITS ? "it is for the logits" : NULL;
}

/* x: how many rows further on. */
static vn_status shifted(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int x = f->plan->node[node].in[0];
	int       moved;
	vn_status st = vn_fault_insert(f, node, vn_fault_rows(-1, VN_ROWS_SHIFTED, (int)r->x, 0, x), x, &moved, err);

	if (!st)
		f->plan->node[node + 1].in[0] = moved;
	return st;
}

static vn_status tokens_shifted(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_follow(f, node, vn_fault_rows(-1, VN_ROWS_SHIFTED, (int)r->x, 0, f->plan->node[node].out[0]), err);
}

static vn_status capped(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_fault_follow(f, node, vn_fault_act(-1, VN_SOFT_CAP, f->plan->node[node].out[0]), err);
}

static vn_status log_softmax(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_fault_follow(f, node, vn_fault_rows(-1, VN_ROWS_LOG_SOFTMAX, 0, 0, f->plan->node[node].out[0]), err);
}

static vn_status temperature(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 0, vn_fault_times, err);
}

#define EITHER (VN_ON(ACT) | VN_ON(GATED))

static const vn_fault_row rows[] = {
	{ "M1.gelu", "gelu by the error function for the activation", EITHER, of_mlp, NULL, "act", VN_GELU },
	{ "M1.tanh", "gelu by tanh for the activation", EITHER, of_mlp, NULL, "act", VN_GELU_TANH },
	{ "M1.silu", "silu for the activation", EITHER, of_mlp, NULL, "act", VN_SILU },
	{ "M1.relu", "relu for the activation", EITHER, of_mlp, NULL, "act", VN_RELU },
	{ "M1.quick", "gelu by 1.702 x for the activation", EITHER, of_mlp, NULL, "act", VN_QUICK_GELU },
	{ "M2", "the activation of gate times up", VN_ON(GATED), of_mlp, NULL, "form", VN_GATE_PRODUCT },
	{ "M3.both", "the activation of gate and of up", VN_ON(GATED), of_mlp, NULL, "form", VN_GATE_BOTH },
	{ "M3.none", "no activation", EITHER, of_mlp, NULL, "act", VN_IDENTITY },
	{ "M4", "the embedding multiplied by the root of its width", VN_ON(EMBED), vn_fault_anywhere, by_width, NULL, 0 },
	{ "M5.plus", "the embedding of the next id", VN_ON(EMBED), vn_fault_anywhere, moved_table, NULL, 1 },
	{ "M5.minus", "the embedding of the id before", VN_ON(EMBED), vn_fault_anywhere, moved_table, NULL, -1 },
	{ "M5.added", "a token more in front: every row is that of the token before, the first 0", VN_ON(EMBED), vn_fault_anywhere, tokens_shifted, NULL, -1 },
	{ "M5.dropped", "the first token dropped: every row is that of the next token, the last 0", VN_ON(EMBED), vn_fault_anywhere, tokens_shifted, NULL, 1 },
	{ "M7", "the layers contribute nothing: the last norm reads the embedding", VN_ON(RMS_NORM) | VN_ON(LAYER_NORM), last_norm, of_embedding, NULL, 0 },
	{ "M8", "logits of the next row, the last of none", VN_ON(LINEAR), output, shifted, NULL, 1 },
	{ "M9.cap", "logits capped: 30 tanh(x / 30)", VN_ON(LINEAR), output, capped, NULL, 0 },
	{ "M9.log", "log-softmax of the logits", VN_ON(LINEAR), output, log_softmax, NULL, 0 },
	{ "M9.temperature", "logits at a temperature of 2", VN_ON(LINEAR), output, temperature, NULL, 1 / 2.0 },
	{ "M9.0.7", "logits at a temperature of 0.7", VN_ON(LINEAR), output, temperature, NULL, 1 / 0.7 },
};

const vn_fault_chapter vn_faults_mlp = { rows, sizeof rows / sizeof *rows };
