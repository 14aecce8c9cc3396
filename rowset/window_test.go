package rowset

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Where cells are long, windows have fewer rows: what a window holds in memory does not grow with the rows' length. Columns that are
// not read do not count, and windows end where whole ones would.
func TestWindowsOfLongRowsAreShort(t *testing.T) {
	r := seedtest.Rand(t)
	const rows, long = 300, 30_000
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, {ID: 2, Name: "v", Type: schema.Binary}}, 1)
	d := newDisk()
	w := NewRollingWriter(d, s, func() uint64 { return 1 }, 1<<30)
	in := &change.Rows{Batch: batch.New(s.Columns, 0)}
	text := make([]byte, long)
	for i := range rows {
		for k := range text {
			text[k] = byte(r.Uint32())
		}
		in.Batch.Columns[0].AppendCell(binary.LittleEndian.AppendUint64(nil, uint64(i)))
		in.Batch.Columns[1].AppendCell(bytes.Clone(text))
		in.Keys = append(in.Keys, []byte{0x80, 0, 0, 0, 0, 0, byte(i >> 8), byte(i)})
		in.Undo = append(in.Undo, change.Delta{Row: uint32(i), TS: 5, List: change.AppendDelete(nil)})
	}
	in.Batch.Len = rows
	if err := w.Append(in); err != nil {
		t.Fatal(err)
	}
	out, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	set, err := Open(s, out[0], Options{Blocks: d})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Unref()

	for _, c := range []struct {
		name       string
		columns    []int
		predicates []batch.Predicate
		keys       bool
		most       int
	}{
		{"both columns", []int{0, 1}, nil, true, windowBytes / long},
		{"a predicate on the long one", []int{0}, []batch.Predicate{{ID: 2, Op: batch.NotNull}}, false, windowBytes / long},
		{"the short one", []int{0}, nil, true, rows},
	} {
		it, err := set.NewIterator(&scan.Request{Schema: s, Columns: c.columns, Predicates: c.predicates, Keys: c.keys, Snapshot: mvcc.Max})
		if err != nil {
			t.Fatal(err)
		}
		at, largest := 0, 0
		for it.Next() {
			b := it.Batch()
			for i := range b.Len {
				if got := binary.LittleEndian.Uint64(b.Columns[0].Cell(i)); got != uint64(at+i) {
					t.Fatalf("%s: row %d is %d", c.name, at+i, got)
				}
				if len(b.Columns) > 1 && !bytes.Equal(b.Columns[1].Cell(i), in.Batch.Columns[1].Cell(at+i)) {
					t.Fatalf("%s: row %d is wrong", c.name, at+i)
				}
			}
			if b.Len&(b.Len-1) != 0 && at+b.Len < rows {
				t.Errorf("%s: a window of %d rows", c.name, b.Len)
			}
			at, largest = at+b.Len, max(largest, b.Len)
		}
		if err := it.Close(); err != nil || at != rows {
			t.Fatalf("%s: %d rows, %v", c.name, at, err)
		}
		if largest > c.most || largest < c.most/2 {
			t.Errorf("%s: windows of up to %d rows, want about %d", c.name, largest, c.most)
		}
	}

	h, err := set.Histories(mvcc.Max)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < rows; {
		got, err := h.Next()
		if err != nil || got == nil || len(got.Keys) > windowBytes/long {
			t.Fatalf("%v behind row %d: %v", got, at, err)
		}
		if !bytes.Equal(got.Keys[0], in.Keys[at]) || len(got.Undo) != len(got.Keys) || got.Undo[0].Row != 0 {
			t.Fatalf("behind row %d: key %x, %d undos of %d rows", at, got.Keys[0], len(got.Undo), len(got.Keys))
		}
		at += len(got.Keys)
	}
}
