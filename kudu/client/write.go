package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kudurpc"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/mvcc"
)

// send writes the requests of a lane until it has none, or the session has failed.
func (s *Session) send(l *lane) {
	for {
		s.mu.Lock()
		if s.failed != nil {
			for _, r := range l.queue {
				s.used -= r.Bytes()
			}
			l.queue = nil
		}
		if len(l.queue) == 0 {
			l.sending = false
			s.sending--
			s.changed.Broadcast()
			s.mu.Unlock()
			return
		}
		r := l.queue[0]
		l.queue = slices.Delete(l.queue, 0, 1)
		s.mu.Unlock()

		ctx, cancel := context.WithTimeout(s.ctx, s.o.Timeout)
		err := s.write(ctx, l.tablet, r)
		cancel()
		s.finish(r, err)
	}
}

// finish notes that a request was answered, or failed for good.
func (s *Session) finish(r *requestRows, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= r.Bytes()
	s.keepMemory(r)
	if err != nil && s.failed == nil {
		s.failed = err
	}
	s.changed.Broadcast()
}

// begin returns the id of a new request.
func (s *Session) begin() *pb.RequestIdPB {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	s.open[s.seq] = true
	return &pb.RequestIdPB{ClientId: &s.id, SeqNo: proto.Int64(s.seq), AttemptNo: proto.Int64(0)}
}

// next makes id the ID of another attempt. Servers forget the answers below the first request that is not
// complete, so it is the lowest one of all tablets.
func (s *Session) next(id *pb.RequestIdPB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := id.GetSeqNo()
	for seq := range s.open {
		first = min(first, seq)
	}
	id.FirstIncompleteSeqNo, id.AttemptNo = &first, proto.Int64(id.GetAttemptNo()+1)
}

func (s *Session) end(id *pb.RequestIdPB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id.GetSeqNo())
}

// write writes a request to a tablet, or its rows to other tablets if the tablet is gone.
func (s *Session) write(ctx context.Context, t *tablet, r *requestRows) error {
	a, err := s.t.tries(ctx, t.id, true, false)
	if errors.Is(err, errTabletGone) {
		return s.reroute(ctx, t, r)
	}
	if err != nil {
		return err
	}
	id := s.begin()
	defer func() { s.end(id) }()
	request := &pb.WriteRequestPB{TabletId: []byte(t.id), Schema: s.wire, RowOperations: r.Message()}
	unsure := false
	for {
		s.next(id)
		response := &pb.WriteResponsePB{}
		request.AuthzToken, request.PropagatedTimestamp = a.token, s.t.c.clock.now()
		err := a.call(ctx, &kudurpc.Call{Method: "Write", Request: request, Response: response, ID: id})
		if err == nil {
			return s.written(a, r, response)
		}
		stale := kudurpc.ClassOf(err) == kudurpc.Stale
		unsure = unsure || stale || wasSent(err)
		if stale && r.repeatable {
			s.end(id) // carried out or not: it does not matter
			id = s.begin()
			err = a.again(ctx, err)
		} else {
			err = a.recover(ctx, err)
		}
		if errors.Is(err, errTabletGone) {
			return s.reroute(ctx, t, r)
		}
		if err != nil {
			err = otherSchema(err)
			err = fmt.Errorf("write of %d rows: %w", r.N, err)
			if unsure {
				err = fmt.Errorf("%w: %w", err, ErrUnknownOutcome)
			}
			return s.t.wrap(err)
		}
	}
}

// written notes the answer to a request.
func (s *Session) written(a *tries, r *requestRows, answer *pb.WriteResponsePB) error {
	s.t.c.clock.see(answer.GetTimestamp())
	refused := map[int]error{}
	for _, e := range answer.GetPerRowErrors() {
		i := int(e.GetRowIndex())
		if i < 0 || i >= r.N {
			return a.bad("Write", fault.Corruptf("error of row %d of %d", i, r.N))
		}
		refused[i] = rowCause(e.GetError())
	}
	errs := s.rowErrors(a.tablet, r, refused)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done.Timestamp = max(s.done.Timestamp, mvcc.Timestamp(answer.GetTimestamp()))
	s.done.Rows += int64(r.N - len(refused))
	s.keep(errs)
	return nil
}

// keep keeps row errors, as many as the options say. The caller has locked mu.
func (s *Session) keep(errs []*RowError) {
	n := min(len(errs), s.o.RowErrors-len(s.done.RowErrors))
	s.done.RowErrors = append(s.done.RowErrors, errs[:n]...)
	s.done.More += int64(len(errs) - n)
}

// rowErrors returns the errors of rows that were refused, by their numbers.
func (s *Session) rowErrors(t *tablet, r *requestRows, refused map[int]error) (errs []*RowError) {
	if len(refused) == 0 {
		return nil
	}
	n := 0
	s.encoder.Each(&r.Rows, func(row *kudurow.Row) error {
		if cause := refused[n]; cause != nil {
			errs = append(errs, &RowError{Op: Op(row.Op), Tablet: t.id, Key: s.keyText(row.Cells), Cause: cause})
		}
		n++
		return nil
	})
	return errs
}

// keyText returns the key of a row with some cells as JSON, without columns that are not given.
func (s *Session) keyText(cells [][]byte) string {
	keys := s.schema.Keys
	if cells[keys-1] == nil {
		keys-- // the auto-incrementing column
	}
	return celltext.Printable(string(celltext.AppendObject(nil, s.schema.Columns[:keys], cells[:keys])))
}

// reroute writes the rows of a request for a tablet that is gone to those that have them now. Rows that
// no tablet has are row errors: their range was dropped. Later rows of the lane come the same way, after
// these.
func (s *Session) reroute(ctx context.Context, gone *tablet, r *requestRows) error {
	known, err := s.t.tablets(ctx)
	if err != nil {
		return err
	}
	parts := map[*tablet]*requestRows{}
	refused := map[int]error{}
	var key []byte
	n := 0
	s.encoder.Each(&r.Rows, func(row *kudurow.Row) error {
		key = s.parts.AppendKey(key[:0], row.Cells)
		to := known.find(key)
		switch {
		case to == nil:
			refused[n] = fmt.Errorf("its range was dropped: %w", ErrNotCovered)
		case parts[to] == nil:
			parts[to] = &requestRows{repeatable: r.repeatable}
			fallthrough
		default:
			s.encoder.Append(&parts[to].Rows, row)
		}
		n++
		return nil
	})
	for to, part := range parts {
		if err := s.write(ctx, to, part); err != nil {
			return err
		}
	}
	errs := s.rowErrors(gone, r, refused)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(errs)
	return nil
}
