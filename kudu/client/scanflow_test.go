package client

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
)

// While its rows wait for the caller, or its next rows for memory, a scanner is kept alive at its server.
func TestScannersAreKeptAlive(t *testing.T) {
	for _, held := range []bool{false, true} {
		d, want := withRows(t, seedtest.Rand(t), 100)
		p := must.Get(d.table.plan(ScanOptions{Tablets: 1, MemoryBytes: 1}))(t)
		c := make(chan time.Time)
		p.ticks = func(time.Duration) (<-chan time.Time, func()) { return c, func() {} }
		s := must.Get(d.table.start(t.Context(), p))(t)
		n := 0
		if held {
			must.Equal(t, s.Next(), true)
			n = s.Batch().Selected()
		}
		c <- time.Time{} // is taken only while the scan waits
		c <- time.Time{} // is taken after the call for the first one
		d.mu.Lock()
		calls := d.calls["ScannerKeepAlive"]
		d.mu.Unlock()
		if calls == 0 {
			t.Error("the scanner was not kept alive")
		}
		must.Equal(t, n+len(must.Get(rowsOf(s))(t)), len(want))
	}
}

// Answers that the caller has not taken, or still has, are bounded.
func TestScansAreBounded(t *testing.T) {
	d, want := withRows(t, seedtest.Rand(t), 200)
	p := must.Get(d.table.plan(ScanOptions{MemoryBytes: 1, At: 1 << 40}))(t)
	c := make(chan time.Time)
	p.ticks = func(time.Duration) (<-chan time.Time, func()) { return c, func() {} }
	s := must.Get(d.table.start(t.Context(), p))(t)
	rows := 0
	for s.Next() {
		if rows += s.Batch().Selected(); rows == rowsPerAnswer {
			for range 20 {
				c <- time.Time{} // some tablet waits
			}
			d.mu.Lock()
			must.Equal(t, d.calls["Scan"], 1)
			d.mu.Unlock()
		}
	}
	must.Do(t, s.Close())
	must.Equal(t, rows, len(want))
	must.Equal(t, s.memory.used, 0)
}

// Tablets that have no rows of a scan by their partition keys are not asked.
func TestScansAskFewTablets(t *testing.T) {
	d, all := withRows(t, seedtest.Rand(t), 100)
	for key, row := range all {
		rows := 0
		before := d.calls["Scan"]
		where := []batch.Predicate{{Column: "k", Op: batch.Eq, Values: [][]byte{row[0]}},
			{Column: "n", Op: batch.Eq, Values: [][]byte{row[1]}}}
		s := must.Get(d.table.Scan(t.Context(), ScanOptions{Where: where, At: mvcc.Timestamp(d.now + 1)}))(t)
		for _, got := range must.Get(rowsOf(s))(t) {
			must.Equal(t, d.key(got), key)
			rows++
		}
		must.Equal(t, rows, 1)
		must.Equal(t, d.calls["Scan"]-before, 1)
	}
}
