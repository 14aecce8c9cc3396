package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// withRows returns a table with random rows.
func withRows(t *testing.T, r *rand.Rand, n int) (*fakeTablets, map[string][][]byte) {
	d := newFakeTablets(t)
	rows := map[string][][]byte{}
	for range n {
		row := randomRow(r)
		rows[d.key(row)] = row
	}
	d.setRows(rows)
	return d, rows
}

// rowsOf returns the rows of a scan, and its error.
func rowsOf(s *Scan) (rows [][][]byte, err error) {
	for s.Next() {
		b := s.Batch()
		for row := range b.Rows() {
			var cells [][]byte
			for _, v := range b.Columns {
				cells = append(cells, v.Cell(row))
			}
			rows = append(rows, cloneCells(cells))
		}
	}
	return rows, s.Close()
}

// byKey returns rows of all columns by their keys.
func (d *fakeTablets) byKey(rows [][][]byte) map[string][][]byte {
	m := map[string][][]byte{}
	for _, row := range rows {
		if m[d.key(row)] != nil {
			d.t.Errorf("row %x twice", row)
		}
		m[d.key(row)] = row
	}
	return m
}

func TestScansReturnAllRows(t *testing.T) {
	r := seedtest.Rand(t)
	d, want := withRows(t, r, 300)
	for _, o := range []ScanOptions{{}, {Ordered: true}, {Tablets: 1}, {Followers: true, NoCache: true},
		{MemoryBytes: 1}} {
		s := must.Get(d.table.Scan(t.Context(), o))(t)
		must.Equal(t, s.Columns()[0].Name, "k")
		rows := must.Get(rowsOf(s))(t)
		must.Equal(t, d.byKey(rows), want)
		must.Do(t, s.Close())
		must.Equal(t, s.Next(), false)
		n, at := must.Get2(d.table.Count(t.Context(), o))(t)
		must.Equal(t, n, int64(len(want)))
		if at <= s.At() {
			t.Errorf("a count at %d, after a scan at %d", at, s.At())
		}
	}
	must.Equal(t, len(d.scanners), 0)
	total := 0
	for id := range d.tablets {
		total += len(must.Get(rowsOf(must.Get(d.table.Scan(t.Context(), ScanOptions{Tablet: id}))(t)))(t))
	}
	must.Equal(t, total, len(want))
}

// A scan of one tablet has the time that the server has chosen with its first rows, also when another
// server goes on.
func TestScansOfOneTablet(t *testing.T) {
	d, all := withRows(t, seedtest.Rand(t), 300)
	d.patient()
	for id := range d.tablets {
		var opened []uint64
		failures := 0
		d.change(func() {
			d.before = func(_ int, r *rpctest.Request) *rpctest.Reply {
				m := parse(d.f, r, &pb.ScanRequestPB{})
				if m.NewScanRequest != nil {
					opened = append(opened, m.NewScanRequest.GetSnapTimestamp())
				} else if failures++; failures == 1 {
					return &rpctest.Reply{Close: true}
				}
				return nil
			}
		})
		s := must.Get(d.table.Scan(t.Context(), ScanOptions{Tablet: id, Ordered: true, BatchBytes: 1}))(t)
		at := s.At()
		d.change(func() { d.now += 10 })
		rows := must.Get(rowsOf(s))(t)
		for key, row := range d.byKey(rows) {
			must.Equal(t, row, all[key])
		}
		must.Equal(t, s.At(), at)
		must.Equal(t, opened[0], uint64(0))
		for _, time := range opened[1:] {
			must.Equal(t, time, uint64(at))
		}
		if failures > 0 && len(opened) != 2 {
			t.Errorf("%d scanners were opened after a failure", len(opened))
		}
	}
	d.change(func() {
		d.before = func(int, *rpctest.Request) *rpctest.Reply { return &rpctest.Reply{Message: &pb.ScanResponsePB{}} }
	})
	for id := range d.tablets {
		must.Fail(t, must.Err(d.table.Scan(t.Context(), ScanOptions{Tablet: id})), ErrCorrupt)
	}
}

