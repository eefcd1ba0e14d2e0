/* verify.c: see verify.h. */
#include "capture/recording/verify.h"

#include "capture/recording/recording_inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is read at once fits into a processor's own cache; of a scratch file so much may be in memory. */
enum { READ_BYTES = 256 << 10, HELD_BYTES = 16 << 20 };

typedef enum state {
	NOT_READ,
	DEFERRED, /* handed out, not checked */
	LENT,     /* the same, and the borrower takes its digest */
	BUSY,     /* some thread takes its digest */
	RIGHT,
	WRONG,
	WITHOUT,  /* handed out, and the file has no digest of it */
} state;

/* A stored tensor. The views of one tensor share it. */
struct vn_proof {
	vn_digest  *found;   /* where it is WRONG; else NULL */
	int         entry;   /* of its file */
	_Atomic int state;
	vn_digest   written; /* which a view takes from its entry */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  settled = PTHREAD_COND_INITIALIZER;

vn_status vn_proofs_make(vn_recording *r, vn_error *err)
{
	r->proof = calloc((size_t)r->n_entries + 1, sizeof *r->proof);
	if (!r->proof)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for the digests of %d tensors", r->path, r->n_entries);
	for (int i = 0; i < r->n_entries; i++) {
		r->proof[i].entry = i;
		r->proof[i].written = r->entry[i].digest;
		r->source[i].proof = &r->proof[i];
	}
	return VN_OK;
}

void vn_proofs_free(vn_recording *r)
{
	for (int i = 0; r->proof && i < r->n_entries; i++)
		free(r->proof[i].found);
	free(r->proof);
	r->proof = NULL;
}

/* ---- one tensor -------------------------------------------------------------------------------- */

static void words_of(const vn_recording *r, const vn_proof *p, char *words, size_t room)
{
	const vn_entry *e = &r->entry[p->entry];
	snprintf(words, room, "%s: step %d: %s: its numbers do not match its digest (written %s, found %s): the file was changed or damaged after recording",
	         r->path, e->step, e->name, p->written.hex, p->found ? p->found->hex : "unknown");
}

static vn_status answer(const vn_recording *r, const vn_proof *p, int now, vn_error *err)
{
	char words[VN_ERROR_MAX];
	if (now != WRONG || r->allow_damage)
		return VN_OK;
	words_of(r, p, words, sizeof words);
	return vn_fail(err, VN_ERR_DAMAGED, "%s", words);
}

/* Wrong ones are few, so that nobody has room for what was found of each. */
static int judged(vn_proof *p, const vn_digest *found)
{
	if (strcmp(found->hex, p->written.hex) == 0)
		return RIGHT;
	if (!p->found && (p->found = malloc(sizeof *p->found)))
		*p->found = *found;
	return WRONG;
}

/* Of bytes that are in memory: scratch, or NULL. */
static void add_held(vn_digester *d, const vn_extent *s)
{
	const unsigned char *data = s->loaded.data;
	const size_t bytes = (size_t)s->bytes;
	for (size_t at = 0; at < bytes; at += HELD_BYTES) {
		vn_digester_add(d, data + at, bytes - at < HELD_BYTES ? bytes - at : HELD_BYTES);
		vn_scratch_forget(&s->loaded);
	}
}

static vn_status add_stored(vn_digester *d, const vn_recording *r, int i, vn_error *err)
{
	const vn_extent *s = &r->source[i];
	unsigned char   *room = malloc(READ_BYTES);
	vn_status st = room ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "%s: no memory for the digest of %s", r->path, r->entry[i].name);
	for (int64_t at = 0; !st && at < s->bytes; at += READ_BYTES) {
		const size_t n = s->bytes - at < READ_BYTES ? (size_t)(s->bytes - at) : READ_BYTES;
		if (!(st = vn_recording_bytes(r, i, s->offset + at, n, room, err)))
			vn_digester_add(d, room, n);
	}
	free(room);
	return st;
}

/* The digest of a stored tensor: from the file, or of what HDF5 has read of it. */
static vn_status take(const vn_recording *r, int i, vn_digest *found, vn_error *err)
{
	vn_digester *d = vn_digester_create();
	vn_status st = VN_OK;
	if (!d)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for the digest of %s", r->path, r->entry[i].name);
	if (r->source[i].offset >= 0)
		st = add_stored(d, r, i, err);
	else
		add_held(d, &r->source[i]);
	*found = vn_digester_finish(d);
	return st;
}

static int leave(vn_proof *p, int now)
{
	pthread_mutex_lock(&lock);
	p->state = now;
	pthread_cond_broadcast(&settled);
	pthread_mutex_unlock(&lock);
	return now;
}

