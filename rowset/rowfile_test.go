package rowset

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// The example above rowFilePair.
func TestRowFileMatchesTheWorkedExample(t *testing.T) {
	s := mustSchema([]schema.Column{{ID: 10, Name: "k", Type: schema.Int32},
		{ID: 11, Name: "s", Type: schema.String, Nullable: true}}, 1)
	pair := appendRowColumns(nil, s, []ColumnBlock{{ID: 10, Block: 1}, {ID: 11, Block: 2}}, 128)
	must.Equal(t, pair, must.Hex(t, "02 00 80 00 0a 00 00 00 05 00 01 00 00 00 00 00 00 00 0b 00 00 00 08 01 02 00 00 00 "+
		"00 00 00 00"), "pair")
}

// stored writes the rows of w with a row file to a new disk.
func (w *testRowSet) stored(t testing.TB, r *rand.Rand) *Metadata {
	t.Helper()
	w.disk, w.rowFile = newDisk(), schema.FullRowFile
	return w.write(t, r, w.end)
}

// schema.AutoRowFile writes a row file for many rows of numbers and words, and for fewer of large
// values that do not compress, and none for few rows or for long texts. The row file has the numbers and the words, and not the long strings.
func TestRowFilesAreWrittenWhereTheyPay(t *testing.T) {
	rowpage.Eager.Store(false)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, {ID: 2, Name: "n", Type: schema.Int32},
		{ID: 3, Name: "word", Type: schema.String}, {ID: 4, Name: "text", Type: schema.String},
		{ID: 5, Name: "noise", Type: schema.String}}, 1)
	texts := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, {ID: 2, Name: "a", Type: schema.String},
		{ID: 3, Name: "b", Type: schema.String}}, 1)
	blobs := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64},
		{ID: 2, Name: "blob", Type: schema.Binary}}, 1)
	for _, test := range []struct {
		schema *schema.Schema
		rows   int
		want   bool
	}{{s, leastRowFile - 1, false}, {s, leastRowFile, true}, {s, 3 * leastRowFile, true},
		{texts, 2 * leastRowFile, false}, {blobs, 2000, false}, {blobs, 20_000, true}} {
		d := newDisk()
		w := must.Get(NewWriter(d, test.schema, 1))(t)
		w.AddRowFile(schema.AutoRowFile)
		cellOf := func(col, row int) []byte {
			switch c := &test.schema.Columns[col]; {
			case c.Name == "word":
				return []byte{'w', byte('a' + row%7)}
			case c.Name == "noise":
				sum := sha256.Sum256([]byte{byte(row), byte(row >> 8), byte(row >> 16)})
				return sum[:24] // of one length, so that a piece of other rows would fit too
			case c.Name == "blob":
				blob := make([]byte, 1000)
				rand.NewChaCha8([32]byte{byte(row), byte(row >> 8)}).Read(blob)
				return blob
			case c.Type == schema.String:
				return fmt.Appendf(nil, "%d is a text of its own, %d", row, col)
			default:
				return binary.LittleEndian.AppendUint64(nil, uint64(2*row+col))[:c.Type.Width()]
			}
		}
		encoder := keyenc.NewEncoder(test.schema)
		for from := 0; from < test.rows; from += 1000 {
			n := min(1000, test.rows-from)
			rows := &change.Rows{Batch: batch.New(test.schema.Columns, n)}
			for c, v := range rows.Batch.Columns {
				for i := range n {
					v.SetCell(i, cellOf(c, from+i))
				}
			}
			rows.Keys = change.AppendVectorKeys(nil, encoder, rows.Batch.Columns, 0, n)
			must.Do(t, w.Append(rows))
		}
		row := must.Get(w.Finish())(t)
		if got := row.RowFile != 0; got != test.want || row.KeyDirectory != 0 {
			t.Errorf("%d rows, %d columns: a row file of %d bytes, want %t", test.rows, len(test.schema.Columns),
				row.RowFileBytes, test.want)
		}
		if row.RowFile == 0 {
			continue
		}
		for i, c := range test.schema.Columns {
			if c.Type.Width() > 0 || c.Name == "word" { // its cells are in the row file
				d.blocks[row.Columns[i].Block] = &block.Memory{}
			}
		}
		set := must.Get(Open(test.schema, row, Options{Blocks: d, Cache: cache.New(1 << 16)}))(t)
		for i := 0; i < test.rows; i += 997 {
			key := encoder.AppendKey(nil, [][]byte{cellOf(0, i)})
			cells, found := must.Get2(set.Get(bloom.MakeProbe(key), mvcc.Everything, allOf(test.schema), nil))(t)
			must.Equal(t, found, true, "row", i)
			for c := range cells {
				must.Equal(t, cells[c], cellOf(c, i), "row", i, "column", c)
			}
		}
		set.Unref()
	}
}

