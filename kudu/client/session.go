package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// SessionOptions are how a Session writes. The zero value of a field is its default.
type SessionOptions struct {
	// BatchRows and BatchBytes are the size of a request, which goes to one tablet: 0 is 10,000 rows and
	// 1 MiB. Servers take at most 50 MiB, so BatchBytes is at most 24 MiB.
	BatchRows, BatchBytes int
	// MemoryBytes bounds the rows that are not yet written: 0 is 12 MiB. Apply waits.
	MemoryBytes int
	// Timeout is the longest time of a request with all its repetitions: 0 is 60 s. It is at most 9
	// minutes, since servers remember for ten that a request was carried out.
	Timeout time.Duration
	// RowErrors is how many row errors are kept until the next Flush: 0 is 1000. Others are counted.
	RowErrors int
}

const (
	maxBatchBytes  = 24 << 20
	maxWriteTime   = 9 * time.Minute
	defaultTimeout = time.Minute
)

func (o SessionOptions) withDefaults() (SessionOptions, error) {
	for _, d := range []struct {
		of    *int
		value int
	}{{&o.BatchRows, 10_000}, {&o.BatchBytes, 1 << 20}, {&o.MemoryBytes, 12 << 20}, {&o.RowErrors, 1000}} {
		if *d.of < 0 {
			return o, fmt.Errorf("session: an option of %d", *d.of)
		}
		if *d.of == 0 {
			*d.of = d.value
		}
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.BatchBytes > maxBatchBytes {
		return o, fmt.Errorf("session: requests of %d bytes, at most %d", o.BatchBytes, maxBatchBytes)
	}
	if o.Timeout < 0 || o.Timeout > maxWriteTime {
		return o, fmt.Errorf("session: a timeout of %v, at most %v", o.Timeout, maxWriteTime)
	}
	return o, nil
}

// Session writes rows to a table. It collects them in requests, one for each tablet, and sends those
// that are full; Flush sends all and waits. Operations on one row are carried out in the order of their
// calls. Each request is carried out once, however often it is repeated.
//
// A session that could not write a request has failed: which of its rows are written is then unknown,
// and all its calls return the error. A row that a server refuses does not fail the session: Flush
// returns it. The rows of one request become visible together, the rows of several do not.
//
// A Session is not safe for concurrent use; a table may have several.
type Session struct {
	t       *Table
	o       SessionOptions
	schema  *schema.Schema
	encoder *kudurow.Encoder
	parts   *kudurow.Partitioner
	wire    []byte // the schema, as requests have it
	ctx     context.Context
	cancel  context.CancelFunc

	known  *tablets
	routes map[*tablet]*lane
	last   *lane  // of the last row
	key    []byte // memory
	keys   [][]byte

	id string // of the client, for request ids

	mu      sync.Mutex
	changed *sync.Cond // of any of the fields below
	used    int        // bytes of rows that are collected or on their way
	sending int        // lanes with a goroutine
	seq     int64      // of the last request
	open    map[int64]bool
	done    Flushed
	failed  error
	spare   []*requestRows
	unused  int // bytes of the memory of spare
}

// Flushed is what a session has written since the last Flush.
type Flushed struct {
	Rows int64 // without those in RowErrors
	// Timestamp is the highest one of the rows; 0 without rows. A scan at Timestamp+1 sees them.
	Timestamp mvcc.Timestamp
	RowErrors []*RowError // in no order
	More      int64       // row errors that were not kept
}

// lane is the way of rows to a tablet: one request after the other.
type lane struct {
	tablet  *tablet
	filling *requestRows // of the applier; nil is none
	chosen  []int32      // memory: rows of a batch
	queue   []*requestRows
	sending bool
}

// requestRows are the rows of a request.
type requestRows struct {
	kudurow.Rows
	repeatable bool // see Op.repeatable
}

// memory returns how many bytes r takes.
func (r *requestRows) memory() int { return cap(r.Operations) + cap(r.Indirect) }

// NewSession returns a session, which ends with Close and not with ctx. o may be nil. Errors:
// ErrUnsupported for a table with columns that this client cannot write.
func (t *Table) NewSession(ctx context.Context, o *SessionOptions) (*Session, error) {
	if o == nil {
		o = &SessionOptions{}
	}
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := kudurow.Check(t.Schema); err != nil {
		return nil, t.wrap(err)
	}
	wire, err := proto.Marshal(kudurow.WireSchema(t.Schema))
	if err != nil {
		return nil, t.wrap(fmt.Errorf("schema: %w", err))
	}
	s := &Session{t: t, o: options, schema: t.Schema, encoder: kudurow.NewEncoder(t.Schema), parts: t.partitioner,
		wire: wire, id: newClientID(), open: map[int64]bool{}}
	s.changed = sync.NewCond(&s.mu)
	known, err := t.tablets(ctx)
	if err != nil {
		return nil, err
	}
	s.load(known)
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

// newClientID returns an id that no other client has.
func newClientID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Close ends the session. Rows that were not flushed may be lost. It waits for requests in flight,
// which it ends.
func (s *Session) Close() error {
	s.mu.Lock()
	if s.failed == nil {
		s.failed = fault.ErrClosed
	}
	s.mu.Unlock()
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.sending > 0 {
		s.changed.Wait()
	}
	return nil
}

// Apply adds an operation on a row, of which cells has a cell for each column of the table, nil for
// NULL: the bytes of a batch.Vector. A delete uses the key only, an insert not the
// auto-incrementing column. It waits if rows take too much memory. Errors: those of AppendRow, with
// ErrRow; ErrNotCovered; those of the session.
func (s *Session) Apply(ctx context.Context, op Op, cells [][]byte) error {
	return s.ApplySet(ctx, op, cells, nil)
}

// ApplySet is Apply that gives only the columns whose bits are set; nil is all.
func (s *Session) ApplySet(ctx context.Context, op Op, cells [][]byte, set batch.Bitmap) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.encoder.CheckRow(op.wire(), cells, set); err != nil {
		return err
	}
	if err := s.checkPartition(op); err != nil {
		return err
	}
	s.key = s.parts.AppendKey(s.key[:0], cells)
	l, err := s.route(ctx, s.key)
	if err != nil {
		return fmt.Errorf("row with the key %s: %w", s.keyText(cells), err)
	}
	r := s.fill(l, op)
	before := r.Bytes()
	s.encoder.AppendChecked(&r.Rows, op.wire(), cells, set)
	s.count(r.Bytes() - before)
	s.rotateFull(l)
	return nil
}

// checkPartition refuses an insert whose tablet only the server knows.
func (s *Session) checkPartition(op Op) error {
	if i := s.schema.AutoIncrement(); i >= 0 && (op == Insert || op == InsertIgnore) && s.parts.Uses(i) {
		return fault.Unsupportedf("insert into a table that is partitioned by its auto-incrementing column")
	}
	return nil
}

// ApplyBatch adds an operation on each of the selected rows of b, whose columns have the names of
// columns of the table: a column that b lacks is not given. Nothing is kept of b. If a row is refused, none
// is added; if ctx ends while the session waits for memory, some are. Errors: as Apply; ErrNoColumn; ErrSchema.
func (s *Session) ApplyBatch(ctx context.Context, op Op, b *batch.RecordBatch) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	source, err := s.encoder.Source(op.wire(), b)
	if err != nil {
		return err
	}
	if err := s.checkPartition(op); err != nil {
		return err
	}
	touched, err := s.choose(ctx, source, b)
	if err != nil {
		return err
	}
	for _, l := range touched {
		rows := l.chosen
		l.chosen = l.chosen[:0]
		for len(rows) > 0 && err == nil {
			rows = s.fillFrom(l, op, source, rows)
			err = s.ready(ctx)
		}
	}
	return err
}

