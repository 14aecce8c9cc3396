package rewrite

import (
	"context"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/lineitemtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// lineitemInMemory returns the first rows of lineitem in a MemRowSet, in write batches of 1,000.
func lineitemInMemory(b *testing.B, rows int) (*schema.Schema, *memrowset.MemRowSet) {
	s, columns := lineitemtest.LoadTable(b, rows)
	m, e := memrowset.New(s, nil), keyenc.NewEncoder(s)
	for from := 0; from < columns[0].Len; from += 1000 {
		to := min(from+1000, columns[0].Len)
		buf, ends := m.RowFormat().AppendVectorRows(nil, nil, columns, from, to)
		images, at := make([][]byte, 0, to-from), 0
		for _, end := range ends {
			images, at = append(images, buf[at:end]), end
		}
		keys := change.AppendVectorKeys(nil, e, columns, from, to)
		m.InsertMany(keys, mvcc.Timestamp(1+from), lsn.LSN(1+from), images)
	}
	return s, m
}

// memory is a MemRowSet as the input of a flush.
type memory struct{ it *memrowset.HistoryIterator }

func (m memory) Next() (*change.Rows, error) { return m.it.Next(batch.WindowRows) }
func (m memory) Keeps() int                  { return m.it.Keeps() }

// BenchmarkFlush flushes 200,000 rows of lineitem to files whose bytes are dropped.
func BenchmarkFlush(b *testing.B) {
	const rows = 200_000
	s, m := lineitemInMemory(b, rows)
	b.ReportAllocs()
	for b.Loop() {
		w := rowset.NewRollingWriter(&discard{}, s, func() uint64 { return 1 }, 0)
		job := Job{Schema: s, Inputs: []Input{memory{m.Histories(mvcc.Everything)}}, Writer: w}
		must.Do(b, must.Err(Run(context.Background(), job)))
		must.Do(b, must.Err(w.Finish()))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
}