// checkGets reads each row at some snapshots and compares it with the model.
func (w *testRowSet) checkGets(t *testing.T, r *rand.Rand, set *DiskRowSet) {
	t.Helper()
	for _, snap := range w.snapshots(r) {
		for range 30 {
			i := r.IntN(len(w.rows))
			cols := allOf(w.schema)
			if r.IntN(2) == 0 {
				cols = w.randomColumns(r)
			}
			m := &w.rows[i]
			want, live := m.at(m.before(snap))
			cells, got := must.Get2(set.Get(bloom.MakeProbe(m.key), snap, cols, nil))(t)
			must.Equal(t, got, live, "row", i, "at", snap, "live")
			for k, col := range cols {
				if live && !sameCell(cells[k], want[col]) {
					t.Fatalf("row %d at %d: column %d is %x, want %x", i, snap, col, cells[k], want[col])
				}
			}
			if _, found, err := set.Get(bloom.MakeProbe(append(bytes.Clone(m.key), 'x')), snap, cols,
				nil); found || err != nil {
				t.Fatalf("a key that continues the key of row %d: found %t, %v", i, found, err)
			}
		}
	}
}

// With a row file, reads by key open neither the columns nor the key index.
func TestRowFileAnswersAlone(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		row := w.stored(t, r)
		for _, c := range row.Columns {
			delete(w.disk.blocks, c.Block)
		}
		delete(w.disk.blocks, row.KeyIndex)
		for _, c := range []*cache.Cache{nil, cache.New(1 << 20)} {
			set := must.Get(Open(w.schema, row,
				Options{Blocks: w.disk, Cache: c, Damaged: func(_ uint64, _ block.ID, err error) {
					t.Error(err)
				}}))(t)
			w.checkGets(t, r, set)
			set.Unref()
		}
	})
}

// Before a rowset has its key directory, the row file answers without the bloom file, and a filter
// that is in memory without the row file.
func TestRowFileIsReadInsteadOfAFilter(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		row, blocks := w.stored(t, r), w.disk.blocks
		set := must.Get(Open(w.schema, row,
			Options{Blocks: w.disk, Cache: cache.New(1 << 20), Damaged: func(_ uint64, _ block.ID, err error) {
				t.Error(err)
			}}))(t)
		defer set.Unref()
		set.directory.making.Lock() // no lookup gets the directory
		w.disk.blocks = map[block.ID]*block.Memory{row.RowFile: blocks[row.RowFile]}
		w.checkGets(t, r, set)
		w.disk.blocks = blocks
		filter := must.Get(set.Filter())(t)
		clear(blocks[row.RowFile].Bytes) // open, but of no use any more
		for range 20 {
			p := bloom.MakeProbe(w.absentKey(r))
			if may, err := filter.MayContain(p); may || err != nil {
				continue
			}
			if _, found, err := set.Get(p, mvcc.Everything, allOf(w.schema), nil); found || err != nil {
				t.Fatal(found, err)
			}
		}
	})
}

// A byte of the row file is flipped: all rows are still read, if necessary from the columns, and
// damage is reported at most once.
func TestDamagedRowFileIsNotNeeded(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "a", Type: schema.Int32}, {ID: 2, Name: "b", Type: schema.String},
			{ID: 3, Name: "c", Type: schema.Array, Element: schema.Int16, Nullable: true}}, 2), 60)
	row := w.stored(t, r)
	file := w.disk.blocks[row.RowFile]
	reported := 0
	for range 40 {
		at, mask, noted := r.IntN(len(file.Bytes)), byte(1)<<r.IntN(8), 0
		file.Bytes[at] ^= mask
		set := must.Get(Open(w.schema, row, Options{Blocks: w.disk, Damaged: func(id uint64, b block.ID, err error) {
			if noted++; id != row.ID || b != row.RowFile ||
				!errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Errorf("rowset %d, block %d: %v", id, b, err)
			}
		}}))(t)
		w.checkGets(t, r, set)
		if set.Unref(); noted > 1 {
			t.Errorf("byte %d: reported %d times", at, noted)
		}
		reported += noted
		file.Bytes[at] ^= mask
	}
	if reported == 0 {
		t.Error("no damage was reported")
	}
}

