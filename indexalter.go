package oribi

// AddIndex adds an index, as the table option Index does. Alter then adds the entries of all rows, while
// other writers continue, and returns when the index is complete. If it fails, or ctx ends, there is no index.
// After a kill of the process, a store that is open for writing goes on in the background, or with
// Options.Manual when the same AddIndex is called again. Until it is complete, and for reads as of earlier
// times, reads by the index look through the table.
func AddIndex(name string, columns ...string) Alteration { return addIndex(name, columns, false) }

// AddUnique is AddIndex for an index as of the table option Unique. Alter returns ErrNotUnique, which names
// the keys, if two rows have the same values. While it runs, write batches are refused that collide with rows
// that have an entry.
func AddUnique(name string, columns ...string) Alteration { return addIndex(name, columns, true) }

func addIndex(name string, columns []string, unique bool) Alteration {
	return func(d *draft) (err error) {
		row, err := newIndex(d.row, name, columns, unique)
		if err == nil {
			row.Index.Building = true
			d.index = &indexEdit{add: row}
		}
		return err
	}
}

// DropIndex removes an index, which frees its space. Operations that run meanwhile use it no more, or fail.
func DropIndex(name string) Alteration {
	return func(d *draft) error { d.index = &indexEdit{drop: name}; return nil }
}
