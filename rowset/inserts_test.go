package rowset

import (
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Rows whose undos are written afterwards are byte for byte the same as rows that were written with
// them.
func TestWriteInsertsMatchesInsertsWrittenWithTheRows(t *testing.T) {
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}}, 1)
	e := keyenc.NewEncoder(s)
	write := func(d *disk, undos bool) []*Metadata {
		next := uint64(7)
		w := NewRollingWriter(d, s, func() uint64 { next++; return next }, 1)
		for from := 0; from < 6000; from += 1200 {
			rows := &change.Rows{Batch: batch.New(s.Columns, 0)}
			for i := range 1200 {
				cell := []byte{byte(from + i), byte((from + i) >> 8), 0, 0}
				rows.Batch.Columns[0].AppendCell(cell)
				rows.Keys = append(rows.Keys, e.AppendKey(nil, [][]byte{cell}))
				if undos {
					rows.Undo = append(rows.Undo, change.Delta{Row: uint32(i), TS: 77, List: deleteList})
				}
			}
			rows.Batch.Len = len(rows.Keys)
			if err := w.Append(rows); err != nil {
				t.Fatal(err)
			}
		}
		out, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	at, later := newDisk(), newDisk()
	want, got := write(at, true), write(later, false)
	if err := WriteInserts(later, got, 77); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) || len(got) < 3 {
		t.Fatalf("%d rowsets, want %d", len(got), len(want))
	}
	for i := range got {
		if g, w := got[i], want[i]; g.Rows != w.Rows || g.LiveRows != w.LiveRows || g.Bytes != w.Bytes || g.MaxTimestamp != w.MaxTimestamp ||
			len(g.Undo) != 1 || !slices.Equal(later.blocks[g.Undo[0]].Bytes, at.blocks[w.Undo[0]].Bytes) {
			t.Errorf("rowset %d: %+v, want %+v", i, g, w)
		}
		if _, err := DecodeMetadata(got[i].Encode()); err != nil {
			t.Error(err)
		}
	}
}