// After columns were dropped, added and moved, the images in the file still have the format of the
// old schema.
func TestRowFileSurvivesAlterations(t *testing.T) {
	r := seedtest.Rand(t)
	old := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
		{ID: 2, Name: "gone", Type: schema.Array, Element: schema.String, Nullable: true},
		{ID: 3, Name: "b", Type: schema.String, Nullable: true}}, 1)
	w := newTestRowSet(t, r, old, 40)
	row := w.stored(t, r)
	row.Undo, row.Redo = nil, nil // only base data
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
		{ID: 3, Name: "b", Type: schema.String, Nullable: true},
		{ID: 4, Name: "n", Type: schema.Int64, Nullable: true},
		{ID: 5, Name: "d", Type: schema.String, ReadDefault: []byte("dflt")}}, 1)
	read := func(row *Metadata, damaged func(uint64, block.ID, error)) (rows [][][]byte) {
		set := must.Get(Open(s, row, Options{Blocks: w.disk, Damaged: damaged}))(t)
		defer set.Unref()
		for i := range w.rows {
			cells, found := must.Get2(set.Get(bloom.MakeProbe(w.rows[i].key), mvcc.Everything, allOf(s), nil))(t)
			must.Equal(t, found, true, "row", i)
			rows = append(rows, cells)
		}
		return rows
	}
	without := *row
	without.RowFile = 0
	want := read(&without, nil)
	same := func(got [][][]byte) bool {
		for i := range got {
			for c := range got[i] {
				if !sameCell(got[i][c], want[i][c]) {
					return false
				}
			}
		}
		return true
	}
	if !same(read(row, func(_ uint64, _ block.ID, err error) { t.Error(err) })) {
		t.Error("other rows than from the columns")
	}
	// A column that was rewritten since is read from its file. A file of other keys does not answer.
	for col, want := range map[int]int{2: 0, 0: 1} {
		moved := *row
		moved.Columns = append([]ColumnBlock{}, row.Columns...)
		w.disk.blocks[999] = w.disk.blocks[row.Columns[col].Block]
		moved.Columns[col].Block = 999
		noted := 0
		if !same(read(&moved, func(uint64, block.ID, error) { noted++ })) || noted != want {
			t.Errorf("with another file of column %d: reported %d times, want %d", col, noted, want)
		}
	}
}

// The check of a rowset compares the row file with the columns.
func TestCheckFilesComparesRowFiles(t *testing.T) {
	r := seedtest.Rand(t)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}, {ID: 2, Name: "s", Type: schema.String}}, 1)
	w := newTestRowSet(t, r, s, 50)
	row := w.stored(t, r)
	must.Get2(check(s, row, w.disk))(t)
	rows := w.chunk(0, len(w.rows), w.end)
	rows.Batch.Columns[1].Bytes[13] = append(bytes.Clone(rows.Batch.Columns[1].Bytes[13]), 'x')
	other := w.withRowFile(t, row, rows, schema.Plain)
	if id, _, err := check(s, other, w.disk); id != other.RowFile || !errors.Is(err, fault.ErrCorrupt) ||
		!strings.Contains(err.Error(), "row 13") {
		t.Errorf("block %d: %v", id, err)
	}
}

// withRowFile returns the metadata of the rowset with another row file.
func (w *testRowSet) withRowFile(t *testing.T, row *Metadata, rows *change.Rows, e schema.Encoding) *Metadata {
	t.Helper()
	out, err := newOutput(w.disk, func(sink block.Sink) (*rowFileWriter, error) {
		f := newRowFile(w.schema, row.Columns, schema.FullRowFile)
		f.setPageRows(rows.Batch.Columns)
		var err error
		f.file, err = cfile.NewWriter(sink,
			cfile.WriterOptions{Type: schema.Binary, Encoding: e, Compression: schema.NoCompression,
				PositionalIndex: true, Keyed: true, FullIndexKeys: true, Exact: true})
		if err == nil {
			f.file.AddMetadata(rowFilePair, appendRowColumns(nil, w.schema, row.Columns, f.pageRows))
		}
		return f, err
	})
	if err == nil {
		err = out.w.append(rows.Keys, rows.Batch.Columns)
	}
	if err == nil {
		err = out.w.end()
	}
	if err == nil {
		err = out.w.finish()
	}
	if err == nil {
		err = w.disk.Finish(out.sink)
	}
	must.Do(t, err)
	other := *row
	other.RowFile = out.sink.ID()
	return &other
}

