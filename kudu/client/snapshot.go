package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kudurpc"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/mvcc"
)

// Now returns a time that is later than that of all rows that any client had written to the table before
// the call, though the servers' clocks differ. Scans at that time have the same rows, whichever replicas
// they read.
func (t *Table) Now(ctx context.Context) (mvcc.Timestamp, error) {
	ctx, cancel := t.c.limit(ctx)
	defer cancel()
	at, err := t.now(ctx)
	return at, t.wrap(err)
}

// now asks each server that leads a tablet.
func (t *Table) now(ctx context.Context) (at mvcc.Timestamp, err error) {
	known, err := t.tablets(ctx)
	if err != nil {
		return 0, err
	}
	asked := map[string]bool{}
	for _, tablet := range known.all {
		i := slices.IndexFunc(tablet.replicas, func(r replica) bool { return r.leads })
		if i >= 0 && asked[tablet.replicas[i].server] {
			continue
		}
		if i >= 0 {
			asked[tablet.replicas[i].server] = true
		}
		o, err := ScanOptions{Tablet: tablet.id}.withDefaults()
		if err != nil {
			return 0, err
		}
		one, err := t.snapshot(ctx, o)
		if err != nil {
			return 0, err
		}
		at = max(at, one)
	}
	if at == 0 {
		return 0, errNoTablets
	}
	return at, nil
}

var (
	errNoTime    = fault.Corruptf("a snapshot without a time")
	errNoTablets = errors.New("the table has no tablets, so no server that knows the time")
)

// snapshot asks the server of a tablet for the time of a scan without rows.
func (t *Table) snapshot(ctx context.Context, o ScanOptions) (mvcc.Timestamp, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ids, err := t.chosen(ctx, o.Tablet, &kudurow.Pruner{})
	if err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, errNoTablets
	}
	try, err := t.tries(ctx, ids[0], false, false)
	if err != nil {
		return 0, err
	}
	s := &Scan{t: t, p: &plan{request: &pb.NewScanRequestPB{ReadMode: proto.Int32(int32(pb.ReadMode_READ_AT_SNAPSHOT))}}}
	for {
		var m pb.ScanResponsePB
		request := &pb.ScanRequestPB{NewScanRequest: s.newScan(try, nil), BatchSizeBytes: proto.Uint32(0)}
		err := try.call(ctx, &kudurpc.Call{Method: "Scan", Request: request, Response: &m})
		if err == nil {
			t.c.clock.see(m.GetPropagatedTimestamp())
			(&tabletScan{s: s, try: try, scanner: m.GetScannerId(), number: 1}).close(ctx)
			if m.SnapTimestamp == nil {
				return 0, try.bad("Scan", errNoTime)
			}
			return mvcc.Timestamp(m.GetSnapTimestamp()), nil
		}
		if err = try.recover(ctx, err); err != nil {
			return 0, fmt.Errorf("scan: %w", err)
		}
	}
}

// TabletSum is the checksum of the rows of a tablet.
type TabletSum struct {
	Tablet string
	Sum    uint64
	Rows   int64
}

// Checksum asks the servers for the checksum of the rows of a scan, tablet by tablet, and returns its
// time. It depends on the cells and on the order of the columns, but not on the order of the rows: the
// sums of tablets may be added, modulo 2^64. Different rows may have the same sum, so only a difference
// is certain. o has no From, Limit, and Ordered, and tests that servers can do alone.
func (t *Table) Checksum(ctx context.Context, o ScanOptions) ([]TabletSum, mvcc.Timestamp, error) {
	sums, at, err := t.checksum(ctx, o)
	return sums, at, t.wrap(err)
}

func (t *Table) checksum(ctx context.Context, o ScanOptions) ([]TabletSum, mvcc.Timestamp, error) {
	if o.From != 0 || o.Limit != 0 || o.Ordered {
		return nil, 0, errors.New("a checksum has no From, Limit, or Ordered")
	}
	p, err := t.plan(o)
	if err != nil {
		return nil, 0, err
	}
	if len(p.tests.Client) > 0 {
		return nil, 0, fault.Unsupportedf("checksum of rows that pass a test of column %q that servers cannot do",
			p.tests.Client[0].Column)
	}
	p.request.RowFormatFlags, p.features = nil, p.features[1:]
	ids, err := t.chosen(ctx, p.o.Tablet, p.pruner(t))
	if err != nil {
		return nil, 0, err
	}
	at := p.o.At
	if at == 0 {
		if at, err = t.snapshot(ctx, p.o); err != nil {
			return nil, 0, err
		}
	}
	p.setTimes(at)
	sums := make([]TabletSum, len(ids))
	if p.tests.None {
		for i, id := range ids {
			sums[i].Tablet = id
		}
		return sums, at, nil
	}
	return sums, at, (&Scan{t: t, p: p}).sumAll(ctx, ids, sums)
}

// sumAll sets the sums of tablets, some at a time.
func (s *Scan) sumAll(ctx context.Context, ids []string, sums []TabletSum) error {
	ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	queue := make(chan int, len(ids))
	for i := range ids {
		queue <- i
	}
	close(queue)
	var wg sync.WaitGroup
	for range min(s.p.o.Tablets, len(ids)) {
		wg.Go(func() {
			for i := range queue {
				sum, err := s.sum(ctx, ids[i])
				if err != nil {
					s.fail(fmt.Errorf("checksum: %w", err))
					return
				}
				sums[i] = sum
			}
		})
	}
	wg.Wait()
	return s.failed()
}

// sum returns the sum of a tablet. It begins anew if the server that has summed a part of the rows fails.
func (s *Scan) sum(ctx context.Context, id string) (TabletSum, error) {
	sum := TabletSum{Tablet: id}
	try, err := s.t.tries(ctx, id, false, s.p.o.Followers)
	if err != nil {
		return sum, err
	}
	r := &tabletScan{s: s, id: id, try: try}
	defer r.close(ctx)
	for !r.ended {
		if err := s.sumNext(ctx, r, &sum); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// sumNext adds the next rows.
func (s *Scan) sumNext(ctx context.Context, r *tabletScan, sum *TabletSum) error {
	ctx, cancel := context.WithTimeout(ctx, s.p.o.Timeout)
	defer cancel()
	r.try.n = 0
	for {
		request := &pb.ChecksumRequestPB{BatchSizeBytes: proto.Uint32(uint32(s.p.o.BatchBytes))}
		if len(r.scanner) > 0 {
			request.CallSeqId = &r.number
			request.ContinueRequest = &pb.ContinueChecksumRequestPB{ScannerId: r.scanner, PreviousChecksum: &sum.Sum}
		} else {
			sum.Sum, sum.Rows = 0, 0
			request.NewRequest = s.newScan(r.try, nil)
		}
		var m pb.ChecksumResponsePB
		err := r.try.call(ctx, &kudurpc.Call{Method: "Checksum", Request: request, Response: &m, Features: s.p.features})
		if err == nil {
			sum.Sum = m.GetChecksum()
			sum.Rows += m.GetRowsChecksummed()
			return r.note("Checksum", m.GetScannerId(), m.GetHasMoreResults())
		}
		if err = r.recover(ctx, err); err != nil {
			return err
		}
	}
}
