/* proof.c: checks whether the numbers of one stored tensor match its digest; see
 * recording_internal.h. Every read of numbers asks here first; verify.c sums up over all tensors of
 * a recording. */
#include "capture/recording/recording_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A read fits into a processor's own cache. HELD_BYTES of a scratch file may be in memory. */
enum { READ_BYTES = 256 << 10, HELD_BYTES = 16 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  settled = PTHREAD_COND_INITIALIZER;

vn_status vn_proofs_make(vn_recording *r, vn_error *err)
{
	r->proof = calloc((size_t)r->n_entries + 1, sizeof *r->proof);
	if (!r->proof)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for the digests of %d tensors", r->path, r->n_entries);
	for (int i = 0; i < r->n_entries; i++) {
		r->proof[i].entry = i;
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

/* ---- one tensor ------------------------------------------------------------------------------ */

void vn_proof_words(const vn_recording *r, const vn_proof *p, char *words, size_t room)
{
	const vn_entry *e = &r->entry[p->entry];
	snprintf(
		words, room,
		"%s: step %d: %s: its numbers do not match its digest (written %s, found %s): the file was changed or damaged "
		"after recording",
		r->path, e->step, e->name, vn_digest_text(&e->digest).hex, p->found ? p->found->hex : "unknown");
}

static vn_status refuse_wrong(const vn_recording *r, const vn_proof *p, int now, vn_error *err)
{
	char words[VN_ERROR_MAX];
	if (now != VN_PROOF_WRONG || r->allow_damage)
		return VN_OK;
	vn_proof_words(r, p, words, sizeof words);
	return vn_fail(err, VN_ERR_DAMAGED, "%s", words);
}

/* Wrong digests are rare, so the digest that was found is allocated here,
 * not part of every proof. */
static int judge_digest(const vn_recording *r, vn_proof *p, const vn_digest *found)
{
	if (strcmp(found->hex, vn_digest_text(&r->entry[p->entry].digest).hex) == 0)
		return VN_PROOF_RIGHT;
	if (!p->found && (p->found = malloc(sizeof *p->found)))
		*p->found = *found;
	return VN_PROOF_WRONG;
}

/* Adds bytes in memory: those loaded from scratch, if any. */
static void add_held(vn_digester *d, const vn_entry_source *s)
{
	const unsigned char *data = s->loaded.data;
	const size_t         bytes = (size_t)s->bytes;
	for (size_t at = 0; at < bytes; at += HELD_BYTES) {
		vn_digester_add(d, data + at, bytes - at < HELD_BYTES ? bytes - at : HELD_BYTES);
		vn_scratch_forget(&s->loaded);
	}
}

static vn_status add_stored(vn_digester *d, const vn_recording *r, int i, vn_error *err)
{
	const vn_entry_source  *s = &r->source[i];
	VN_FREED unsigned char *room = malloc(READ_BYTES);
	const char             *name = r->entry[i].name;
	vn_status st = room ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "%s: no memory for the digest of %s", r->path, name);
	for (int64_t at = 0; !st && at < s->bytes; at += READ_BYTES) {
		const size_t n = s->bytes - at < READ_BYTES ? (size_t)(s->bytes - at) : READ_BYTES;
		if (!(st = vn_recording_bytes(r, i, (vn_file_part) { r->fd, s->offset + at, n }, room, err)))
			vn_digester_add(d, room, n);
	}
	return st;
}

/* The digest of a stored tensor, from the file or from what HDF5 loaded. */
static vn_status take_digest(const vn_recording *r, int i, vn_digest *found, vn_error *err)
{
	vn_digester *d = vn_digester_create();
	vn_status    st = VN_OK;
	if (!d)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for the digest of %s", r->path, r->entry[i].name);
	if (r->source[i].offset >= 0)
		st = add_stored(d, r, i, err);
	else
		add_held(d, &r->source[i]);
	*found = vn_digester_finish(d);
	return st;
}

static int leave_proof(vn_proof *p, int now)
{
	pthread_mutex_lock(&lock);
	p->state = now;
	pthread_cond_broadcast(&settled);
	pthread_mutex_unlock(&lock);
	return now;
}

/* The first thread to come computes the digest; the others wait for it. */
vn_status vn_proof_take(const vn_recording *r, int i, vn_proof *p, vn_error *err)
{
	int now;
	pthread_mutex_lock(&lock);
	while ((now = p->state) == VN_PROOF_BUSY)
		pthread_cond_wait(&settled, &lock);
	if (now < VN_PROOF_BUSY)
		p->state = VN_PROOF_BUSY;
	pthread_mutex_unlock(&lock);
	if (now > VN_PROOF_BUSY)
		return refuse_wrong(r, p, now, err);
	vn_digest       found;
	const vn_status st = take_digest(r, i, &found, err);
	now = leave_proof(p, st ? now : judge_digest(r, p, &found));
	return st ? st : refuse_wrong(r, p, now, err);
}

vn_status vn_proof_ask(const vn_recording *r, int i, vn_error *err)
{
	vn_proof *p = r->source[i].proof;
	const int now = p ? atomic_load(&p->state) : VN_PROOF_WITHOUT;
	if (now >= VN_PROOF_RIGHT)
		return refuse_wrong(r, p, now, err);
	if (!r->entry[p->entry].has_digest)
		p->state = VN_PROOF_WITHOUT;
	else if (!r->defer || r->source[i].offset < 0)
		return vn_proof_take(r, i, p, err);
	else if (now == VN_PROOF_NOT_READ)
		p->state = VN_PROOF_DEFERRED;
	return VN_OK;
}

vn_status vn_proof_lend(const vn_recording *r, int i, bool *unchecked, vn_error *err)
{
	vn_proof *p = r->source[i].proof;
	const int now = p ? atomic_load(&p->state) : VN_PROOF_WITHOUT;
	*unchecked = now <= VN_PROOF_DEFERRED && r->entry[p->entry].has_digest;
	if (*unchecked)
		p->state = VN_PROOF_LENT;
	return *unchecked || now == VN_PROOF_LENT ? VN_OK : vn_proof_ask(r, i, err);
}

void vn_proof_vouch(const vn_recording *r, vn_proof *p, const vn_digest *found)
{
	pthread_mutex_lock(&lock);
	if (p->state == VN_PROOF_LENT) /* no thread is computing it, or has */
		p->state = judge_digest(r, p, found);
	pthread_mutex_unlock(&lock);
}
