package tablet

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
)

// listedBirth is the number of rows that were inserted together up to which Changes lists them.
const listedBirth = 1 << 10

// Changes calls note for each change that a later snapshot than v's sees and v does not, in no
// order. key returns the encoded key of the row, which is never overwritten; a nil key stands for
// many rows. A change may come more than once, and may be without an effect. Every batch that the
// snapshot sees has been published. It stops at the first error. Errors: ErrCorrupt, and the errors
// of note.
func (v View) Changes(to mvcc.Snapshot, note func(ts mvcc.Timestamp, key func() ([]byte, error)) error) error {
	for _, m := range v.state.mems {
		if v.snap.Sees(m.MaxTimestamp()) {
			continue
		}
		err := m.EachChange(v.snap, to, func(key []byte, ts mvcc.Timestamp) error {
			return note(ts, func() ([]byte, error) { return key, nil })
		})
		if err != nil {
			return err
		}
	}
	for _, d := range v.state.tree.Sets {
		changed, ok := d.Changed(v.snap, to)
		if !ok {
			continue
		}
		var row batch.Ordinal
		var key []byte // of row; nil = not read yet
		keyOf := func() (_ []byte, err error) {
			if key == nil {
				key, err = d.Key(row)
			}
			return key, err
		}
		visit := func(at batch.Ordinal, ts mvcc.Timestamp) error {
			if at != row {
				row, key = at, nil
			}
			return note(ts, keyOf)
		}
		err := changed.Each(visit, func(b delta.Birth) error {
			if b.Rows > listedBirth {
				return note(b.TS, func() ([]byte, error) { return nil, nil })
			}
			for at := range b.Rows {
				if err := visit(batch.Ordinal(b.First+at), b.TS); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("table %q: %w", v.of.Name(), err)
		}
	}
	return nil
}

// At returns another reference to the state of v, which reads it as of a later snapshot.
func (v View) At(snap mvcc.Snapshot) View {
	return v.Ref().asOf(snap)
}
