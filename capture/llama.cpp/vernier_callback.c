/* vernier_callback.c: see vernier_callback.h. C99 and C++11. */
#include "vernier_callback.h"

#include "ggml-backend.h"
#include "ggml.h"

#define VERNIER_RECORD_IMPLEMENTATION
#include "vernier_record.h"

/* How often a name occurred in this call. The second node of a name gets the suffix
 * ".2", the third ".3". */
typedef struct seen {
	char name[GGML_MAX_NAME];
	int  times;
} seen;

struct vernier_callback {
	vernier_record record;
	seen          *table; /* (room, a power of two) open addressing; "" means free */
	size_t         room, used;
	char          *numbers; /* numbers of a node, copied from wherever they are */
	size_t         bytes;
	int            tokens, nodes;         /* of this call: its tokens, nodes seen so far */
	char           lookup[GGML_MAX_NAME]; /* first node of this call: a lookup, or "" */
	int            finds;                 /* whether to derive the precision from the graph */
	int            rounds, cache, flash;  /* the graph has rounding products, a cache not in f32, flash attention */
	char           other[GGML_MAX_NAME];  /* the cache's type if it is neither float32 nor float16 */
};

static seen *find_seen(seen *table, size_t room, const char *name)
{
	size_t      h = 5381;
	const char *p;
	for (p = name; *p; p++)
		h = h * 33 + (unsigned char)*p;
	while (*table[h & (room - 1)].name && strcmp(table[h & (room - 1)].name, name) != 0)
		h++;
	return &table[h & (room - 1)];
}

/* The count of this node among those of its name, from 1; 0: no memory. */
static int times_seen(vernier_callback *c, const char *name)
{
	seen  *s;
	size_t i;
	if (2 * c->used >= c->room) {
		const size_t room = c->room ? 2 * c->room : 1024;
		seen        *more = (seen *)calloc(room, sizeof *more);
		if (!more)
			return 0;
		for (i = 0; i < c->room; i++)
			if (*c->table[i].name)
				*find_seen(more, room, c->table[i].name) = c->table[i];
		free(c->table);
		c->table = more;
		c->room = room;
	}
	s = find_seen(c->table, c->room, name);
	if (!*s->name) {
		strncpy(s->name, name, sizeof s->name - 1);
		c->used++;
	}
	return ++s->times;
}

static const char *dtype_of(enum ggml_type type)
{
	return type == GGML_TYPE_F32    ? "f32"
	       : type == GGML_TYPE_F16  ? "f16"
	       : type == GGML_TYPE_BF16 ? "bf16"
	       : type == GGML_TYPE_I32  ? "i32"
	                                : NULL;
}

static int is_flash(const struct ggml_tensor *t)
{
	return strcmp(ggml_op_name(t->op), "FLASH_ATTN_EXT") == 0;
}

/* Flash attention has no name of its own, so it takes the layer of its queries,
 * "Qcur-3 (permuted)". Returns 0 if they have none. */
static int name_of(const struct ggml_tensor *t, char *name, size_t room)
{
	const char *layer;
	if (!is_flash(t)) {
		snprintf(name, room, "%s", t->name);
		return 1;
	}
	layer = t->src[0] ? strchr(t->src[0]->name, '-') : NULL;
	snprintf(name, room, "fattn-%d", layer ? atoi(layer + 1) : 0);
	return layer && layer[1] >= '0' && layer[1] <= '9';
}

static int wanted(const struct ggml_tensor *t)
{
	char name[GGML_MAX_NAME];
	if (is_flash(t))
		return dtype_of(t->type) && name_of(t, name, sizeof name);
	return t->op != GGML_OP_NONE && t->op != GGML_OP_VIEW && t->op != GGML_OP_RESHAPE && t->op != GGML_OP_PERMUTE &&
	       t->op != GGML_OP_TRANSPOSE && dtype_of(t->type) && *t->name && strncmp(t->name, "node_", 5) != 0 &&
	       strncmp(t->name, "cache_", 6) != 0;
}

/* Notes nodes with float32 input and output that round inside: ggml converts the second factor of a
 * product to a format that depends on the first factor's, and computes gelu from a table of
 * halves. */
static void note_rounding(vernier_callback *c, const struct ggml_tensor *t)
{
	const char               *op = ggml_op_desc(t);
	const int                 flash = is_flash(t), product = strcmp(op, "MUL_MAT") == 0;
	const struct ggml_tensor *first = t->src[flash ? 1 : 0];
	if (strcmp(op, "GELU") == 0)
		c->rounds = 1;
	if ((!flash && !product) || !first || first->type == GGML_TYPE_F32)
		return;
	if (product && first->op == GGML_OP_NONE) { /* a weight; otherwise keys or values */
		c->rounds = 1;
		return;
	}
	c->cache = 1;
	c->flash = c->flash || flash;
	if (first->type != GGML_TYPE_F16)
		snprintf(c->other, sizeof c->other, "%s", ggml_type_name(first->type));
}

/* States the precision in vernier's words. A cache of another type makes a word of its
 * own, "ggml-kv-TYPE". */
