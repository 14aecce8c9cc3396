package rowset

import (
	"github.com/oribi-db/oribi/delta"
)

// Successor opens m, new metadata of the same rows, as the rowset that will replace d. Row IDs are
// the same, so both share the delta mem store of d, if d has one. Readers of d continue with its
// files.
//
// The caller excludes writers of the table until the successor is in the table; afterwards d must
// not take changes. The successor has one reference. Errors: as Open.
func (d *DiskRowSet) Successor(m *Metadata) (*DiskRowSet, error) {
	n, err := Open(d.Schema, m, d.opts)
	if err != nil {
		return nil, err
	}
	n.encoder, n.rowFormat = d.encoder, d.rowFormat // cached base rows are identified by their format
	n.directory.kept.Store(d.directory.kept.Load())
	n.directory.damaged.Store(d.directory.damaged.Load())
	n.dead.Store(d.dead.Load())
	if mem := d.Tracker().Mem; mem != nil {
		n.Adopt(mem)
	}
	return n, nil
}

// Adopt sets the delta mem store of a rowset that is not in use yet.
func (d *DiskRowSet) Adopt(mem *delta.MemStore) {
	t := *d.Tracker()
	t.Mem = mem
	d.SetStores(d.Metadata(), &t)
}