// Columns come in the order of their names, tests that servers cannot do are done here, and their
// columns are not in the result.
func TestScansOfSomeColumnsAndRows(t *testing.T) {
	r := seedtest.Rand(t)
	d, all := withRows(t, r, 300)
	for _, c := range []struct {
		where []batch.Predicate
		pass  func(row [][]byte) bool
	}{
		{[]batch.Predicate{{Column: "n", Op: batch.Le, Values: [][]byte{[]byte("k")}}},
			func(row [][]byte) bool { return string(row[1]) <= "k" }},
		{[]batch.Predicate{{Column: "n", Op: batch.Like, Values: [][]byte{{}, {1}}}},
			func(row [][]byte) bool { return row[1][1] == 1 }},
		{[]batch.Predicate{{Column: "v", Op: batch.IsNull}, {Column: "k", Op: batch.Ne, Values: [][]byte{int32Cell(7)}}},
			func(row [][]byte) bool { return row[2] == nil && !bytes.Equal(row[0], int32Cell(7)) }},
		{[]batch.Predicate{{Column: "x", Op: batch.Eq, Values: [][]byte{make([]byte, 8)}}},
			func([][]byte) bool { return true }},
		{[]batch.Predicate{{Column: "v", Op: batch.In}}, func([][]byte) bool { return false }},
	} {
		var want []string
		for _, row := range all {
			if c.pass(row) {
				want = append(want, fmt.Sprint(row[2], row[0]))
			}
		}
		o := ScanOptions{Columns: []string{"v", "k"}, Where: c.where}
		s := must.Get(d.table.Scan(t.Context(), o))(t)
		must.Equal(t, len(s.Columns()), 2)
		var got []string
		for _, row := range must.Get(rowsOf(s))(t) {
			must.Equal(t, len(row), 2)
			got = append(got, fmt.Sprint(row[0], row[1]))
		}
		slices.Sort(got)
		slices.Sort(want)
		must.Equal(t, got, want)
		n, _ := must.Get2(d.table.Count(t.Context(), o))(t)
		must.Equal(t, n, int64(len(want)))
	}
}

func TestScansOfRangesAndLimits(t *testing.T) {
	r := seedtest.Rand(t)
	d, all := withRows(t, r, 300)
	o := ScanOptions{Start: [][]byte{int32Cell(200)}, Stop: [][]byte{int32Cell(500), []byte("m")}, Ordered: true}
	want := map[string][][]byte{}
	for key, row := range all {
		if k := string(key); k >= "\x80\x00\x00\xc8" && k < "\x80\x00\x01\xf4m" {
			want[k] = row
		}
	}
	must.Equal(t, d.byKey(must.Get(rowsOf(must.Get(d.table.Scan(t.Context(), o))(t)))(t)), want)
	for _, where := range [][]batch.Predicate{nil, {{Column: "k", Op: batch.Ne, Values: [][]byte{int32Cell(1 << 20)}}}} {
		for _, limit := range []int64{1, 7, 8, 100, 1000} {
			rows := must.Get(rowsOf(must.Get(d.table.Scan(t.Context(), ScanOptions{Limit: limit, Where: where}))(t)))(t)
			must.Equal(t, len(rows), int(min(limit, int64(len(all)))))
		}
	}
}

// A scan has the rows of one time, in all tablets, whatever is written meanwhile. Changes from there on
// lead to the rows of a later time.
func TestSnapshotsAndChanges(t *testing.T) {
	r := seedtest.Rand(t)
	d, before := withRows(t, r, 200)
	s := must.Get(d.table.Scan(t.Context(), ScanOptions{Tablets: 2}))(t)
	must.Equal(t, s.Next(), true)
	changed := map[string][][]byte{}
	deleted := map[string]bool{}
	for key, row := range before {
		switch r.IntN(4) {
		case 0:
			changed[key] = [][]byte{row[0], row[1], int64Cell(7), nil}
		case 1:
			deleted[key] = true
		}
	}
	for range 50 {
		row := randomRow(r)
		if before[d.key(row)] == nil {
			changed[d.key(row)] = row
		}
	}
	d.setRows(changed)
	d.mu.Lock()
	for key := range deleted {
		d.now++
		for _, tablet := range d.tablets {
			if tablet.rows[key] != nil {
				tablet.rows[key] = append(tablet.rows[key], fakeVersion{d.now, nil})
			}
		}
	}
	d.mu.Unlock()
	n := int64(s.Batch().Selected())
	for s.Next() {
		n += int64(s.Batch().Selected())
	}
	must.Do(t, s.Close())
	must.Equal(t, n, int64(len(before)))
	again := must.Get(rowsOf(must.Get(d.table.Scan(t.Context(), ScanOptions{At: s.At()}))(t)))(t)
	must.Equal(t, d.byKey(again), before)

	at := must.Get(d.table.Now(t.Context()))(t)
	diff := must.Get(d.table.Scan(t.Context(), ScanOptions{From: s.At(), At: at}))(t)
	must.Equal(t, diff.Columns()[4].Name, Deleted)
	for _, row := range must.Get(rowsOf(diff))(t) {
		key := d.key(row)
		if row[4][0] == 1 {
			delete(before, key)
			must.Equal(t, deleted[key], true)
		} else {
			before[key] = row[:4]
			must.Equal(t, changed[key], row[:4])
		}
	}
	must.Equal(t, before, d.newest())
}