static void say_precision(vernier_callback *c)
{
	char word[GGML_MAX_NAME + 16];
	snprintf(word, sizeof word, "%s%s",
	         c->flash && !*c->other   ? "ggml-flash16"
	         : c->cache && !*c->other ? "ggml-kv16"
	         : *c->other              ? "ggml-kv-"
	         : c->rounds              ? "ggml"
	                                  : "f32",
	         c->other);
	vernier_record_say(&c->record, "precision", word);
}

/* Sizes and strides outermost first, at least two, without leading ones. */
static int layout(const struct ggml_tensor *t, int64_t *shape, int64_t *stride)
{
	int rank = GGML_MAX_DIMS, i;
	while (rank > 2 && t->ne[rank - 1] == 1)
		rank--;
	for (i = 0; i < rank; i++) {
		shape[i] = t->ne[rank - 1 - i];
		stride[i] = (int64_t)t->nb[rank - 1 - i];
	}
	return rank;
}

static void record(vernier_callback *c, const struct ggml_tensor *t)
{
	const size_t bytes = ggml_nbytes(t);
	int64_t      shape[GGML_MAX_DIMS], stride[GGML_MAX_DIMS];
	char         own[GGML_MAX_NAME], name[GGML_MAX_NAME + 16];
	int          rank, times;
	const int    looks_up = strcmp(ggml_op_name(t->op), "GET_ROWS") == 0;
	name_of(t, own, sizeof own);
	/* A graph looks up its tokens once, so a second lookup starts the next graph. */
	if (c->nodes && looks_up && strcmp(c->lookup, own) == 0) {
		vernier_record_fail_(&c->record,
		                     "%s: a llama_decode after that of step %d has no vernier_callback_batch before it",
		                     c->record.dir, c->record.step);
		return;
	}
	times = times_seen(c, own);
	if (bytes > c->bytes) {
		free(c->numbers);
		c->numbers = (char *)malloc(bytes);
		c->bytes = c->numbers ? bytes : 0;
	}
	if (!times || (bytes && !c->numbers)) {
		vernier_record_fail_(&c->record, "%s: no memory for %s", c->record.dir, own);
		return;
	}
	if (bytes)
		ggml_backend_tensor_get(t, c->numbers, 0, bytes);
	if (times == 1)
		snprintf(name, sizeof name, "%s", own);
	else
		snprintf(name, sizeof name, "%s.%d", own, times);
	/* A graph begins with the lookup of its tokens. */
	if (c->nodes == 0)
		snprintf(c->lookup, sizeof c->lookup, "%s", looks_up ? own : "");
	if (c->nodes++ == 0 && looks_up && t->ne[1] < c->tokens) {
		vernier_record_fail_(
			&c->record,
			"%s: llama_decode takes %d of the batch's %d tokens at a time: set n_batch and n_ubatch of "
			"llama_context_params to %d or more",
			c->record.dir, (int)t->ne[1], c->tokens, c->tokens);
		return;
	}
	rank = layout(t, shape, stride);
	vernier_record_put_strided(&c->record, name, NULL, dtype_of(t->type), c->numbers, rank, shape, stride,
	                           ggml_op_name(t->op));
}

/* Called first to ask whether a node is wanted, then with its data. Always returns true: a failed
 * recording does not stop the run. */
static bool evaluated(struct ggml_tensor *t, bool ask, void *context)
{
	vernier_callback *c = (vernier_callback *)context;
	const int         now = c->record.step >= 0 && !c->record.failed && wanted(t);
	if (ask && c->record.step >= 0)
		note_rounding(c, t);
	if (ask)
		return now;
	if (now)
		record(c, t);
	return true;
}

vernier_callback *vernier_callback_open(const char *dir, const char *precision, struct llama_context_params *params)
{
	vernier_callback *c = (vernier_callback *)calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->finds = !precision;
	vernier_record_open(&c->record, dir, "llama.cpp", precision);
	vernier_record_say(&c->record, "system", llama_print_system_info());
	params->cb_eval = evaluated;
	params->cb_eval_user_data = c;
	return c;
}

void vernier_callback_batch(vernier_callback *c, struct llama_batch batch)
{
	int i;
	if (!c)
		return;
	if (!batch.token || batch.n_tokens < 1)
		vernier_record_fail_(&c->record, "%s: a batch without tokens", c->record.dir);
	for (i = 1; batch.seq_id && i < batch.n_tokens; i++)
		if (batch.seq_id[i][0] != batch.seq_id[0][0])
			vernier_record_fail_(&c->record, "%s: a batch of several sequences", c->record.dir);
	if (!c->record.failed)
		vernier_record_step_at(&c->record, batch.token, batch.pos, (size_t)batch.n_tokens);
	if (c->room)
		memset(c->table, 0, c->room * sizeof *c->table);
	c->used = 0;
	c->tokens = batch.n_tokens;
	c->nodes = 0;
}

int vernier_callback_close(vernier_callback *c)
{
	int status;
	if (!c)
		return -1;
	if (c->finds && !c->record.failed)
		say_precision(c);
	status = vernier_record_close(&c->record);
	if (status)
		fprintf(stderr, "vernier_callback: %s\n", vernier_record_error(&c->record));
	free(c->table);
	free(c->numbers);
	free(c);
	return status;
}
