package rowset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/keydir"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Each lookup reads the files that the comment of lookup says, and no file after the
// answer.
func TestLookupsReadTheirSourcesInOrder(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r, mustSchema([]schema.Column{
		{ID: 1, Name: "k", Type: schema.Int64},
		{ID: 2, Name: "v", Type: schema.String},
	}, 1), 400)
	row := w.stored(t, r)
	broken := *row
	broken.RowFile = row.Bloom // another file: damaged
	absent, present := w.excludedKey(t, r, row), w.rows[r.IntN(len(w.rows))].key
	for _, test := range []struct {
		name  string
		row   *Metadata
		key   []byte
		get   bool
		cache int64
		want  []string
	}{
		{"absent", row, absent, true, 0, []string{"bloom file"}},
		{"absent, no cells", row, absent, false, 0, []string{"bloom file"}},
		{"absent, again", row, absent, true, 16 << 20, nil},
		{"present", row, present, true, 0, []string{"bloom file", "row file"}},
		{"present, no cells", row, present, false, 0, []string{"bloom file", `column "k"`}},
		{"present, again", row, present, true, 16 << 20, nil},
		{"damaged row file", &broken, present, true, 0, []string{"bloom file", `column "k"`, `column "v"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := &countedBlocks{Blocks: w.disk, reads: map[block.ID]*FileReads{}}
			o := Options{Blocks: files}
			if test.cache > 0 {
				o.Cache = cache.New(test.cache)
			}
			set, err := Open(w.schema, test.row, o)
			must.Do(t, err)
			defer set.Unref()
			for range 1 + test.cache>>20 {
				files.reset()
				found := false
				if test.get {
					l := lookup{base: true}
					found, err = l.find(set, bloom.MakeProbe(test.key))
					if err == nil && found {
						_, err = set.appendCells(nil, &l, test.key, new(delta.RowState), allOf(w.schema))
					}
				} else {
					_, found, err = set.Find(bloom.MakeProbe(test.key))
				}
				must.Do(t, err)
				must.Equal(t, found, bytes.Equal(test.key, present))
			}
			var got []string
			for _, f := range files.list(set) {
				got = append(got, f.File)
			}
			must.Equal(t, got, test.want, "reads")
		})
	}
}

// excludedKey returns a key that the bloom file of a rowset excludes.
func (w *testRowSet) excludedKey(t *testing.T, r *rand.Rand, row *Metadata) []byte {
	set := must.Get(Open(w.schema, row, Options{Blocks: w.disk}))(t)
	defer set.Unref()
	filter := must.Get(set.Filter())(t)
	for {
		key := w.absentKey(r)
		may := must.Get(filter.MayContain(bloom.MakeProbe(key)))(t)
		if !may && len(key) == len(row.MinKey) && bytes.Compare(key, row.MinKey) > 0 {
			return key
		}
	}
}

// CheckKey asks the bloom file although lookups usually find their keys.
func TestCheckKeyAlwaysAsksTheBloomFile(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r, mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}}, 1), 100)
	row := *w.stored(t, r)
	sink := must.Get(w.disk.Create())(t)
	filter := must.Get(bloom.NewWriter(sink, bloom.Options{}))(t)
	must.Do(t, filter.Add(w.rows[0].key))
	must.Do(t, filter.Finish())
	must.Do(t, w.disk.Finish(sink))
	row.Bloom = sink.ID() // of one key
	set := must.Get(Open(w.schema, &row, Options{Blocks: w.disk}))(t)
	defer set.Unref()
	set.found.Store(trustFound)
	excluded := 0
	for i := range w.rows {
		if err := set.CheckKey(w.rows[i].key, int64(i)); isDamage(err) {
			excluded++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.rows) - 1; excluded < n*9/10 {
		t.Errorf("%d keys of %d are not in the bloom file", excluded, n)
	}
}

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
		w.AddRowFile(schema.FullRowFile)
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
	must.Do(b, err)
	row := must.Get(w.Finish())(b)
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
			must.Do(b, err)
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
				must.Do(b, err)
				must.Equal(b, found, k%2 == 0, k)
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