// fillFrom adds the first of rows to the request of a lane, and returns the others.
func (s *Session) fillFrom(l *lane, op Op, source *kudurow.Source, rows []int32) []int32 {
	r := s.fill(l, op)
	n := min(len(rows), s.o.BatchRows-r.N)
	n = source.Fit(rows[:n], s.o.BatchBytes-r.Bytes())
	before := r.Bytes()
	source.AppendRows(&r.Rows, rows[:n])
	s.count(r.Bytes() - before)
	if n < len(rows) {
		s.rotate(l)
	} else {
		s.rotateFull(l)
	}
	return rows[n:]
}

// fill returns the request of a lane that rows are added to.
func (s *Session) fill(l *lane, op Op) *requestRows {
	if l.filling == nil {
		l.filling = s.newRequest()
		l.filling.repeatable = true
	}
	l.filling.repeatable = l.filling.repeatable && op.repeatable()
	return l.filling
}

// newRequest returns a request without rows.
func (s *Session) newRequest() *requestRows {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.spare); n > 0 {
		r := s.spare[n-1]
		s.spare = s.spare[:n-1]
		s.unused -= r.memory()
		return r
	}
	return &requestRows{}
}

// keepMemory keeps the memory of a request for another one, unless there is much. The caller has locked
// mu.
func (s *Session) keepMemory(r *requestRows) {
	if r.Reset(); s.unused < s.o.MemoryBytes/4 {
		s.spare = append(s.spare, r)
		s.unused += r.memory()
	}
}

func (s *Session) count(bytes int) {
	s.mu.Lock()
	s.used += bytes
	s.mu.Unlock()
}

// rotateFull sends the request of a lane if it is full.
func (s *Session) rotateFull(l *lane) {
	if r := l.filling; r.N >= s.o.BatchRows || r.Bytes() >= s.o.BatchBytes {
		s.rotate(l)
	}
}

// rotate puts the request of a lane, if it has rows, into its queue, from which a goroutine sends.
func (s *Session) rotate(l *lane) {
	if l.filling == nil || l.filling.N == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.queue = append(l.queue, l.filling)
	l.filling = nil
	if !l.sending {
		l.sending = true
		s.sending++
		go s.send(l)
	}
}

func (s *Session) rotateAll() {
	for _, l := range s.routes {
		s.rotate(l)
	}
}

// ready waits until rows take little enough memory. Errors: ctx's and the session's.
func (s *Session) ready(ctx context.Context) error {
	s.mu.Lock()
	full, err := s.used >= s.o.MemoryBytes, s.failed
	s.mu.Unlock()
	if err != nil || !full {
		return err
	}
	for _, l := range s.routes {
		if !s.busy(l) { // else its request had better become full
			s.rotate(l)
		}
	}
	return s.wait(ctx, func() bool { return s.used < s.o.MemoryBytes })
}

// busy reports whether requests of a lane are on their way.
func (s *Session) busy(l *lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.sending
}

// wait waits until a condition of the fields that mu guards, or until nothing is on its way.
func (s *Session) wait(ctx context.Context, until func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.failed == nil && !until() && s.sending > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.changed.Wait()
	}
	return s.failed
}

// drain sends all rows and waits until they are written.
func (s *Session) drain(ctx context.Context) error {
	s.rotateAll()
	return s.wait(ctx, func() bool { return false })
}

// Flush sends all rows, waits until they are written, and returns what was written since the last call.
// If ctx ends first, the rows are still on their way; another Flush waits for them. Errors: those of
// ctx and of the session.
func (s *Session) Flush(ctx context.Context) (Flushed, error) {
	if err := s.drain(ctx); err != nil {
		return Flushed{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.done
	s.done = Flushed{}
	return done, nil
}
