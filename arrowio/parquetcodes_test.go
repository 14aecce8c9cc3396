package arrowio

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// wordColumns are columns of byte strings, the second one nullable.
func wordColumns() []schema.Column {
	return []schema.Column{{Name: "s", Type: schema.String}, {Name: "n", Type: schema.Binary, Nullable: true}}
}

// wordBatches returns random batches of words: as codes of some dictionaries, which have words in
// common, and as byte strings. Words have up to longest bytes.
func wordBatches(r *rand.Rand, longest int) []*batch.RecordBatch {
	var all [][]byte
	for i := range 60 {
		all = append(all, append(fmt.Appendf(nil, "%d", i), bytes.Repeat([]byte{byte('a' + i%26)}, r.IntN(longest))...))
	}
	all[7] = []byte{}
	var dictionaries []*batch.Dictionary
	for range 4 {
		d := &batch.Dictionary{}
		for _, k := range r.Perm(len(all))[:1+r.IntN(len(all))] {
			d.Words = append(d.Words, all[k])
		}
		dictionaries = append(dictionaries, d)
	}
	var batches []*batch.RecordBatch
	columns := wordColumns()
	plain := r.IntN(3) == 0 // some batches are no codes
	for range 1 + r.IntN(12) {
		b := batch.New(columns, 1+r.IntN(min(300, 2_000_000/longest)))
		for i, v := range b.Columns {
			d := dictionaries[r.IntN(len(dictionaries))]
			if plain && r.IntN(3) == 0 {
				for k := range v.Bytes {
					v.Bytes[k] = all[r.IntN(len(all))]
				}
			} else {
				v.Reset(0)
				v.UseCodes(d, b.Len)
				for k := range v.Codes {
					v.Codes[k] = uint32(r.IntN(len(d.Words)))
				}
			}
			if !columns[i].Nullable {
				continue
			}
			for k := range b.Len {
				if nulls := r.IntN(8); nulls == 0 {
					v.NeedPresent().Clear(k)
					if v.Dict == nil {
						v.Bytes[k] = nil
					}
				}
			}
		}
		batches = append(batches, b)
	}
	return batches
}

// writeBatches writes batches to a Parquet file.
func writeBatches(
	t *testing.T, columns []schema.Column, o ParquetOptions, batches []*batch.RecordBatch,
) (*parquetWriter, []byte) {
	t.Helper()
	var out bytes.Buffer
	p := must.Get(newParquetWriter(&out, &Definition{Columns: columns}, &o, 0, batches[0]))(t)
	for _, b := range batches {
		must.Do(t, p.write(b))
	}
	must.Do(t, p.close())
	return p, out.Bytes()
}

// Codes are written as if they were their words: the rows are the same, and so are the statistics
// of each row group. Some dictionaries grow too large for a page, and are given up in the middle.
func TestCodesAreWrittenAsWords(t *testing.T) {
	coded, plainPages := 0, 0
	for seed := range uint64(24) {
		r := values.NewRand(seed)
		longest := 10
		if seed%8 == 0 {
			longest = 45_000
		}
		batches := wordBatches(r, longest)
		var want []string
		for _, b := range batches {
			want = selectedRows(want, b)
		}
		limit := 1 + r.IntN(1000)
		p, data := writeBatches(t, wordColumns(),
			ParquetOptions{RowGroupRows: limit, Compression: Compression(r.IntN(4)), Bloom: []string{"s"}}, batches)
		for _, w := range p.columns {
			coded += w.codes.call
		}
		mem := checked(t)
		f, rows := opened(t, "parquet", data, mem, ReadOptions{})
		var got []string
		for b, err := range rows.Batches() {
			must.Do(t, err)
			for _, v := range b.Columns {
				must.Do(t, v.Validate())
			}
			got = selectedRows(got, b)
		}
		same(t, fmt.Sprint("seed ", seed), got, want)
		rows.Release()
		plainPages += checkStatistics(t, f, data, batches, limit)
		f.Close()
	}
	if coded == 0 || plainPages == 0 {
		t.Errorf("%d calls wrote codes, %d column chunks have given up their dictionary: the test sees too little",
			coded, plainPages)
	}
}