// Changes of a table that was altered are refused, unless the caller knows how it was.
func TestChangesOfAlteredTables(t *testing.T) {
	d, _ := withRows(t, seedtest.Rand(t), 10)
	d.f.set(func() { d.f.tables["id1"].version = 1 })
	o := ScanOptions{From: 1}
	err := must.Err(d.table.Scan(t.Context(), o))
	must.Fail(t, err, ErrUnsupported)
	must.Contain(t, err.Error(), "altered 1 times")
	o.AltersAddOnly = true
	must.Equal(t, len(must.Get(rowsOf(must.Get(d.table.Scan(t.Context(), o))(t)))(t)), 10)
	o.Where = []batch.Predicate{{Column: "v", Op: batch.IsNull}}
	must.Contain(t, must.Err(d.table.Scan(t.Context(), o)).Error(), "not in the key")
	must.Refuse(t, must.Err(d.table.Scan(t.Context(), ScanOptions{From: 5, At: 4})))
}

// An ordered scan goes on elsewhere after each failure, also one of changes: no row is missing, and none
// comes twice.
func TestOrderedScansGoOn(t *testing.T) {
	r := seedtest.Rand(t)
	d, want := withRows(t, r, 300)
	d.patient()
	failures := 0
	fail := func(_ int, of *rpctest.Request) *rpctest.Reply {
		if r.IntN(3) > 0 {
			return nil
		}
		failures++
		n := r.IntN(6)
		if n == 2 && parse(d.f, of, &pb.ScanRequestPB{}).NewScanRequest != nil {
			n = 0
		}
		switch n {
		case 0:
			return rpcError(pb.RpcErrorCode_ERROR_SERVER_TOO_BUSY)
		case 1:
			return serviceError(pb.TabletServerErrorCode_TABLET_NOT_RUNNING, kudurpc.ServiceUnavailable)
		case 2:
			return serviceError(pb.TabletServerErrorCode_SCANNER_EXPIRED, kudurpc.NotFound)
		case 3:
			return serviceError(pb.TabletServerErrorCode_TABLET_SERVER_UNKNOWN_ERROR, kudurpc.IllegalState)
		case 4:
			return serviceError(pb.TabletServerErrorCode_TABLET_NOT_FOUND, kudurpc.NotFound)
		}
		return &rpctest.Reply{Close: true}
	}
	at := must.Get(d.table.Now(t.Context()))(t)
	d.before, d.after = fail, fail
	for _, o := range []ScanOptions{{Ordered: true}, {From: 1}, {Ordered: true, Start: [][]byte{int32Cell(0)}}} {
		o.At = at
		rows := must.Get(rowsOf(must.Get(d.table.Scan(t.Context(), o))(t)))(t)
		for i := range rows {
			rows[i] = rows[i][:4]
		}
		must.Equal(t, d.byKey(rows), want)
	}
	if failures < 30 {
		t.Errorf("%d failures", failures)
	}
	// A scan without order says so, if rows were returned before.
	failures = 0
	d.after = nil
	d.before = func(_ int, r *rpctest.Request) *rpctest.Reply {
		if m := parse(d.f, r, &pb.ScanRequestPB{}); m.NewScanRequest != nil {
			return nil
		}
		return &rpctest.Reply{Close: true}
	}
	err := must.Err(rowsOf(must.Get(d.table.Scan(t.Context(), ScanOptions{At: at}))(t)))
	must.Fail(t, err, errScanLost)
	must.Contain(t, err.Error(), "set Ordered")
}

// A busy server is asked again for the same rows, also without order.
func TestBusyServersKeepTheScanner(t *testing.T) {
	r := seedtest.Rand(t)
	d, want := withRows(t, r, 200)
	d.before = func(int, *rpctest.Request) *rpctest.Reply {
		if r.IntN(4) == 0 {
			return rpcError(pb.RpcErrorCode_ERROR_SERVER_TOO_BUSY)
		}
		return nil
	}
	must.Equal(t, d.byKey(must.Get(rowsOf(must.Get(d.table.Scan(t.Context(), ScanOptions{}))(t)))(t)), want)
}

