package rowset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// After a file whose words hardly repeat, the next files of that column have no dictionary, until one
// tries again. Where there are few words, they have the same codes in all files. The cells are those
// that were written.
func TestDictionariesOfNoUseAreLeftOut(t *testing.T) {
	const n = 1200
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, {ID: 2, Name: "word", Type: schema.String}, {ID: 3, Name: "text", Type: schema.String}, {ID: 4, Name: "few", Type: schema.String}}, 1)
	cell := func(row, col int) []byte {
		switch col {
		case 0:
			return binary.LittleEndian.AppendUint64(nil, uint64(row))
		case 1:
			return fmt.Append(nil, "word ", row%600)
		case 3:
			return fmt.Append(nil, "few ", (row+row/n)%5)
		}
		return fmt.Append(nil, "text ", row)
	}
	d, ids, files := newDisk(), uint64(0), filesWithout+3
	w := NewRollingWriter(d, s, func() uint64 { ids++; return ids }, 1)
	w.Dictionaries = new(Dictionaries)
	for file := range files {
		rows := &change.Rows{Batch: batch.New(s.Columns, n)}
		for i := range n {
			for c, v := range rows.Batch.Columns {
				v.SetCell(i, cell(file*n+i, c))
			}
			rows.Keys = append(rows.Keys, binary.BigEndian.AppendUint64(nil, uint64(file*n+i)|1<<63))
		}
		if err := w.Append(rows); err != nil {
			t.Fatal(err)
		}
	}
	sets, err := w.Finish()
	if err != nil || len(sets) != files {
		t.Fatalf("%d rowsets, %v", len(sets), err)
	}
	for file, row := range sets {
		set, err := Open(s, row, Options{Blocks: d})
		if err != nil {
			t.Fatal(err)
		}
		for col, want := range []int{1: 600, 2: n, 3: 5} {
			if col == 0 {
				continue
			}
			f, err := set.File(col)
			if err != nil {
				t.Fatal(err)
			}
			if col == 2 && file%(filesWithout+1) > 0 {
				want = 0
			}
			if words, err := f.NewColumnReader().Words(n); err != nil || len(words) != want || col == 3 && string(words[0]) != "few 0" {
				t.Errorf("file %d of column %d: %d words, %v, want %d", file, col, len(words), err, want)
			}
			if got, err := f.Cell(700); err != nil || !bytes.Equal(got, cell(file*n+700, col)) {
				t.Errorf("file %d of column %d: %q, %v", file, col, got, err)
			}
		}
	}
}
