package rowset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// After a file whose dictionary is full of words that hardly repeat, the next files of that column
// have no dictionary, until one tries again. Where there are few words, they have the same codes in
// all files. The cells are those that were written.
func TestDictionariesOfNoUseAreLeftOut(t *testing.T) {
	const n, full = 1200, 1053 // words of 60 bytes in 64 KiB, with offsets
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64},
		{ID: 2, Name: "word", Type: schema.String},
		{ID: 3, Name: "text", Type: schema.String, BlockBytes: 64 << 10}, {ID: 4, Name: "few", Type: schema.String},
		{ID: 5, Name: "small", Type: schema.String}}, 1)
	cell := func(row, col int) []byte {
		switch col {
		case 0:
			return binary.LittleEndian.AppendUint64(nil, uint64(row))
		case 1:
			return fmt.Append(nil, "word ", row%600)
		case 3:
			return fmt.Append(nil, "few ", (row+row/n)%5)
		case 4:
			return fmt.Append(nil, "small ", row)
		}
		return fmt.Appendf(nil, "text %055d", row)
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
		must.Do(t, w.Append(rows))
	}
	sets := must.Get(w.Finish())(t)
	must.Equal(t, len(sets), files, "rowsets")
	for file, row := range sets {
		set := must.Get(Open(s, row, Options{Blocks: d}))(t)
		for col, want := range []int{1: 600, 2: full, 3: 5, 4: n} {
			if col == 0 {
				continue
			}
			f := must.Get(set.File(col))(t)
			if col == 2 && file%(filesWithout+1) > 0 {
				want = 0
			}
			if words, err := f.NewColumnReader().Words(n); err != nil || len(words) != want ||
				col == 3 && string(words[0]) != "few 0" {
				t.Errorf("file %d of column %d: %d words, %v, want %d", file, col, len(words), err, want)
			}
			must.Equal(t, must.Get(f.Cell(700))(t), cell(file*n+700, col), "file", file, "of column", col)
		}
	}
}

// Long words are not remembered: they would fill the dictionaries of later files.
func TestDictionariesForgetLongWords(t *testing.T) {
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, {ID: 2, Name: "c", Type: schema.String}}, 1)
	for _, test := range []struct{ documents, bytes int }{{60, 6 << 10}, {5, 1 << 10}, {5, 6 << 10}} {
		memory := new(Dictionaries)
		for file := range 3 {
			n := test.documents
			if file > 0 {
				n = 2000
			}
			rows := &change.Rows{Batch: batch.New(s.Columns, n)}
			for i := range n {
				cell := fmt.Append(nil, "word ", i%5)
				if file == 0 {
					cell = append(bytes.Repeat([]byte{'d'}, test.bytes), cell...)
					cell = fmt.Append(cell, i)
				}
				rows.Batch.Columns[0].SetCell(i, binary.LittleEndian.AppendUint64(nil, uint64(i)))
				rows.Batch.Columns[1].SetCell(i, cell)
				rows.Keys = append(rows.Keys, binary.BigEndian.AppendUint64(nil, uint64(i)|1<<63))
			}
			d := newDisk()
			w, err := newWriter(d, s, 1, memory)
			if err == nil {
				err = w.Append(rows)
			}
			must.Do(t, err)
			row := must.Get(w.Finish())(t)
			set := must.Get(Open(s, row, Options{Blocks: d}))(t)
			f := must.Get(set.File(1))(t)
			words, err := f.NewColumnReader().Words(n)
			if err != nil || file > 0 && (len(words) != 5 || string(words[0]) != "word 0") {
				t.Errorf("%+v: file %d has %d words, %v", test, file, len(words), err)
			}
			set.Unref()
		}
	}
}