// checkStatistics compares the statistics of each row group with the batches that were written to
// row groups of limit rows. It returns the number of column chunks that have a dictionary and pages
// without it.
func checkStatistics(t *testing.T, f *File, data []byte, batches []*batch.RecordBatch, limit int) (both int) {
	t.Helper()
	m := f.content.(*parquetSource).metadata
	for i := range wordColumns() {
		var cells [][]byte
		for _, b := range batches {
			for k := range b.Len {
				cells = append(cells, b.Columns[i].Cell(k))
			}
		}
		for g := range m.NumRowGroups() {
			chunk := must.Get(m.RowGroup(g).ColumnChunk(i))(t)
			s := must.Get(chunk.Statistics())(t)
			var least, most []byte
			nulls := int64(0)
			for _, cell := range cells[:min(limit, len(cells))] {
				switch {
				case cell == nil:
					nulls++
					continue
				case least == nil || bytes.Compare(cell, least) < 0:
					least = cell
				}
				if most == nil || bytes.Compare(cell, most) > 0 {
					most = cell
				}
			}
			cells = cells[min(limit, len(cells)):]
			words, ok := s.(*metadata.ByteArrayStatistics)
			switch {
			case !ok || words.NullCount() != nulls:
				t.Errorf("column %d, row group %d: statistics %v, want %d NULLs", i, g, s, nulls)
			case max(len(least), len(most)) > 4096: // longer ones are not stored
			case words.HasMinMax() != (most != nil):
				t.Errorf("column %d, row group %d: bounds are stored: %t", i, g, words.HasMinMax())
			case words.HasMinMax() && (!bytes.Equal(words.Min(), least) || !bytes.Equal(words.Max(), most)):
				t.Errorf("column %d, row group %d: %.20q to %.20q, want %.20q to %.20q", i, g,
					words.Min(), words.Max(), least, most)
			}
			if chunk.HasDictionaryPage() && pagesOf(t, f, data, g, i)["PLAIN"] > 0 {
				both++
			}
		}
	}
	return both
}

// Integers that take fewer bits as differences are stored so, and read back; random ones are not.
func TestDifferences(t *testing.T) {
	if invariant.Race {
		t.Skip("takes long, and starts no goroutine")
	}
	r := values.NewRand(3)
	names := []string{"int32", "int64", "uint32", "uint64", "date", "timestamp", "decimal(9,2)", "decimal(18,2)"}
	var columns []schema.Column
	for _, kind := range []string{"rising", "near", "random"} {
		for _, name := range names {
			columns = append(columns, column(t, kind+" "+name, name))
		}
	}
	const rows = 300_000
	b := batch.New(columns, rows)
	for i, v := range b.Columns {
		kind, width := i/len(names), v.Type.Width()
		for k := range rows {
			x := int64(3 * k)
			switch {
			case kind == 1:
				x = int64(r.IntN(100_000)) - 50_000
			case kind == 2 && width == 4:
				x = int64(int32(r.Uint32()))
			case kind == 2:
				x = int64(r.Uint64())
			}
			if columns[i].Type.Decimal() && width == 4 {
				x %= 1e9
			} else if columns[i].Type.Decimal() {
				x %= 1e18
			}
			if width == 4 {
				batch.Raw[int32](v)[k] = int32(x)
			} else {
				batch.Raw[int64](v)[k] = x
			}
			if k%1000 == 7 {
				v.NeedPresent().Clear(k)
			}
		}
	}
	p, data := writeBatches(t, columns, ParquetOptions{Compression: None}, []*batch.RecordBatch{b})
	for i, w := range p.columns {
		must.Equal(t, w.delta, i/len(names) < 2)
	}
	f, in := opened(t, "parquet", data, checked(t), ReadOptions{})
	defer f.Close()
	defer in.Release()
	at := 0
	for got, err := range in.Batches() {
		must.Do(t, err)
		for i, v := range got.Columns {
			for k := range got.Len {
				if want := b.Columns[i].Cell(at + k); !bytes.Equal(v.Cell(k), want) || v.IsNull(k) != (want == nil) {
					t.Fatalf("%s, row %d: %x, want %x", columns[i].Name, at+k, v.Cell(k), want)
				}
			}
		}
		at += got.Len
	}
	must.Equal(t, at, rows)
	// The page index has several pages of each column, also of those that take few bytes.
	for i := range columns {
		n := 0
		for _, k := range pagesOf(t, f, data, 0, i) {
			n += k
		}
		if n < 2 {
			t.Errorf("%s has %d pages", columns[i].Name, n)
		}
	}
}