/* Whichever thread comes first takes the digest; the others wait for it. */
static vn_status prove(const vn_recording *r, int i, vn_proof *p, vn_error *err)
{
	int now;
	pthread_mutex_lock(&lock);
	while ((now = p->state) == BUSY)
		pthread_cond_wait(&settled, &lock);
	if (now < BUSY)
		p->state = BUSY;
	pthread_mutex_unlock(&lock);
	if (now > BUSY)
		return answer(r, p, now, err);
	vn_digest found;
	const vn_status st = take(r, i, &found, err);
	now = leave(p, st ? now : judged(p, &found));
	return st ? st : answer(r, p, now, err);
}

vn_status vn_proof_ask(const vn_recording *r, int i, vn_error *err)
{
	vn_proof *p = r->source[i].proof;
	const int now = p ? atomic_load(&p->state) : WITHOUT;
	if (now >= RIGHT)
		return answer(r, p, now, err);
	if (!*p->written.hex)
		p->state = WITHOUT;
	else if (!r->defer || r->source[i].offset < 0)
		return prove(r, i, p, err);
	else if (now == NOT_READ)
		p->state = DEFERRED;
	return VN_OK;
}

vn_status vn_proof_lend(const vn_recording *r, int i, bool *unchecked, vn_error *err)
{
	vn_proof *p = r->source[i].proof;
	const int now = p ? atomic_load(&p->state) : WITHOUT;
	*unchecked = now <= DEFERRED && *p->written.hex;
	if (*unchecked)
		p->state = LENT;
	return *unchecked || now == LENT ? VN_OK : vn_proof_ask(r, i, err);
}

/* The stored tensor of an entry that is all of one. */
static vn_proof *proof_of(vn_recording **r, int i)
{
	i = vn_recording_primary(*r, i);
	while ((*r)->source[i].gathered && (*r)->source[i].gathered->whole) {
		const vn_gathered *g = (*r)->source[i].gathered;
		*r = (*r)->base[g->base];
		i = vn_recording_primary(*r, g->entry);
	}
	return (*r)->source[i].proof;
}

void vn_recording_vouch(vn_recording *r, int i, const vn_digest *found)
{
	vn_proof *p = proof_of(&r, i);
	pthread_mutex_lock(&lock);
	if (p->state == LENT) { /* nobody is at it, or was */
		p->state = judged(p, found);
	}
	pthread_mutex_unlock(&lock);
}

vn_status vn_recording_verify_entry(vn_recording *r, int i, vn_error *err)
{
	const vn_extent   *s = &r->source[i = vn_recording_primary(r, i)];
	const vn_gathered *g = s->gathered;
	vn_status st = VN_OK;
	if (!g)
		return s->offset >= 0 ? vn_proof_ask(r, i, err) : VN_OK; /* what HDF5 reads is checked when it is read */
	if (g->whole)
		return vn_recording_verify_entry(r->base[g->base], g->entry, err);
	for (int k = 0; k < g->n && !st; k++)
		st = vn_recording_verify_entry(r->base[g->piece[k].base], g->piece[k].entry, err);
	return st;
}

vn_status vn_recording_found(vn_recording *r, int i, vn_digest *found, vn_error *err)
{
	const void *data;
	const vn_status st = vn_recording_data(r, i, &data, err);
	vn_recording_release(r, i);
	vn_proof *p = proof_of(&r, i);
	*found = p && p->state == WRONG && p->found ? *p->found : (vn_digest) { "" };
	return st == VN_ERR_DAMAGED ? VN_OK : st;
}

/* ---- all of them ------------------------------------------------------------------------------- */

void vn_recording_allow_damage(vn_recording *r)
{
	r->allow_damage = true;
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_allow_damage(r->base[i]);
}

void vn_recording_defer(vn_recording *r, bool on)
{
	r->defer = on;
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_defer(r->base[i], on);
}

vn_status vn_recording_verify(vn_recording *r, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < r->n_bases && !st; i++)
		st = vn_recording_verify(r->base[i], err);
	for (int i = 0; r->proof && i < r->n_entries && !st; i++)
		if ((r->proof[i].state == LENT || r->proof[i].state == DEFERRED) && (st = prove(r, i, &r->proof[i], err)) == VN_ERR_DAMAGED)
			st = VN_OK;
	return st;
}

void vn_recording_verified(const vn_recording *r, vn_verified *sum)
{
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_verified(r->base[i], sum);
	for (int i = 0; r->proof && i < r->n_entries; i++) {
		sum->checked += r->proof[i].state == RIGHT;
		sum->wrong += r->proof[i].state == WRONG;
		sum->without += r->proof[i].state == WITHOUT;
	}
}

void vn_recording_wrong(const vn_recording *r, void (*say)(void *context, const char *words), void *context)
{
	char words[VN_ERROR_MAX];
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_wrong(r->base[i], say, context);
	for (int i = 0; r->proof && i < r->n_entries; i++)
		if (r->proof[i].state == WRONG) {
			words_of(r, &r->proof[i], words, sizeof words);
			say(context, words);
		}
}