// A row file that is not plain, which no writer writes, is damaged: the columns answer.
func TestRowFilesArePlain(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
			{ID: 2, Name: "s", Type: schema.String}}, 1), 50)
	row := w.stored(t, r)
	for _, e := range []schema.Encoding{schema.Dictionary, schema.Prefix} {
		noted := 0
		other := w.withRowFile(t, row, w.chunk(0, len(w.rows), w.end), e)
		set := must.Get(
			Open(w.schema, other, Options{Blocks: w.disk, Damaged: func(uint64, block.ID, error) { noted++ }}))(t)
		o := scan.Options{Schema: w.schema, Columns: allOf(w.schema), Snapshot: mvcc.Everything, Keys: true}
		it := must.Get(newIterator(set, o))(t)
		must.Do(t, w.compare(o, it))
		must.Equal(t, noted, 1, "reports of", e)
		set.Unref()
	}
}

// An error that is not damage turns no row file off.
func TestRowFileIsTriedAgain(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
			{ID: 2, Name: "s", Type: schema.String}}, 1), 50)
	row := w.stored(t, r)
	flaky := &flakyDisk{disk: w.disk}
	set := must.Get(Open(w.schema, row, Options{Blocks: flaky, Damaged: func(_ uint64, _ block.ID, err error) {
		t.Error(err)
	}}))(t)
	defer set.Unref()
	flaky.fail = true
	must.Equal(t, set.openStored(), nil, "the row file opened")
	flaky.fail = false
	for _, c := range row.Columns {
		delete(w.disk.blocks, c.Block)
	}
	delete(w.disk.blocks, row.KeyIndex)
	w.checkGets(t, r, set)
}

// Rows that were cached before a column was added are read from the row file.
func TestRowFileAnswersForRowsOfAnOldSchema(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
			{ID: 2, Name: "s", Type: schema.String}}, 1), 50)
	row := w.stored(t, r)
	rows := cache.New(1 << 20)
	wider := mustSchema(append(slices.Clone(w.schema.Columns),
		schema.Column{ID: 9, Name: "n", Type: schema.Int64, Nullable: true}), 1)
	for _, s := range []*schema.Schema{w.schema, wider} {
		set := must.Get(Open(s, row, Options{Blocks: w.disk, Cache: rows}))(t)
		p := bloom.MakeProbe(w.rows[7].key)
		if _, _, err := set.Get(p, mvcc.Everything, allOf(s), nil); err != nil || set.cachedRow(p) == nil {
			t.Fatalf("with %d columns: %v", len(s.Columns), err)
		}
		set.Unref()
		for _, c := range row.Columns {
			delete(w.disk.blocks, c.Block)
		}
	}
}

// Damage of a column is not reported as damage of the row file.
func TestCheckRowFileLeavesColumnsOut(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
			{ID: 2, Name: "s", Type: schema.String}}, 1), 50)
	row := w.stored(t, r)
	file := w.disk.blocks[row.Columns[1].Block]
	for range 20 {
		at := r.IntN(len(file.Bytes))
		file.Bytes[at] ^= 1
		set, err := Open(w.schema, row, Options{Blocks: w.disk})
		if err == nil {
			err = set.CheckRowFile()
			set.Unref()
		}
		must.Do(t, err, "byte", at)
		file.Bytes[at] ^= 1
	}
}

func FuzzRowFilePair(f *testing.F) {
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
		{ID: 2, Name: "s", Type: schema.String, Nullable: true}}, 1)
	f.Add(appendRowColumns(nil, s, []ColumnBlock{{ID: 1, Block: 7}}, 128))
	f.Add([]byte{1, 0})
	fuzztest.Run(f, func(t *testing.T, pair []byte) {
		p, err := parseRowColumns(pair)
		if err != nil {
			if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Fatal(err)
			}
			return
		}
		if len(p.columns) != len(p.blocks) || len(p.columns) > schema.MaxColumns || p.rows < 1 {
			t.Fatalf("%d columns, %d blocks, pages of %d rows", len(p.columns), len(p.blocks), p.rows)
		}
	})
}

