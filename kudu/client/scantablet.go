package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kudurpc"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/mvcc"
)

// tabletScan is the scan of one tablet.
type tabletScan struct {
	s   *Scan
	id  string
	try *tries

	scanner  []byte // empty: a new one must be opened
	number   uint32 // of the next call of the scanner
	lastKey  []byte // of an ordered scan
	returned bool   // rows were returned
	ended    bool
}

// open returns a scan of a tablet.
func (s *Scan) open(ctx context.Context, id string) (*tabletScan, error) {
	try, err := s.t.tries(ctx, id, false, s.p.o.Followers)
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	return &tabletScan{s: s, id: id, try: try}, nil
}

// read reads a tablet to its end. first is the first answer, nil before it.
func (r *tabletScan) read(ctx context.Context, first *answer) error {
	defer r.close(ctx)
	for a := first; ; {
		if a != nil {
			if err := r.deliver(ctx, a); err != nil || r.ended {
				return err
			}
		}
		var err error
		if a, err = r.next(ctx); err != nil {
			return err
		}
	}
}

// keepAlive is how often the server is told that a scanner is in use while its rows wait for the caller.
// It forgets scanners after 60 s.
const keepAlive = 20 * time.Second

// deliver hands rows to the caller of the scan.
func (r *tabletScan) deliver(ctx context.Context, a *answer) error {
	r.returned = r.returned || a.rows > 0
	ticks, stop := r.s.p.ticks(keepAlive)
	defer stop()
	for {
		select {
		case r.s.results <- a:
			return nil
		case <-ctx.Done():
			r.s.end(a)
			return context.Cause(ctx)
		case <-ticks:
			r.stayAlive(ctx)
		}
	}
}

// take waits until there is memory for an answer of so many bytes.
func (r *tabletScan) take(ctx context.Context, bytes int) error {
	ticks, stop := r.s.p.ticks(keepAlive)
	defer stop()
	for {
		freed := r.s.memory.take(bytes)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticks:
			r.stayAlive(ctx)
		}
	}
}

