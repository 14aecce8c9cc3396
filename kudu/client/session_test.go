package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

func int32Cell(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
func int64Cell(n int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// Each row is written once and in order, whatever fails: the servers are busy, are not the leader any
// more, lose requests, and lose answers. Inserts would otherwise be refused, and updates lost.
func TestSessionsWriteEachRowOnce(t *testing.T) {
	r := seedtest.Rand(t)
	d := newFakeTablets(t)
	failures, chance := 0, rand.New(rand.NewPCG(r.Uint64(), 0)) // of the servers' goroutines
	fail := func(server int, of *rpctest.Request) *rpctest.Reply {
		if of.Method() != "Write" || chance.IntN(3) > 0 {
			return nil
		}
		failures++
		switch chance.IntN(6) {
		case 0:
			return rpcError(pb.RpcErrorCode_ERROR_SERVER_TOO_BUSY)
		case 1:
			return serviceError(pb.TabletServerErrorCode_TABLET_NOT_RUNNING, kudurpc.IllegalState)
		case 2:
			return serviceError(pb.TabletServerErrorCode_TABLET_SERVER_UNKNOWN_ERROR, kudurpc.ServiceUnavailable)
		case 3:
			return rpcError(pb.RpcErrorCode_ERROR_INVALID_AUTHORIZATION_TOKEN)
		case 4: // another leader
			for _, tablet := range d.tablets {
				leads := chance.IntN(3)
				for i, replica := range tablet.place.InternedReplicas {
					*replica.Role = map[bool]int32{true: int32(pb.Role_LEADER)}[i == leads]
				}
			}
			d.locate()
		}
		return &rpctest.Reply{Close: true}
	}
	d.before, d.after = fail, fail
	d.patient()
	s := must.Get(d.table.NewSession(t.Context(), &SessionOptions{BatchRows: 20}))(t)
	defer s.Close()
	want := map[string][][]byte{}
	n := int64(0)
	for range 60 {
		var rows [][][]byte
		for range r.IntN(50) {
			if row := randomRow(r); want[d.key(row)] == nil {
				want[d.key(row)] = row
				rows = append(rows, row)
			}
		}
		n += int64(len(rows))
		if r.IntN(2) == 0 {
			must.Do(t, s.ApplyBatch(t.Context(), Insert, batchOf(d.s.Columns, rows...)))
		} else {
			for _, row := range rows {
				must.Do(t, s.Apply(t.Context(), Insert, row))
			}
		}
		for i := range 10 { // of one row, in order
			if len(rows) > 0 {
				row := rows[0]
				want[d.key(row)] = [][]byte{row[0], row[1], int64Cell(i), nil}
				b := batchOf(d.s.Columns, want[d.key(row)])
				must.Do(t, s.ApplyBatch(t.Context(), Update, b))
				n++
			}
		}
	}
	done := must.Get(s.Flush(t.Context()))(t)
	must.Equal(t, done.RowErrors, nil)
	must.Equal(t, done.Rows, n)
	must.Equal(t, d.newest(), want)
	must.Equal(t, len(d.at(uint64(done.Timestamp)+1)), len(want))
	must.Equal(t, d.largest, 20)
	if failures < 20 {
		t.Errorf("%d failures", failures)
	}
	checkIDs(t, d.sequence)
}

// checkIDs checks that no request was announced as complete before its last attempt, and that no two
// attempts are the same. Others than the last may arrive late: on another connection.
func checkIDs(t *testing.T, ids []*pb.RequestIdPB) {
	t.Helper()
	last, seen := map[int64]int64{}, map[[2]int64]bool{}
	for _, id := range ids {
		attempt := [2]int64{id.GetSeqNo(), id.GetAttemptNo()}
		if seen[attempt] || id.GetFirstIncompleteSeqNo() > id.GetSeqNo() {
			t.Errorf("request %v", id)
		}
		seen[attempt] = true
		last[id.GetSeqNo()] = max(last[id.GetSeqNo()], id.GetAttemptNo())
	}
	first := int64(0)
	for _, id := range ids {
		if seq := id.GetSeqNo(); id.GetAttemptNo() == last[seq] && seq < first {
			t.Errorf("request %v after those below %d were complete", id, first)
		}
		first = max(first, id.GetFirstIncompleteSeqNo())
	}
	if first < 2 {
		t.Error("nothing was announced as complete")
	}
}

// Rows that the server refuses are reported with their keys; the others are written.
func TestRowsThatAreRefused(t *testing.T) {
	d := newFakeTablets(t)
	s := must.Get(d.table.NewSession(t.Context(), &SessionOptions{RowErrors: 2}))(t)
	defer s.Close()
	row := func(k int) [][]byte { return [][]byte{int32Cell(k), []byte("é\n"), nil, nil} }
	for _, op := range []Op{Insert, Insert, InsertIgnore, Delete, Delete, DeleteIgnore, UpdateIgnore, Upsert} {
		must.Do(t, s.Apply(t.Context(), op, row(7)))
	}
	done := must.Get(s.Flush(t.Context()))(t)
	must.Equal(t, done.Rows, 6)
	must.Equal(t, len(done.RowErrors), 2)
	must.Fail(t, done.RowErrors[0], ErrKeyExists)
	must.Fail(t, done.RowErrors[1], ErrNotFound)
	must.Fail(t, done.RowErrors[1], ErrRow)
	for i, op := range []Op{Insert, Delete} {
		e := done.RowErrors[i]
		must.Equal(t, e.Op, op)
		must.Equal(t, e.Key, `{"k":7,"n":"é\n"}`)
		must.Contain(t, e.Error(), "of row {")
	}
	for k := range 5 {
		must.Do(t, s.Apply(t.Context(), Delete, row(k)))
	}
	done = must.Get(s.Flush(t.Context()))(t)
	must.Equal(t, done.More, 3)
	must.Equal(t, done.Rows, 0)
	done = must.Get(s.Flush(t.Context()))(t)
	must.Equal(t, done, Flushed{})
}

// What a server would not check is refused before it is sent.
func TestBadRowsAreNotSent(t *testing.T) {
	d := newFakeTablets(t)
	s := must.Get(d.table.NewSession(t.Context(), nil))(t)
	defer s.Close()
	must.Fail(t, s.Apply(t.Context(), Upsert, [][]byte{nil, []byte("n"), nil, nil}), ErrRow)
	must.Fail(t, s.Apply(t.Context(), Upsert, nil), ErrRow)
	must.Fail(t, s.Apply(t.Context(), Op(7), [][]byte{int32Cell(1), []byte("n"), nil, nil}), ErrRow)
	b := batchOf(d.s.Columns, [][]byte{int32Cell(1), []byte("n"), nil, nil}, [][]byte{int32Cell(1), {0xff}, nil, nil})
	must.Fail(t, s.ApplyBatch(t.Context(), Upsert, b), ErrRow)
	must.Fail(t, s.ApplyBatch(t.Context(), Upsert, &batch.RecordBatch{Schema: []schema.Column{{Name: "y"}},
		Columns: []*batch.Vector{nil}}), ErrNoColumn)
	must.Do(t, must.Err(s.Flush(t.Context())))
	must.Equal(t, d.calls["Write"], 0)
	set := batch.MakeBitmap(4)
	set.SetRange(0, 3)
	must.Do(t, s.ApplySet(t.Context(), UpsertIgnore, [][]byte{int32Cell(1), []byte("n"), int64Cell(5), nil}, set))
	must.Equal(t, must.Get(s.Flush(t.Context()))(t).Rows, 1)
}

// A row that no partition covers is refused until there is one, which the session finds.
func TestRangesThatAreNew(t *testing.T) {
	d := newFakeTablets(t)
	d.change(func() {
		delete(d.tablets, "d")
		d.tablets["c"].place.Partition.PartitionKeyEnd = []byte("\x00\x00\x00\x01m")
	})
	s := must.Get(d.table.NewSession(t.Context(), nil))(t)
	defer s.Close()
	var rows [][][]byte
	for k := range 20 {
		rows = append(rows, [][]byte{int32Cell(k), []byte("z"), nil, nil})
	}
	b := batchOf(d.s.Columns, rows...)
	must.Fail(t, s.ApplyBatch(t.Context(), Upsert, b), ErrNotCovered)
	refused := 0
	for _, row := range rows {
		if err := s.Apply(t.Context(), Upsert, row); err != nil {
			must.Fail(t, err, ErrNotCovered)
			refused++
		}
	}
	must.Equal(t, must.Get(s.Flush(t.Context()))(t).Rows, int64(20-refused))
	if refused == 0 || refused == 20 {
		t.Fatalf("%d of 20 rows were refused", refused)
	}
	d.change(func() { d.place("d", "\x00\x00\x00\x01m", "", 0) })
	must.Do(t, s.ApplyBatch(t.Context(), Upsert, b))
	must.Equal(t, must.Get(s.Flush(t.Context()))(t).Rows, 20)
	must.Equal(t, len(d.newest()), 20)
}

// When a tablet is gone, its rows go to those that have them now; rows of a range that was dropped are
// row errors.
func TestRowsOfTabletsThatAreGone(t *testing.T) {
	d := newFakeTablets(t)
	s := must.Get(d.table.NewSession(t.Context(), nil))(t)
	defer s.Close()
	d.change(func() {
		delete(d.tablets, "b")
		delete(d.tablets, "d")
		d.place("e", "\x00\x00\x00\x00m", "\x00\x00\x00\x00s", 0)
		d.place("f", "\x00\x00\x00\x00s", "\x00\x00\x00\x01", 1)
	})
	for i := range 60 { // in order: a row of every third
		must.Do(t, s.Apply(t.Context(), Upsert, [][]byte{int32Cell(i % 20), {"anz"[i%20%3]}, int64Cell(i), nil}))
	}
	done := must.Get(s.Flush(t.Context()))(t)
	rows := d.newest()
	must.Equal(t, int(done.Rows)+len(done.RowErrors), 60)
	must.Equal(t, len(done.RowErrors), 3*(20-len(rows)))
	for _, e := range done.RowErrors {
		must.Fail(t, e, ErrNotCovered)
		must.Equal(t, e.Tablet, "d")
	}
	for _, row := range rows {
		must.Equal(t, row[2], int64Cell(40+int(row[0][0])))
	}
	if len(done.RowErrors) == 0 || len(d.tablets["e"].rows) == 0 || len(d.tablets["f"].rows) == 0 {
		t.Errorf("%d row errors, and too few rows", len(done.RowErrors))
	}
}

// A request whose outcome the server has forgotten is repeated if that does no harm.
func TestForgottenRequests(t *testing.T) {
	for op, ok := range map[Op]bool{Upsert: true, Insert: false} {
		d := newFakeTablets(t)
		s := must.Get(d.table.NewSession(t.Context(), nil))(t)
		n := 0
		d.after = func(_ int, r *rpctest.Request) *rpctest.Reply {
			if n++; n > 2 {
				return nil
			}
			return rpcError(pb.RpcErrorCode_ERROR_REQUEST_STALE)
		}
		must.Do(t, s.Apply(t.Context(), op, [][]byte{int32Cell(1), []byte("n"), nil, nil}))
		_, err := s.Flush(t.Context())
		if ok {
			must.Do(t, err)
			must.Equal(t, len(d.answers), 3)
		} else {
			must.Fail(t, err, ErrUnknownOutcome)
			must.Fail(t, s.Apply(t.Context(), op, [][]byte{int32Cell(1), []byte("n"), nil, nil}), ErrUnknownOutcome)
			for _, part := range []string{`table "t"`, "Write at 127.0.0.1", "tablet ", "ERROR_REQUEST_STALE"} {
				must.Contain(t, err.Error(), part)
			}
		}
		must.Do(t, s.Close())
	}
}

// A request that is never answered fails the session, which then takes no rows.
func TestRequestsThatAreNotAnswered(t *testing.T) {
	d := newFakeTablets(t)
	s := must.Get(d.table.NewSession(t.Context(), nil))(t)
	d.before = func(int, *rpctest.Request) *rpctest.Reply { return rpcError(pb.RpcErrorCode_ERROR_SERVER_TOO_BUSY) }
	row := [][]byte{int32Cell(1), []byte("n"), nil, nil}
	must.Do(t, s.Apply(t.Context(), Upsert, row))
	must.Fail(t, must.Err(s.Flush(t.Context())), context.DeadlineExceeded)
	must.Fail(t, s.Apply(t.Context(), Upsert, row), context.DeadlineExceeded)
	must.Fail(t, must.Err(s.Flush(t.Context())), context.DeadlineExceeded)
	must.Do(t, s.Close())
	must.Do(t, s.Close())
}

// Rows wait for memory: a session that a server does not answer takes no more than the limit.
func TestSessionsAreBounded(t *testing.T) {
	d := newFakeTablets(t)
	const limit = 100_000
	s := must.Get(d.table.NewSession(t.Context(), &SessionOptions{MemoryBytes: limit, BatchRows: 100}))(t)
	defer s.Close()
	answer := make(chan struct{})
	d.before = func(int, *rpctest.Request) *rpctest.Reply {
		d.mu.Unlock()
		<-answer
		d.mu.Lock()
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	row := [][]byte{int32Cell(1), make([]byte, 1000), nil, nil}
	applied := 0
	for {
		s.mu.Lock()
		full := s.used >= limit
		s.mu.Unlock()
		if full {
			cancel() // the next Apply waits, and ends with its context
		}
		if err := s.Apply(ctx, Upsert, row); err != nil {
			must.Fail(t, err, context.Canceled)
			break
		}
		applied++
	}
	if applied < limit/1100 || applied > limit/1000 {
		t.Errorf("%d rows were applied", applied)
	}
	must.Fail(t, must.Err(s.Flush(ctx)), context.Canceled)
	close(answer)
	must.Equal(t, must.Get(s.Flush(t.Context()))(t).Rows, int64(applied))
	must.Do(t, s.Apply(t.Context(), Upsert, row))
}

// Requests have the highest timestamp of all answers, so that writes to several tablets are in order.
func TestWritesAreInOrderOfTime(t *testing.T) {
	d := newFakeTablets(t)
	s := must.Get(d.table.NewSession(t.Context(), nil))(t)
	defer s.Close()
	last := mvcc.Timestamp(0)
	for i := range 20 {
		must.Do(t, s.Apply(t.Context(), Upsert, [][]byte{int32Cell(i), []byte("n"), nil, nil}))
		d.change(func() {
			if i == 10 {
				d.now = 5 // the clock of another server
			}
		})
		done := must.Get(s.Flush(t.Context()))(t)
		if done.Timestamp <= last {
			t.Errorf("write %d at %d, after %d", i, done.Timestamp, last)
		}
		last = done.Timestamp
	}
	at := must.Get(d.table.Now(t.Context()))(t)
	if at <= last {
		t.Errorf("now is %d, after a write at %d", at, last)
	}
}

func TestSessionOptionsAreChecked(t *testing.T) {
	d := newFakeTablets(t)
	for _, o := range []SessionOptions{{BatchRows: -1}, {BatchBytes: maxBatchBytes + 1}, {Timeout: maxWriteTime + 1},
		{MemoryBytes: -1}, {Timeout: -1}, {RowErrors: -1}} {
		must.Refuse(t, must.Err(d.table.NewSession(t.Context(), &o)), o)
	}
	must.Equal(t, fmt.Sprint(Upsert, Op(99)), "upsert operation 99")
	must.Equal(t, len(slices.Collect(maps.Keys(opNames))), 8)
}

// A server that demands a newer token for the table gets it, in writes and in scans.
func TestTokensForTablesAreRenewed(t *testing.T) {
	d := newFakeTablets(t)
	asked := 0
	d.before = func(_ int, r *rpctest.Request) *rpctest.Reply {
		token := ""
		switch r.Method() {
		case "Write":
			token = string(parse(d.f, r, &pb.WriteRequestPB{}).AuthzToken.GetTokenData())
		case "Scan":
			token = string(parse(d.f, r, &pb.ScanRequestPB{}).GetNewScanRequest().GetAuthzToken().GetTokenData())
		case "Checksum":
			token = string(parse(d.f, r, &pb.ChecksumRequestPB{}).GetNewRequest().GetAuthzToken().GetTokenData())
		}
		if token == fmt.Sprint(asked+1) {
			return nil
		}
		return rpcError(pb.RpcErrorCode_ERROR_INVALID_AUTHORIZATION_TOKEN)
	}
	s := must.Get(d.table.NewSession(t.Context(), nil))(t)
	defer s.Close()
	for ; asked < 3; asked++ {
		must.Do(t, s.Apply(t.Context(), Upsert, [][]byte{int32Cell(1), []byte("n"), nil, nil}))
		must.Equal(t, must.Get(s.Flush(t.Context()))(t).Rows, 1)
	}
	rows, _ := must.Get2(d.table.Count(t.Context(), ScanOptions{}))(t)
	must.Equal(t, rows, 1)
	asked++
	sums, _ := must.Get2(d.table.Checksum(t.Context(), ScanOptions{}))(t)
	must.Equal(t, len(sums), 4)
}

// A table that was altered so that the rows of a request or a scan do not fit it must be opened again.
func TestTablesThatWereAltered(t *testing.T) {
	d := newFakeTablets(t)
	s := must.Get(d.table.NewSession(t.Context(), nil))(t)
	defer s.Close()
	at := must.Get(d.table.Now(t.Context()))(t)
	d.before = func(int, *rpctest.Request) *rpctest.Reply {
		return serviceError(pb.TabletServerErrorCode_MISMATCHED_SCHEMA, kudurpc.InvalidArgument)
	}
	must.Do(t, s.Apply(t.Context(), Upsert, [][]byte{int32Cell(1), []byte("n"), nil, nil}))
	_, write := s.Flush(t.Context())
	_, scan := rowsOf(must.Get(d.table.Scan(t.Context(), ScanOptions{At: at}))(t))
	for _, err := range []error{write, scan} {
		must.Fail(t, err, ErrSchema)
		must.Contain(t, err.Error(), "open it again")
	}
	must.Equal(t, errors.Is(write, ErrUnknownOutcome), false)
}
