package change

// AppendReinsert appends the list that inserts row again after a delete: all its non-key columns in
// schema order. Source: tablet spec §5.2.
func (f *RowFormat) AppendReinsert(dst, row []byte) []byte { return f.appendAll(dst, Reinsert, row) }

// AppendUpdate appends the update that files contain in place of a replacement by row: all its
// non-key columns in schema order.
func (f *RowFormat) AppendUpdate(dst, row []byte) []byte { return f.appendAll(dst, Update, row) }

func (f *RowFormat) appendAll(dst []byte, kind Kind, row []byte) []byte {
	dst = AppendUpdateHeader(dst, kind)
	for i := f.schema.Keys; i < len(f.columns); i++ {
		dst = AppendColumn(dst, f.schema.Columns[i].ID, f.Cell(row, i))
	}
	return dst
}

// Apply appends to dst the image of row after the given lists, oldest first. dst and row must not
// overlap.
//
// An UPDATE sets its columns. A REINSERT sets all non-key columns: a column that was added after
// the list was written gets its read default. A DELETE changes no cell. Apply skips columns that
// the schema does not have. The lists must have passed List.Check.
func (f *RowFormat) Apply(dst, row []byte, lists ...List) []byte {
	if f.onlyFixed(lists) {
		return f.patch(dst, row, lists)
	}
	var few [48][]byte // avoids an allocation; most rows have fewer columns
	cells := f.AppendCells(few[:0], row)
	for _, list := range lists {
		if list.Kind() == Reinsert {
			for i := f.schema.Keys; i < len(cells); i++ {
				cells[i] = f.schema.Columns[i].ReadDefault
				if cells[i] == nil && !f.columns[i].nullable {
					cells[i] = f.Cell(row, i)
				}
			}
		}
		r := list.Columns()
		for {
			id, cell, ok := r.Next()
			if !ok {
				break
			}
			if i := f.schema.IndexID(id); i >= f.schema.Keys {
				cells[i] = cell
			}
		}
	}
	return f.AppendRow(dst, cells)
}

// onlyFixed reports whether all lists are updates (or deletes) of columns of fixed width.
func (f *RowFormat) onlyFixed(lists []List) bool {
	for _, list := range lists {
		if list.Kind() == Reinsert {
			return false
		}
		r := list.Columns()
		for {
			id, _, ok := r.Next()
			if !ok {
				break
			}
			if i := f.schema.IndexID(id); i >= 0 && f.columns[i].width == 0 {
				return false
			}
		}
	}
	return true
}

// patch applies lists for which onlyFixed returned true. The heap does not change.
func (f *RowFormat) patch(dst, row []byte, lists []List) []byte {
	at := len(dst)
	dst = append(dst, row...)
	image := dst[at:]
	for _, list := range lists {
		r := list.Columns()
		for {
			id, cell, ok := r.Next()
			if !ok {
				break
			}
			i := f.schema.IndexID(id)
			if i < f.schema.Keys {
				continue
			}
			c := &f.columns[i]
			place := image[c.off : c.off+c.width]
			if cell == nil {
				if c.nullable {
					image[i>>3] |= 1 << (i & 7)
					clear(place)
				}
				continue
			}
			if c.nullable {
				image[i>>3] &^= 1 << (i & 7)
			}
			copy(place, cell)
		}
	}
	return dst
}