// ticks returns a channel that yields after each d, until stop is called.
func ticks(d time.Duration) (c <-chan time.Time, stop func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// stayAlive asks the server to keep the scanner. If that fails, so will the next call.
func (r *tabletScan) stayAlive(ctx context.Context) {
	if len(r.scanner) > 0 {
		r.try.call(ctx, &kudurpc.Call{Method: "ScannerKeepAlive", Response: &pb.ScannerKeepAliveResponsePB{},
			Request: &pb.ScannerKeepAliveRequestPB{ScannerId: r.scanner}})
	}
}

// next returns the next rows, perhaps none.
func (r *tabletScan) next(ctx context.Context) (*answer, error) {
	a := &answer{tablet: r.id, bytes: r.s.p.o.BatchBytes}
	if err := r.take(ctx, a.bytes); err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	a.memory = answers.Get().(*answerMemory)
	ctx, cancel := context.WithTimeout(ctx, r.s.p.o.Timeout)
	defer cancel()
	if err := r.ask(ctx, a); err != nil {
		r.s.end(a)
		return nil, fmt.Errorf("scan: %w", otherSchema(err))
	}
	return a, nil
}

// ask sets a to the next rows.
func (r *tabletScan) ask(ctx context.Context, a *answer) error {
	r.try.n = 0
	for {
		var response pb.ScanResponsePB
		call := &kudurpc.Call{Method: "Scan", Request: r.request(), Response: &response, Buffer: a.memory.buffer,
			Features: r.s.p.features}
		err := r.try.call(ctx, call)
		a.memory.buffer = call.Buffer
		if err == nil {
			r.s.memory.resize(a.bytes, len(call.Buffer))
			a.bytes = len(call.Buffer)
			return r.answer(&response, call, a)
		}
		if err = r.recover(ctx, err); err != nil {
			return err
		}
	}
}

// request returns the next request.
func (r *tabletScan) request() *pb.ScanRequestPB {
	m := &pb.ScanRequestPB{BatchSizeBytes: proto.Uint32(uint32(r.s.p.o.BatchBytes))}
	if len(r.scanner) > 0 {
		m.ScannerId, m.CallSeqId = r.scanner, &r.number
		return m
	}
	m.NewScanRequest = r.s.newScan(r.try, r.lastKey)
	return m
}

// newScan returns the request for a new scanner, after a key if that is not nil.
func (s *Scan) newScan(try *tries, lastKey []byte) *pb.NewScanRequestPB {
	m := proto.CloneOf(s.p.request)
	m.TabletId, m.AuthzToken, m.PropagatedTimestamp = []byte(try.tablet.id), try.token, s.t.c.clock.now()
	if lastKey != nil {
		m.LastPrimaryKey, m.StartPrimaryKey = lastKey, nil // both together are refused
	}
	return m
}

// answer notes an answer, and sets a to its rows.
func (r *tabletScan) answer(m *pb.ScanResponsePB, call *kudurpc.Call, a *answer) error {
	p := r.s.p
	r.s.t.c.clock.see(m.GetPropagatedTimestamp())
	if err := r.note("Scan", m.GetScannerId(), m.GetHasMoreResults()); err != nil {
		return err
	}
	if p.o.Ordered && m.GetLastPrimaryKey() != nil {
		r.lastKey = m.GetLastPrimaryKey()
	}
	if p.o.At == 0 {
		if m.SnapTimestamp == nil {
			return r.try.bad("Scan", errNoTime)
		}
		p.setTimes(mvcc.Timestamp(m.GetSnapTimestamp()))
	}
	if m.ColumnarData == nil { // no rows
		return nil
	}
	var err error
	if a.rows, err = kudurow.CountRows(m.ColumnarData); err != nil {
		return r.try.bad("Scan", err)
	}
	if len(p.columns) == 0 {
		return nil
	}
	if a.batch, err = a.memory.decoder.Decode(p.columns, m.ColumnarData, call.Sidecars); err != nil {
		return r.try.bad("Scan", err)
	}
	for i := range p.tests.Client {
		p.tests.Client[i].Eval(a.batch.Columns[p.at[i]], a.batch.Selection)
	}
	a.rows = int64(a.batch.Selected())
	a.batch.Schema, a.batch.Columns = p.columns[:p.n:p.n], a.batch.Columns[:p.n:p.n]
	return nil
}

// note notes an answer: its scanner, and whether more follows.
func (r *tabletScan) note(method string, scanner []byte, more bool) error {
	if len(r.scanner) == 0 {
		r.scanner, r.number = scanner, 0
	}
	r.number++
	if r.ended = !more; r.ended {
		r.scanner = nil
	} else if len(r.scanner) == 0 {
		return r.try.bad(method, fault.Corruptf("more rows follow, without a scanner"))
	}
	return nil
}

// errScanLost: rows of an unordered scan were returned, and the server that knows which has failed.
var errScanLost = errors.New("the rows that follow are unknown to other servers: set Ordered")

// recover prepares for the attempt after one that failed with err.
func (r *tabletScan) recover(ctx context.Context, err error) error {
	switch class := kudurpc.ClassOf(err); {
	case len(r.scanner) == 0:
		return r.try.recover(ctx, err)
	case class == kudurpc.Busy, class == kudurpc.Unavailable:
		return r.try.again(ctx, err) // the scanner waits, at the same call
	case class == kudurpc.Unreachable, class == kudurpc.NotServing, class == kudurpc.NoTablet, class == kudurpc.NoScanner:
	default:
		return err
	}
	if r.returned && !r.s.p.o.Ordered {
		return fmt.Errorf("%w: %w", errScanLost, err)
	}
	r.scanner = nil
	if kudurpc.ClassOf(err) == kudurpc.NoScanner {
		return r.try.again(ctx, err)
	}
	return r.try.recover(ctx, err)
}

// closeTimeout bounds how long a scan waits for a server to forget its scanner.
const closeTimeout = time.Second

// close lets the server forget a scanner that was not read to its end.
func (r *tabletScan) close(ctx context.Context) {
	if len(r.scanner) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	r.try.call(ctx, &kudurpc.Call{Method: "Scan", Response: &pb.ScanResponsePB{}, Request: &pb.ScanRequestPB{
		ScannerId: r.scanner, CallSeqId: &r.number, BatchSizeBytes: proto.Uint32(0), CloseScanner: proto.Bool(true)}})
}
