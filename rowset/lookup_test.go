package rowset

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/keydir"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// wideRows writes n rows of an INT64 key and nine numbers, with a row file. Keys are even.
func wideRows(b *testing.B, n int) (*disk, *schema.Schema, *Metadata) {
	var columns []schema.Column
	for i := range 10 {
		columns = append(columns, schema.Column{ID: schema.ColumnID(10 + i),
			Name: fmt.Sprint("c", i), Type: schema.Int64})
	}
	s := mustSchema(columns, 1)
	d := newDisk()
	w, err := NewWriter(d, s, 1)
	if err == nil {
		err = w.AddRowFile()
	}
	encoder := keyenc.NewEncoder(s)
	for from := 0; from < n && err == nil; from += 1000 {
		rows := &change.Rows{Batch: batch.New(s.Columns, 1000)}
		for c, v := range rows.Batch.Columns {
			for i := range v.Len {
				batch.Raw[int64](v)[i] = int64(2*(from+i) + c)
			}
		}
		rows.Keys = change.AppendVectorKeys(nil, encoder, rows.Batch.Columns, 0, 1000)
		err = w.Append(rows)
	}
	if err != nil {
		b.Fatal(err)
	}
	row, err := w.Finish()
	if err != nil {
		b.Fatal(err)
	}
	return d, s, row
}

// BenchmarkLookup looks up scattered keys of 20,000 rows, each with another source first.
func BenchmarkLookup(b *testing.B) {
	const rows = 20_000
	d, s, row := wideRows(b, rows)
	columnsOnly := *row
	columnsOnly.RowFile, columnsOnly.KeyDirectory = 0, 0
	for _, c := range []struct {
		source string
		row    *Metadata
		cache  int64
		eager  bool // the rowset has its key directory
		odd    int  // how many of two keys are absent
		get    bool // with the cells of the row
	}{
		{"directory/absent", &columnsOnly, 64 << 20, true, 2, true},
		{"directory/present", &columnsOnly, 64 << 20, true, 0, false},
		{"cache/present", row, 64 << 20, false, 0, true},
		{"bloom/absent", &columnsOnly, 64 << 20, false, 2, true},
		{"rowfile/present", row, 512 << 10, false, 0, true},
		{"index/present", &columnsOnly, 64 << 20, false, 0, false},
		{"index/half", &columnsOnly, 64 << 20, false, 1, false},
		{"columns/present", &columnsOnly, 2 << 20, false, 0, true},
	} {
		b.Run(c.source, func(b *testing.B) {
			keydir.Eager.Store(c.eager)
			defer keydir.Eager.Store(false)
			set, err := Open(s, c.row, Options{Blocks: d, Cache: cache.New(c.cache)})
			if err != nil {
				b.Fatal(err)
			}
			defer set.Unref()
			set.directory.off.Store(!c.eager) // else the lookups would soon pay for it
			cols := allOf(s)
			cells := make([][]byte, 0, len(cols))
			var key [8]byte
			look := func(i int) {
				k := uint64(i*7919%rows) * 2
				if i%2 < c.odd {
					k++
				}
				binary.BigEndian.PutUint64(key[:], k^1<<63)
				p := bloom.MakeProbe(key[:])
				var found bool
				var err error
				if c.get {
					_, found, err = set.Get(p, mvcc.Everything, cols, cells)
				} else {
					_, found, err = set.Find(p)
				}
				if err != nil || found != (k%2 == 0) {
					b.Fatal(k, found, err)
				}
			}
			for i := range 2 * rows {
				look(i)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				look(i)
				i++
			}
		})
	}
}
