package tablet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// harderSchema is testSchema with compressions that a recompression carries out, in the key too.
var harderSchema = func() *schema.Schema {
	columns := slices.Clone(testSchema.Columns)
	columns[0].Compression, columns[1].Compression, columns[2].Compression = schema.Dense, schema.LZ4HC, schema.Dense
	s, err := schema.New(columns, testSchema.Keys)
	if err != nil {
		panic(err)
	}
	return s
}()

// infoOf returns the description of the file of a column in the first rowset.
func (w *testStore) infoOf(col int) cfile.Info {
	w.t.Helper()
	st := must.Get(w.tab.acquire())(w.t)
	defer st.release()
	f := must.Get(st.tree.Sets[0].File(col))(w.t)
	return f.Info()
}

// A recompression writes the columns in the form that the schema wants, with the redos of these
// columns applied. The rows at all times stay as they are, and so do redos of other columns and the
// rows and changes in memory. A recompression has nothing to do a second time, until a compaction
// writes one of the columns.
func TestRecompressKeepsTheRows(t *testing.T) {
	w := newTestStore(t, harderSchema)
	text := func(k int) string {
		return fmt.Sprint("the ", k*k*7919%1009, strings.Repeat(" quick", k%3), " fox jumps over ", k*31%97, " dogs")
	}
	var inserts []Op
	for k := range 1500 {
		inserts = append(inserts, w.op(Insert, k, k*k%1000, text(k)))
	}
	w.mustCommit(inserts...)
	w.flush()
	w.mustCommit(w.op(Update, 3, 1, text(5000)), w.op(Update, 1400, 2, ""), w.op(Delete, 4, 0, ""))
	w.flush()
	w.mustCommit(w.op(Update, 5, 50, "in memory"), w.op(Delete, 6, 0, ""), w.op(Insert, 9000, 1, "new"))
	want := w.rowsAtEveryTime()
	if i := w.infoOf(2); i.Compression != schema.LZ4 || i.Encoding != schema.Dictionary {
		t.Errorf("flushed in %v, %v", i.Encoding, i.Compression)
	}
	w.events = nil
	for _, recompressed := range []bool{false, true} {
		before := w.tab.RowSetMetadata()[0]
		res := must.Get(w.tab.Recompress(t.Context()))(t)
		must.Equal(t, recompressed, res.BytesWritten == 0, res)
		m := w.tab.RowSetMetadata()[0]
		if recompressed {
			break
		}
		if e := w.lastEvent(); e.Kind != compaction.Recompress || e.Why != requested ||
			e.Outputs[0].Redos != 1 || e.Outputs[0].Undos != 1 {
			t.Errorf("event %+v", e)
		}
		if m.Bytes >= before.Bytes || m.Bloom != before.Bloom || m.LiveRows != before.LiveRows || len(m.Forms) != 3 {
			t.Errorf("row %+v, was %+v", m, before)
		}
	}
	if i := w.infoOf(2); i.Compression != schema.Zlib {
		t.Errorf("recompressed in %v, %v", i.Encoding, i.Compression)
	}
	must.Equal(t, w.infoOf(3).Compression, schema.NoCompression, "an integer without a wish")
	w.checkRowsAtEveryTime(want)
	w.checkStored()
	w.checkFree()
	w.reopened(0).checkRowsAtEveryTime(want)

	w.flush()
	must.Get(w.tab.CompactMajor(t.Context(), []string{"s"}))(t)
	must.Equal(t, w.infoOf(2).Compression, schema.LZ4, "a major compaction wrote")
	if res, err := w.tab.Recompress(t.Context()); err != nil || res.BytesWritten == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	w.checkRowsAtEveryTime(want)
	w.checkStored()
}

// A column that would not be smaller keeps its file, and is not looked at again.
func TestRecompressLeavesWhatItCannotImprove(t *testing.T) {
	columns := slices.Clone(testSchema.Columns)
	columns[2].Encoding = schema.Plain // a dictionary of one word would be left out
	s := must.Get(schema.New(columns, testSchema.Keys))(t)
	w := newTestStore(t, s)
	w.mustCommit(w.op(Insert, 1, 1, "x"))
	w.flush()
	before := w.tab.RowSetMetadata()[0]
	if res, err := w.tab.Recompress(t.Context()); err != nil || res.BytesWritten != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	m := w.tab.RowSetMetadata()[0]
	if !slices.Equal(m.Columns, before.Columns) || len(m.Forms) != 1 || m.Forms[0].Compression != schema.LZ4HC {
		t.Errorf("%+v", m)
	}
	epoch := w.m.Epoch()
	if _, err := w.tab.Recompress(t.Context()); err != nil || w.m.Epoch() != epoch {
		t.Errorf("a second time: %v", err)
	}
}

// A rowset is at rest if nothing was written to it for some time and no update waits.
func TestRowSetsAtRest(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.tab.opts.RecompressAfter = 1000
	recompressible := func() int {
		t.Helper()
		infos := must.Get(w.tab.Deltas(nil))(t)
		must.Equal(t, len(infos), 1, infos)
		return infos[0].Recompressible
	}
	w.mustCommit(w.op(Insert, 1, 1, "x"), w.op(Insert, 2, 1, "x"))
	w.flush()
	must.Equal(t, recompressible(), 0, "columns without a clock")
	const us = mvcc.Timestamp(1) << 12
	w.present = 5000 * us
	must.Equal(t, recompressible(), 1, "columns of a rowset of unknown age")
	w.mustCommit(w.op(Delete, 1, 0, ""))
	must.Equal(t, recompressible(), 0, "columns with a change in memory")
	w.flush()
	must.Equal(t, recompressible(), 0, "columns of redos that were written now")
	w.present++
	w.present += us
	must.Equal(t, recompressible(), 1, "columns after a microsecond")
	w.tab.opts.RecompressAfter = -1
	must.Equal(t, recompressible(), 0, "columns when disabled")
	w.tab.opts.RecompressAfter = 1000
	w.mustCommit(w.op(Update, 2, 3, "y"))
	w.flush()
	w.present += 2 * us
	must.Equal(t, recompressible(), 0, "columns with an update")
	must.Get(w.tab.CompactMajor(t.Context(), nil))(t)
	must.Equal(t, recompressible(), 0, "columns, written now")
	w.present += 2 * us
	if _, err := w.tab.CollectUndos(t.Context()); err != nil || recompressible() != 1 {
		t.Errorf("%v, %d columns", err, recompressible())
	}
}