// pagesOf returns the numbers of data pages of a column chunk, by their encodings.
func pagesOf(t *testing.T, f *File, data []byte, group, column int) map[string]int {
	t.Helper()
	p := f.content.(*parquetSource)
	in := must.Get(p.open(&source{ReaderAt: bytes.NewReader(data)}, p.metadata, p.mem))(t)
	pages := must.Get(in.RowGroup(group).GetColumnPageReader(column))(t)
	defer pages.Close()
	found := map[string]int{}
	for pages.Next() {
		if _, ok := pages.Page().(file.DataPage); ok {
			found[pages.Page().Encoding().String()]++
		}
	}
	must.Do(t, pages.Err())
	return found
}

// Equal byte strings of a Parquet file get equal codes, of one dictionary for a row group. Distinct
// ones do not: codes of them would take longer.
func TestParquetIsReadAsCodes(t *testing.T) {
	columns := []schema.Column{{Name: "few", Type: schema.String, Nullable: true},
		{Name: "none", Type: schema.String, Nullable: true}, {Name: "many", Type: schema.String},
		{Name: "changing", Type: schema.String}}
	const rows = 30_000
	b := batch.New(columns, rows)
	for i := range rows {
		b.Columns[0].Bytes[i] = fmt.Appendf(nil, "word %d", i%7)
		if i%11 == 0 {
			b.Columns[0].SetCell(i, nil)
		}
		b.Columns[1].SetCell(i, nil)
		b.Columns[2].Bytes[i] = fmt.Appendf(nil, "text %d", i)
		b.Columns[3].Bytes[i] = fmt.Appendf(nil, "%d", i%(1+i/4)) // first few, then all distinct
	}
	var want []string
	want = selectedRows(want, b)
	_, data := writeBatches(t, columns, ParquetOptions{RowGroupRows: 20_000}, []*batch.RecordBatch{b})
	for _, owned := range []bool{false, true} {
		f, in := opened(t, "parquet", data, checked(t), ReadOptions{})
		var got []string
		coded := make([]int, len(columns))
		dictionaries := map[*batch.Dictionary]bool{}
		for read := range inTurn(func() *batch.RecordBatch { return in.step(owned) }) {
			got = selectedRows(got, read)
			for i, v := range read.Columns {
				if v.Dict != nil {
					coded[i] += v.Len
				}
				if i == 0 {
					dictionaries[v.Dict] = true
				}
			}
		}
		must.Do(t, in.Err())
		same(t, "rows", got, want)
		if coded[0] != rows || coded[1] != 0 || coded[2] != 0 || coded[3] == rows {
			t.Errorf("cells with codes: %d", coded)
		}
		must.Equal(t, len(dictionaries), 2, "dictionaries of two row groups")
		in.Release()
		f.Close()
	}
}

// A table with dictionaries goes to Parquet and back.
func TestTableWithDictionaries(t *testing.T) {
	store := openStore(t)
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int32},
		{Name: "s", Type: schema.String, Encoding: schema.Dictionary},
		{Name: "n", Type: schema.Varchar, Length: 9, Nullable: true, Encoding: schema.Dictionary}}, 1))(t)
	table := must.Get(store.CreateTable("t", s))(t)
	for part := range 3 { // the last one stays in memory
		b := store.NewBatch()
		for i := range 5000 {
			row := oribi.Row{"k": 3*i + part, "s": fmt.Sprint("word ", part, i%5), "n": nil}
			if i%3 > 0 {
				row["n"] = fmt.Sprint(i % 9)
			}
			b.Insert(table, row)
		}
		must.Get(b.Commit(context.Background()))(t)
		if part == 2 {
			break
		}
		must.Do(t, table.Flush(context.Background()))
	}
	mem := checked(t)
	for name, o := range map[string][]oribi.ScanOption{"all": nil, "few": {oribi.Where(oribi.Lt("k", 40))},
		"one word": {oribi.Where(oribi.Eq("s", "word 13"))}} {
		want := rowsOf(t, table, o...)
		f, rows := opened(t, "parquet",
			exported(t, "parquet", table.Scan(context.Background(), o...), mem), mem, ReadOptions{})
		same(t, name, recordRows(t, rows), want)
		rows.Release()
		f.Close()
	}
}