// A scan that ends early lets the servers forget its scanners. It reads one tablet at a time here: a
// call that opens a scanner and is canceled does not return its ID.
func TestScansThatEndEarly(t *testing.T) {
	d, _ := withRows(t, seedtest.Rand(t), 200)
	s := must.Get(d.table.Scan(t.Context(), ScanOptions{Tablets: 1}))(t)
	must.Equal(t, s.Next(), true)
	must.Do(t, s.Close())
	d.change(func() { must.Equal(t, len(d.scanners), 0) })
	ctx, cancel := context.WithCancel(t.Context())
	s = must.Get(d.table.Scan(ctx, ScanOptions{Tablets: 1}))(t)
	must.Equal(t, s.Next(), true)
	cancel()
	must.Fail(t, must.Err(rowsOf(s)), context.Canceled)
	d.change(func() { must.Equal(t, len(d.scanners), 0) })
}

// Answers that make no sense are errors that name the server and the tablet.
func TestAnswersThatMakeNoSense(t *testing.T) {
	d, _ := withRows(t, seedtest.Rand(t), 100)
	at := must.Get(d.table.Now(t.Context()))(t)
	more := true
	for name, m := range map[string]*pb.ScanResponsePB{
		"no scanner":      {HasMoreResults: &more},
		"missing columns": {ColumnarData: &pb.ColumnarRowBlockPB{}},
	} {
		d.change(func() {
			d.before = func(int, *rpctest.Request) *rpctest.Reply { return &rpctest.Reply{Message: m} }
		})
		err := must.Err(rowsOf(must.Get(d.table.Scan(t.Context(), ScanOptions{At: at}))(t)))
		must.Fail(t, err, ErrCorrupt, name)
		for _, part := range []string{`table "t": scan: Scan at 127.0.0.1:`, ", tablet "} {
			must.Contain(t, err.Error(), part)
		}
	}
}

// Servers sum the rows that were written, and a sum begins anew when a server fails.
func TestChecksums(t *testing.T) {
	r := seedtest.Rand(t)
	d, _ := withRows(t, r, 300)
	d.patient()
	fail := func(int, *rpctest.Request) *rpctest.Reply {
		if r.IntN(12) == 0 {
			return &rpctest.Reply{Close: true}
		}
		return nil
	}
	for _, columns := range [][]string{nil, {"v", "k"}} {
		d.change(func() { d.before, d.after = nil, nil })
		var want kudurow.Summer
		s := must.Get(d.table.Scan(t.Context(), ScanOptions{Columns: columns}))(t)
		for s.Next() {
			want.Add(s.Batch())
		}
		must.Do(t, s.Close())
		d.change(func() { d.before, d.after = fail, fail })
		sums, at := must.Get2(d.table.Checksum(t.Context(), ScanOptions{Columns: columns, At: s.At()}))(t)
		must.Equal(t, at, s.At())
		var sum uint64
		var rows int64
		for _, tablet := range sums {
			sum, rows = sum+tablet.Sum, rows+tablet.Rows
			must.Equal(t, d.tablets[tablet.Tablet] != nil, true)
		}
		must.Equal(t, sum, want.Sum)
		must.Equal(t, rows, want.Rows)
	}
	for _, o := range []ScanOptions{{Limit: 1}, {From: 1}, {Ordered: true},
		{Where: []batch.Predicate{{Column: "k", Op: batch.Ne, Values: [][]byte{int32Cell(1)}}}}} {
		must.Refuse(t, must.Err2(d.table.Checksum(t.Context(), o)), o)
	}
}

func TestScanOptionsAreChecked(t *testing.T) {
	d := newFakeTablets(t)
	for _, c := range []struct {
		o    ScanOptions
		want error
	}{
		{ScanOptions{Columns: []string{"y"}}, ErrNoColumn},
		{ScanOptions{Columns: []string{"k", "k"}}, ErrSchema},
		{ScanOptions{Where: []batch.Predicate{{Column: "y", Op: batch.IsNull}}}, ErrNoColumn},
		{ScanOptions{Start: [][]byte{{1}}}, ErrRow},
		{ScanOptions{Stop: make([][]byte, 3)}, ErrRow},
		{ScanOptions{Columns: []string{}}, nil},
		{ScanOptions{Limit: -1}, nil},
		{ScanOptions{Tablet: "z"}, errTabletGone},
	} {
		s, err := d.table.Scan(t.Context(), c.o)
		if err == nil {
			_, err = rowsOf(s)
		}
		if c.want == nil {
			must.Refuse(t, err, c.o)
		} else if !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.o, err, c.want)
		}
	}
	must.Equal(t, d.table.c.clock.now() != nil, false)
	must.Equal(t, slices.Sorted(maps.Keys(d.tablets)), []string{"a", "b", "c", "d"})
}
