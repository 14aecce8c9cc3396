package rowset

import (
	"github.com/oribi-db/oribi/delta"
)

// Successor opens m, another metadata row of the same rows, as the rowset that is to take d's
// place: row IDs are the same, so the delta mem store of d, if there is one, becomes that of both.
// Readers of d go on with the files that they know.
//
// The caller keeps writers of the table away until the successor is in the table; d must not
// take changes afterwards. The successor has one reference. Errors: as Open.
func (d *DiskRowSet) Successor(m *Metadata) (*DiskRowSet, error) {
	n, err := Open(d.Schema, m, d.opts)
	if err != nil {
		return nil, err
	}
	n.encoder, n.rowFormat = d.encoder, d.rowFormat // base rows in the cache are identified by their format
	if mem := d.Tracker().Mem; mem != nil {
		n.Adopt(mem)
	}
	return n, nil
}

// Adopt gives the rowset, which is not in use yet, a delta mem store.
func (d *DiskRowSet) Adopt(mem *delta.MemStore) {
	t := *d.Tracker()
	t.Mem = mem
	d.SetStores(d.Metadata(), &t)
}