// A scan of few rows and all columns reads the row file and no cblock of a column, unless there is a
// cache with room for the whole table.
func TestShortScansReadTheRowFile(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		row := w.stored(t, r)
		if row.Rows > maxStoredRows || len(w.schema.Columns) < 2 {
			return
		}
		for _, c := range row.Columns {
			file := w.disk.blocks[c.Block]
			f := must.Get(cfile.Open(file, cfile.ReaderOptions{Arrays: true}))(t)
			blocks := must.Get(f.BlockPointers())(t)
			for _, p := range blocks {
				file.Bytes[p.Offset] ^= 1
			}
		}
		const room = 1 << 20
		for _, c := range []struct {
			cache *cache.Cache
			table int64
			fails bool
		}{{nil, 0, false}, {cache.New(room), room + 1, false}, {cache.New(room), room, true}} {
			set := must.Get(Open(w.schema, row,
				Options{Blocks: w.disk, Cache: c.cache, Damaged: func(_ uint64, _ block.ID, err error) {
					t.Error(err)
				}}))(t)
			defer set.Unref()
			failed := false
			for _, snap := range w.snapshots(r) {
				for _, descending := range []bool{false, true} {
					o := scan.Options{Schema: w.schema, Columns: allOf(w.schema), Snapshot: snap, Keys: true,
						Descending: descending, TableBytes: c.table}
					it, err := newIterator(set, o)
					if err == nil {
						err = w.compare(o, it)
					}
					if failed = failed || err != nil; failed && !c.fails {
						t.Fatalf("at %d, descending %t, table of %d bytes: %v", snap, descending, c.table, err)
					}
				}
			}
			must.Equal(t, failed, c.fails, "a table of", c.table, "bytes: columns were not read")
		}
	})
}

// fill makes a cache full, so that scans prefer pages.
func fill(c *cache.Cache) {
	for i := uint64(0); !c.Full(); i++ {
		c.Put(cache.Key{Block: 1 << 40, Offset: i}, nil, c.Limit()/100)
	}
}

// Scans of a rowset with a row file match the model if the cache is full.
func TestScansOfPagesMatchTheModel(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		w.disk, w.rowFile = newDisk(), []schema.RowFile{schema.FullRowFile, schema.AutoRowFile}[r.IntN(2)]
		c := cache.New(1 << 20)
		set := must.Get(Open(w.schema, w.write(t, r, w.end), Options{Blocks: w.disk, Cache: c}))(t)
		defer set.Unref()
		for range 40 {
			fill(c)
			req := w.randomRequest(r, mvcc.Snapshot(r.IntN(int(w.end))))
			if r.IntN(2) == 0 {
				req.Columns = allOf(w.schema)
			}
			it := must.Get(newIterator(set, req))(t)
			must.Do(t, w.compare(req, it))
			must.Do(t, it.Close())
		}
		must.Equal(t, set.RowFileDamaged(), false)
	})
}

// A short scan from or to a key reads the pages of its rows together, and not again, whether it has a
// limit, no end, or an end that is near.
func TestShortScansReadTheirPagesOnce(t *testing.T) {
	r := seedtest.Rand(t)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, {ID: 2, Name: "a", Type: schema.Int32},
		{ID: 3, Name: "b", Type: schema.Double}, {ID: 4, Name: "c", Type: schema.Int64}}, 1)
	w := newTestRowSet(t, r, s, 3000)
	row := w.stored(t, r)
	c := cache.New(16 << 20)
	set := must.Get(Open(s, row, Options{Blocks: w.disk, Cache: c}))(t)
	defer set.Unref()
	const scans = 300
	reads := int64(0)
	for i := range scans {
		fill(c)
		from := r.IntN(len(w.rows) - 150)
		req := scan.Options{Schema: s, Columns: allOf(s), Snapshot: mvcc.Everything, Lower: w.rows[from].key}
		switch i % 4 {
		case 0:
			req.Limit = 100
		case 1:
			req.Upper = w.rows[from+100].key
		case 2:
			req.Lower, req.Upper, req.Limit, req.Descending = nil, w.rows[from+100].key, 100, true
		}
		if i == 4 {
			reads = w.disk.reads.Load() // the index is in memory
		}
		it := must.Get(newIterator(set, req))(t)
		more := it.Next()
		must.Equal(t, more, true)
		must.Do(t, it.Close())
	}
	if got := w.disk.reads.Load() - reads; got > scans+scans/10 {
		t.Errorf("%d scans took %d reads", scans, got)
	}
}
