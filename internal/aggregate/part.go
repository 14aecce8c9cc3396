package aggregate

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/cityhash"
)

// Part is a part of all groups: those whose keys have a hash that begins with certain bits. The zero
// Part is all groups.
type Part struct {
	bits   uint8
	prefix uint64 // the first bits of the hash
}

// maxPartBits bounds the number of parts. Two groups whose keys have the same hash are never in
// different parts.
const maxPartBits = 20

// Halves returns the two halves of p, or false if p is not divided any further.
func (p Part) Halves() (halves [2]Part, ok bool) {
	halves = [2]Part{{p.bits + 1, p.prefix << 1}, {p.bits + 1, p.prefix<<1 | 1}}
	return halves, p.bits < maxPartBits
}

// Only lets a leave out the rows of all groups that are not in p. It is called before any row is
// added. FromWindows then returns false, unless p is all groups.
func (a *Aggregator) Only(p Part) { a.part = p }

// keepPart takes the selected rows that are in a's part.
func (a *Aggregator) keepPart(b *batch.RecordBatch) {
	r := &a.selected
	a.hashes = grown(a.hashes, r.n)
	clear(a.hashes)
	for _, k := range a.groups.columns {
		k.hash(b.Columns[k.column], r, a.hashes)
	}
	at := r.at[:0] // of rows that are not read any more
	for j, h := range a.hashes {
		if h>>(64-a.part.bits) == a.part.prefix {
			at = append(at, int32(r.row(j)))
		}
	}
	r.at, r.n, r.all = at, len(at), false
}

// hash mixes the cells of the selected rows of v into hashes. Cells that have the same number, as
// all NaNs have, have the same hash.
func (k *keyColumn) hash(v *batch.Vector, r *rows, hashes []uint64) {
	if !k.text() {
		k.load(v, r)
	}
	for j := range hashes {
		x, i := uint64(0), r.row(j)
		switch {
		case v.IsNull(i):
		case k.text():
			x = cityhash.Hash64(v.Cell(i))
		default:
			x = uint64(k.buf[j])
		}
		hashes[j] = mixed(hashes[j] + x)
	}
}

// mixed returns a number of which each bit depends on all bits of x.
func mixed(x uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	x = (x + odd) * odd
	x = (x ^ x>>32) * odd
	return x ^ x>>29
}
