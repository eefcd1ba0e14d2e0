/* verify.c: see verify.h. */
#include "capture/recording/verify.h"

#include "capture/recording/recording_internal.h"
#include "libref/base/system.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

/* The stored tensor of an entry that is the whole of one. */
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
	vn_proof_vouch(r, p, found);
}

bool vn_recording_trust(vn_recording *r, int i)
{
	vn_proof *p = proof_of(&r, i);
	int       now = VN_PROOF_DEFERRED;

	if (p)
		atomic_compare_exchange_strong(&p->state, &now, VN_PROOF_NOT_READ);
	return p != NULL;
}

/* Data loaded by HDF5 is checked when it is loaded. */
static vn_status verify_stored(vn_recording *r, int i, vn_error *err)
{
	return r->source[i].offset >= 0 ? vn_proof_ask(r, i, err) : VN_OK;
}

vn_status vn_recording_verify_entry(vn_recording *r, int i, vn_error *err)
{
	return vn_recording_each_stored(r, i, verify_stored, err);
}

vn_status vn_recording_found(vn_recording *r, int i, vn_digest *found, vn_error *err)
{
	const void     *data;
	const vn_status st = vn_recording_data(r, i, &data, err);
	vn_recording_release(r, i);
	vn_proof *p = proof_of(&r, i);
	*found = p && p->state == VN_PROOF_WRONG && p->found ? *p->found : (vn_digest) { "" };
	return st == VN_ERR_DAMAGED ? VN_OK : st;
}

/* ---- all of them ----------------------------------------------------------------------------- */

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

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Numbers that are read twice may differ then. An engine may still write to an incomplete file.
 * Whoever writes can set the time of writing back, but not the time of the last change of any kind,
 * which chmod and a new link also set: they cost a comparison, but never allow a wrong one. */
static vn_status check_unchanged(const vn_recording *r, vn_error *err)
{
	struct stat now;

	if (r->fd < 0 || !r->complete)
		return VN_OK;
	if (fstat(r->fd, &now) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: %s", r->path, strerror(errno));
	if (now.st_size != r->bytes || !same_time(now.st_mtim, r->changed))
		return vn_fail(err, VN_ERR_IO, "%s: another program changed the file while it was read", r->path);
	if (!same_time(now.st_ctim, r->touched))
		return vn_fail(err, VN_ERR_IO,
		               "%s: another program changed the file, its permissions or its links while it was read, and "
		               "its contents may be others: compare again",
		               r->path);
	return VN_OK;
}

vn_status vn_recording_verify(vn_recording *r, vn_error *err)
{
	vn_status st = check_unchanged(r, err);
	for (int i = 0; i < r->n_bases && !st; i++)
		st = vn_recording_verify(r->base[i], err);
	for (int i = 0; r->proof && i < r->n_entries && !st; i++) {
		if (r->source[i].bytes == 0 && (st = vn_proof_ask(r, i, err)) == VN_ERR_DAMAGED) /* nothing reads it */
			st = VN_OK;
		const int state = r->proof[i].state;
		if (!st && (state == VN_PROOF_LENT || state == VN_PROOF_DEFERRED) &&
		    (st = vn_proof_take(r, i, &r->proof[i], err)) == VN_ERR_DAMAGED)
			st = VN_OK;
	}
	return st;
}

void vn_recording_verified(const vn_recording *r, vn_verified *sum)
{
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_verified(r->base[i], sum);
	for (int i = 0; r->proof && i < r->n_entries; i++) {
		sum->checked += r->proof[i].state == VN_PROOF_RIGHT;
		sum->wrong += r->proof[i].state == VN_PROOF_WRONG;
		sum->without += r->proof[i].state == VN_PROOF_WITHOUT;
	}
}

void vn_recording_wrong(const vn_recording *r, void (*say)(void *context, const char *words), void *context)
{
	char words[VN_ERROR_MAX];
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_wrong(r->base[i], say, context);
	for (int i = 0; r->proof && i < r->n_entries; i++)
		if (r->proof[i].state == VN_PROOF_WRONG) {
			vn_proof_words(r, &r->proof[i], words, sizeof words);
			say(context, words);
		}
}
