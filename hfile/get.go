package hfile

import (
	"bytes"
	"iter"
	"math"
)

// Get returns all entries of a row, in the order of the file: every cell of every column, or, in a
// file of Hudi, every record with this key. There are none if the row is not in the file. Deletes
// and versions are not applied. A Bloom filter of rows is asked first, if the file has one.
//
// The caller owns the result. Safe for concurrent use.
func (r *Reader) Get(row []byte) ([]Cell, error) {
	if ok, err := r.mayContain(row); !ok {
		return nil, err
	}
	return r.collect(FirstOnRow(row), func(k Key) bool { return bytes.Equal(k.Row, row) })
}

// GetColumn returns all entries of one column of a row, as Get does for a row. Deletes of the whole
// family are not among them, unless they have this qualifier. A Bloom filter of rows and columns is
// asked first, if the file has one.
func (r *Reader) GetColumn(row, family, qualifier []byte) ([]Cell, error) {
	if ok, err := r.mayContainColumn(row, qualifier); !ok {
		return nil, err
	}
	first := Key{Row: row, Family: family, Qualifier: qualifier, Timestamp: math.MaxInt64, Type: Maximum}
	return r.collect(first, func(k Key) bool {
		return bytes.Equal(k.Row, row) && bytes.Equal(k.Qualifier, qualifier) && bytes.Equal(k.Family, family)
	})
}

// collect returns the entries at and after k, as long as their keys are wanted.
func (r *Reader) collect(k Key, wanted func(Key) bool) (cells []Cell, err error) {
	c := r.takeCursor()
	defer r.releaseCursor(c)
	var memory []byte // of cells, a few at a time
	t := c.target(k)
	for ok := c.ceil(&t); ok && wanted(c.w.currentKey()); ok = c.Next() {
		cell := c.w.current()
		if n := cell.bytes(); n > cap(memory)-len(memory) {
			memory = make([]byte, 0, max(n, min(4*n, 1024)))
		}
		if cells == nil {
			cells = make([]Cell, 0, 4)
		}
		memory = cell.moveTo(memory)
		cells = append(cells, cell)
	}
	if c.err != nil {
		return nil, c.err
	}
	return cells, nil
}

// maxPooledBytes is the largest payload that a cursor in the pool keeps.
const maxPooledBytes = 1 << 20

// takeCursor returns a cursor before the first entry, for internal use.
func (r *Reader) takeCursor() *Cursor {
	if c, ok := r.cursors.Get().(*Cursor); ok {
		return c
	}
	return r.NewCursor(CursorOptions{View: r.view()})
}

// releaseCursor ends the use of a cursor of takeCursor.
func (r *Reader) releaseCursor(c *Cursor) {
	if c.err != nil || cap(c.buf.payload)+cap(c.buf.stored) > maxPooledBytes {
		return
	}
	if r.cache != nil { // which decides how long blocks are kept
		c.block = nil
		for i := range c.levels {
			c.levels[i].block = nil
		}
		c.w = walker{buf: c.w.buf, tagBuf: c.w.tagBuf, dict: c.w.dict}
	}
	c.place = beforeFirst
	r.cursors.Put(c)
}

// view returns the view in which the file was written.
func (r *Reader) view() View {
	if r.Hudi() {
		return ViewHudi
	}
	return ViewHBase
}

// ceil moves to the first entry at or after t. It returns false if all entries are before t, and
// after an error.
func (c *Cursor) ceil(t *target) bool {
	ok, err := c.floor(t)
	if err != nil {
		c.fail(err)
		return false
	}
	if !ok {
		return c.First()
	}
	n, _, err := c.ceilInBlock(t)
	if c.fail(err) != nil {
		return false
	}
	return n >= 0 || c.Next()
}

// Cells returns all entries in the order of the file. A cell is valid until the next step of the
// iteration, which ends with the first error. It reads ahead, see CursorOptions.ReadAhead; the
// goroutines have ended when the iteration returns.
func (r *Reader) Cells() iter.Seq2[Cell, error] { return r.CellsBetween(nil, nil) }

// CellsBetween returns the entries of rows from the row from up to the row to, which is not
// included. nil as from is the start of the file, nil as to its end. See Cells.
func (r *Reader) CellsBetween(from, to []byte) iter.Seq2[Cell, error] {
	return func(yield func(Cell, error) bool) {
		c := r.NewCursor(CursorOptions{View: r.view(), ReadAhead: true})
		defer c.Close()
		for ok := c.start(from); ok && (to == nil || bytes.Compare(c.w.currentRow(), to) < 0); ok = c.Next() {
			if !yield(c.w.current(), nil) {
				return
			}
		}
		if c.err != nil {
			yield(Cell{}, c.err)
		}
	}
}

// KeyValues returns all entries in Hudi's view, in the order of the file. An entry is valid until
// the next step of the iteration, which ends with the first error.
func (r *Reader) KeyValues() iter.Seq2[KeyValue, error] { return r.KeyValuesBetween(nil, nil) }

// KeyValuesBetween returns the entries with keys from the key from up to the key to, which is not
// included. nil as from is the start of the file, nil as to its end. See KeyValues.
func (r *Reader) KeyValuesBetween(from, to []byte) iter.Seq2[KeyValue, error] {
	return keyValues(r.CellsBetween(from, to))
}

// ScanPrefix returns the entries whose keys, or rows, begin with the prefix. See KeyValues.
func (r *Reader) ScanPrefix(prefix []byte) iter.Seq2[KeyValue, error] {
	return keyValues(r.CellsBetween(prefix, afterPrefix(prefix)))
}

// afterPrefix returns the first key after all keys with the prefix: "ab" gives "ac", "a\xff" gives
// "b". It is nil if all bytes of the prefix are 0xff, since no key is after those.
func afterPrefix(prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if c := prefix[n-1]; c < math.MaxUint8 {
			return append(bytes.Clone(prefix[:n-1]), c+1)
		}
	}
	return nil
}

// keyValues returns entries in Hudi's view.
func keyValues(cells iter.Seq2[Cell, error]) iter.Seq2[KeyValue, error] {
	return func(yield func(KeyValue, error) bool) {
		for c, err := range cells {
			if !yield(KeyValue{c.Row, c.Value}, err) {
				return
			}
		}
	}
}

// start moves to the first entry of the row from, or after it; nil is the first row.
func (c *Cursor) start(from []byte) bool {
	if from == nil {
		return c.First()
	}
	t := c.target(FirstOnRow(from))
	return c.ceil(&t)
}
